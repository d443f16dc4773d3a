"""The table alone: what it holds, and what each change tells the local members. The rules behind the changes,
sentence by sentence, are in `conformance/groups`."""

from __future__ import annotations

import pytest

from ordercast.groups.table import Notice, Table
from ordercast.model.events import GroupNews, Left, Reason, Transition, View, ViewId
from ordercast.model.ids import ConfigurationId, Position, ProcessId

ME, OTHER, THIRD = ProcessId(1), ProcessId(2), ProcessId(3)
A, B, C, D = "a@n1", "b@n2", "c@n3", "d@n1"
SESSIONS = {A: 7, D: 8}
RING, NEXT = ConfigurationId(4, ME), ConfigurationId(8, ME)
START, AFTER = ViewId(RING, Position(RING, 0, 0)), ViewId(NEXT, Position(NEXT, 0, 0))
DAEMONS = {A: ME, B: OTHER, C: THIRD, D: ME}


def at(seq: int) -> ViewId:
    return ViewId(RING, Position(RING, seq, 0))


def table_of(*members: str, group: str = "g") -> Table:
    table = Table(ME, SESSIONS)
    for seq, member in enumerate(members, 1):
        table.join(member, DAEMONS[member], group, at(seq), None)
    table.check_invariants()
    return table


def news(notices: list[Notice]) -> list[tuple[tuple[int, ...], GroupNews]]:
    return [(notice.sessions, notice.news) for notice in notices]


def test_an_empty_table_knows_nobody() -> None:
    table = Table(ME, SESSIONS)
    assert len(table) == 0
    assert table.members_of("g") == ()
    assert not table.local_sessions("g")
    assert table.groups() == {}
    assert table.report() == {}
    table.check_invariants()


def test_members_are_sorted_by_name_however_they_came() -> None:
    assert table_of(C, A, B).members_of("g") == table_of(B, C, A).members_of("g") == (A, B, C)


def test_groups_are_counted_by_name() -> None:
    table = table_of(A, B)
    table.join(A, ME, "f", at(9), None)
    assert table.groups() == {"f": 1, "g": 2}
    assert list(table.groups()) == ["f", "g"]
    assert len(table) == 2


def test_local_sessions_are_those_of_this_daemons_members() -> None:
    assert list(table_of(A, B, D).local_sessions("g")) == [7, 8]


def test_a_report_has_the_clients_of_this_daemon_and_no_others() -> None:
    table = table_of(D, A, B)
    table.join(B, OTHER, "elsewhere", at(9), None)
    assert table.report() == {"g": [A, D]}


def test_a_join_is_told_to_the_members_and_to_the_one_who_joins() -> None:
    table = table_of(A)
    assert news(table.join(D, ME, "g", at(5), None)) == [
        ((7,), View("g", (A, D), (A,), Reason.JOIN, (D,), at(5))),
        ((8,), View("g", (A, D), (D,), Reason.JOIN, (D,), at(5))),
    ]


def test_a_remote_join_is_told_to_the_members_here() -> None:
    table = table_of(A, D)
    assert news(table.join(B, OTHER, "g", at(5), None)) == [
        ((7, 8), View("g", (A, B, D), (A, D), Reason.JOIN, (B,), at(5)))
    ]


def test_who_is_a_member_already_does_not_join_again() -> None:
    table = table_of(A, B)
    assert table.join(B, OTHER, "g", at(5), None) == []
    table.check_invariants()


def test_another_daemons_client_of_the_same_name_is_not_the_one_here() -> None:
    table = Table(ME, SESSIONS)
    assert table.join(A, OTHER, "g", at(1), None) == []
    assert not table.local_sessions("g") and table.members_of("g") == (A,)


def test_who_joins_from_out_of_reach_is_lost_at_once_and_gone_in_the_next_view() -> None:
    table = table_of(A)
    joined = View("g", (A, B), (A,), Reason.JOIN, (B,), at(5))
    assert news(table.join(B, OTHER, "g", at(5), {ME})) == [((7,), joined), ((7,), Transition("g", (A,), at(5)))]
    table.check_invariants()
    assert news(table.settle(AFTER, "why")) == [((7,), View("g", (A,), (A,), Reason.NETWORK, (), AFTER, "why"))]


def test_a_leave_of_a_group_that_is_none_is_nothing() -> None:
    assert table_of(A).leave(A, ME, "nowhere", at(5)) == []


def test_a_leave_in_a_group_that_was_signalled_is_shown_in_the_coming_view() -> None:
    table = table_of(A, B, D)
    table.partition({ME})
    assert news(table.leave(A, ME, "g", at(5))) == [((7,), Left("g"))]
    assert news(table.settle(AFTER, "why")) == [((8,), View("g", (D,), (D,), Reason.NETWORK, (), AFTER, "why"))]


