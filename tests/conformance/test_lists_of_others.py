"""Whose node list is taken over, and what is stored of those who were on a ring. (Ours, not the paper's.)"""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from ordercast.model.effects import AlarmKind, Effect, Enlisted, Persist
from ordercast.model.ids import Incarnation, Instant, NodeId, ProcessId
from ordercast.model.roster import Entry, Place, Roster
from ordercast.order.membership.rosters import JUMP_MAX, MATTERS_MAX, ROSTER_KEY
from ordercast.order.ring.node import RingNode
from ordercast.wire.messages import Join, Leave, RosterCopy

from .solo import FOUR, ONE, RING, SMALL, THREE, TRIO, Solo, alarms, process, sent


def roster(version: int, *nodes: int, is_ordered: bool = True) -> Roster:
    places = (Place("10.0.0.1", 4701, 4700),)
    return Roster(version, tuple(Entry(NodeId(node), f"n{node}", places) for node in nodes), is_ordered)


def listed() -> Solo:
    solo = Solo().to_operational()
    solo.node.enlist(roster(5, 1, 2, 3), solo.now)
    return solo


def kinds(effects: Sequence[Effect]) -> list[AlarmKind]:
    return [alarm.kind for alarm in alarms(effects)]


@pytest.mark.parametrize(
    ("sender", "copy"),
    [
        (FOUR, roster(6, 1, 2, 3, 4)),
        (THREE, roster(6, 1, 2, 3, 4, is_ordered=False)),
        (THREE, roster(6 + JUMP_MAX, 1, 2, 3, 4)),
        (THREE, roster(6, 1, 3, 4)),
        (THREE, roster(5, 1, 2, 3, 4)),
        (THREE, roster(4, 1, 2, 3, 4)),
    ],
    ids=["of a stranger", "of a file", "far above", "without me", "of the same version", "older"],
)
def test_a_list_that_is_not_taken_over(sender: ProcessId, copy: Roster) -> None:
    solo = listed()
    effects = solo.give(RosterCopy(RING, sender, copy))
    assert not [effect for effect in effects if isinstance(effect, Enlisted | Persist)]
    assert solo.node.roster == roster(5, 1, 2, 3)


def test_the_newest_ordered_list_of_a_member_is_taken_over() -> None:
    solo = listed()
    newest = roster(5 + JUMP_MAX, 1, 2, 3, 4)
    effects = solo.give(RosterCopy(RING, THREE, newest))
    assert [effect.roster for effect in effects if isinstance(effect, Enlisted)] == [newest]


def test_who_is_not_on_a_newer_list_is_told_once_that_it_was_removed() -> None:
    solo = listed()
    copy = RosterCopy(RING, THREE, roster(6, 1, 3))
    assert kinds(solo.give(copy)) == [AlarmKind.REMOVED] and kinds(solo.give(copy)) == []


def test_a_join_that_proposes_a_stranger_is_not_listened_to() -> None:
    solo = listed()
    assert sent(solo.give(solo.join_of(THREE, (*TRIO, FOUR), ring_seq=RING.seq)), Join) == []
    assert len(sent(solo.give(solo.join_of(THREE, TRIO, ring_seq=RING.seq)), Join)) == 1


def test_a_member_that_was_dropped_is_heard_as_long_as_it_is_one() -> None:
    solo = listed()
    solo.node.enlist(roster(6, 1, 2), solo.now)
    solo.give(Leave(solo.node.ring.id, THREE))
    assert solo.node.state_name == "Gather"


def test_a_member_that_an_older_list_still_names_is_reached() -> None:
    solo = listed()
    effects = (
        solo.node.enlist(roster(6, 1, 2), solo.now)
        + solo.give(RosterCopy(RING, ONE, roster(5, 1, 2, 3)))
        + solo.wait(SMALL.announce_ns)
    )
    reached = [[entry.name for entry in effect.tolerated] for effect in effects if isinstance(effect, Enlisted)]
    assert reached == [["n3"]], "told once, at once"


def test_so_many_strangers_are_named_and_no_more() -> None:
    solo = listed()
    told: list[AlarmKind] = []
    for node in range(100, 100 + 2 * MATTERS_MAX):
        for _ in range(2):  # when its list is known it is named
            told += kinds(solo.give(RosterCopy(RING, process(node), roster(5, node))))
    assert len(told) == MATTERS_MAX and set(told) == {AlarmKind.UNLISTED_NODE}


def test_who_was_on_a_ring_is_stored_and_is_no_newcomer_in_the_next_life() -> None:
    solo = Solo()
    solo.node.enlist(roster(5, 1, 2, 3, 4), solo.now)
    solo.to_ring_of_one()
    stored = next(each for each in reversed(solo.log) if isinstance(each, Persist) and each.key == ROSTER_KEY)
    node = RingNode(NodeId(2), SMALL)
    effects = node.start({ROSTER_KEY: stored.value}, Incarnation(2), Instant(0))
    assert [effect.roster for effect in effects if isinstance(effect, Enlisted)] == [roster(5, 1, 2, 3, 4)]
    assert node._running.admission.admitted == {2}
