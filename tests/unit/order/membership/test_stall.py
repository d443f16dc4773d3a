"""Whether a process that has something to send sends, looked at from time to time."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import cast

from ordercast.model.ids import SECOND, Instant
from ordercast.order.membership.stall import Stall
from ordercast.order.membership.stats import RingStats
from ordercast.order.membership.step import Facts
from ordercast.order.outbox import Outbox, cost, lots_from


def _outbox(*texts: str) -> Outbox:
    outbox = Outbox(100)
    lots = lots_from([text.encode() for text in texts], 0, 0)
    outbox.add(lots, cost(lots))
    return outbox


@dataclass
class Sender:
    """What is looked at."""

    outbox: Outbox = field(default_factory=lambda: _outbox("waits"))
    stats: RingStats = field(default_factory=RingStats)


def _goes_on(stall: Stall, sender: Sender, at: int, *, is_installed: bool = True) -> bool:
    return stall.goes_on(cast(Facts, sender), Instant(at), is_installed=is_installed)


def test_it_goes_on_while_something_waits_and_nothing_is_sent() -> None:
    stall, sender = Stall(), Sender()
    assert not _goes_on(stall, sender, 1)
    assert _goes_on(stall, sender, SECOND) and stall.lasts(Instant(SECOND)) == SECOND - 1
    sender.stats.packets_sent += 1
    assert not _goes_on(stall, sender, 2 * SECOND) and stall.lasts(Instant(2 * SECOND)) == 0


def test_while_a_ring_is_formed_nothing_is_expected_to_be_sent() -> None:
    stall, sender = Stall(), Sender()
    assert not _goes_on(stall, sender, 1)
    assert not _goes_on(stall, sender, SECOND, is_installed=False)
    assert stall.lasts(Instant(SECOND)) == 0


def test_the_time_in_which_this_process_did_not_run_does_not_count() -> None:
    stall, sender = Stall(), Sender()
    _goes_on(stall, sender, 1)
    stall.forgive(Instant(9 * SECOND))
    assert _goes_on(stall, sender, 9 * SECOND) and stall.lasts(Instant(9 * SECOND)) == 0
    sender.outbox = _outbox()
    _goes_on(stall, sender, 9 * SECOND)
    stall.forgive(Instant(10 * SECOND))
    assert stall.since is None
