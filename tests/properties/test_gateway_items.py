"""What travels in a network of rings survives its bytes; other bytes raise WireError and nothing else."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ordercast.model.errors import WireError
from ordercast.model.ids import ConfigurationId, ProcessId, Seq
from ordercast.model.service import Service
from ordercast.order.gateways.codec import Item, decode_item, encode_item
from ordercast.order.gateways.items import EndItem, HelloItem, InterestItem, LogicalRing, Processes, Stretch
from ordercast.order.gateways.names import RingNames
from ordercast.order.gateways.network import Heard
from ordercast.order.gateways.packets import (
    Block,
    PacketOrigin,
    block_from,
    block_of,
    carried_stretches,
    control_freight,
    control_in,
    freight_of,
    interest_stretch,
    is_control,
    native_stretch,
    parcels_of,
    together,
)
from ordercast.order.gateways.reading import RingReading
from ordercast.order.large import LargeMessages
from ordercast.order.ring.two_queues import BLOCK_SIZE_MAX, NATIVE_BLOCK, Freight
from ordercast.order.stamped.lanes import NO_STAMP, Stamp
from ordercast.wire.header import BLOCK_SIZES, EXTENDED, SAFE, Heading, Part
from ordercast.wire.run import PacketRun, build_raw, build_runs, parse_packet, parse_run
from tests.packets import messages_of

from .gateway_strategies import items, numbers, rings, sets, sinces, u64

ME, OTHER = ProcessId(1 << 48 | 1), ProcessId(3)
HEADING = Heading(bytes(8), ConfigurationId(1024, ME), (ME,))
origins = st.builds(PacketOrigin, u64, numbers, st.integers(0, 0xFFFF), numbers.map(Seq))
blocks = st.builds(Block, st.none() | origins, u64)


def names_of(ring: ConfigurationId) -> RingNames:
    """What whoever knows a ring calls it and its members."""
    names = RingNames()
    names.learn(LogicalRing(ring, frozenset({ME, OTHER}), frozenset(), 1))
    return names


@given(items, sinces, st.none() | sets)
def test_an_item_survives_its_bytes(item: Item, since: Stamp, half: Processes | None) -> None:
    half = half if isinstance(item, Stretch) else None
    read = decode_item(encode_item(item, since, half))
    assert read == (item, since, half)
    if isinstance(item, EndItem) and isinstance(read.item, EndItem):  # equality of rings leaves them out
        assert read.item.successor.topologies == item.successor.topologies


@given(st.binary(max_size=200))
def test_any_bytes_raise_nothing_else(data: bytes) -> None:
    for decode in (decode_item, block_from):
        with suppress(WireError):
            decode(data)


@given(items, st.data())
def test_an_item_that_was_damaged_raises_nothing_else_and_can_be_said_again(item: Item, draw: st.DataObject) -> None:
    data = bytearray(encode_item(item))
    for _ in range(draw.draw(st.integers(1, 3))):
        data[draw.draw(st.integers(0, len(data) - 1))] = draw.draw(st.integers(0, 255))
    with suppress(WireError):
        read = decode_item(bytes(data))
        assert decode_item(encode_item(*read)) == read


@given(items, st.data())
def test_an_item_that_is_cut_short_or_has_too_much_is_refused(item: Item, draw: st.DataObject) -> None:
    data = encode_item(item)
    cut = draw.draw(st.integers(0, len(data) - 1))
    for wrong in (data[:cut], data + b"\0"):
        with pytest.raises(WireError):
            decode_item(wrong)


@given(blocks)
def test_a_block_survives_its_bytes_and_natives_leave_room_for_it(block: Block) -> None:
    data = block_of(*block)
    assert block_from(data) == block and BLOCK_SIZES[data[0]] == len(data) <= BLOCK_SIZE_MAX


@given(st.integers(0, 63))
def test_one_bucket_takes_no_room_and_there_are_64(bucket: int) -> None:
    assert len(block_of(None, 1 << bucket)) == 1 and block_from(block_of(None, 1 << bucket)).mask == 1 << bucket
    with pytest.raises(WireError):
        block_from(bytes((0xC0 + bucket,)))


def _through(freight: Freight) -> list[PacketRun]:
    """Packets as another member of the ring reads them, one by one."""
    runs = build_raw(HEADING, freight.runs, ME, Seq(5), 1, 77)
    return [parse_packet(run.packet(Seq(seq)), HEADING) for run in runs for seq in range(run.seq, run.last + 1)]


@given(items, sinces, st.integers(40, 200))
def test_an_item_travels_in_as_many_packets_as_it_takes(item: Item, since: Stamp, room: int) -> None:
    freight = control_freight(item, room, since)
    runs = _through(freight)
    assert all(is_control(run) and run.size <= 59 + 1 + room for run in runs)
    whole: list[bytes] = []
    large = LargeMessages()
    for run in runs:
        parcel, parts = messages_of(run)
        parcels = [parcel]
        if parts:
            parcels.clear()
            large.take(parcel, parts, parcels)
        whole += [bytes(payload) for parcel in parcels for payload in parcel[4]]
    assert [decode_item(data) for data in whole] == [(item, since, None)]


payloads = st.lists(st.binary(max_size=30), min_size=1, max_size=4)


@given(payloads, st.sampled_from(Service), rings, st.integers(1, 5))
def test_natives_are_carried_unchanged(
    group: list[bytes], service: Service, logical: ConfigurationId, count: int
) -> None:
    lengths, asked = tuple(map(len, group)), (int(service),) * len(group)
    load = SAFE | EXTENDED, (9,) * len(group), lengths, asked, group * count, b"", NATIVE_BLOCK
    (run,) = build_runs(HEADING, [load], ME, Seq(11), 1, 77)
    stretch = native_stretch([run], logical)
    assert (stretch.ring, stretch.tick, stretch.originator, stretch.is_safe) == (
        logical,
        77,
        ME,
        service is Service.SAFE,
    )
    names = names_of(logical)
    carried = [
        one
        for freight in freight_of(stretch, NO_STAMP, None, 900, names)
        for read in _through(freight)
        for one in carried_stretches([read], names)
    ]
    assert [(tuple(one.seqs), one.bodies) for one in carried] == [
        ((11 + at,), (stretch.bodies[at],)) for at in range(count)
    ]
    for one in carried:
        ((parcel, parts),) = parcels_of(one)
        assert not parts
        assert (parcel[1:3], bytes(parcel[3]), list(parcel[4])) == ((ME, (9,) * len(group)), bytes(asked), group)


@given(st.sets(st.integers(1, 900), min_size=1, max_size=6).map(sorted), st.booleans(), u64)
def test_a_stretch_that_is_carried_is_read_as_one(seqs: list[int], in_parts: bool, mask: int) -> None:
    body = bytes((Part.MIDDLE if in_parts else Part.WHOLE, 1)) + bytes((0, 0, 0, 9, 0, 4, 0)) + b"body"
    stretch = Stretch(HEADING_RING, 40, OTHER, tuple(seqs), (body,) * len(seqs), False, mask)
    names = names_of(HEADING_RING)
    (freight,) = freight_of(stretch, NO_STAMP, None, 900, names)
    (built,) = build_raw(HEADING, freight.runs, ME, Seq(5), 1, 77)
    read = parse_run(*built.burst()[:1], 0, built.size, HEADING, Seq(5))
    assert read is not None and read.count == len(seqs)
    assert carried_stretches([read], names) == carried_stretches([built], names)
    assert [replace(one, seqs=tuple(one.seqs)) for one in carried_stretches([read], names)] == [stretch]
    (backwards,) = build_raw(HEADING, freight.runs[::-1], ME, Seq(5), 1, 77)
    assert [tuple(one.seqs) for one in carried_stretches([backwards], names)] == [(seq,) for seq in reversed(seqs)]


@given(st.lists(st.integers(0, 200), min_size=1, max_size=12))
def test_packets_without_room_for_a_block_are_carried_as_one_item(lengths: list[int]) -> None:
    bodies = tuple(
        bytes((Part.WHOLE, 1, 0, 0, 0, 9)) + length.to_bytes(2, "big") + bytes(1 + length) for length in lengths
    )
    stretch = Stretch(HEADING_RING, 40, OTHER, tuple(range(1, len(bodies) + 1)), bodies)
    freight = freight_of(stretch, NO_STAMP, None, 200, names_of(HEADING_RING))
    packets = sum(one.count for one in freight)
    assert all(run.size <= 201 * len(run.payloads) for one in freight for run in one.runs)
    if max(lengths) + 7 + BLOCK_SIZE_MAX - 8 > 201:
        assert len(freight) == 1 and packets <= 2 + (sum(map(len, bodies)) + 10 * len(bodies)) // 193
    else:
        assert packets == len(bodies)


@given(rings, numbers, st.booleans(), u64, st.lists(u64, min_size=1, max_size=3))
def test_hollow_packets_and_interests_are_carried(
    logical: ConfigurationId, seq: int, is_safe: bool, mask: int, wishes: list[int]
) -> None:
    hollow = Stretch(logical, 40, OTHER, range(seq, seq + 1), (), is_safe, mask)
    names = names_of(logical)
    ((freight,),) = [freight_of(hollow, NO_STAMP, None, 900, names)]
    assert [carried_stretches([run], names) for run in _through(freight)] == [[hollow]]

    items = [InterestItem(ME, wish) for wish in wishes]
    raw = [run for item in items for run in control_freight(item, 900).runs]
    (native,) = build_raw(HEADING, raw, ME, Seq(5), 1, 77)
    assert is_control(native)
    told = [interest_stretch(native, Seq(5 + at), logical, item) for at, item in enumerate(items)]
    assert all(one.is_safe and one.mask == (1 << 64) - 1 for one in told)
    carried = [run for one in told for freight in freight_of(one, NO_STAMP, None, 900, names) for run in freight.runs]
    (run,) = build_raw(HEADING, carried, ME, Seq(9), 1, 88)
    pieces = [run.piece(seq, seq) for seq in range(run.seq, run.last + 1)]
    assert [one for piece in pieces for one in carried_stretches([piece], names)] == told


@given(rings, st.booleans())
def test_packets_of_a_ring_that_is_not_known_say_nothing_and_are_carried_as_items(
    logical: ConfigurationId, is_settled: bool
) -> None:
    body = bytes((Part.WHOLE, 1)) + bytes((0, 0, 0, 9, 0, 4, 0)) + b"body"
    stretch = Stretch(logical, 40, OTHER, (5,), (body,))
    (freight,) = freight_of(stretch, NO_STAMP, None, 900, RingNames() if is_settled else None)
    (run,) = _through(freight)
    assert is_control(run) and decode_item(control_in(run)).item == stretch
    (short,) = freight_of(stretch, NO_STAMP, None, 900, names_of(logical))
    assert carried_stretches(_through(short), RingNames()) == []
    reading = RingReading(HEADING_RING)
    (heard,) = reading.entries(_through(short), RingNames())
    assert isinstance(heard, Heard) and isinstance(heard.carried.item, HelloItem) and heard.seq == 5
    assert reading.dropped == ["packets of a ring that is not known"]


@given(items)
def test_other_control_is_not_taken_for_something_carried(item: Item) -> None:
    if isinstance(item, InterestItem):
        return
    whole = Stretch(HEADING_RING, 40, OTHER, (7,), (_body(control_freight(item, 60000)),))
    (freight,) = freight_of(whole, NO_STAMP, None, 60100, names_of(HEADING_RING))
    (run,) = _through(freight)
    with pytest.raises(WireError, match="should not have been carried"):
        carried_stretches([run], names_of(HEADING_RING))


def _body(freight: Freight) -> bytes:
    """The body of a freight's only packet."""
    (run,) = freight.runs
    return bytes((Part.WHOLE, run.each)) + run.descriptors + bytes(run.payloads[0])


