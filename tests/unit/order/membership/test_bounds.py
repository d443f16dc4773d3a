"""Which ring seqs are believed, at the ends of what they can be."""

from __future__ import annotations

from ordercast.model.ids import ConfigurationId, Duration, Instant
from ordercast.order.membership.bounds import (
    CLOCK_LEAP,
    CLOCK_MAX,
    RING_SEQ_LEAP,
    RING_SEQ_MAX,
    Horizon,
    believed_clock,
)
from ordercast.wire.codec import NUMBER_MAX

from ..rings import ONE

PATIENCE = Duration(10)


def _raised(leaps: int) -> Horizon:
    """Of somebody who was told of rings far above for so long."""
    horizon = Horizon(PATIENCE)
    for number in range(leaps + 1):
        assert not horizon.believes_ring(ConfigurationId(NUMBER_MAX, ONE), 0, Instant(PATIENCE * number))
    return horizon


def test_the_bound_rises_by_one_leap_at_a_time() -> None:
    for leaps in range(4):
        highest = (2 + leaps) * RING_SEQ_LEAP
        assert _raised(leaps).believes_ring(ConfigurationId(highest, ONE), 0, Instant(0))
        assert not _raised(leaps).believes_ring(ConfigurationId(highest + 1, ONE), 0, Instant(0))


def test_between_two_leaps_lies_the_patience_however_much_is_told() -> None:
    horizon = _raised(1)
    for _ in range(9):
        assert not horizon.believes_ring(ConfigurationId(NUMBER_MAX, ONE), 0, Instant(2 * PATIENCE - 1))
    assert not horizon.believes_ring(ConfigurationId(3 * RING_SEQ_LEAP + 1, ONE), 0, Instant(2 * PATIENCE - 1))


def test_what_it_rose_by_is_used_up_by_the_ring_that_has_such_a_seq() -> None:
    horizon = _raised(3)
    mine = 5 * RING_SEQ_LEAP
    assert horizon.believes_ring(ConfigurationId(mine, ONE), 0, Instant(0))
    assert not horizon.believes_ring(ConfigurationId(mine + 2 * RING_SEQ_LEAP + 1, ONE), mine, Instant(0))
    assert horizon.believes_ring(ConfigurationId(mine + 2 * RING_SEQ_LEAP, ONE), mine, Instant(0))


def test_it_does_not_rise_while_nothing_beyond_it_is_told() -> None:
    horizon = Horizon(PATIENCE)
    for number in range(100):
        assert horizon.believes_ring(ConfigurationId(8, ONE), 4, Instant(PATIENCE * number))
    assert not horizon.believes_ring(ConfigurationId(5 + 2 * RING_SEQ_LEAP, ONE), 4, Instant(PATIENCE * 100))


def test_no_patience_leads_beyond_the_end() -> None:
    horizon = _raised(20)
    mine = RING_SEQ_MAX - RING_SEQ_LEAP
    assert horizon.believes_ring(ConfigurationId(RING_SEQ_MAX, ONE), mine, Instant(0))
    assert not horizon.believes_ring(ConfigurationId(RING_SEQ_MAX + 1, ONE), mine, Instant(0))


def test_a_clock_is_cut_at_a_leap_and_at_its_end() -> None:
    assert believed_clock(5, 6, is_new=False) == 6
    assert believed_clock(5, NUMBER_MAX, is_new=False) == 5 + CLOCK_LEAP
    assert believed_clock(CLOCK_MAX, NUMBER_MAX, is_new=False) == CLOCK_MAX
    assert believed_clock(5, CLOCK_LEAP << 4, is_new=True) == CLOCK_LEAP << 4
    assert believed_clock(5, NUMBER_MAX, is_new=True) == CLOCK_MAX
