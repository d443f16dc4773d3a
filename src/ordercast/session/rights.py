"""Who may do what: identities of clients, the rules of a file, and what they come to for one client. Pure.

A daemon asks once: at the greeting, at a join, and once for each new head of a message, so that messages cost nothing
more. All rules that match an identity are added up. Where there is no rule at all, whoever may connect to the unix
socket, or over TCP in the clear, may do everything; a client that is known by a certificate or a token may do all that
does not concern other parts of the cluster (`$…`, hold, force). Root and the user of the daemon may always do
everything: they could read its memory.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from ordercast.groups.names import ARCHIVERS, AT, FORCES, REPLICAS, RESERVED, control_group
from ordercast.model.errors import UsageError

ALL = ("*",)
RIGHTS = ("names", "join", "send", "replicate", "archive", "hold", "force")
QUOTAS = ("sessions", "memberships", "memory")


class Denied(UsageError):
    """Somebody lacks a right. The sentence names it, and who lacks it."""

    def __init__(self, why: str, right: str) -> None:
        super().__init__(why)
        self.right = right


class ClientIdentity(NamedTuple):
    """Who a client is."""

    kind: str  # user, cert, token; empty: nobody knows
    name: str
    groups: tuple[str, ...] = ()  # of a user of this machine
    is_owner: bool = False  # root, or the user of the daemon

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}" if self.kind else "a client that is not known"

    @property
    def titles(self) -> tuple[str, ...]:
        """What rules may call it."""
        return (f"{self.kind}:{self.name}", *(f"group:{group}" for group in self.groups)) if self.kind else ("anybody",)


ANYBODY = ClientIdentity("", "")
OWNER = ClientIdentity("user", "the daemon's own", is_owner=True)


@dataclass(frozen=True, slots=True)
class AccessRule:
    """One of [[rights]] in the file. Patterns have * for anything."""

    who: tuple[str, ...]  # user:NAME, group:NAME, cert:NAME, token:NAME, or anybody
    names: tuple[str, ...] = ()  # what it may call itself
    join: tuple[str, ...] = ()
    send: tuple[str, ...] = ()  # to groups, or to clients: bob@n1
    replicate: tuple[str, ...] = ()  # states of which it may have a replica
    archive: tuple[str, ...] = ()  # groups that it may archive; it may hold then, and answer clients
    hold: bool = False  # have everybody wait when it reads too slowly
    force: bool = False  # go on with a minority of the replicas
    sessions: int | None = None  # at this daemon, of all clients of one identity together; None: no bound of its own
    memberships: int | None = None
    memory: int | None = None  # bytes


class Granted:
    """What the rules come to for one client."""

    def __init__(self, identity: ClientIdentity, rules: Iterable[AccessRule], *, is_everything: bool = False) -> None:
        rules = tuple(rules)
        self.identity = identity
        self.is_everything = is_everything
        self.sessions = _bound(rule.sessions for rule in rules)
        self.memberships = _bound(rule.memberships for rule in rules)
        self.memory = _bound(rule.memory for rule in rules)
        self._names = _pattern(pattern for rule in rules for pattern in rule.names)
        self._join = _pattern(pattern for rule in rules for pattern in rule.join)
        self._send = _pattern(pattern for rule in rules for pattern in rule.send)
        self._replicate = _pattern(pattern for rule in rules for pattern in rule.replicate)
        archived = {pattern for rule in rules for pattern in rule.archive}
        self._archive = _pattern(archived | {control_group(name).removeprefix(ARCHIVERS) for name in archived})
        self._forces = any(rule.force for rule in rules)
        self._is_archiver = any(rule.archive for rule in rules)
        self._holds = self._is_archiver or any(rule.hold for rule in rules)

    def check_name(self, name: str) -> None:
        """One that gives none gets one from the daemon, which is nobody else's."""
        if not self.is_everything and name and not self._names.fullmatch(name):
            raise self._denied("names", name, f"call itself {name}")

    def check_hold(self) -> None:
        if not self.is_everything and not self._holds:
            raise Denied(
                f"{self.identity} may not have everybody wait for it, as archivers and clients with the policy hold "
                'do: write archive = ["GROUP"], for an archiver of GROUP, or hold = true in [[rights]] for it, and '
                "reload; or connect with another policy",
                "hold",
            )

    def check_join(self, group: str) -> None:
        if self.is_everything:
            return
        if group.startswith(REPLICAS):
            self._check(self._replicate, "replicate", group.removeprefix(REPLICAS), "have a replica of")
        elif group.startswith(ARCHIVERS):
            self._check(self._archive, "archive", group.removeprefix(ARCHIVERS), "archive")
        else:
            self._check(self._join, "join", group, "join")

    def check_send(self, groups: Iterable[str]) -> None:
        if self.is_everything:
            return
        for group in groups:
            if group.startswith(REPLICAS):
                self._check(self._replicate, "replicate", group.removeprefix(REPLICAS), "have a replica of")
            elif group.startswith(ARCHIVERS):
                self._check(self._archive, "archive", group.removeprefix(ARCHIVERS), "archive")
            elif group.startswith(FORCES):
                self.check_force(group.removeprefix(FORCES))
            elif not (AT in group and self._is_archiver):  # it answers whoever writes what it archives
                self._check(self._send, "send", group, "send to")

    def check_force(self, state: str) -> None:
        if not self.is_everything and not self._forces:
            raise Denied(
                f"{self.identity} may not force {state} to go on with some of its replicas: write force = true in "
                "[[rights]] for it, and reload",
                "force",
            )

    def _check(self, pattern: re.Pattern[str], right: str, name: str, verb: str) -> None:
        if not pattern.fullmatch(name):
            raise self._denied(right, name, f"{verb} {name}")

    def _denied(self, right: str, name: str, what: str) -> Denied:
        return Denied(
            f'{self.identity} may not {what}: write {right} = ["{name}"] in [[rights]] for it, and reload', right
        )


