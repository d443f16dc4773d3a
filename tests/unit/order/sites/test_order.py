"""One order out of the streams of a view, its sessions, and what a view ends with."""

from __future__ import annotations

from typing import Any

from ordercast.model.ids import ConfigurationId, ProcessId
from ordercast.model.service import Service
from ordercast.order.sites.attempt import WideAttempt
from ordercast.order.sites.frames import StateFrame
from ordercast.order.sites.order import WideOrder
from ordercast.order.sites.plan import plan_of
from ordercast.order.sites.units import SessionRun, Unit, UnitBody
from ordercast.order.sites.views import Fragment, SiteEdge, WideProposal, WideView

A, B, C = ProcessId(1 << 48 | 1), ProcessId(2 << 48 | 1), ProcessId(3 << 48 | 1)
FRAGMENTS = tuple(Fragment(ConfigurationId(4, one), site, (one,)) for site, one in enumerate((A, B, C)))
EDGES = (SiteEdge(0, 1, 1, 1, (1, 1)), SiteEdge(1, 2, 1, 1, (1, 1)))
VIEW = WideView(ConfigurationId(8, A), WideProposal(ConfigurationId(8, A), FRAGMENTS, EDGES), 0)


def unit(rank: int, stamp: int, previous: int, number: int, service: Service = Service.AGREED, sender: int = 0) -> Unit:
    body = UnitBody((SessionRun(sender, number, 1, service),), (f"{rank}.{number}".encode(),))
    return Unit(rank, stamp, previous, VIEW.members[rank], body)


def passed(order: WideOrder) -> list[str]:
    order.walk()
    texts = [payload.decode() for one in order.out for payload in one.payloads]
    order.out.clear()
    return texts


def test_a_unit_waits_until_every_other_stream_is_past_it() -> None:
    order = WideOrder(VIEW, A)
    order.take(unit(1, 50, 0, 1))
    assert passed(order) == []
    order.promise(2, 0, 60, 0)
    order.tape_at(1, 49)
    assert passed(order) == []  # the own tape may still bring 50, of a lower rank
    order.tape_at(2, 50)
    assert passed(order) == ["1.1"]


def test_ties_go_by_rank() -> None:
    order = WideOrder(VIEW, A)
    order.tape_at(1, 90)
    order.take(unit(2, 50, 0, 1))
    order.promise(1, 0, 50, 0)
    assert passed(order) == []
    order.take(unit(1, 50, 0, 1))
    assert passed(order) == ["1.1", "2.1"]


def test_a_promise_waits_for_the_units_that_it_speaks_of() -> None:
    order = WideOrder(VIEW, A)
    order.tape_at(1, 90)
    order.take(unit(2, 50, 0, 1))
    order.promise(1, 40, 60, 0)
    assert passed(order) == []
    order.take(unit(1, 40, 0, 1))
    assert passed(order) == ["1.1", "2.1"]


def test_nothing_passes_a_safe_unit_that_waits() -> None:
    order = WideOrder(VIEW, A)
    order.tape_at(1, 90)
    order.promise(2, 0, 90, 0)
    order.take(unit(1, 50, 0, 1, Service.SAFE))
    order.take(unit(1, 60, 50, 2))
    assert passed(order) == []
    for rank in range(3):
        order.acknowledge(rank, 51)
    assert passed(order) == ["1.1", "1.2"]


def test_reliable_goes_at_once_and_fifo_after_its_session() -> None:
    order = WideOrder(VIEW, A)
    order.take(unit(1, 60, 50, 2, Service.RELIABLE))
    assert passed(order) == ["1.2"]
    order.take(unit(1, 70, 60, 3, Service.FIFO))
    assert passed(order) == []
    order.take(unit(1, 50, 0, 1, Service.FIFO))
    assert passed(order) == ["1.1", "1.3"]


def test_fifo_does_not_pass_an_agreed_one_of_its_sender() -> None:
    order = WideOrder(VIEW, A)
    order.take(unit(1, 50, 0, 1))
    order.take(unit(1, 60, 50, 2, Service.FIFO))
    assert passed(order) == []
    order.tape_at(1, 90)
    order.promise(2, 0, 51, 0)
    assert passed(order) == ["1.1", "1.2"]


def test_what_everybody_has_is_forgotten_and_the_own_window_opens() -> None:
    order = WideOrder(VIEW, A)
    order.take(unit(0, 50, 0, 1))
    order.tape_at(1, 50)
    for rank in (1, 2):
        order.promise(rank, 0, 60, 51)
    assert passed(order) == ["0.1"] and order.own_size == 3 + 1
    order.safe_at(0)
    order.walk()
    assert order.own.units
    order.note(1)
    order.safe_at(1)
    order.walk()
    assert not order.own.units and order.own_size == 0