def test_a_group_that_was_signalled_gets_its_view_though_all_come_back() -> None:
    table = table_of(A, B)
    table.partition({ME})
    told = table.merge({ME: {"g": [A]}, OTHER: {"g": [B]}}, {ME}, AFTER, "why")
    assert news(told) == [((7,), View("g", (A, B), (A,), Reason.NETWORK, (), AFTER, "why"))]


def test_nobody_here_is_told_nothing() -> None:
    table = table_of(B)
    assert table.join(C, THIRD, "g", at(5), None) == []
    assert table.leave(B, OTHER, "g", at(6)) == []
    assert table.partition({ME}) == []
    assert table.settle(AFTER, "why") == []
    assert len(table) == 0


def test_a_client_that_is_gone_already_is_a_member_and_hears_nothing() -> None:
    """Its join was under way when its connection broke: the disconnection comes later in the order."""
    table = Table(ME, {})
    assert table.join(A, ME, "g", at(1), None) == []
    assert table.members_of("g") == (A,)
    assert table.disconnect(A, ME, at(2)) == []
    assert len(table) == 0


@pytest.mark.parametrize(("reason", "first"), [(Reason.LEAVE, [((7,), Left("g"))]), (Reason.DISCONNECT, [])])
def test_a_leave_is_confirmed_to_who_leaves_and_told_to_the_rest(
    reason: Reason, first: list[tuple[tuple[int, ...], GroupNews]]
) -> None:
    table = table_of(A, B, D)
    assert news(table.leave(A, ME, "g", at(5), reason)) == [
        *first,
        ((8,), View("g", (B, D), (B, D), reason, (A,), at(5))),
    ]
    table.check_invariants()


def test_a_disconnection_leaves_every_group_in_the_order_of_names() -> None:
    table = table_of(A, B)
    table.join(A, ME, "f", at(8), None)
    table.join(B, OTHER, "f", at(9), None)
    assert news(table.disconnect(B, OTHER, at(10))) == [
        ((7,), View("f", (A,), (A,), Reason.DISCONNECT, (B,), at(10))),
        ((7,), View("g", (A,), (A,), Reason.DISCONNECT, (B,), at(10))),
    ]
    assert table.disconnect(B, OTHER, at(11)) == []
    table.check_invariants()


def test_only_its_own_daemon_removes_a_member() -> None:
    table = table_of(A, B)
    assert table.leave(B, THIRD, "g", at(5)) == []
    assert table.disconnect(B, THIRD, at(6)) == []
    assert table.members_of("g") == (A, B)


def test_a_partition_tells_who_remains_and_names_the_view_that_ends() -> None:
    table = table_of(A, B, C)
    assert news(table.partition({ME, OTHER})) == [((7,), Transition("g", (A, B), at(3)))]
    assert table.members_of("g") == (A, B, C), "still in the view that ends"
    table.check_invariants()


def test_a_partition_is_told_once_in_a_view() -> None:
    table = table_of(A, B, C)
    table.partition({ME, OTHER})
    assert table.partition({ME}) == []
    assert table.members_of("g") == (A, B, C)
    table.drop_partitioned()
    assert table.members_of("g") == (A,)


def test_a_signal_names_the_view_that_a_leave_made() -> None:
    table = table_of(A, B, C)
    table.leave(C, THIRD, "g", at(5))
    assert news(table.partition({ME})) == [((7,), Transition("g", (A,), at(5)))]


def test_a_group_that_ended_while_it_was_signalled_begins_without_a_signal() -> None:
    table = table_of(B)
    table.partition({ME})
    table.leave(B, OTHER, "g", at(5))
    assert news(table.join(A, ME, "g", at(6), {ME})) == [((7,), View("g", (A,), (A,), Reason.JOIN, (A,), at(6)))]
    assert table.settle(AFTER, "nothing to tell") == []
    table.check_invariants()


def test_a_partition_is_told_in_the_order_of_names_and_only_where_somebody_is_lost() -> None:
    table = table_of(A, B)
    for name in ("z", "f", "h"):
        table.join(A, ME, name, at(6), None)
    for name in ("z", "f"):
        table.join(C, THIRD, name, at(7), None)
    assert [told.news.group for told in table.partition({ME, OTHER})] == ["f", "z"]
    assert [told.news.group for told in table.partition({ME})] == ["g"]
    assert [told.news.group for told in table.settle(AFTER, "gone")] == ["f", "g", "z"]
    assert table.groups() == {"f": 1, "g": 1, "h": 1, "z": 1}
    table.check_invariants()


