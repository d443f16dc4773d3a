"""Who is in which group: a function of the ordered stream alone, and therefore the same at all daemons that share it.

A member whose daemon did not come along into the transitional configuration is partitioned: still in the view that
ends, and dropped when the next regular configuration comes. A group that has such members is signalled, once in each
view.
(Paper, sections 6.4.2 and 6.4.3, figures 6.18 to 6.24)
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from ordercast.model.events import GroupNews, Left, Reason, Transition, View, ViewId
from ordercast.model.ids import ProcessId

# What a daemon says of its clients: full names, by group.
Report = Mapping[str, Collection[str]]


class Notice(NamedTuple):
    """News for these local sessions."""

    sessions: tuple[int, ...]
    news: GroupNews


@dataclass(slots=True)
class Group:
    name: str
    view: ViewId
    members: dict[str, ProcessId] = field(default_factory=dict)  # and the daemon of each
    names: list[str] = field(default_factory=list)  # the same, sorted
    local: dict[str, int] = field(default_factory=dict)  # those of this daemon, and their sessions
    partitioned: set[str] = field(default_factory=set)
    is_signalled: bool = False

    def add(self, member: str, daemon: ProcessId) -> None:
        self.members[member] = daemon
        insort(self.names, member)

    def remove(self, member: str) -> None:
        del self.members[member]
        del self.names[bisect_left(self.names, member)]
        self.local.pop(member, None)
        self.partitioned.discard(member)

    def established(self) -> tuple[str, ...]:
        """Those who are not partitioned."""
        if not self.partitioned:
            return tuple(self.names)
        return tuple(name for name in self.names if name not in self.partitioned)


class Table:
    """The groups. Every change says what the local members are to be told."""

    def __init__(self, me: ProcessId, sessions: Mapping[str, int]) -> None:
        self._me = me
        self._sessions = sessions  # of the clients here, by full name
        self._groups: dict[str, Group] = {}
        self._joined: dict[str, set[str]] = {}  # the groups of each member

    # Questions

    def __len__(self) -> int:
        return len(self._groups)

    def members_of(self, group: str) -> tuple[str, ...]:
        found = self._groups.get(group)
        return () if found is None else tuple(found.names)

    def local_sessions(self, group: str) -> Collection[int]:
        found = self._groups.get(group)
        return () if found is None else found.local.values()

    def groups(self) -> dict[str, int]:
        """How many members each has, sorted by name."""
        return {name: len(self._groups[name].members) for name in sorted(self._groups)}

    def report(self) -> dict[str, list[str]]:
        """Of the clients here."""
        reported: dict[str, list[str]] = {}
        for name, group in self._groups.items():
            mine = [member for member in group.names if group.members[member] == self._me]
            if mine:
                reported[name] = mine
        return reported

    # Changes in the ordered stream. `remaining`: the daemons of the transitional configuration, None outside of one.

    def join(
        self, member: str, daemon: ProcessId, name: str, at: ViewId, remaining: Collection[ProcessId] | None
    ) -> list[Notice]:
        group = self._groups.setdefault(name, Group(name, at))
        if member in group.members:
            return []
        told = tuple(group.local.values())
        before = group.established()
        group.add(member, daemon)
        group.view = at
        self._joined.setdefault(member, set()).add(name)
        if remaining is not None and daemon not in remaining:
            group.partitioned.add(member)
            group.is_signalled = True
        members = tuple(group.names)
        notices = []
        if told:
            notices.append(Notice(told, View(name, members, before, Reason.JOIN, (member,), at)))
        if daemon == self._me and member in self._sessions:
            session = group.local[member] = self._sessions[member]
            notices.append(Notice((session,), View(name, members, (member,), Reason.JOIN, (member,), at)))
        if group.is_signalled:
            notices += _signal(group)
        return notices

    def leave(
        self, member: str, daemon: ProcessId, name: str, at: ViewId, reason: Reason = Reason.LEAVE
    ) -> list[Notice]:
        group = self._groups.get(name)
        if group is None or group.members.get(member) != daemon:
            return []
        notices = []
        if reason is Reason.LEAVE and member in group.local:
            notices.append(Notice((group.local[member],), Left(name)))
        group.remove(member)
        self._forget(member, name)
        if not group.members:
            del self._groups[name]
        elif not group.is_signalled:  # otherwise the coming view will show it
            group.view = at
            members = tuple(group.names)
            notices += _told(group, View(name, members, members, reason, (member,), at))
        return notices

    def disconnect(self, member: str, daemon: ProcessId, at: ViewId) -> list[Notice]:
        return [
            notice
            for name in sorted(self._joined.get(member, ()))
            for notice in self.leave(member, daemon, name, at, Reason.DISCONNECT)
        ]

    # Changes of the configuration of daemons

    def partition(self, remaining: Collection[ProcessId]) -> list[Notice]:
        """A transitional configuration: the other daemons are out of reach."""
        notices = []
        for group in self._sorted():
            lost = {name for name, daemon in group.members.items() if daemon not in remaining}
            group.partitioned |= lost
            if lost and not group.is_signalled:
                group.is_signalled = True
                notices += _signal(group)
        return notices

    def settle(self, at: ViewId, why: str) -> list[Notice]:
        """A regular configuration to which nobody new came: what was said in the old one is all there is to know."""
        self.drop_partitioned()
        notices = []
        for group in self._sorted():
            if group.is_signalled:
                group.is_signalled = False
                group.view = at
                members = tuple(group.names)
                notices += _told(group, View(group.name, members, members, Reason.NETWORK, (), at, why))
        return notices

    def drop_partitioned(self) -> None:
        for group in self._sorted():
            for member in sorted(group.partitioned):
                group.remove(member)
                self._forget(member, group.name)
            if not group.members:
                del self._groups[group.name]

    def merge(
        self, reports: Mapping[ProcessId, Report], together: Collection[ProcessId], at: ViewId, why: str
    ) -> list[Notice]:
        """All daemons of the new configuration have reported. `together`: those who have been with this one all the
        time, and whose clients know what the clients here know. (Figure 6.24; deviations, G23)"""
        merged: dict[str, dict[str, ProcessId]] = {}
        for daemon in sorted(reports):
            for name, members in reports[daemon].items():
                merged.setdefault(name, {}).update(dict.fromkeys(members, daemon))
        before, self._groups, self._joined = self._groups, {}, {}
        notices = []
        for name in sorted(merged):
            group = self._groups[name] = before.get(name) or Group(name, at)
            members = merged[name]
            is_changed = group.is_signalled or group.members != members
            group.members, group.names = members, sorted(members)
            group.partitioned, group.is_signalled = set(), False
            for member in members:
                self._joined.setdefault(member, set()).add(name)
            if is_changed:
                group.view = at
                shared = tuple(member for member in group.names if members[member] in together)
                notices += _told(group, View(name, tuple(group.names), shared, Reason.NETWORK, (), at, why))
        return notices

    def _sorted(self) -> list[Group]:
        return [self._groups[name] for name in sorted(self._groups)]

    def _forget(self, member: str, group: str) -> None:
        joined = self._joined[member]
        joined.discard(group)
        if not joined:
            del self._joined[member]

    def check_invariants(self) -> None:
        for name, group in self._groups.items():
            assert group.members, f"{name} is empty"
            assert group.names == sorted(group.members), f"{name} has other names than members"
            assert group.partitioned <= set(group.members), f"{name} lost somebody who is not in it"
            assert not group.partitioned or group.is_signalled, f"{name} lost somebody and did not say so"
            for member, session in group.local.items():
                assert group.members.get(member) == self._me, f"{member} is not here"
                assert self._sessions.get(member, session) == session, f"{member} has another session"
        joined = {(member, name) for name, group in self._groups.items() for member in group.members}
        assert joined == {(member, name) for member, names in self._joined.items() for name in names}


def _told(group: Group, news: GroupNews) -> list[Notice]:
    return [Notice(tuple(group.local.values()), news)] if group.local else []


def _signal(group: Group) -> list[Notice]:
    return _told(group, Transition(group.name, group.established(), group.view))
