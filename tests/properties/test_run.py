"""Packets in runs are the same as packets one by one: however they were built, read, kept, delivered and sent."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby, pairwise

from hypothesis import given
from hypothesis import strategies as st

from ordercast.model.configuration import ChangeReason
from ordercast.model.effects import Broadcast, Burst, Deliver, Delivered, Effect
from ordercast.model.ids import ConfigurationId, ProcessId, Seq, TokenSeq
from ordercast.model.service import Service
from ordercast.order.membership.recovery_plan import RecoveryPlan
from ordercast.order.membership.ring import Ring, TokenMemory
from ordercast.order.ring.config import RingConfig
from ordercast.order.ring.delivery import Delivery
from ordercast.order.ring.ordering import visit
from ordercast.wire.header import (
    DESCRIPTOR_SIZE,
    EXTENDED,
    FLAGS_AT,
    HEADER_SIZE,
    PART_SHIFT,
    RECOVERED,
    RETRANSMITTED,
    SAFE,
    Heading,
    Part,
    retransmitted,
)
from ordercast.wire.messages import Token
from ordercast.wire.run import Load, PacketRun, build_data, build_runs, parse_packet, parse_run
from tests.packets import header_of

from .strategies import (
    CLUSTER,
    MEMBERS,
    cut_short,
    data_packets,
    heading_of,
    recovered_packets,
    u32,
    with_one_byte_changed,
)

ME, OTHER, THIRD = MEMBERS
RING_ID, NEXT_RING_ID = ConfigurationId(8, ME), ConfigurationId(12, ME)
HEADING = heading_of(RING_ID)
FIRST = Seq(5)
SEQ_AT, ROUND_AT = 35, 43

lengths = st.sampled_from((0, 1, 2, 3, 4, 9))  # few, so that packets of one size often have different messages
senders = st.one_of(st.integers(0, 1), u32)
services = st.sampled_from(Service).map(int)


# Whatever is built is read again


Shape = tuple[int, tuple[int, ...], tuple[int, ...], tuple[int, ...]]


@st.composite
def shapes(draw: st.DrawFn, flags_too: bool = True) -> Shape:
    alike = draw(st.booleans())
    count = draw(st.integers(1, 5))
    its_lengths = (draw(lengths),) * count if alike else tuple(draw(lengths) for _ in range(count))
    its_senders = tuple(draw(senders) for _ in range(count))
    its_services = tuple(draw(services) for _ in range(count))
    flags = draw(st.sampled_from((0, SAFE)))
    if count == 1:
        flags |= draw(st.sampled_from(Part)) << PART_SHIFT
    if flags_too:
        flags |= draw(st.sampled_from((0, 0, 0, RETRANSMITTED)))
    return flags, its_senders, its_lengths, its_services


@st.composite
def load_lists(draw: st.DrawFn, flags_too: bool = True) -> list[Load]:
    """Rows of packets; a shape comes back now and then. Every payload is different where it has the length."""
    pool = draw(st.lists(shapes(flags_too), min_size=1, max_size=4))
    rows = draw(st.lists(st.tuples(st.sampled_from(pool), st.integers(1, 6)), min_size=1, max_size=8))
    loads: list[Load] = []
    number = 0
    for (flags, its_senders, its_lengths, its_services), count in rows:
        groups: list[tuple[bytes, ...]] = []
        for _ in range(count):
            number += 1
            groups.append(tuple(_payload(number, slot, length) for slot, length in enumerate(its_lengths)))
        loads.append(_load(flags, its_senders, its_lengths, its_services, groups))
    return loads


def _load(
    flags: int,
    its_senders: tuple[int, ...],
    its_lengths: tuple[int, ...],
    its_services: tuple[int, ...],
    groups: Sequence[Sequence[bytes]],
) -> Load:
    part = Part(flags >> PART_SHIFT)
    kept = flags & (1 << PART_SHIFT) - 1
    payloads = [payload for group in groups for payload in group]
    return kept, its_senders, its_lengths, its_services, payloads, bytes((part,)) * len(groups) if part else b"", b""


def _groups(load: Load) -> list[Sequence[bytes]]:
    """The payloads of each packet."""
    each = len(load[1])
    return [load[4][at : at + each] for at in range(0, len(load[4]), each)]


def _unload(
    load: Load,
) -> tuple[int, tuple[int, ...], tuple[int, ...], tuple[int, ...], Sequence[Sequence[bytes]]]:
    flags, its_senders, its_lengths, its_services, _, parts, _ = load
    return flags | (parts[0] << PART_SHIFT if parts else 0), its_senders, its_lengths, its_services, _groups(load)


def _payload(number: int, slot: int, length: int) -> bytes:
    return bytes((number, slot, *range(length)))[:length]


def _built(loads: Sequence[Load], me: ProcessId = ME, seq: Seq = FIRST) -> list[PacketRun]:
    return build_runs(HEADING, loads, me, seq, 3, 99)


def _one_by_one(loads: Sequence[Load], me: ProcessId = ME, seq: Seq = FIRST) -> list[PacketRun]:
    """The same packets, each a run of its own."""
    single = [
        (flags, list(zip(its_senders, its_lengths, its_services, group, strict=True)))
        for load in loads
        for flags, its_senders, its_lengths, its_services, groups in [_unload(load)]
        for group in groups
    ]
    return [
        build_data(HEADING, flags, entries, me, Seq(seq + at), 3, 99 + at) for at, (flags, entries) in enumerate(single)
    ]


def _packets(runs: Sequence[PacketRun]) -> list[bytes]:
    return [run.packet(Seq(run.seq + at)) for run in runs for at in range(run.count)]


def _messages(runs: Sequence[PacketRun]) -> list[Delivered]:
    return list(Deliver(RING_ID, RING_ID, [run.parcel for run in runs if run.parcel is not None]).messages())


def _submitted(loads: Sequence[Load], me: ProcessId = ME, seq: Seq = FIRST) -> list[Delivered]:
    groups = [(load[1], load[3], group) for load in loads for group in _groups(load)]
    return [
        (Seq(seq + at), slot, me, sender, service, data)
        for at, columns in enumerate(groups)
        for slot, (sender, service, data) in enumerate(zip(*columns, strict=True))
    ]


def _reads(runs: Sequence[PacketRun], *, with_shorter: bool) -> list[Burst]:
    """As the network joins them: packets of one size, perhaps with a shorter one at the end."""
    reads: list[Burst] = []
    for size, alike in groupby(runs, lambda run: run.size):
        data = b"".join(run.burst()[0] for run in alike)
        if with_shorter and reads and reads[-1][1] > size == len(data) and len(reads[-1][0]) % reads[-1][1] == 0:
            reads[-1] = (reads[-1][0] + data, reads[-1][1])
        else:
            reads.append((data, size))
    return reads


def _read(data: bytes, size: int, expected: Seq) -> list[PacketRun]:
    """All of it, run by run."""
    runs: list[PacketRun] = []
    start = 0
    while start < len(data):
        run = parse_run(data, start, size, HEADING, expected)
        assert run is not None and run.seq == expected
        runs.append(run)
        start += run.count * size
        expected = Seq(run.last + 1)
    return runs


def _shape(packet: bytes) -> bytes:
    """All but seq, round, timestamp and payloads; of parts, which part it is does not matter either."""
    flags, count = packet[FLAGS_AT], packet[FLAGS_AT + 1]
    is_part = flags >> PART_SHIFT > 0
    shown = bytes((flags & (1 << PART_SHIFT) - 1, is_part))
    return (
        packet[:FLAGS_AT]
        + shown
        + packet[FLAGS_AT + 1 : SEQ_AT]
        + packet[HEADER_SIZE : HEADER_SIZE + DESCRIPTOR_SIZE * count]
    )


def _is_even(packet: bytes) -> bool:
    """All its messages have one length."""
    parcel = parse_packet(packet, HEADING).parcel
    return parcel is not None and len(set(map(len, parcel[4]))) == 1


@given(load_lists())
def test_runs_are_built_as_their_packets_would_be_one_by_one(loads: list[Load]) -> None:
    runs = _built(loads)
    single = _one_by_one(loads)
    assert _packets(runs) == _packets(single)
    assert _messages(runs) == _messages(single) == _submitted(loads)
    assert [run.seq for run in runs[1:]] == [run.last + 1 for run in runs[:-1]]
    for run in runs:
        flags = {packet[FLAGS_AT] for packet in _packets([run])}
        assert {bits & SAFE for bits in flags} == {run.is_safe}
        assert {bits >> PART_SHIFT for bits in flags} == (set(run.parts) or {Part.WHOLE})
    for one, other in pairwise(runs):
        assert _shape(_packets([one])[0]) != _shape(_packets([other])[0]), "packets in a row that are alike are one run"


@given(st.lists(st.tuples(st.sampled_from((ME, OTHER)), load_lists()), min_size=1, max_size=3), st.booleans())
def test_runs_are_read_as_they_were_built(rows: list[tuple[ProcessId, list[Load]]], with_shorter: bool) -> None:
    built: list[PacketRun] = []
    submitted: list[Delivered] = []
    for originator, loads in rows:
        seq = Seq(built[-1].last + 1) if built else FIRST
        built += _built(loads, originator, seq)
        submitted += _submitted(loads, originator, seq)
    expected = FIRST
    found: list[PacketRun] = []
    for data, size in _reads(built, with_shorter=with_shorter):
        runs = _read(data, size, expected)
        for run in runs:
            assert len(set(map(_shape, _packets([run])))) == 1
        for one, other in pairwise(runs):
            packet, following = _packets([one])[-1], _packets([other])[0]
            assert _shape(packet) != _shape(following) or not _is_even(packet), "a run ends where it must, not before"
        found += runs
        expected = Seq(found[-1].last + 1)
    assert _packets(found) == _packets(built)
    assert _messages(found) == submitted
    loaded = [
        (load[0] & SAFE, part)
        for _, loads in rows
        for load in loads
        for part in load[5] or [Part.WHOLE] * len(_groups(load))
    ]
    read = [(run.is_safe, part) for run in found for part in run.parts or [Part.WHOLE] * run.count]
    assert read == loaded


@given(load_lists(), st.data())
def test_some_packets_of_a_run_have_the_messages_that_they_have_one_by_one(
    loads: list[Load], data: st.DataObject
) -> None:
    run = data.draw(st.sampled_from(_built(loads)))
    first = data.draw(st.integers(run.seq, run.last))
    last = data.draw(st.integers(first, run.last))
    parcel = run.parcel_of(first, last)
    expected = [message for message in _submitted(loads) if first <= message[0] <= last]
    assert list(Deliver(RING_ID, RING_ID, [parcel]).messages()) == expected
    assert run.parcel is not None and (parcel[0], parcel[1], parcel[5]) == (first, ME, run.parcel[5])
    pieces = [run.parcel_of(seq, seq) for seq in range(first, last + 1)]
    assert list(Deliver(RING_ID, RING_ID, pieces).messages()) == expected


# Where a run ends


@st.composite
def alike(draw: st.DrawFn) -> list[bytes]:
    """Of whole messages; parts are in tests/unit/wire/test_run.py."""
    flags, its_senders, its_lengths, its_services = draw(shapes())
    flags &= (1 << PART_SHIFT) - 1
    count = draw(st.integers(2, 8))
    groups = [
        tuple(_payload(number, slot, its_lengths[0]) for slot in range(len(its_senders))) for number in range(count)
    ]
    even = (its_lengths[0],) * len(its_senders)
    return _packets(_built([_load(flags, its_senders, even, its_services, groups)]))


@given(alike(), st.data())
def test_a_run_ends_exactly_before_the_first_packet_with_another_byte_in_what_must_be_equal(
    packets: list[bytes], data: st.DataObject
) -> None:
    at = data.draw(st.integers(0, len(packets) - 1))
    described = HEADER_SIZE + DESCRIPTOR_SIZE * packets[0][FLAGS_AT + 1]
    must_be_equal = [*range(ROUND_AT), *range(HEADER_SIZE, described)]
    place = data.draw(st.sampled_from(must_be_equal))
    changed = bytearray(packets[at])
    changed[place] ^= data.draw(st.integers(1, 255))
    read = b"".join((*packets[:at], changed, *packets[at + 1 :]))
    size = len(packets[0])
    run = parse_run(read, 0, size, HEADING, FIRST)
    if at:
        assert run is not None and _packets([run]) == packets[:at]
        assert _messages([run]) == _messages(_read(b"".join(packets[:at]), size, FIRST))
        following = parse_run(read, at * size, size, HEADING, Seq(FIRST + at))
    else:
        following = run
    assert following is None or following.count == 1


@given(alike(), st.data())
def test_rounds_timestamps_and_payloads_may_differ_within_a_run(packets: list[bytes], data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(packets) - 1))
    described = HEADER_SIZE + DESCRIPTOR_SIZE * packets[0][FLAGS_AT + 1]
    may_differ = [*range(ROUND_AT, HEADER_SIZE), *range(described, len(packets[0]))]
    changed = bytearray(packets[at])
    changed[data.draw(st.sampled_from(may_differ))] ^= data.draw(st.integers(1, 255))
    packets[at] = bytes(changed)
    (run,) = _read(b"".join(packets), len(packets[0]), FIRST)
    assert _packets([run]) == packets
    single = [parsed for seq, packet in enumerate(packets, FIRST) for parsed in _read(packet, len(packet), Seq(seq))]
    assert _messages([run]) == _messages(single)


@given(alike(), st.data())
def test_a_run_ends_before_a_packet_that_was_cut_short(packets: list[bytes], data: st.DataObject) -> None:
    read, size = b"".join(packets), len(packets[0])
    cut = data.draw(st.integers(0, len(read)))
    run = parse_run(read[:cut], 0, size, HEADING, FIRST)
    assert (run.count if run else 0) == cut // size
    if run is not None:
        assert _packets([run]) == packets[: cut // size]
        rest = parse_run(read[:cut], run.count * size, size, HEADING, Seq(run.last + 1))
        assert rest is None


@given(cut_short(data_packets(RING_ID)), st.integers(0, 40))
def test_a_packet_of_any_shape_that_was_cut_short_is_no_run(packet: bytes, more: int) -> None:
    expected = Seq(int.from_bytes(packet[SEQ_AT:ROUND_AT], "big"))
    length = int.from_bytes(packet[4:6], "big")
    assert parse_run(packet, 0, max(length, len(packet)) + more, HEADING, expected) is None


@given(
    st.lists(data_packets(RING_ID), min_size=1, max_size=6),
    st.integers(0, 3),
    st.sampled_from((HEADING, heading_of(NEXT_RING_ID))),
)
def test_packets_shorter_than_their_pieces_of_a_read_are_read_all_the_same(
    drawn: list[bytes], skipped: int, heading: Heading
) -> None:
    size = max(map(len, drawn))
    numbered = [packet[:SEQ_AT] + at.to_bytes(8, "big") + packet[ROUND_AT:] for at, packet in enumerate(drawn, FIRST)]
    read = b"".join(packet.ljust(size, b"\0") for packet in numbered[:-1]) + numbered[-1]
    first = min(skipped, len(numbered) - 1)
    runs = _read(read[first * size :], size, Seq(FIRST + first))
    assert _packets(runs) == numbered[first:]
    single = [parsed for seq, packet in enumerate(numbered, FIRST) for parsed in _read(packet, len(packet), Seq(seq))]
    assert _messages(runs) == _messages(single[first:])
    assert parse_run(read, 0, size, heading, Seq(FIRST + (heading is HEADING))) is None


# Noise

GOOD: Load = (0, (7,), (4,), (int(Service.AGREED),), [b"good"], b"", b"")


@given(st.binary(max_size=300), st.integers(0, 320), st.integers(1, 400), st.integers(0, 3), st.booleans())
def test_reading_noise_never_raises(data: bytes, start: int, size: int, expected: int, behind_a_prefix: bool) -> None:
    read = _packets(_built([GOOD]))[0][:FLAGS_AT] + data if behind_a_prefix else data
    run = parse_run(read, start, size, HEADING, Seq(expected))
    assert run is None or run.at + run.count * run.size <= len(read)


@given(
    with_one_byte_changed(st.one_of(data_packets(RING_ID), recovered_packets(), alike().map(b"".join))),
    st.one_of(st.none(), st.integers(1, 400)),
)
def test_reading_what_was_damaged_never_raises(read: bytes, size: int | None) -> None:
    """The ring and the seq are the expected ones, whatever they have become."""
    header, heading = header_of(read), heading_of(RING_ID)
    heading.ring, heading.cluster = header.ring, header.cluster
    run = parse_run(read, 0, size or max(1, header.length), heading, header.seq)
    if run is not None:
        assert run.at + run.count * run.size <= len(read)
        assert (run.parcel is None) == bool(read[FLAGS_AT] & (RECOVERED | EXTENDED))
        if run.parcel is not None:
            assert {len(column) for column in run.parcel[2:5]} == {run.count * run.parcel[5]}


# Keeping and delivering

row_lists = st.lists(st.tuples(st.sampled_from((ME, OTHER)), load_lists(flags_too=False)), min_size=1, max_size=3)


class Holder:
    """A member that receives, delivers and discards."""

    def __init__(self) -> None:
        self.ring = _ring()
        self.delivery = Delivery(self.ring, self.ring.id, reach=64)
        self.log: list[object] = []

    def keep(self, run: PacketRun) -> None:
        store = self.ring.store
        if store.aru == store.high == run.seq - 1:
            store.extend(run)
        else:
            for seq in range(run.seq, run.last + 1):
                assert store.add(Seq(seq), run)
        store.check_invariants()

    def advance(self, safe: Seq) -> None:
        effects: list[Effect] = []
        self.delivery.deliver(safe, effects)
        self._tell(effects)

    def finish(self, plan: RecoveryPlan) -> None:
        effects: list[Effect] = []
        self.delivery.finish(plan, _ring(NEXT_RING_ID), ChangeReason.TOKEN_LOST, effects)
        self._tell(effects)

    def held(self) -> list[tuple[int, bytes]]:
        return [(seq, run.packet(seq)) for seq, run in self.ring.store.held_after(Seq(0))]

    def _tell(self, effects: list[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, Deliver):
                self.log.append((effect.configuration, effect.origin, list(effect.messages())))
            else:
                self.log.append(effect)
        self.log.append(self.delivery.delivered)


def _ring(ring_id: ConfigurationId = RING_ID) -> Ring:
    return Ring(ring_id, (ME, OTHER, THIRD), ME, CLUSTER, TokenMemory(TokenSeq(0)))


@st.composite
def arrivals(draw: st.DrawFn) -> list[tuple[PacketRun, list[PacketRun]]]:
    """Runs from seq 1 on, and each as its packets one by one. A recovered packet has nothing to deliver."""
    found: list[tuple[PacketRun, list[PacketRun]]] = []
    seq = Seq(1)
    for me, loads in draw(row_lists):
        single = _one_by_one(loads, me, seq)
        for run in _built(loads, me, seq):
            packets = single[run.seq - seq : run.seq - seq + run.count]
            if run.count == 1 and draw(st.integers(0, 5)) == 0:
                run = PacketRun(run.data, 0, run.size, run.seq, run.originator, 1, run.is_safe)
                packets = [run]
            found.append((run, packets))
        seq = Seq(seq + len(single))
    return found


@given(arrivals(), st.data())
def test_packets_kept_in_runs_are_delivered_as_if_kept_one_by_one(
    drawn: list[tuple[PacketRun, list[PacketRun]]], data: st.DataObject
) -> None:
    """Some come late or never; what is safe ends in the middle of runs, and what is discarded too."""
    in_runs, one_by_one = Holder(), Holder()
    late = data.draw(st.lists(st.integers(0, len(drawn) - 1), unique=True, max_size=3))
    missing = data.draw(st.integers(0, len(late)))
    order = [at for at in range(len(drawn)) if at not in late] + late[missing:]
    for at in order:
        run, packets = drawn[at]
        in_runs.keep(run)
        for packet in packets:
            one_by_one.keep(packet)
        safe = Seq(data.draw(st.integers(0, in_runs.ring.store.aru)))
        in_runs.advance(safe)
        one_by_one.advance(safe)
        through = Seq(data.draw(st.integers(0, in_runs.delivery.delivered)))
        in_runs.ring.store.discard(through)
        one_by_one.ring.store.discard(through)
        assert in_runs.held() == one_by_one.held()
        assert in_runs.ring.store.aru == one_by_one.ring.store.aru
    obligation = frozenset(data.draw(st.sets(st.sampled_from((ME, OTHER)), min_size=1)))
    delivered = Seq(data.draw(st.integers(0, in_runs.ring.store.aru)))
    plan = RecoveryPlan((ME, OTHER), obligation, Seq(0), delivered, in_runs.ring.store.aru)
    in_runs.finish(plan)
    one_by_one.finish(plan)
    assert in_runs.log == one_by_one.log
    assert in_runs.delivery.large == one_by_one.delivery.large


@given(load_lists(flags_too=False), st.data())
def test_what_is_not_yet_safe_waits_from_the_middle_of_a_run_on(loads: list[Load], data: st.DataObject) -> None:
    """All ask for safe delivery and are whole: exactly what is safe is delivered, once, in order."""
    safe_loads: list[Load] = [(SAFE, *load[1:5], b"", b"") for load in loads]
    holder = Holder()
    for run in _built(safe_loads, seq=Seq(1)):
        holder.keep(run)
    limits = sorted(data.draw(st.lists(st.integers(0, holder.ring.store.aru), max_size=5)))
    expected = _submitted(safe_loads, seq=Seq(1))
    delivered: list[Delivered] = []
    for limit in [*limits, holder.ring.store.aru]:
        effects: list[Effect] = []
        holder.delivery.deliver(Seq(limit), effects)
        delivered += [message for effect in effects if isinstance(effect, Deliver) for message in effect.messages()]
        assert holder.delivery.delivered == limit
        assert delivered == [message for message in expected if message[0] <= limit]


# Sending


@given(row_lists, load_lists(flags_too=False), st.data())
def test_a_visit_divides_what_it_sends_by_packets_and_keeps_their_order(
    held: list[tuple[ProcessId, list[Load]]], loads: list[Load], data: st.DataObject
) -> None:
    ring = _ring()
    packets: list[bytes] = []
    for originator, rows in held:
        for run in _built(rows, originator, Seq(1 + len(packets))):
            ring.store.extend(run)
            packets += _packets([run])
    high = ring.store.high
    asked = sorted(data.draw(st.sets(st.integers(1, high), max_size=8)))
    following = data.draw(st.integers(0, 60))
    config = RingConfig(
        window=1000, visit_max=100, backlog_max=5000, accelerated=data.draw(st.booleans()), accelerated_window=following
    )
    token = Token(
        ring.id,
        THIRD,
        TokenSeq(0),
        3,
        high,
        high,
        ProcessId(0),
        tuple(map(Seq, asked)),
        0,
        1000,
        0,
        0,
        False,
        98,
    )
    fresh = _packets(_built(loads, seq=Seq(high + 1)))
    done = visit(ring, token, len(fresh), lambda first, *_: build_runs(HEADING, loads, ME, first, 3, 99), config)
    again = [retransmitted(packets[seq - 1], ME) for seq in asked]
    count = max(0, len(again) + len(fresh) - following) if config.accelerated else len(again) + len(fresh)
    sent = [*again, *fresh]
    assert Broadcast(done.before).packets == sent[:count]
    assert Broadcast(done.after).packets == sent[count:]
    assert (done.sent, done.retransmitted, done.token.seq) == (len(fresh), len(again), high + len(fresh))
    assert [run.packet(seq) for seq, run in ring.store.held_after(high)] == fresh
