"""A link between two ends: what arrives, when, and how it ends."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import pytest

from ordercast.model.effects import packets_of
from ordercast.model.errors import UsageError, WireError
from ordercast.model.ids import MILLISECOND, Instant
from ordercast.order.links.codec import HORIZON, LinkHead, LinkKind, encode_link
from ordercast.order.links.config import FAR, NEAR, LinkConfig
from ordercast.order.links.link import LinkFailure, bursts_of
from ordercast.wire.head import KIND_AT, SEAL_ROOM
from tests.unit.order.links.pair import CLUSTER, ENDS, Fate, make_link, pair_of

MS = MILLISECOND


def steady(delay: int) -> Fate:
    return lambda end, packet, now: [delay]


def lossy(seed: int, delay: int, loss: float) -> Fate:
    rng = Random(seed)
    return lambda end, packet, now: [] if rng.random() < loss else [delay]


@pytest.mark.parametrize("config", [FAR, NEAR], ids=["far", "near"])
@pytest.mark.parametrize("loss", [0.0, 0.1, 0.3])
def test_everything_comes_once(config: LinkConfig, loss: float) -> None:
    pair = pair_of(config, lossy(3, 5 * MS, loss))
    sent = [b"%d" % n * (1 + n % 7) for n in range(400)]
    for at in range(0, 400, 10):
        pair.send(0, sent[at : at + 10])
        pair.run(pair.now + 3 * MS)
    pair.settle(20_000 * MS)
    assert pair.ends[0].failure is None
    assert sorted(pair.arrived[1]) == sorted(sent)
    if config.is_ordered:
        assert pair.arrived[1] == sent


def test_a_path_that_becomes_slow_has_not_failed() -> None:
    """A round trip of 440 ms is longer than the time in which something must move; a path that is cut is given up."""
    is_cut = False
    pair = pair_of(NEAR, lambda end, packet, now: [] if is_cut else [min(MS + now // 10, 220 * MS)])
    for number in range(300):
        pair.send(0, [b"%d" % number])
        pair.run(pair.now + 20 * MS)
    pair.settle(10_000 * MS)
    pair.send(0, [b"alone, and acknowledged after 440 ms"])
    pair.run(pair.now + 1_000 * MS)
    assert pair.ends[0].failure is None and len(pair.arrived[1]) == 301
    is_cut = True
    pair.send(0, [b"lost"])
    pair.run(pair.now + 3_000 * MS)
    assert pair.ends[0].failure is LinkFailure.STALLED


def test_a_link_whose_other_end_has_no_processor_does_not_stand_still() -> None:
    """As long as nobody knows that the other end did anything since, it is waited for."""
    pair = pair_of(NEAR, lambda end, packet, now: [])
    link = pair.ends[0]
    link.active_since = Instant(pair.now)
    pair.send(0, [b"waits"])
    pair.run(pair.now + 3_000 * MS)
    assert link.failure is None
    link.active_since = Instant(pair.now - 1_000 * MS)
    pair.run(pair.now + 200 * MS)
    assert link.failure is LinkFailure.STALLED


def test_what_nobody_waits_for_is_acknowledged_later_and_together() -> None:
    pair = pair_of(NEAR, steady(MS))
    for _ in range(4):
        pair.ends[0].send([b"a count"], is_calm=True)
        pair.flush(0)
        pair.run(pair.now + 10 * MS)
    assert len(pair.arrived[1]) == 4 and pair.ends[1].counts.sent == 0
    pair.run(200 * MS)
    assert [link.counts.sent for link in pair.ends] == [4, 1] and all(link.is_quiet for link in pair.ends)


def test_what_is_waited_for_brings_the_acknowledgement_of_what_is_not() -> None:
    pair = pair_of(NEAR, steady(MS))
    pair.ends[0].send([b"a count"], is_calm=True)
    pair.flush(0)
    pair.run(5 * MS)
    pair.send(0, [b"a message"])
    pair.run(30 * MS)
    assert pair.ends[1].counts.sent == 1 and pair.ends[0].is_quiet


def test_a_lost_packet_that_nobody_waits_for_comes_in_the_end() -> None:
    lost = iter([True])
    pair = pair_of(NEAR, lambda end, packet, now: [] if next(lost, False) else [MS])
    pair.ends[0].send([b"a count"], is_calm=True)
    pair.flush(0)
    pair.run(NEAR.calm_ns + NEAR.tail_ns - MS)
    assert pair.arrived[1] == []
    pair.run(200 * MS)
    assert pair.arrived[1] == [b"a count"] and all(link.is_quiet for link in pair.ends)


def test_payloads_go_up_before_a_gap_is_filled() -> None:
    eaten = iter([True])
    pair = pair_of(FAR, lambda end, packet, now: [] if next(eaten, False) else [50 * MS])
    for payload in (b"lost at first", b"second", b"third"):
        pair.send(0, [payload])
        pair.run(pair.now + MS)
    pair.settle(2_000 * MS)
    assert pair.arrived[1] == [b"second", b"third", b"lost at first"]
    assert pair.times[1][:2] == [51 * MS, 52 * MS]
    # Noticed when the second came, asked for after the first wait, half a trip there and half a trip back.
    assert pair.times[1][2] == 51 * MS + 20 * MS + 100 * MS


def test_a_lost_tail_is_announced_and_asked_for() -> None:
    """The paper's link, one packet alone: tail time, half a trip, first wait, a trip."""
    data = iter([False, True])

    def fate(end: int, packet: bytes, now: int) -> list[int]:
        return [] if end == 0 and packet[KIND_AT] == LinkKind.DATA and next(data, False) else [52 * MS]

    pair = pair_of(FAR, fate)
    pair.send(0, [b"shows the round trip"])
    pair.run(1_000 * MS)
    pair.send(0, [b"lost"])
    pair.settle(5_000 * MS)
    assert pair.arrived[1][1] == b"lost"
    assert pair.times[1][1] - 1_000 * MS == 25 * MS + 52 * MS + 13 * MS + 104 * MS


