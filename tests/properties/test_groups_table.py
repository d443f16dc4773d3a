"""The table is a function of the stream: whose daemon it is makes no difference to who is in which group."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from ordercast.groups.table import Notice, Table
from ordercast.model.events import View, ViewId
from ordercast.model.ids import ConfigurationId, Position, ProcessId

from .group_strategies import processes

NAMES, GROUPS = ("x", "y"), ("f", "g", "h")
EVERYBODY = tuple(ProcessId(number) for number in range(1, 5))


class Change(NamedTuple):
    kind: str
    daemon: ProcessId
    name: str
    group: str
    remaining: frozenset[ProcessId]


changes = st.lists(
    st.builds(
        Change,
        st.sampled_from(["join", "join", "join", "leave", "disconnect", "partition", "settle", "merge"]),
        processes,
        st.sampled_from(NAMES),
        st.sampled_from(GROUPS),
        st.frozensets(processes, max_size=3),
    ),
    max_size=30,
)


def _at(ring: int, number: int) -> ViewId:
    configuration = ConfigurationId(ring, EVERYBODY[0])
    return ViewId(configuration, Position(configuration, number, 0))


class Replica:
    """A table and the configuration that it is in."""

    def __init__(self, me: ProcessId, *, has_clients: bool) -> None:
        sessions = {f"{name}@n{me}": number for number, name in enumerate(NAMES)} if has_clients else {}
        self.me = me
        self.table = Table(me, sessions)
        self.remaining: Collection[ProcessId] | None = None
        self.ring = 4

    def apply(self, change: Change, seq: int) -> list[Notice]:
        member, at = f"{change.name}@n{change.daemon}", _at(self.ring, seq)
        match change.kind:
            case "join":
                return self.table.join(member, change.daemon, change.group, at, self.remaining)
            case "leave":
                return self.table.leave(member, change.daemon, change.group, at)
            case "disconnect":
                return self.table.disconnect(member, change.daemon, at)
            case "partition" if self.remaining is None:
                self.remaining = change.remaining | {EVERYBODY[0], EVERYBODY[1]}
                return self.table.partition(self.remaining)
            case "settle" if self.remaining is not None:
                self.remaining, self.ring = None, self.ring + 4
                return self.table.settle(_at(self.ring, 0), "why")
            case _:
                return []

    def contents(self) -> dict[str, tuple[str, ...]]:
        self.table.check_invariants()
        return {group: self.table.members_of(group) for group in self.table.groups()}


@given(changes)
def test_two_tables_with_one_stream_are_equal_after_each_change(drawn: list[Change]) -> None:
    """Both daemons remain in every transitional configuration."""
    one, two = Replica(EVERYBODY[0], has_clients=True), Replica(EVERYBODY[1], has_clients=True)
    for seq, change in enumerate(drawn, 1):
        views = [
            {notice.news.id: notice.news.members for notice in told if isinstance(notice.news, View)}
            for told in (one.apply(change, seq), two.apply(change, seq))
        ]
        assert one.contents() == two.contents()
        for shared in views[0].keys() & views[1].keys():
            assert views[0][shared] == views[1][shared]


@given(changes)
def test_what_all_report_is_what_all_have(drawn: list[Change]) -> None:
    """A merge of those who have been together all the time changes nothing."""
    replicas = [Replica(process, has_clients=True) for process in EVERYBODY]
    for seq, change in enumerate(drawn, 1):
        if change.kind in ("partition", "settle"):
            continue
        for replica in replicas:
            replica.apply(change, seq)
    before = replicas[0].contents()
    reports = {replica.me: replica.table.report() for replica in replicas}
    for replica in replicas:
        assert (
            replica.table.merge(
                reports,
                EVERYBODY,
                _at(99, 0),
                "why",
            )
            == []
        )
        assert replica.contents() == before
    groups = {group for report in reports.values() for group in report}
    assert {
        group: tuple(sorted(member for report in reports.values() for member in report.get(group, ())))
        for group in groups
    } == before


@given(changes)
def test_a_table_holds_what_a_simple_one_holds(drawn: list[Change]) -> None:
    replica = Replica(EVERYBODY[0], has_clients=False)
    simple: dict[str, set[str]] = {group: set() for group in GROUPS}
    lost: set[tuple[str, str]] = set()
    for seq, change in enumerate(drawn, 1):
        member = f"{change.name}@n{change.daemon}"
        was_ending = replica.remaining is not None
        assert replica.apply(change, seq) == [], "nobody is here to be told"
        match change.kind:
            case "join" if member not in simple[change.group]:
                simple[change.group].add(member)
                if replica.remaining is not None and change.daemon not in replica.remaining:
                    lost.add((member, change.group))
            case "leave":
                simple[change.group].discard(member)
                lost.discard((member, change.group))
            case "disconnect":
                for group in GROUPS:
                    simple[group].discard(member)
                    lost.discard((member, group))
            case "partition" if not was_ending and replica.remaining is not None:
                gone = {f"{name}@n{daemon}" for name in NAMES for daemon in set(EVERYBODY) - set(replica.remaining)}
                lost |= {(name, group) for group in GROUPS for name in simple[group] & gone}
            case "settle" if was_ending:
                for name, group in lost:
                    simple[group].discard(name)
                lost.clear()
            case _:
                pass
        assert replica.contents() == {group: tuple(sorted(names)) for group, names in simple.items() if names}
