"""Confirmations go to a session in the order in which it sent, whatever the engine delivers first."""

from __future__ import annotations

from ordercast.groups.confirmations import ConfirmationOrder
from ordercast.groups.layer import Confirmed, MessageRun, data_head
from ordercast.model.ids import ConfigurationId, Places, ProcessId
from ordercast.model.service import Service

HEAD = data_head("a@n0", ("g",), confirm=True)
PLAIN = data_head("a@n0", ("g",))


def confirmed(number: int, service: Service, messages: int = 1) -> Confirmed:
    places = Places(ConfigurationId(4, ProcessId(1)), number, 0, messages, 0)
    return Confirmed(7, MessageRun((7,), HEAD, places, [service] * messages, [HEAD] * messages))


def numbers(told: list[Confirmed]) -> list[tuple[int, int]]:
    return [(one.run.last.number, one.run.last.slot) for one in told]


def test_a_reliable_message_is_confirmed_after_what_was_sent_before_it() -> None:
    order = ConfirmationOrder()
    order.sent(7, [HEAD], Service.AGREED)
    order.sent(7, [PLAIN], Service.AGREED)
    order.sent(7, [HEAD, HEAD], Service.RELIABLE)
    order.sent(7, [HEAD], Service.SAFE)
    assert order.take(confirmed(50, Service.RELIABLE, 2)) == []
    assert numbers(order.take(confirmed(40, Service.AGREED))) == [(40, 0), (50, 0), (50, 1)]
    assert numbers(order.take(confirmed(60, Service.SAFE))) == [(60, 0)]


def test_a_session_that_has_ended_is_forgotten() -> None:
    order = ConfirmationOrder()
    order.sent(7, [HEAD], Service.AGREED)
    order.forget(7)
    assert order.take(confirmed(40, Service.AGREED)) == []


def test_what_is_for_others_alone_is_confirmed_in_its_turn() -> None:
    order, other = ConfirmationOrder(), data_head("a@n0", ("h",), confirm=True)
    order.sent(7, [other], Service.AGREED)
    order.sent(7, [HEAD], Service.AGREED)
    assert order.take(confirmed(50, Service.AGREED)) == []
    run = confirmed(40, Service.AGREED).run._replace(payloads=[other])
    assert numbers(order.take(Confirmed(7, run))) == [(40, 0), (50, 0)]


def test_a_run_that_is_just_what_is_awaited_stays_whole() -> None:
    order = ConfirmationOrder()
    order.sent(7, [HEAD] * 4, Service.AGREED)
    whole = confirmed(40, Service.AGREED, 3)
    assert order.take(whole) == [whole]
    assert numbers(order.take(confirmed(41, Service.AGREED, 2))) == [(41, 0)], "the other was not asked for"


def test_a_run_before_which_something_waits_is_cut() -> None:
    order, other = ConfirmationOrder(), data_head("a@n0", ("h",), confirm=True)
    order.sent(7, [other, HEAD, HEAD], Service.AGREED)
    assert order.take(confirmed(50, Service.AGREED, 2)) == []
    run = confirmed(40, Service.AGREED).run._replace(payloads=[other])
    assert numbers(order.take(Confirmed(7, run))) == [(40, 0), (50, 0), (50, 1)]