@pytest.mark.parametrize("config", [FAR, NEAR], ids=["far", "near"])
def test_a_packet_that_the_path_always_eats_fails_the_link_at_both_ends(config: LinkConfig) -> None:
    def fate(end: int, packet: bytes, now: int) -> list[int]:
        is_eaten = packet[KIND_AT] == LinkKind.DATA and b"poison" in packet
        return [] if is_eaten else [2 * MS]

    pair = pair_of(config, fate)
    pair.send(0, [b"before"])
    pair.send(0, [b"poison"])
    pair.send(0, [b"behind"])
    for _ in range(30):
        pair.run(pair.now + 100 * MS)
        for link in pair.ends:
            link.hear(Instant(pair.now))
    reasons = [link.failure for link in pair.ends]
    if config.is_ordered:
        assert reasons == [LinkFailure.STALLED, LinkFailure.STALLED]
        assert pair.arrived[1] == [b"before"]
    else:
        assert reasons == [LinkFailure.NOT_RECEIVED_THERE, LinkFailure.NOT_RECEIVED]
        assert pair.arrived[1] == [b"before", b"behind"]
    assert all(link.next_deadline is None for link in pair.ends)


def test_a_link_that_hears_nothing_fails_and_hellos_keep_it() -> None:
    link = make_link(FAR, 0)
    link.hear(Instant(1_000 * MS))
    assert link.next_deadline == 1_000 * MS + FAR.silence_ns
    assert link.flush(Instant(3_499 * MS)) == []
    assert link.failure is None
    assert link.flush(Instant(3_500 * MS)) == []
    assert link.failure is LinkFailure.SILENT


@pytest.mark.parametrize("config", [FAR, NEAR], ids=["far", "near"])
def test_a_process_that_paused_blames_nobody(config: LinkConfig) -> None:
    link = make_link(config, 0)
    link.send([b"before a pause"])
    link.flush(Instant(0))
    after = Instant(10_000 * MS)
    link.forgive(after)
    assert link.flush(after)
    assert link.failure is None
    link.flush(Instant(20_000 * MS))
    assert link.failure in (LinkFailure.SILENT, LinkFailure.STALLED)