@given(st.lists(st.integers(1, 3), min_size=1, max_size=6), st.booleans())
def test_natives_of_a_visit_are_one_however_they_were_read(visits: list[int], in_parts: bool) -> None:
    packets, seq = b"", Seq(1)
    for tick, count in enumerate(visits, 50):
        parts = bytes((Part.FIRST,)) * count if in_parts else b""
        load = SAFE | EXTENDED, (9,), (4,), (0,), [b"same"] * count, parts, NATIVE_BLOCK
        (built,) = build_runs(HEADING, [load], ME, seq, 1, tick)
        packets, seq = packets + built.burst()[0], Seq(seq + count)
    size = len(packets) // (seq - 1)
    runs: list[PacketRun] = []
    for read in (packets[at : at + 2 * size] for at in range(0, len(packets), 2 * size)):
        at = 0
        while at < len(read):
            run = parse_run(read, at, size, HEADING, Seq(1 + sum(one.count for one in runs)))
            assert run is not None
            runs.append(run)
            at += run.count * size
    found = [native_stretch(alike, HEADING_RING) for alike in together(runs)]
    ticks = [one.tick for one in found for _ in one.seqs]
    assert ticks == [tick for tick, count in enumerate(visits, 50) for _ in range(count)]
    assert in_parts or len(found) == len(visits)
    assert {body[0] for one in found for body in one.bodies} == {Part.FIRST if in_parts else Part.WHOLE}
    assert b"".join(run.burst()[0] for run in runs) == packets


HEADING_RING = ConfigurationId(1024, ME)


@given(st.binary(max_size=40), st.binary(max_size=8))
def test_a_body_that_is_unsound_raises_nothing_else(body: bytes, head: bytes) -> None:
    stretch = Stretch(HEADING_RING, 1, ME, (1,), (head + body,))
    ((parcel, parts),) = parcels_of(stretch)
    assert len(parcel[2]) == len(parcel[4]) and len(parts) <= 1
