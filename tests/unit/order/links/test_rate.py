"""Regulators: never faster than the rate, never idle below it, halved once per round trip."""

from __future__ import annotations

from random import Random

import pytest

from ordercast.model.errors import UsageError
from ordercast.model.ids import MILLISECOND, SECOND, Instant
from ordercast.order.links.config import FAR
from ordercast.order.links.link import Link
from ordercast.order.links.rate import FIRST_WINDOW, LATE_NS, Bucket, Fair, Fixed, rate_from, regulator_from
from ordercast.order.links.regulator import Regulator
from ordercast.sim.channel import Channel
from tests.unit.order.links.pair import Pair, make_link

MS = MILLISECOND


def test_a_bucket_lets_a_burst_go_and_then_the_rate() -> None:
    bucket = Bucket(8_000_000, 15_000)  # a byte in a microsecond
    now, left = 0, []
    while now < SECOND // 10:
        ready = bucket.ready_at(Instant(now))
        if ready > now:
            now = ready
        else:
            bucket.left(1_000, Instant(now))
            left.append(now)
    assert left[:16] == [0] * 16
    assert left[16] > 0
    assert abs(len(left) - 116) <= 2
    for first, at in enumerate(left):
        later = [one for one in left[first:] if one <= at + 10 * MS]
        assert len(later) * 1_000 <= 10_000 + 15_000 + 1_000, "a burst and what leaks out, no more"


def test_what_waits_for_the_rate_has_a_deadline_that_is_not_too_near() -> None:
    bucket = Bucket(8_000_000, 1_000)
    bucket.left(LATE_NS // 1_000 + 100, Instant(0))
    assert bucket.ready_at(Instant(0)) == MS


def test_a_timer_that_comes_late_costs_no_rate() -> None:
    bucket, now, sent = Bucket(50_000_000), 0, 0
    while now < SECOND:
        while (ready := bucket.ready_at(Instant(now))) <= now:
            bucket.left(1_250, Instant(now))
            sent += 1_250
        now = ready + 4 * MS
    assert sent * 8 > 0.99 * 50_000_000


def test_a_fair_window_doubles_no_more_once_packets_wait_on_the_path() -> None:
    fair = Fair(1_000, 1_200)
    for now in range(1, 20):
        fair.has_room(5_000)
        fair.acknowledged(10, 50 * MS, Instant(now))
    doubled = fair.window
    assert doubled == FIRST_WINDOW + 190
    while fair.rate * 50 * MS > 0.6 * fair.window * 1_200 * 8 * SECOND:  # until the smooth one has followed
        fair.acknowledged(0, 100 * MS, Instant(30))
    fair.has_room(5_000)
    fair.acknowledged(doubled, 100 * MS, Instant(40))
    assert fair.window == doubled + 1


def transfer(regulator: Regulator, loss: float, channel: Channel, count: int) -> tuple[Pair, float]:
    """Send so many payloads over one channel; return the bits per second of payload."""
    rng = Random(5)

    def fate(end: int, packet: bytes, now: int) -> list[int]:
        if end == 1:
            return [25 * MS]
        departure = channel.departure(len(packet), now)
        return [] if departure is None or rng.random() < loss else [departure - now + 25 * MS]

    ends: list[Link] = [make_link(FAR, 0, regulator=regulator), make_link(FAR, 1)]
    pair = Pair(ends, fate)
    pair.send(0, [bytes(1200)] * count)
    while len(pair.arrived[1]) < count and pair.now < 60 * SECOND:
        pair.run(pair.now + 100 * MS)
        for link in ends:
            link.hear(Instant(pair.now))
    assert len(pair.arrived[1]) == count
    assert not any(link.failure for link in ends)
    return pair, count * 1200 * 8 * SECOND / pair.times[1][-1]


def test_a_fixed_rate_fills_its_line_although_packets_are_lost() -> None:
    _, goodput = transfer(Fixed(5_000_000, 4_000), 0.01, Channel(5_200_000, 64_000), 1500)
    assert goodput > 0.85 * 5_000_000


def test_a_fair_window_finds_the_line_and_does_not_flood_it() -> None:
    channel = Channel(5_000_000, 32_000)
    pair, goodput = transfer(Fair(FAR.window, FAR.packet_size), 0.0, channel, 2500)
    assert goodput > 0.7 * 5_000_000
    assert channel.lost < 60
    assert pair.ends[0].sender.resent >= channel.lost


def test_a_fair_window_is_halved_once_for_all_that_was_under_way() -> None:
    fair = Fair(1_000, 1_200)
    assert fair.window == FIRST_WINDOW
    assert fair.rate == 0
    for now in range(1, 40):
        fair.has_room(5_000)
        fair.acknowledged(10, 100 * MS, Instant(now))
    grown = fair.window
    assert grown == FIRST_WINDOW + 390
    assert fair.rate == grown * 1_200 * 80
    for sent_at in (30, 35, 39):
        fair.lost(Instant(sent_at), Instant(100))
    assert fair.window == grown // 2
    fair.lost(Instant(101), Instant(200))
    assert fair.window == grown // 4
    fair.acknowledged(50, 100 * MS, Instant(201))
    assert fair.window == grown // 4, "a window that keeps nothing back does not grow"
    fair.has_room(5_000)
    fair.acknowledged(grown // 4, 100 * MS, Instant(202))
    assert fair.window == grown // 4 + 1


@pytest.mark.parametrize(("text", "rate"), [("fair", None), ("30mbit", 30_000_000), ("400kbit", 400_000)])
def test_rates_are_read(text: str, rate: int | None) -> None:
    assert rate_from(text) == rate
    regulator = regulator_from(text, FAR)
    assert isinstance(regulator, Fair if rate is None else Fixed)
    assert regulator.rate == (rate or 0)


@pytest.mark.parametrize("text", ["", "30", "mbit", "0mbit", "-1mbit", "1.5mbit", "unfair", "³mbit"])
def test_other_rates_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="30mbit"):
        rate_from(text)


def test_who_sends_little_keeps_the_window_of_a_beginner_when_packets_are_lost() -> None:
    fair = Fair(1_000, 1_200)
    for second in range(1, 9):
        assert fair.has_room(3)
        fair.acknowledged(3, 100 * MS, Instant(second * SECOND))
        fair.lost(Instant(second * SECOND), Instant(second * SECOND))
    assert fair.window == FIRST_WINDOW
    assert not fair.has_room(FIRST_WINDOW)
    fair.lost(Instant(9 * SECOND), Instant(9 * SECOND))
    assert fair.window == FIRST_WINDOW // 2