def test_a_link_shows_what_people_ask_for() -> None:
    pair = pair_of(FAR, lossy(3, 20 * MS, 0.2))
    assert pair.ends[0].figures()[:3] == (0, 0.0, 0)
    for n in range(300):
        pair.send(0, [b"%d" % n * 300])
        pair.run(pair.now + 5 * MS)
    busy = pair.ends[0].figures()
    assert busy.under_way > 0
    pair.settle(5_000 * MS)
    figures = pair.ends[0].figures()
    assert abs(figures.round_trip_ns - 40 * MS) < 10 * MS
    assert 0.1 < figures.loss < 0.3
    assert (figures.waiting, figures.under_way, figures.missing, figures.failure) == (0, 0, 0, None)
    assert figures.counts.sent == sum(end == 0 for _, end, _ in pair.on_wire)
    pair.ends[0].fail(LinkFailure.REPLACED)
    assert pair.ends[0].figures().failure == "the other side began anew"


def test_a_gap_as_wide_as_can_be_is_asked_for_in_one_packet() -> None:
    one, other = make_link(NEAR, 0), make_link(NEAR, 1)
    head = LinkHead(LinkKind.STATUS, 0, 7, HORIZON, 0, 0, 1, 0)
    one.receive(encode_link(CLUSTER, ENDS[1], head, b"", b"\0"), Instant(0))
    (packet,) = packets_of(one.flush(Instant(MS)))
    with pytest.raises(WireError, match="never sent"):
        other.receive(packet, Instant(0))
    assert one.receiver.asked == HORIZON
    one.check_invariants()


def test_an_idle_near_link_has_no_deadline() -> None:
    pair = pair_of(NEAR, steady(MS))
    pair.send(0, [b"one"])
    pair.run(1_000 * MS)
    assert [link.next_deadline for link in pair.ends] == [None, None]


def test_urgent_payloads_overtake_those_that_wait_and_some_are_withdrawn() -> None:
    pair = pair_of(replace(FAR, window=1, ack_every=1), steady(MS))
    pair.send(0, [b"a" * 1300])
    pair.send(0, [b"b" * 1300, b"c" * 1300])
    pair.send(0, [b"urgent"], is_urgent=True)
    assert pair.ends[0].waiting == 2606
    assert pair.ends[0].withdraw() == [b"b" * 1300, b"c" * 1300]
    assert pair.ends[0].waiting == 6
    pair.settle(100 * MS)
    assert pair.arrived[1] == [b"a" * 1300, b"urgent"]


@pytest.mark.parametrize("config", [FAR, NEAR], ids=["far", "near"])
def test_large_payloads_travel_in_parts(config: LinkConfig) -> None:
    rng = Random(1)
    pair = pair_of(config, lambda end, packet, now: [rng.randrange(1, 20) * MS])
    sent = [b"small", bytes(config.payload_max), b"x" * 1410, b"y" * 1411, b"z" * 5000, b"last"]
    pair.send(0, sent)
    pair.settle(5_000 * MS)
    assert sorted(pair.arrived[1]) == sorted(sent)
    assert pair.ends[1].receiver.kept == 0
    assert pair.ends[0].waiting == 0
    assert all(len(packet) <= config.packet_size - SEAL_ROOM for _, _, packet in pair.on_wire)


@pytest.mark.parametrize("size", [0, FAR.payload_max + 1])
def test_payloads_of_other_sizes_are_refused(size: int) -> None:
    with pytest.raises(UsageError, match=f"not {size}"):
        make_link(FAR, 0).send([bytes(size)])


def test_a_rider_comes_even_when_its_packet_is_lost_and_nothing_else_is_sent() -> None:
    lost = iter([True, True, False])
    pair = pair_of(replace(NEAR, rider_size=8), lambda end, packet, now: [] if next(lost, False) else [MS])
    link = pair.ends[0]
    link.ride(b"\0\0\0\0\0\0\0\1", Instant(0))
    link.ride(b"\0\0\0\0\0\0\0\2", Instant(0))
    pair.flush(0)
    pair.run(200 * MS)
    assert max(pair.riders[1]) == b"\0\0\0\0\0\0\0\2"
    assert pair.arrived[1] == []
    assert all(link.is_quiet and link.next_deadline is None for link in pair.ends)
    with pytest.raises(UsageError, match="8 bytes"):
        link.ride(b"", Instant(0))


