"""Who is together and who is reachable, as ENDs say."""

from __future__ import annotations

from ordercast.model.ids import ConfigurationId, ProcessId
from ordercast.order.gateways.graph import beyond, reachable
from ordercast.order.gateways.items import EndItem, LogicalRing, Processes, domain_of, merged_id, tag_of


def _ring(seq: int, domain: int, who: int = 1) -> ConfigurationId:
    return ConfigurationId(seq * 1024 + 4 * domain, ProcessId(who))


def _people(*numbers: int) -> Processes:
    return frozenset(ProcessId(number) for number in numbers)


def _end(ring: ConfigurationId, half: Processes, seq: int) -> EndItem:
    new = LogicalRing(_ring(seq, domain_of(ring), min(half)), half, half, 10)
    return EndItem(ring, half, new, half)


# 1 and 2 are on domain 1 with gateway 3; 4 is on domain 2 with gateways 3 and 5; 6 is on domain 3 with gateway 5.
ONE, TWO, THREE = _ring(1, 1), _ring(1, 2), _ring(1, 3)
BASES = {
    **{(ProcessId(each), 1): ONE for each in (1, 2, 3)},
    **{(ProcessId(each), 2): TWO for each in (3, 4, 5)},
    **{(ProcessId(each), 3): THREE for each in (5, 6)},
}


def test_gateways_lead_on() -> None:
    assert reachable(ProcessId(1), BASES, []) == _people(1, 2, 3, 4, 5, 6)


def test_who_is_not_named_by_the_same_end_is_apart() -> None:
    end = _end(TWO, _people(3, 4), 2)
    assert reachable(ProcessId(1), BASES, [end]) == _people(1, 2, 3, 4)
    assert reachable(ProcessId(6), BASES, [end]) == _people(5, 6)


def test_an_end_before_the_base_says_nothing() -> None:
    end = _end(_ring(0, 2), _people(3, 4), 0)
    assert reachable(ProcessId(1), BASES, [end]) == _people(1, 2, 3, 4, 5, 6)


def test_both_halves_of_a_ring_stay_connected_over_another() -> None:
    bases = {**BASES, (ProcessId(5), 1): ONE}
    ends = [_end(TWO, _people(3, 4), 2), _end(TWO, _people(5), 3)]
    assert reachable(ProcessId(1), bases, ends) == _people(1, 2, 3, 4, 5, 6)


def test_beyond_one_attachment_lies_what_does_not_come_back_through_the_process() -> None:
    assert beyond(ProcessId(3), 1, BASES, []) == _people(1, 2)
    assert beyond(ProcessId(3), 2, BASES, []) == _people(4, 5, 6)


def test_ids_name_the_domain_and_tags_are_small_enough_for_a_signed_column() -> None:
    assert [domain_of(ring) for ring in (ONE, TWO, THREE)] == [1, 2, 3]
    assert domain_of(merged_id(THREE)) == 3
    assert 0 <= tag_of(ONE) < 1 << 63
    assert tag_of(ONE) != tag_of(merged_id(ONE))
