"""What waits for a client: credit, bounds, and what each policy does at the bound."""

from __future__ import annotations

import pytest

from ordercast.model.events import Dropped
from ordercast.model.ids import SECOND, Instant
from ordercast.session.batches import encode_dropped
from ordercast.session.frames import SlowPolicy
from ordercast.session.outbound import MIB, QUEUE_SIZE_MAX, Outbound

PLENTY = 1 << 30
NOTICE_SIZE = len(encode_dropped(Dropped(1, 1)))


def _message(number: int, size: int = 10) -> bytes:
    return bytes([number]) * size


def _dropping(size_max: int) -> Outbound:
    return Outbound(SlowPolicy.DROP, 0, size_max)


def _waiting(outbound: Outbound) -> list[bytes]:
    outbound.add_credit(PLENTY)
    return outbound.take()


# Credit


def test_frames_are_taken_in_order_and_once() -> None:
    outbound = Outbound(SlowPolicy.WAIT, PLENTY)
    for number in range(3):
        assert outbound.put(_message(number), 1) is None
    assert outbound.size == 30
    assert outbound.take() == [_message(0), _message(1), _message(2)]
    assert (outbound.take(), outbound.size) == ([], 0)


def test_nothing_is_taken_without_credit() -> None:
    outbound = Outbound(SlowPolicy.WAIT, 0)
    outbound.put(b"view")
    assert outbound.take() == []
    outbound.add_credit(1)
    assert outbound.take() == [b"view"]


def test_the_last_frame_may_exceed_the_credit_and_is_paid_off_first() -> None:
    outbound = Outbound(SlowPolicy.WAIT, 11)
    for number in range(3):
        outbound.put(_message(number), 1)
    assert outbound.take() == [_message(0), _message(1)]
    outbound.add_credit(9)
    assert outbound.take() == []
    outbound.add_credit(1)
    assert outbound.take() == [_message(2)]


def test_a_frame_that_uses_the_credit_up_is_the_last_one() -> None:
    outbound = Outbound(SlowPolicy.WAIT, 10)
    outbound.put(_message(0), 1)
    outbound.put(_message(1), 1)
    assert outbound.take() == [_message(0)]


def test_a_notice_costs_credit_as_any_frame() -> None:
    outbound = _dropping(10)
    outbound.put(_message(1, 20), 3)
    outbound.put(b"view")
    outbound.add_credit(1)
    assert outbound.take() == [encode_dropped(Dropped(3, 20))]
    outbound.add_credit(NOTICE_SIZE - 1)
    assert outbound.take() == []
    outbound.add_credit(1)
    assert outbound.take() == [b"view"]


# Bounds


def test_those_who_wait_are_kept_more_for_than_the_others() -> None:
    assert QUEUE_SIZE_MAX == {
        SlowPolicy.WAIT: 64 * MIB,
        SlowPolicy.DROP: 8 * MIB,
        SlowPolicy.DISCONNECT: 8 * MIB,
        SlowPolicy.HOLD: 64 * MIB,
    }
    for policy, size_max in QUEUE_SIZE_MAX.items():
        assert Outbound(policy, 0).size_max == size_max


@pytest.mark.parametrize("policy", [SlowPolicy.WAIT, SlowPolicy.DISCONNECT, SlowPolicy.HOLD])
def test_whoever_does_not_drop_is_disconnected_beyond_the_bound_with_a_sentence(policy: SlowPolicy) -> None:
    outbound = Outbound(policy, 0, 1000)
    assert outbound.put(_message(1, 1000), 1) is None
    assert outbound.put(_message(2, 1), 1) == (
        f"the client was too slow: 1,001 bytes waited for it, at most 1,000 may (policy {policy.name.lower()})"
    )
    assert outbound.dropped == Dropped(0, 0)
    assert _waiting(outbound) == [_message(1, 1000), _message(2, 1)]


def _holds(outbound: Outbound) -> bool:
    return outbound.is_holding


@pytest.mark.parametrize("policy", SlowPolicy)
def test_one_who_may_hold_does_so_from_a_quarter_of_the_bound_until_a_sixteenth(policy: SlowPolicy) -> None:
    outbound = Outbound(policy, 0, 1600)
    for number in range(4):
        outbound.put(_message(number, 100), 1)
    assert not _holds(outbound)
    outbound.put(_message(4, 100), 1)
    assert _holds(outbound) == (policy is SlowPolicy.HOLD)
    outbound.add_credit(301)
    assert len(outbound.take()) == 4
    assert not _holds(outbound)