def test_a_rider_that_finds_no_room_waits_for_an_acknowledgement() -> None:
    pair = pair_of(replace(NEAR, rider_size=1, window=1, ack_every=1), steady(20 * MS))
    pair.send(0, [b"fills the window"])
    pair.ends[0].ride(b"\1", Instant(0))
    pair.flush(0)
    pair.run(500 * MS)
    assert max(pair.riders[1]) == b"\1"


def test_the_round_trip_is_measured_without_the_time_for_which_acknowledgements_wait() -> None:
    pair = pair_of(FAR, steady(52 * MS))
    for _ in range(5):
        pair.send(0, [b"ping"])
        pair.run(pair.now + 300 * MS)
    assert abs(pair.ends[0].path.smooth - 104 * MS) < MS
    assert abs(pair.ends[1].path.smooth - 104 * MS) < MS


def test_a_path_that_became_longer_is_seen_to_be() -> None:
    delay = [10 * MS]
    pair = pair_of(FAR, lambda end, packet, now: [delay[0]])
    for n in range(2_000):
        delay[0] = (10 if n < 50 else 40) * MS
        pair.send(0, [b"%d" % n])
        pair.run(pair.now + 5 * MS)
    assert abs(pair.ends[0].path.smooth - 80 * MS) < 2 * MS
    assert pair.ends[0].path.least > 70 * MS


def test_reordering_makes_the_receiver_wait_before_it_asks() -> None:
    rng = Random(2)
    pair = pair_of(FAR, lambda end, packet, now: [(8 + (rng.random() < 0.3) * 12) * MS])
    for n in range(600):
        pair.send(0, [b"%d" % n])
        pair.run(pair.now + 2 * MS)
    receiver = pair.ends[1].receiver
    assert receiver.first_wait > 12 * MS
    asked = receiver.asked
    for n in range(300):
        pair.send(0, [b"more %d" % n])
        pair.run(pair.now + 2 * MS)
    assert receiver.asked == asked, "nothing is lost, and what is late is known to be late"


def test_copies_of_a_question_bring_one_copy_of_the_packet() -> None:
    eaten = iter([True])

    def fate(end: int, packet: bytes, now: int) -> list[int]:
        return [] if packet.endswith(b"\0\x013") and next(eaten, False) else [30 * MS, 31 * MS, 33 * MS]

    pair = pair_of(FAR, fate)
    for payload in (b"1", b"2", b"3", b"4"):
        pair.send(0, [payload])
        pair.run(pair.now + 200 * MS)
    pair.settle(2_000 * MS)
    assert sorted(pair.arrived[1]) == [b"1", b"2", b"3", b"4"]
    assert pair.ends[0].sender.resent == 1


def test_a_link_that_failed_sends_and_takes_nothing() -> None:
    link, other = make_link(FAR, 0), make_link(FAR, 1)
    link.fail(LinkFailure.REPLACED)
    link.fail(LinkFailure.SILENT)
    link.send([b"in vain"])
    assert link.flush(Instant(0)) == []
    assert link.failure is LinkFailure.REPLACED
    other.send([b"to a dead one"])
    with pytest.raises(WireError, match="failed"):
        link.receive(packets_of(other.flush(Instant(0)))[0], Instant(0))


def test_packets_of_one_size_travel_as_a_burst() -> None:
    assert bursts_of([]) == []
    assert bursts_of([b"aa", b"bb", b"c", b"dd", b"eeee"]) == [(b"aabbc", 2), (b"dd", 2), (b"eeee", 4)]
    assert [p for burst in bursts_of([b"a", b"bb", b"cc", b"d"]) for p in packets_of([burst])] == [
        b"a",
        b"bb",
        b"cc",
        b"d",
    ]


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"window": 0}, "window must be at least 1"),
        ({"window": 1 << 20}, "window must be at most 65535"),
        ({"packet_size": 100}, "leaves 27 bytes for payloads"),
        ({"payload_max": 1 << 30}, "more than 65535 packets"),
        ({"nack_max_ns": 1}, "nack_max_ns must be at least nack_min_ns"),
        ({"ack_every": 16_385}, "ack_every must be at most the window"),
        ({"silence_ns": -1}, "silence_ns must not be negative"),
    ],
)
def test_values_that_do_not_fit_are_named(change: dict[str, Any], problem: str) -> None:
    FAR.validate()
    NEAR.validate()
    with pytest.raises(UsageError, match=problem):
        replace(FAR, **change).validate()
