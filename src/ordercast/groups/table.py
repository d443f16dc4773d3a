"""Who is in which group: a function of the ordered stream alone, and therefore the same at all daemons that share it.

A member whose daemon did not come along into the transitional configuration is partitioned: still in the view that
ends, and dropped when the next regular configuration comes. A group that has such members is signalled, once in each
view.
(Paper, sections 6.4.2 and 6.4.3, figures 6.18 to 6.24)
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Final, NamedTuple

from ordercast.groups.sorted_names import SortedNames
from ordercast.model.events import GroupNews, Left, Reason, Transition, View, ViewId
from ordercast.model.ids import ProcessId

# What a daemon says of its clients: full names, by group.
DaemonReport = Mapping[str, Collection[str]]
NOBODY_BEHIND: Final[Mapping[ProcessId, Collection[str]]] = {}


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

    def add(self, member: str, daemon: ProcessId) -> None:
        self.members[member] = daemon
        insort(self.names, member)

    def remove(self, member: str) -> None:
        del self.members[member]
        del self.names[bisect_left(self.names, member)]
        self.local.pop(member, None)
        self.partitioned.discard(member)

    def drop_partitioned(self) -> None:
        self.names = [name for name in self.names if name not in self.partitioned]
        for member in self.partitioned:
            del self.members[member]
        self.partitioned.clear()

    def established(self) -> tuple[str, ...]:
        """The members that are not partitioned."""
        if not self.partitioned:
            return tuple(self.names)
        return tuple(name for name in self.names if name not in self.partitioned)


class Table:
    """The groups. Every change says what the local members are to be told."""

    def __init__(self, me: ProcessId, sessions: Mapping[str, int]) -> None:
        self._me = me
        self._sessions = sessions  # of the clients here, by full name
        self._groups: dict[str, Group] = {}
        self._names = SortedNames()  # of all groups
        self._joined: dict[ProcessId, dict[str, set[str]]] = {}  # the groups of each member, by daemon
        self._signalled: dict[str, Group] = {}  # those that are, in their present views

    # Questions

    def __len__(self) -> int:
        return len(self._groups)

    def members_of(self, group: str) -> tuple[str, ...]:
        found = self._groups.get(group)
        return () if found is None else tuple(found.names)

    def local_sessions(self, group: str) -> Collection[int]:
        found = self._groups.get(group)
        return () if found is None else found.local.values()

    def joined_by(self, member: str, daemon: ProcessId) -> tuple[str, ...]:
        """Return the groups that a member of this daemon is in."""
        return tuple(sorted(self._joined.get(daemon, {}).get(member, ())))

    def is_signalled(self, group: str) -> bool:
        """Whether its members have been told, in their present view, that some are out of reach."""
        return group in self._signalled

    def own_views(self) -> dict[str, ViewId]:
        """Return the present views of the groups of clients here."""
        return {name: group.view for name, group in self._groups.items() if group.local}

    def groups(self) -> dict[str, int]:
        """How many members each has, sorted by name."""
        return {name: len(self._groups[name].members) for name in self._names}

    def page(self, after: str, count: int) -> tuple[dict[str, int], bool]:
        """The same for so many groups whose names come later than this one, and whether these are the last."""
        names = list(islice(self._names.after(after), count + 1))
        return {name: len(self._groups[name].members) for name in names[:count]}, len(names) <= count

    def members_page(self, group: str, after: str, count: int) -> tuple[tuple[str, ...], bool]:
        """So many members whose names come later than this one, and whether these are the last."""
        found = self._groups.get(group)
        names = [] if found is None else found.names
        start = bisect_right(names, after)
        return tuple(names[start : start + count]), start + count >= len(names)

    def report(self) -> dict[str, list[str]]:
        """Return the groups of the clients here."""
        reported: dict[str, list[str]] = {}
        mine = self._joined.get(self._me, {})
        for member in sorted(mine):
            for name in sorted(mine[member]):
                reported.setdefault(name, []).append(member)
        return reported

    # Changes in the ordered stream. `remaining`: the daemons of the transitional configuration, None outside of one.

    def join(
        self, member: str, daemon: ProcessId, name: str, at: ViewId, remaining: Collection[ProcessId] | None
    ) -> list[Notice]:
        group = self._groups.get(name)
        if group is None:
            group = self._groups[name] = Group(name, at)
            self._names.add(name)
        name = group.name  # one str for all its members
        if member in group.members:
            return []
        told = tuple(group.local.values())
        before = group.established()
        group.add(member, daemon)
        group.view = at
        self._joined.setdefault(daemon, {}).setdefault(member, set()).add(name)
        if remaining is not None and daemon not in remaining:
            group.partitioned.add(member)
            self._signalled[name] = group
        members = tuple(group.names)
        notices = []
        if told:
            notices.append(Notice(told, View(name, members, before, Reason.JOIN, (member,), at)))
        if daemon == self._me and member in self._sessions:
            session = group.local[member] = self._sessions[member]
            notices.append(Notice((session,), View(name, members, (member,), Reason.JOIN, (member,), at)))
        if name in self._signalled:
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
        self._forget(member, daemon, name)
        if not group.members:
            self._remove(name)
        elif name not in self._signalled:  # otherwise the coming view will show it
            group.view = at
            members = tuple(group.names)
            notices += _told(group, View(name, members, members, reason, (member,), at))
        return notices

    def disconnect(self, member: str, daemon: ProcessId, at: ViewId) -> list[Notice]:
        joined = self.joined_by(member, daemon)
        return [notice for name in joined for notice in self.leave(member, daemon, name, at, Reason.DISCONNECT)]

    # Changes of the configuration of daemons

    def partition(self, remaining: Collection[ProcessId], groups: Collection[str] | None = None) -> list[Notice]:
        """A transitional configuration: the other daemons are out of reach. `groups`: for which it begins, if not for
        all."""
        lost: set[str] = set()  # groups that lose somebody
        for daemon in self._joined.keys() - set(remaining):  # in any order: sets are made of them
            for member, joined in self._joined[daemon].items():
                names = joined if groups is None else joined.intersection(groups)
                lost |= names
                for name in names:
                    self._groups[name].partitioned.add(member)
        notices = []
        for name in sorted(lost.difference(self._signalled)):
            group = self._signalled[name] = self._groups[name]
            notices += _signal(group)
        return notices

    def settle(self, at: ViewId, why: str) -> list[Notice]:
        """A regular configuration to which nobody new came: what was said in the old one is all there is to know."""
        self.drop_partitioned()
        notices = []
        for name in sorted(self._signalled):
            group = self._signalled[name]
            group.view = at
            if group.local:  # otherwise there is nobody to make a view for
                members = tuple(group.names)
                notices += _told(group, View(name, members, members, Reason.NETWORK, (), at, why))
        self._signalled = {}
        return notices

    def drop_partitioned(self) -> None:
        for name in sorted(self._signalled):  # no others have lost anybody
            group = self._signalled[name]
            for member in group.partitioned:
                self._forget(member, group.members[member], name)
            group.drop_partitioned()
            if not group.members:
                self._remove(name)

    def merge(
        self,
        reports: Mapping[ProcessId, DaemonReport],
        together: Collection[ProcessId],
        at: ViewId,
        why: str,
        behind: Mapping[ProcessId, Collection[str]] = NOBODY_BEHIND,
    ) -> list[Notice]:
        """All daemons of the new configuration have reported. `together`: those who have been with this one all the
        time, and whose clients know what the clients here know, but in groups that either of both names in `behind`,
        and the other does not. (Figure 6.24; deviations, G23)"""
        merged: dict[str, dict[str, ProcessId]] = {}
        for daemon in sorted(reports, reverse=True):  # of two with a client of one name the lower has it
            for name, members in reports[daemon].items():
                if (known := merged.get(name)) is None:
                    merged[name] = dict.fromkeys(members, daemon)
                else:
                    known.update(dict.fromkeys(members, daemon))
        before, self._groups = self._groups, {}
        self._names = SortedNames(merged)
        self._joined = {daemon: {} for daemon in reports}
        notices = []
        for name in self._names:
            group = self._groups[name] = before.get(name) or Group(name, at)
            members = merged[name]
            for member, daemon in members.items():
                self._joined[daemon].setdefault(member, set()).add(name)
            if name not in self._signalled and group.members == members:
                continue
            group.view, group.members, group.names = at, members, sorted(members)
            group.partitioned.clear()
            notices += self._taken(group)
            if group.local:
                along = _with_like_views(name, self._me, together, behind) if behind else together
                shared = tuple(member for member in group.names if members[member] in along)
                notices += _told(group, View(name, tuple(group.names), shared, Reason.NETWORK, (), at, why))
        self._signalled = {}
        return notices

    def _taken(self, group: Group) -> list[Notice]:
        """Clients here are out whose names another daemon has, which ought to be called otherwise."""
        lost = [member for member in group.local if group.members.get(member) != self._me]
        return [Notice((group.local.pop(member),), Left(group.name)) for member in lost]

    def _remove(self, name: str) -> None:
        """A group without members is none."""
        del self._groups[name]
        self._names.remove(name)
        self._signalled.pop(name, None)

    def _forget(self, member: str, daemon: ProcessId, group: str) -> None:
        members = self._joined[daemon]
        members[member].discard(group)
        if not members[member]:
            del members[member]

    def check_invariants(self) -> None:
        assert list(self._names) == sorted(self._groups), "the kept order is another"
        for name, group in self._groups.items():
            assert group.members, f"{name} is empty"
            assert group.names == sorted(group.members), f"{name} has other names than members"
            assert group.partitioned <= set(group.members), f"{name} lost somebody who is not in it"
            assert not group.partitioned or name in self._signalled, f"{name} lost somebody and did not say so"
            for member, session in group.local.items():
                assert group.members.get(member) == self._me, f"{member} is not here"
                assert self._sessions.get(member, session) == session, f"{member} has another session"
        for name, group in self._signalled.items():
            assert self._groups.get(name) is group, f"{name} is gone, and still signalled"
        kept = [names for members in self._joined.values() for names in members.values()]
        assert all(kept), "somebody is remembered who is in no group"
        joined = {(daemon, member, name) for name, g in self._groups.items() for member, daemon in g.members.items()}
        assert joined == {
            (daemon, member, name)
            for daemon, members in self._joined.items()
            for member, names in members.items()
            for name in names
        }


def _with_like_views(
    name: str, me: ProcessId, together: Collection[ProcessId], behind: Mapping[ProcessId, Collection[str]]
) -> set[ProcessId]:
    is_behind = name in behind.get(me, ())
    return {one for one in together if (name in behind.get(one, ())) == is_behind}


def _told(group: Group, news: GroupNews) -> list[Notice]:
    return [Notice(tuple(group.local.values()), news)] if group.local else []


def _signal(group: Group) -> list[Notice]:
    return _told(group, Transition(group.name, group.established(), group.view))