def test_members_of_one_name_at_two_daemons_are_told_apart() -> None:
    table = table_of(A)
    table.join(A, OTHER, "h", at(5), None)
    assert table.report() == {"g": [A]}
    table.disconnect(A, OTHER, at(6))
    assert table.groups() == {"g": 1}
    table.check_invariants()


def test_settling_drops_who_was_lost_and_tells_why() -> None:
    table = table_of(A, B, C)
    table.partition({ME, OTHER})
    assert news(table.settle(AFTER, "a member left")) == [
        ((7,), View("g", (A, B), (A, B), Reason.NETWORK, (), AFTER, "a member left"))
    ]
    table.check_invariants()
    assert table.settle(AFTER, "again") == []


def test_a_merge_gathers_all_members_and_shares_history_with_some() -> None:
    table = table_of(A)
    notices = table.merge({ME: {"g": [A]}, OTHER: {"g": [B], "h": [B]}, THIRD: {}}, {ME, THIRD}, AFTER, "merged")
    assert news(notices) == [((7,), View("g", (A, B), (A,), Reason.NETWORK, (), AFTER, "merged"))]
    assert table.groups() == {"g": 2, "h": 1}
    table.check_invariants()


def test_a_merge_that_changes_nothing_in_a_group_is_not_told_there() -> None:
    table = table_of(A, B)
    reports = {ME: {"g": [A]}, OTHER: {"g": [B]}, THIRD: {"h": [C]}}
    assert table.merge(reports, {ME, OTHER}, AFTER, "merged") == []
    assert news(table.partition({ME})) == [((7,), Transition("g", (A,), at(2)))], "the view that was there before"


def test_a_group_that_was_signalled_before_a_merge_is_signalled_again_after_it() -> None:
    table = table_of(A, B)
    table.partition({ME})
    table.drop_partitioned()
    table.merge({ME: {"g": [A]}, THIRD: {"g": [C]}}, {ME}, AFTER, "merged")
    table.check_invariants()
    assert news(table.partition({ME})) == [((7,), Transition("g", (A,), AFTER))]


@pytest.mark.parametrize("daemon", [OTHER, ProcessId(0)])
def test_of_members_of_one_name_the_lowest_daemons_stays_and_the_other_is_told_that_it_is_out(
    daemon: ProcessId,
) -> None:
    """Two daemons of one name: everybody decides alike."""
    table = table_of(A, D)
    notices = table.merge({ME: {"g": [A, D], "h": [A]}, daemon: {"g": [A]}}, {ME}, AFTER, "merged")
    lowest = min(ME, daemon)
    assert table.members_of("g") == (A, D)
    assert table.report() == ({"g": [A, D], "h": [A]} if lowest == ME else {"g": [D], "h": [A]})
    if lowest == ME:
        assert news(notices) == [], "nothing has changed here"
    else:
        view = View("g", (A, D), (D,), Reason.NETWORK, (), AFTER, "merged")
        assert news(notices) == [((7,), Left("g")), ((8,), view)]
    table.check_invariants()


def test_after_a_merge_members_are_found_by_their_groups_again() -> None:
    table = table_of(A)
    table.merge({ME: {"g": [A]}, OTHER: {"g": [B], "h": [B]}}, {ME}, AFTER, "merged")
    assert [told.news.group for told in table.disconnect(B, OTHER, ViewId(NEXT, Position(NEXT, 1, 0)))] == ["g"]
    assert table.groups() == {"g": 1}


def test_invariants_are_checked() -> None:
    sessions = dict(SESSIONS)
    table = Table(ME, sessions)
    table.join(A, ME, "g", at(1), None)
    sessions[A] = 99
    with pytest.raises(AssertionError, match="a@n1 has another session"):
        table.check_invariants()


def test_groups_and_members_are_told_in_pages() -> None:
    table = Table(ME, SESSIONS)
    for number in range(5):
        for seq, member in enumerate((A, B)[: 1 + number % 2]):
            table.join(member, DAEMONS[member], f"g{number}", at(2 * number + seq), None)
    pages = []
    after, is_last = "", False
    while not is_last:
        page, is_last = table.page(after, 2)
        pages.append(page)
        after = next(reversed(page))
    assert pages == [{"g0": 1, "g1": 2}, {"g2": 1, "g3": 2}, {"g4": 1}]
    assert table.page("g9", 2) == ({}, True)
    assert table.page("g1x", 9) == ({"g2": 1, "g3": 2, "g4": 1}, True)
    members = table.members_of("g1")
    assert table.members_page("g1", "", 1) == (members[:1], False)
    assert table.members_page("g1", members[0], 1) == (members[1:], True)
    assert table.members_page("g1", "", 2) == (members, True)
    assert table.members_page("none", "", 2) == ((), True)
