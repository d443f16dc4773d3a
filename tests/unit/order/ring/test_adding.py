"""What is added to a visit whose token rests with member TWO of a ring of three."""

from __future__ import annotations

import pytest

from ordercast.model.ids import Seq
from ordercast.order.membership.past import Source
from ordercast.order.ring.config import RingConfig
from ordercast.order.ring.ordering import add_to_visit, visit
from ordercast.wire.run import PacketRun

from ..rings import TWO, make_packet, make_ring, make_token

CONFIG = RingConfig(window=8, visit_max=4, backlog_max=12, requests_max=5)


def _few(count: int) -> Source:
    return lambda first, token_round, timestamp, limit: [
        make_packet(first + offset, originator=TWO) for offset in range(min(count, limit))
    ]


@pytest.mark.parametrize(("is_attached", "ticks"), [(False, 3), (True, 1)])
def test_what_is_added_ticks_the_clock_of_the_ring(is_attached: bool, ticks: int) -> None:
    """Once for all of it in a network of rings."""
    ring = make_ring()
    token = visit(ring, make_token(timestamp=100), 0, _few(0), CONFIG).token
    add_to_visit(ring, token, 0, _few(0), CONFIG, 0, is_attached=is_attached)
    assert token.timestamp == 100
    add_to_visit(ring, token, 3, _few(3), CONFIG, 0, is_attached=is_attached)
    assert token.timestamp == 100 + ticks


def test_no_more_is_added_than_the_budget_allows_and_nothing_to_a_visit_that_is_full() -> None:
    ring = make_ring()
    token = visit(ring, make_token(budget=2), 0, _few(0), CONFIG).token
    assert len(add_to_visit(ring, token, 9, _few(9), CONFIG, 0)) == 2

    def never(first: Seq, token_round: int, timestamp: int, limit: int) -> list[PacketRun]:
        raise AssertionError("it is asked although nothing may be sent")

    assert add_to_visit(ring, token, 9, never, CONFIG, 0) == []


def test_a_visit_is_quiet_until_something_is_added() -> None:
    ring = make_ring()
    token = visit(ring, make_token(), 0, _few(0), CONFIG).token
    add_to_visit(ring, token, 0, _few(0), CONFIG, 0)
    assert ring.memory.quiet == 1
    add_to_visit(ring, token, 1, _few(1), CONFIG, 0)
    assert ring.memory.quiet == 0