def _pattern(patterns: Iterable[str]) -> re.Pattern[str]:
    """What matches one of them. Names of Ordercast's own are matched only by patterns that say so."""
    wanted = [
        _text(pattern) if pattern.startswith(RESERVED) else f"(?![{RESERVED}]){_text(pattern)}"
        for pattern in sorted(set(patterns))
    ]
    return re.compile("|".join(wanted) or r"(?!)")


def _text(pattern: str) -> str:
    """Return the regular expression of a pattern: * stands for anything, and every other character for itself."""
    return "(?s:.*)".join(map(re.escape, pattern.split("*")))


def _bound(values: Iterable[int | None]) -> int | None:
    """The largest bound of several rules; none when no rule has one."""
    given = [value for value in values if value is not None]
    return max(given, default=None)


EVERYTHING = Granted(OWNER, (), is_everything=True)
_KNOWN = AccessRule((), names=ALL, join=ALL, send=ALL)  # of those who are known, where there are no rules


class Rights:
    """The rules of a daemon."""

    def __init__(self, rules: Iterable[AccessRule] = ()) -> None:
        self._rules = tuple((_titles(rule.who), rule) for rule in rules)

    def of(self, identity: ClientIdentity) -> Granted:
        """Denied when no rule names it."""
        if identity.is_owner:
            return Granted(identity, (), is_everything=True)
        if not self._rules:
            is_known = identity.kind in ("cert", "token")
            return Granted(identity, (_KNOWN,), is_everything=not is_known)
        found = [rule for pattern, rule in self._rules if any(map(pattern.fullmatch, identity.titles))]
        if not found:
            raise Denied(
                f'{identity} has no rights here: write who = ["{identity.titles[0]}"] in [[rights]] of the daemon\'s '
                "file, and reload",
                "connect",
            )
        return Granted(identity, found)


def _titles(who: Iterable[str]) -> re.Pattern[str]:
    return re.compile("|".join(map(_text, who)))


class Shares:
    """What the clients of each identity have at a daemon."""

    def __init__(self) -> None:
        self.sessions: dict[str, int] = {}
        self.memberships: dict[str, int] = {}

    def begin(self, granted: Granted) -> None:
        """A session more. Denied when there are too many."""
        who = str(granted.identity)
        count = self.sessions.get(who, 0)
        if granted.sessions is not None and count >= granted.sessions:
            raise Denied(
                f"{who} has {count:,} sessions at this daemon, as many as it may: close one, or raise sessions in "
                "[[rights]] for it, and reload",
                "sessions",
            )
        self.sessions[who] = count + 1

    def end(self, granted: Granted, memberships: int) -> None:
        who = str(granted.identity)
        _less(self.sessions, who, 1)
        _less(self.memberships, who, memberships)

    def check_join(self, granted: Granted, more: int) -> None:
        used = self.memberships.get(str(granted.identity), 0)
        if granted.memberships is not None and used + more > granted.memberships:
            raise Denied(
                f"the clients of {granted.identity} are in {used:,} groups, and may be in {granted.memberships:,}: "
                "leave some, or raise memberships in [[rights]] for it, and reload",
                "memberships",
            )

    def join(self, granted: Granted, more: int) -> None:
        who = str(granted.identity)
        self.memberships[who] = self.memberships.get(who, 0) + more

    def leave(self, granted: Granted, fewer: int) -> None:
        _less(self.memberships, str(granted.identity), fewer)


def _less(counts: dict[str, int], who: str, fewer: int) -> None:
    left = counts.get(who, 0) - fewer
    if left > 0:
        counts[who] = left
    else:
        counts.pop(who, None)