def state(process: ProcessId, lines: tuple[int, ...], held: tuple[tuple[int, ...], ...], **changes: Any) -> StateFrame:
    said = StateFrame(VIEW.id, process, VIEW.id, lines, held, (0, 0), (process,), 0, 4)
    return said._replace(**changes)


def test_a_silent_tail_is_a_hole() -> None:
    """Beyond L, the lowest of the lines, only senders in the commits are owed: something may precede that nobody here
    has heard of."""
    order = WideOrder(VIEW, A)
    order.take(unit(1, 50, 0, 1))
    proposal = WideProposal(ConfigurationId(12, A), (FRAGMENTS[0], FRAGMENTS[2]), ())
    states = {A: state(A, (60, 51, 40), ((), (50,), ())), C: state(C, (60, 0, 45), ((), (), ()))}
    plan = plan_of(proposal, states, A)
    assert plan.lines == (60, 51, 45) and plan.lowest_line == 45 and plan.companions == (A, C)
    assert plan.to_send == {(1, 50): 2} and not plan.lacking
    assert plan_of(proposal, states, C).lacking == {(1, 50)}
    assert order.rest(plan.lowest_line, plan.commits) == (0, 1) and not order.out
    assert order.rest(plan.lowest_line, plan.commits | {B}) == (1, 0)


def test_the_signal_is_the_highest_place_and_the_view_lies_above_all() -> None:
    proposal = WideProposal(ConfigurationId(12, A), (FRAGMENTS[0], FRAGMENTS[2]), ())
    none = ((), (), ())
    states = {
        A: state(A, (60, 51, 40), none, place=(30, 1), seq=21),
        C: state(C, (60, 0, 45), none, place=(30, 2), commits=(B, C), clock=700),
    }
    plan = plan_of(proposal, states, A)
    assert plan.signal == (30, 2, 0) and plan.commits == {A, B, C}
    assert plan.view.id == ConfigurationId(24, A) and plan.view.base == 700


def test_companions_are_those_with_the_same_view() -> None:
    proposal = WideProposal(ConfigurationId(12, A), (FRAGMENTS[0], FRAGMENTS[2]), ())
    other = state(C, (9,), ((8,),), view=ConfigurationId(4, C))
    states = {A: state(A, (60, 51, 40), ((), (), ())), C: other}
    assert plan_of(proposal, states, A).companions == (A,) and not plan_of(proposal, states, C).lacking


def test_the_last_part_of_a_message_without_the_others_is_dropped_and_told() -> None:
    order = WideOrder(VIEW, A)
    body = UnitBody((SessionRun(0, 1, 1, Service.AGREED),), (b"the end",), part=2, parts=3)
    order.take(Unit(1, 50, 0, B, body))
    order.take(unit(1, 60, 50, 2))
    order.promise(2, 0, 90, 0)
    order.tape_at(1, 90)
    assert passed(order) == ["1.2"]
    assert len(order.told_unfinished()) == 1 and not order.told_unfinished()


def test_nothing_is_kept_of_a_large_message_that_has_gone_up() -> None:
    order = WideOrder(VIEW, A)
    for part in range(3):
        body = UnitBody((SessionRun(0, 1, 1, Service.AGREED),), (b"x",), part, 3)
        order.take(Unit(1, 50 + part, 49 + part if part else 0, B, body))
    order.promise(2, 0, 90, 0)
    order.tape_at(1, 90)
    assert passed(order) == ["xxx"]
    assert not order._large and not order._last_parts


def test_a_state_that_knows_of_other_streams_than_its_companions_is_not_taken() -> None:
    proposal = WideProposal(ConfigurationId(12, A), (FRAGMENTS[0], FRAGMENTS[2]), ())
    none = ((), (), ())
    attempt = WideAttempt(proposal, A)
    assert not attempt.take_state(state(A, (60, 51, 40), none))
    assert not attempt.take_state(state(C, (60,), none[:1])) and attempt.missing() == {1}
    assert attempt.take_state(state(C, (60, 51, 40), none))


def test_a_message_without_a_byte_is_not_known_to_all_before_everybody_has_it() -> None:
    order = WideOrder(VIEW, A)
    empty = UnitBody((SessionRun(0, 1, 1, Service.SAFE),), (b"",))
    order.take(Unit(0, 50, 0, A, empty))
    assert order.own_size
    order.tape_at(1, 50)
    for rank in (1, 2):
        order.promise(rank, 0, 60, 51)
    order.acknowledge(0, 51)
    order.walk()
    assert not order.own_size
