"""Whatever is submitted comes out once, whole, in the order of its sender, in packets of the right size and class."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import groupby, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ordercast.model.effects import Broadcast
from ordercast.model.ids import ConfigurationId, ProcessId, Seq
from ordercast.model.service import Service
from ordercast.order.outbox import Lot, Outbox, cost, lots_from
from ordercast.order.ring.config import RingConfig
from ordercast.wire.header import (
    COUNT_MAX,
    DESCRIPTOR_SIZE,
    HEADER_SIZE,
    Heading,
    PacketEntry,
    Part,
)
from ordercast.wire.run import Load, build_runs, parse_packet
from tests.packets import header_of

ME = ProcessId(1)
HEADING = Heading(bytes(8), ConfigurationId(4, ME), (ME,))
BODY = 144
WHOLE = BODY - DESCRIPTOR_SIZE

sizes = st.one_of(
    st.integers(0, 20),
    st.sampled_from((0, WHOLE - 1, WHOLE, WHOLE + 1, 2 * WHOLE, 2 * WHOLE + 1)),
    st.integers(0, 12 * WHOLE),
)
services = st.sampled_from((Service.FIFO, Service.AGREED, Service.SAFE))


def _entry(data: bytes, service: Service = Service.AGREED, sender: int = 0) -> PacketEntry:
    return sender, len(data), int(service), data


def _parts(loads: list[Load]) -> list[int]:
    """Of each packet."""
    return [part for load in loads for part in load[5] or [Part.WHOLE] * len(_groups(load))]


def _groups(load: Load) -> list[Sequence[bytes]]:
    """The payloads of each packet."""
    each = len(load[1])
    return [load[4][at : at + each] for at in range(0, len(load[4]), each)]


def _count(loads: list[Load]) -> int:
    """Of packets."""
    return sum(len(_groups(load)) for load in loads)


def _lots(entries: Iterable[PacketEntry]) -> list[Lot]:
    """As they are made when all that is alike and comes in a row is submitted at once."""
    lots: list[Lot] = []
    for (sender, service), alike in groupby(entries, lambda entry: (entry[0], entry[2])):
        lots += lots_from([data for *_, data in alike], service, sender)
    return lots


def _add(outbox: Outbox, *entries: PacketEntry) -> None:
    lots = _lots(entries)
    outbox.add(lots, cost(lots))


@st.composite
def submissions(draw: st.DrawFn) -> list[PacketEntry]:
    """Each message begins with its number where it can, so that no two large ones are alike. Some come in rows."""
    row = st.tuples(sizes, services, st.integers(0, 3))
    drawn = draw(st.lists(st.tuples(row, st.one_of(st.just(1), st.integers(2, 40))), max_size=20))
    each = [message for message, count in drawn for _ in range(count if message[0] <= WHOLE else min(count, 2))]
    return [
        _entry((f"{number}:".encode() + bytes(size))[:size], service, sender)
        for number, (size, service, sender) in enumerate(each)
    ]


class Receiver:
    """Takes packets apart as a member of the ring would, and checks each on the way."""

    def __init__(self, body_size_max: int) -> None:
        self.body_size_max = body_size_max
        self.whole: dict[int, list[tuple[Service, bytes]]] = defaultdict(list)
        self.partial: dict[int, bytes] = {}
        self.seq = Seq(0)

    def take(self, loads: list[Load]) -> None:
        assert all(load[4] for load in loads)
        packets = Broadcast([run.burst() for run in build_runs(HEADING, loads, ME, Seq(self.seq + 1), 1, 1)]).packets
        assert len(packets) == _count(loads)
        for packet in packets:
            self.seq = Seq(self.seq + 1)
            header, run = header_of(packet), parse_packet(packet, HEADING)
            count = header.messages
            assert (header.length, header.seq) == (len(packet), self.seq)
            parcel = run.parcel
            assert parcel is not None and parcel[5] == count
            assert len(packet) <= HEADER_SIZE + self.body_size_max
            assert 1 <= count <= COUNT_MAX
            assert {service == Service.SAFE for service in parcel[3]} == {bool(run.is_safe)}
            for sender, service, data in zip(*parcel[2:5], strict=True):
                self._message(sender, Service(service), data, Part(run.part))

    def _message(self, sender: int, service: Service, data: bytes, part: Part) -> None:
        if part in (Part.WHOLE, Part.FIRST):
            assert sender not in self.partial, "one message of a sender at a time is in parts"
        else:
            assert sender in self.partial
        if part is Part.WHOLE:
            self.whole[sender].append((service, data))
        elif part is Part.LAST:
            self.whole[sender].append((service, self.partial.pop(sender) + data))
        else:
            self.partial[sender] = self.partial.get(sender, b"") + data


def _by_sender(drawn: list[PacketEntry]) -> dict[int, list[tuple[Service, bytes]]]:
    result: dict[int, list[tuple[Service, bytes]]] = defaultdict(list)
    for sender, _, service, data in drawn:
        result[sender].append((Service(service), data))
    return result


@given(submissions(), st.lists(st.integers(1, 9), min_size=1, max_size=5), st.integers(1, 6))
def test_whatever_goes_in_comes_out_in_the_order_of_its_sender(
    drawn: list[PacketEntry], limits: list[int], batch: int
) -> None:
    outbox, receiver = Outbox(BODY), Receiver(BODY)
    waiting = list(drawn)
    turn = 0
    while waiting or outbox:
        now, waiting = waiting[:batch], waiting[batch:]
        before = outbox.size
        _add(outbox, *now)
        assert outbox.size == before + cost(_lots(now))
        limit = limits[turn % len(limits)]
        loads = outbox.take(limit)
        assert _count(loads) == limit or (_count(loads) < limit and not outbox)
        receiver.take(loads)
        turn += 1
    assert receiver.whole == _by_sender(drawn) and not receiver.partial
    assert outbox.size == 0 and outbox.take(5) == []


@given(submissions(), st.integers(1, 40))
def test_starting_over_sends_unfinished_messages_whole_and_repeats_nothing_else(
    drawn: list[PacketEntry], before: int
) -> None:
    outbox, receiver = Outbox(BODY), Receiver(BODY)
    _add(outbox, *drawn)
    receiver.take(outbox.take(before))
    assert outbox.start_over() == len(receiver.partial)
    receiver.partial.clear()  # the ring ended: those parts lead to nothing
    while outbox:
        receiver.take(outbox.take(7))
    assert receiver.whole == _by_sender(drawn)
    assert outbox.size == 0


@given(st.integers(2, 8), st.integers(2, 20))
def test_small_messages_go_between_the_parts_of_a_large_one(small: int, parts: int) -> None:
    outbox = Outbox(BODY)
    _add(outbox, _entry(bytes(parts * WHOLE), sender=1))
    _add(outbox, *[_entry(bytes(WHOLE), sender=2)] * small)
    kinds = [bool(part) for part in _parts(outbox.take(small + parts))]
    assert kinds.count(True) == parts and kinds.count(False) == small
    both = 2 * min(small, parts - 1)
    assert all(one != other for one, other in pairwise(kinds[:both]))


@pytest.mark.parametrize("packet_size_max", [1472, 9000, 65507])
@pytest.mark.parametrize("size", [0, 1, 65_411, 65_535, 65_536, 70_001, 16 << 20])
def test_messages_of_any_size_survive_packets_of_any_size(size: int, packet_size_max: int) -> None:
    body = RingConfig(packet_size_max=packet_size_max).body_size_max
    outbox = Outbox(body)
    data = bytes(range(251)) * (size // 251 + 1)
    _add(outbox, _entry(data[:size], Service.SAFE, 3))
    loads = outbox.take(1 << 20)
    assert not outbox and outbox.size == 0
    assert all(sum(length + DESCRIPTOR_SIZE for length in lengths) <= body for _, _, lengths, *_ in loads)
    chunks = [
        (length, chunk)
        for load in loads
        for group in _groups(load)
        for length, chunk in zip(load[2], group, strict=True)
    ]
    assert all(length == len(chunk) for length, chunk in chunks[:-1])
    assert chunks[-1][0] - len(chunks[-1][1]) < max(1, len(chunks)), "the last is hardly shorter"
    assert b"".join(chunk for _, chunk in chunks) == data[:size]
    parts = _parts(loads)
    if len(parts) == 1:
        assert parts == [Part.WHOLE] and size <= body - DESCRIPTOR_SIZE
    else:
        assert parts == [Part.FIRST, *[Part.MIDDLE] * (len(parts) - 2), Part.LAST]


@given(st.integers(0, 600))
def test_empty_messages_fill_packets_up_to_the_count(count: int) -> None:
    outbox = Outbox(RingConfig(packet_size_max=65507).body_size_max)
    _add(outbox, *[_entry(b"")] * count)
    full, rest = divmod(count, COUNT_MAX)
    counts = [len(group) for load in outbox.take(10) for group in _groups(load)]
    assert counts == [COUNT_MAX] * full + [rest] * bool(rest)