def _holding(frames: int) -> Outbound:
    """One for whom all wait since 0 s, with so many frames of 100 bytes."""
    outbound = Outbound(SlowPolicy.HOLD, 0, 1600, 10 * SECOND)
    for number in range(frames):
        assert outbound.put(_message(number, 100), 1) is None
    assert _look(outbound, 0) is None
    return outbound


def _look(outbound: Outbound, seconds: float) -> str | None:
    return outbound.look(Instant(int(seconds * SECOND)))


def _read(outbound: Outbound, frames: int) -> None:
    for _ in range(frames):
        outbound.add_credit(100)
        assert len(outbound.take()) == 1


def test_one_who_holds_and_takes_nothing_holds_no_longer_until_it_has_caught_up() -> None:
    outbound = _holding(12)
    for seconds in (1, 1.9):
        assert _look(outbound, seconds) is None
        assert _holds(outbound)
    _read(outbound, 1)
    for seconds in (2, 3.9):
        assert _look(outbound, seconds) is None
        assert _holds(outbound)  # it has moved
    assert _look(outbound, 4) is None
    assert not _holds(outbound) and outbound.hold is None
    outbound.put(_message(8, 100), 1)
    assert not _holds(outbound)
    outbound.add_credit(PLENTY)
    outbound.take()
    for number in range(5):
        outbound.put(_message(number, 100), 1)
    assert _holds(outbound)


def test_one_who_holds_and_reads_a_frame_now_and_then_is_disconnected() -> None:
    """Every 1.5 s: it moves, and makes no progress to speak of."""
    outbound = _holding(14)
    for turn in range(1, 7):
        _read(outbound, 1)
        assert _look(outbound, 1.5 * turn) is None
        assert _holds(outbound)
    assert outbound.hold is not None and outbound.hold.since == 0
    assert _look(outbound, 9.9) is None
    assert _look(outbound, 10) == (
        "the client was too slow: everybody waited for it, and of 1,400 bytes 800 still wait after 10.0 s, where half "
        "had to be read within 10 s (policy hold)"
    )


def test_one_who_holds_and_has_read_half_in_time_has_as_much_time_for_half_of_the_rest() -> None:
    outbound = _holding(16)
    for seconds, frames in ((2.0, 2), (4.0, 2), (6.0, 2), (8.0, 2)):
        _read(outbound, frames)
        assert _look(outbound, seconds) is None
    assert outbound.size == 800
    for seconds, frames in ((9, 1), (11, 1), (13, 1), (15, 0), (16.5, 0), (17.9, 1)):
        _read(outbound, frames)
        assert _look(outbound, seconds) is None
    assert outbound.size == 400
    _read(outbound, 3)
    assert not _holds(outbound) and outbound.hold is None


def test_what_was_on_its_way_when_all_were_stopped_counts_as_if_it_had_been_there() -> None:
    outbound = _holding(6)
    for number in range(6):
        outbound.put(_message(number, 100), 1)
    assert _look(outbound, 0.1) is None
    _read(outbound, 6)  # half of twelve
    assert _look(outbound, 9) is None
    assert _look(outbound, 10.5) is None
    assert _holds(outbound)


def _is_behind(outbound: Outbound) -> bool:
    return outbound.is_behind


@pytest.mark.parametrize("policy", [SlowPolicy.WAIT, SlowPolicy.DISCONNECT, SlowPolicy.HOLD])
def test_one_who_is_behind_waits_as_long_as_it_takes_something_between_two_looks(policy: SlowPolicy) -> None:
    outbound = Outbound(policy, 0, 1600)
    for number in range(4):
        outbound.put(_message(number, 100), 1)
    assert not _is_behind(outbound)
    for number in range(4):
        outbound.put(_message(number, 100), 1)
    assert _is_behind(outbound)
    _read(outbound, 1)
    assert not outbound.look_at_lag()
    assert _is_behind(outbound)
    assert outbound.look_at_lag()
    assert not _is_behind(outbound)
    outbound.put(_message(9, 100), 1)
    assert not _is_behind(outbound)  # until it has caught up
    assert not outbound.look_at_lag()
    _read(outbound, 7)
    for number in range(4):
        outbound.put(_message(number, 100), 1)
    assert _is_behind(outbound)
    _read(outbound, 4)
    assert not _is_behind(outbound)


