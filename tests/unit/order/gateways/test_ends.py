"""ENDs and words: when nothing more can come of a ring."""

from __future__ import annotations

from ordercast.model.ids import ConfigurationId, ProcessId
from ordercast.order.gateways.ends import Ends
from ordercast.order.gateways.items import EndItem, Half, LogicalRing, Processes


def _people(*numbers: int) -> Processes:
    return frozenset(ProcessId(number) for number in numbers)


def _id(seq: int, who: int) -> ConfigurationId:
    return ConfigurationId(seq * 1024 + 4, ProcessId(who))


ME = ProcessId(9)
OLD = LogicalRing(_id(1, 1), _people(1, 2, 3, 4), _people(1, 2, 3), 5)
HALF, OTHER = _people(1, 2, 4), _people(3)
NEW = LogicalRing(_id(2, 1), HALF, _people(1, 2), 8)
NEXT = LogicalRing(_id(3, 3), OTHER, OTHER, 9)
EVERYBODY = _people(1, 2, 3, 4, 9)


def test_a_ring_is_complete_when_every_gateway_that_can_be_heard_has_spoken_for_itself() -> None:
    ends = Ends()
    assert ends.take(EndItem(OLD.id, HALF, NEW, _people(1)), is_born=False)
    assert not ends.is_complete(OLD, ME, EVERYBODY)
    assert ends.is_complete(OLD, ME, _people(1, 9))
    assert ends.take(EndItem(OLD.id, HALF, NEW, HALF), is_born=False)
    assert ends.take(EndItem(OLD.id, OTHER, NEXT, OTHER), is_born=False)
    assert ends.is_complete(OLD, ME, EVERYBODY)


def test_an_end_that_says_nothing_new_is_not_carried_on() -> None:
    ends = Ends()
    end = EndItem(OLD.id, HALF, NEW, _people(1))
    assert ends.take(end, is_born=False)
    assert not ends.take(end, is_born=False)
    assert ends.take(EndItem(OLD.id, HALF, NEW, _people(2)), is_born=False)
    assert len(ends) == 1


def test_one_half_with_two_successors_is_two_facts() -> None:
    ends = Ends()
    later = LogicalRing(_id(4, 1), HALF, _people(1, 2), 12)
    ends.take(EndItem(OLD.id, HALF, NEW, _people(1)), is_born=False)
    ends.take(EndItem(OLD.id, HALF, later, _people(1)), is_born=False)
    assert {end.successor.id for end in ends.of(OLD.id)} == {NEW.id, later.id}


def test_halves_of_a_merge_end_when_it_is_born() -> None:
    ends = Ends()
    halves = (Half(OLD.id, OLD.members), Half(_id(1, 7), _people(7)))
    merge = LogicalRing(
        ConfigurationId(_id(5, 1).seq + 1, ProcessId(1)), OLD.members | _people(7), _people(1, 7), 20, halves
    )
    ends.take(EndItem(OLD.id, OLD.members, merge, merge.members), is_born=False)
    assert ends.is_past(ProcessId(1), OLD.id)
    assert not ends.is_past(ProcessId(7), halves[1].ring)
    ends.add_merge(merge)
    assert ends.is_past(ProcessId(7), halves[1].ring)
    assert {end.ring for end in ends.into(merge.id)} == {half.ring for half in halves}


def test_what_is_not_needed_is_forgotten() -> None:
    ends = Ends()
    ends.take(EndItem(OLD.id, HALF, NEW, HALF), is_born=True)
    ends.take(EndItem(OLD.id, OTHER, NEXT, OTHER), is_born=True)
    ends.forget(lambda end: end.successor is NEXT, lambda word: False)
    assert [end.successor for end in ends] == [NEXT]
    assert {word.gateway for word in ends.words} == OTHER
    assert not ends.is_past(ProcessId(1), OLD.id)
