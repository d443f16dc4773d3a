"""Node lists that come from others: which are taken over, and what is told of them. (Ours, not the paper's.)"""

from __future__ import annotations

import pytest

from ordercast.model.effects import AlarmKind, Enlisted, Persist
from ordercast.model.ids import SECOND, Instant, NodeId
from ordercast.model.roster import Entry, Place, Roster
from ordercast.order.membership.rosters import COPIES_MAX, COPIES_RATE
from ordercast.wire.codec import CONTROL
from ordercast.wire.head import HEAD_SIZE
from ordercast.wire.messages import RosterCopy
from ordercast.wire.roster import encode_roster

from .solo import FOUR, RING, THREE, Solo, alarms

ONES, TWOS = Place("10.0.0.1", 4701, 4700), Place("10.1.0.1", 4701, 4700)


def roster(version: int, *places: Place, nodes: tuple[int, ...] = (1, 2, 3), name: str = "n") -> Roster:
    entries = tuple(Entry(NodeId(node), f"{name}{node}", places or (ONES,)) for node in nodes)
    return Roster(version, entries, is_ordered=True)


def enlisted(solo: Solo, copy: Roster) -> bool:
    """THREE sends its list: whether it is taken over."""
    effects = solo.give(RosterCopy(RING, THREE, copy))
    return any(isinstance(effect, Enlisted | Persist) for effect in effects)


def solo_with(mine: Roster) -> Solo:
    solo = Solo().to_operational()
    solo.node.enlist(mine, solo.now)
    return solo


def test_a_newer_ordered_list_is_taken_over() -> None:
    solo = solo_with(roster(1))
    assert enlisted(solo, roster(2)) and not enlisted(solo, roster(2))


@pytest.mark.parametrize(
    "places", [(ONES, TWOS), (Place("fd00::1", 4701, 4700),)], ids=["two networks", "another version of IP"]
)
def test_a_list_with_nodes_that_cannot_be_reached_from_here_is_not_taken_over(places: tuple[Place, ...]) -> None:
    solo = solo_with(roster(1))
    assert not enlisted(solo, roster(2, *places))
    assert solo.node.roster == roster(1)


def test_who_has_two_networks_takes_no_list_with_one() -> None:
    solo = solo_with(roster(1, ONES, TWOS))
    assert not enlisted(solo, roster(2, ONES)) and enlisted(solo, roster(2, ONES, TWOS))


def test_nodes_of_one_machine_have_no_list_and_take_none() -> None:
    solo = solo_with(roster(0))
    assert not enlisted(solo, roster(1))


def test_a_name_that_a_stranger_gives_itself_is_quoted_in_the_command_that_admits_it() -> None:
    solo = solo_with(roster(1))
    effects = solo.give(RosterCopy(RING, FOUR, roster(1, nodes=(4,), name="x;reboot;")))
    effects += solo.give(RosterCopy(RING, FOUR, roster(1, nodes=(4,), name="x;reboot;")))
    (alarm,) = [alarm for alarm in alarms(effects) if alarm.kind is AlarmKind.UNLISTED_NODE]
    assert "`ordercast cluster add 'x;reboot;4' 4 10.0.0.1 --token-port 4701 --data-port 4700` admits it" in alarm.text


def test_lists_that_come_in_a_flood_are_read_a_few_in_a_second() -> None:
    """Anybody can send them, and reading a large one takes many milliseconds."""
    solo, nodes = solo_with(roster(1)), tuple(range(1, 1001))
    size = HEAD_SIZE + CONTROL.size + len(encode_roster(roster(1, nodes=nodes)))
    taken = [enlisted(solo, roster(2 + number, nodes=nodes)) for number in range(2 * COPIES_MAX // size)]
    assert sum(taken) == COPIES_MAX // size
    solo.now = Instant(solo.now + SECOND * size // COPIES_RATE + 1)
    assert enlisted(solo, roster(1000, nodes=nodes)), "it heals"
