"""The clock of a process: what it hears, what it may use, what it writes."""

from __future__ import annotations

from ordercast.model.effects import Persist
from ordercast.order.clock import CLOCK_KEY, CLOCK_RESERVE, Clock, StoredClock
from ordercast.order.membership.bounds import CLOCK_MAX


def _written(clock: Clock) -> list[int]:
    return [int.from_bytes(one.value, "big") for one in clock.writes() if isinstance(one, Persist)]


def _started(bound: int = 0) -> StoredClock:
    clock = StoredClock()
    assert clock.start({CLOCK_KEY: bound.to_bytes(8, "big")} if bound else {})
    return clock


def test_a_clock_in_memory_rises_and_writes_nothing() -> None:
    clock = Clock()
    clock.hear(5)
    clock.hear(3)
    assert clock.tick == 5 and clock.covers(CLOCK_MAX) and _written(clock) == []


def test_a_tick_that_cannot_be_true_is_cut() -> None:
    clock = Clock()
    clock.hear(1 << 63)
    assert clock.tick == CLOCK_MAX


def test_a_life_begins_at_the_bound_and_uses_nothing_before_a_higher_one_is_stored() -> None:
    clock = _started(7000)
    assert clock.tick == 7000 and not clock.covers(7001)
    assert _written(clock) == [7000 + CLOCK_RESERVE]
    assert _written(clock) == []  # one write at a time
    assert not clock.covers(7001)
    clock.persisted()
    assert clock.covers(7000 + CLOCK_RESERVE) and not clock.covers(7001 + CLOCK_RESERVE)


def test_the_bound_is_raised_when_half_of_it_is_used() -> None:
    clock = _started()
    clock.writes()
    clock.persisted()
    clock.hear(CLOCK_RESERVE // 2)
    assert _written(clock) == []
    clock.hear(CLOCK_RESERVE // 2 + 1)
    assert _written(clock) == [2 * CLOCK_RESERVE]
    assert clock.covers(CLOCK_RESERVE)  # nobody waits meanwhile


def test_a_leap_is_covered_by_the_next_write() -> None:
    clock = _started()
    clock.writes()
    clock.hear(1 << 40)
    clock.persisted()
    assert not clock.covers((1 << 40) + 1)
    assert _written(clock) == [(1 << 40) + CLOCK_RESERVE]
    clock.persisted()
    assert clock.covers((1 << 40) + 1)


def test_a_disk_that_hangs_is_not_waited_for_for_ever() -> None:
    clock = _started(500)
    (bound,) = _written(clock)
    assert clock.go_without() and not clock.go_without()  # said once
    assert (clock.is_without, clock.covers(1 << 40)) == (True, True)
    assert clock.persisted()
    assert (clock.is_without, clock.covers(bound), clock.covers(bound + 1)) == (False, True, False)
    assert not Clock().go_without()


def test_who_has_used_ticks_above_what_is_stored_at_last_goes_on_without() -> None:
    clock = _started(500)
    (bound,) = _written(clock)
    clock.go_without()
    clock.hear(bound + 1)
    assert not clock.persisted()
    assert (clock.is_without, clock.covers(1 << 40)) == (True, True)
    (higher,) = _written(clock)
    assert clock.persisted()
    assert (clock.is_without, clock.covers(higher), clock.covers(higher + 1)) == (False, True, False)


def test_a_bound_that_cannot_be_true_is_not_used() -> None:
    clock = StoredClock()
    assert not clock.start({CLOCK_KEY: bytes([255] * 8)})
    assert clock.tick == 0


def test_a_bound_that_covers_what_was_met_just_so_is_in_use_again() -> None:
    clock = _started()
    clock.writes()
    assert clock.go_without() and not clock.go_without()
    clock.hear(CLOCK_RESERVE)
    assert clock.persisted() and not clock.is_without
