from __future__ import annotations

from ordercast.model.ids import Instant
from ordercast.order.membership.timers import BLAMING, Timer, Timers


def test_a_new_book_has_no_deadline() -> None:
    timers = Timers()
    assert timers.earliest is None
    assert timers.pop_due(Instant(1 << 60)) is None


def test_a_timer_is_due_at_its_deadline_and_not_before() -> None:
    timers = Timers()
    timers.arm(Timer.JOIN, 10)
    assert timers.pop_due(Instant(9)) is None
    assert timers.pop_due(Instant(10)) is Timer.JOIN
    assert timers.pop_due(Instant(10)) is None
    assert not timers.is_armed(Timer.JOIN)


def test_equal_deadlines_fire_in_the_order_of_the_list() -> None:
    timers = Timers()
    for timer in reversed(Timer):
        timers.arm(timer, 5)
    assert [timers.pop_due(Instant(5)) for _ in Timer] == list(Timer)


def test_arming_again_moves_the_deadline_both_ways() -> None:
    timers = Timers()
    timers.arm(Timer.JOIN, 10)
    timers.arm(Timer.CONSENSUS, 20)
    timers.arm(Timer.JOIN, 30)
    assert timers.earliest == 20
    timers.arm(Timer.JOIN, 5)
    assert (timers.earliest, timers.deadline(Timer.JOIN)) == (5, 5)


def test_cancelling_the_earliest_reveals_the_next() -> None:
    timers = Timers()
    timers.arm(Timer.JOIN, 10)
    timers.arm(Timer.CONSENSUS, 20)
    timers.cancel(Timer.JOIN, Timer.REST)
    assert timers.earliest == 20
    assert timers.deadline(Timer.JOIN) is None


def test_only_keeps_what_it_names_and_the_nodes_own() -> None:
    timers = Timers()
    for timer in Timer:
        timers.arm(timer, 10 + timer)
    timers.only(Timer.REST)
    assert [timer for timer in Timer if timers.is_armed(timer)] == [Timer.REST, Timer.STALL, Timer.CLOCK]
    timers.only()
    assert timers.earliest == 10 + Timer.STALL


def test_the_timers_that_blame_others_are_those_of_token_consensus_and_storage() -> None:
    assert set(BLAMING) == {Timer.TOKEN_LOSS, Timer.CONSENSUS, Timer.STORAGE, Timer.CLOCK}