def test_nobody_else_is_looked_at() -> None:
    for policy in (SlowPolicy.WAIT, SlowPolicy.DROP, SlowPolicy.DISCONNECT):
        outbound = Outbound(policy, 0, 1600)
        for number in range(8):
            outbound.put(_message(number, 100), 1)
        for seconds in (0, 100):
            assert _look(outbound, seconds) is None
        assert outbound.hold is None


def test_not_much_more_is_taken_than_is_asked_for() -> None:
    outbound = Outbound(SlowPolicy.WAIT, PLENTY)
    for number in range(5):
        outbound.put(_message(number), 1)
    assert outbound.take(15) == [_message(0), _message(1)]
    assert outbound.take(10) == [_message(2)]
    assert outbound.take(0) == []
    assert outbound.take() == [_message(3), _message(4)]


def test_what_was_taken_does_not_count() -> None:
    outbound = Outbound(SlowPolicy.DISCONNECT, PLENTY, 10)
    for number in range(5):
        assert outbound.put(_message(number), 1) is None
        outbound.take()


# Dropping


def test_the_oldest_messages_are_dropped_down_to_three_quarters_and_a_notice_is_in_their_place() -> None:
    outbound = _dropping(40)
    for number in range(5):
        assert outbound.put(_message(number), number + 1) is None
    assert (outbound.size, outbound.dropped) == (30, Dropped(1 + 2, 20))
    assert _waiting(outbound) == [encode_dropped(Dropped(3, 20)), _message(2), _message(3), _message(4)]


def test_a_notice_grows_when_its_neighbours_are_dropped_too() -> None:
    outbound = _dropping(40)
    for number in range(9):
        assert outbound.put(_message(number), 1) is None
    assert outbound.dropped == Dropped(6, 60)
    assert _waiting(outbound) == [encode_dropped(Dropped(6, 60)), *map(_message, (6, 7, 8))]


def test_views_are_never_dropped_and_keep_their_places_between_notices() -> None:
    outbound = _dropping(40)
    for number in range(4):
        outbound.put(_message(number), 1)
        if number in (0, 2):
            outbound.put(b"v%d" % number)
    assert _waiting(outbound) == [
        encode_dropped(Dropped(1, 10)),
        b"v0",
        encode_dropped(Dropped(1, 10)),
        *(_message(2), b"v2", _message(3)),
    ]


def test_notices_on_both_sides_of_a_view_grow_apart() -> None:
    outbound = _dropping(40)
    outbound.put(_message(0), 1)
    outbound.put(b"view")
    for number in range(1, 9):
        assert outbound.put(_message(number), 1) is None
    assert outbound.dropped == Dropped(6, 60)
    assert _waiting(outbound) == [
        encode_dropped(Dropped(1, 10)),
        b"view",
        encode_dropped(Dropped(5, 50)),
        *map(_message, (6, 7, 8)),
    ]


def test_a_notice_that_was_taken_does_not_grow_any_more() -> None:
    outbound = _dropping(40)
    for number in range(5):
        outbound.put(_message(number), 1)
    outbound.add_credit(1)
    assert outbound.take() == [encode_dropped(Dropped(2, 20))]
    for number in range(5, 7):
        outbound.put(_message(number), 1)
    assert outbound.dropped == Dropped(4, 40)
    assert _waiting(outbound) == [encode_dropped(Dropped(2, 20)), *map(_message, (4, 5, 6))]


def test_a_frame_larger_than_all_that_may_wait_is_itself_dropped() -> None:
    outbound = _dropping(40)
    outbound.put(_message(0), 1)
    assert outbound.put(_message(1, 41), 7) is None
    assert outbound.size == 0
    assert _waiting(outbound) == [encode_dropped(Dropped(8, 51))]


def test_when_views_alone_are_too_many_the_client_is_disconnected() -> None:
    outbound = _dropping(40)
    for _ in range(2):
        assert outbound.put(b"v" * 10) is None
    assert outbound.put(_message(0, 1), 1) is None
    assert outbound.put(b"v") == (
        "the client was too slow: 21 bytes of views waited for it, at most 20 may (policy drop)"
    )
    assert _waiting(outbound) == [*[b"v" * 10] * 2, _message(0, 1), b"v"]
