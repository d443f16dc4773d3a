"""Whatever can be said survives the wire; whatever else comes is a WireError and nothing worse."""

from __future__ import annotations

from contextlib import suppress

from hypothesis import given
from hypothesis import strategies as st

from ordercast.model.errors import WireError
from ordercast.model.ids import ProcessId, RingId, Seq
from ordercast.wire.codec import decode, encode, kind_of
from ordercast.wire.header import (
    HEADER,
    HEADER_SIZE,
    PART_SHIFT,
    PREFIX,
    RECOVERED,
    RETRANSMITTED,
    SAFE,
    MessageKind,
    Parsed,
    parse_data,
    parse_run,
    prefix_of,
    recovered,
    retransmitted,
    unwrapped,
)
from ordercast.wire.messages import Message

from .strategies import (
    CLUSTER,
    control_packets,
    cut_short,
    data_packets,
    messages,
    packets,
    processes,
    recovered_packets,
    rings,
    u8,
    u64,
    with_one_byte_changed,
)

garbage = st.one_of(
    st.binary(max_size=200),
    st.binary(min_size=HEADER_SIZE - 28, max_size=300).map(
        lambda rest: prefix_of(MessageKind.TOKEN, CLUSTER, RingId(8, ProcessId(1))) + rest
    ),
)


def _plain(parsed: Parsed) -> Parsed:
    """Columns may be any sequences: as tuples they can be compared."""
    packet, is_safe, parcel, part = parsed
    if parcel is None:
        return parsed
    seq, originator, senders, services, payloads = parcel
    return packet, is_safe, (seq, originator, tuple(senders), tuple(services), tuple(payloads)), part


def _parsed(packet: bytes) -> Parsed:
    _, _, flags, count, _, originator, seq, _, _ = HEADER.unpack_from(packet)
    parsed = parse_data(packet, flags, count, originator, seq)
    return _plain(parsed)


@given(messages)
def test_every_control_message_survives_the_wire(message: Message) -> None:
    packet = encode(CLUSTER, message)
    assert decode(packet, CLUSTER) == message
    kind, ring = kind_of(packet, CLUSTER)
    assert (kind.name, ring) == (type(message).__name__.removesuffix("Token").upper() or "TOKEN", message.ring)


@given(data_packets(), processes)
def test_retransmission_changes_the_transmitter_and_one_flag_only(packet: bytes, me: ProcessId) -> None:
    again = retransmitted(packet, me)
    before, after = list(HEADER.unpack_from(packet)), list(HEADER.unpack_from(again))
    assert after[2] == before[2] | RETRANSMITTED and after[4] == me
    before[2], before[4] = after[2], after[4]
    assert after == before and again[HEADER_SIZE:] == packet[HEADER_SIZE:]
    assert _parsed(again)[2:] == _parsed(packet)[2:]


@given(data_packets(), rings, processes, u64)
def test_an_old_packet_survives_being_wrapped_for_a_new_ring(
    packet: bytes, ring: RingId, me: ProcessId, seq: int
) -> None:
    wrapped = recovered(packet, prefix_of(MessageKind.DATA, CLUSTER, ring), me, Seq(seq), 9)
    assert kind_of(wrapped, CLUSTER) == (MessageKind.DATA, ring)
    assert _parsed(wrapped)[2:] == (None, 0)
    raw = unwrapped(wrapped, packet[: PREFIX.size])
    assert _parsed(raw)[2:] == _parsed(packet)[2:]
    assert HEADER.unpack_from(raw)[5:7] == HEADER.unpack_from(packet)[5:7]


@given(st.one_of(garbage, packets, with_one_byte_changed(packets), cut_short(packets)))
def test_decoding_raises_wire_error_and_nothing_else(data: bytes) -> None:
    with suppress(WireError):
        kind_of(data, CLUSTER)
    with suppress(WireError):
        decode(data, CLUSTER)


@given(with_one_byte_changed(control_packets))
def test_what_a_changed_control_packet_still_says_can_be_said_again(data: bytes) -> None:
    try:
        message = decode(data, CLUSTER)
    except WireError:
        return
    assert decode(encode(CLUSTER, message), CLUSTER) == message


@given(cut_short(control_packets))
def test_a_control_packet_cut_short_is_refused(data: bytes) -> None:
    try:
        decode(data, CLUSTER)
    except WireError:
        return
    raise AssertionError("a part of a packet was taken for a whole one")


@given(
    st.one_of(
        st.binary(max_size=200),
        with_one_byte_changed(st.one_of(data_packets(), recovered_packets())),
        cut_short(st.one_of(data_packets(), recovered_packets())),
    )
)
def test_parsing_data_with_its_own_header_raises_wire_error_and_nothing_else(data: bytes) -> None:
    if len(data) < HEADER_SIZE:
        return
    with suppress(WireError):
        _parsed(data)


@given(st.binary(min_size=HEADER_SIZE, max_size=HEADER_SIZE + 64), u8, st.one_of(st.integers(0, 8), u8))
def test_parsing_data_with_any_flags_and_count_raises_wire_error_and_nothing_else(
    data: bytes, flags: int, count: int
) -> None:
    with suppress(WireError):
        packet, is_safe, parcel, part = parse_data(data, flags, count, ProcessId(1), Seq(1))
        assert (packet, is_safe) == (data, flags & SAFE)
        assert (parcel is None) == bool(flags & RECOVERED)
        if parcel is not None:
            assert part == flags >> PART_SHIFT
            assert [len(column) for column in parcel[2:]] == [count] * 3


@given(st.lists(data_packets(RingId(8, ProcessId(1))), min_size=1, max_size=6), st.integers(0, 3), st.data())
def test_a_run_is_what_its_packets_are_one_by_one(drawn: list[bytes], skipped: int, data: st.DataObject) -> None:
    prefix = prefix_of(MessageKind.DATA, CLUSTER, RingId(8, ProcessId(1)))
    size = max(map(len, drawn))
    numbered = [_numbered(packet, 5 + at) for at, packet in enumerate(drawn)]
    read = b"".join(packet.ljust(size, b"\0") for packet in numbered[:-1]) + numbered[-1]
    first = min(skipped, len(numbered) - 1)
    run, end = parse_run(read, first * size, size, prefix, Seq(5 + first))
    assert [_plain(parsed) for parsed in run] == [_parsed(packet) for packet in numbered[first:]]
    assert end >= len(read)
    wrong = data.draw(st.sampled_from([prefix[:-1] + b"\xff", prefix]))
    assert parse_run(read, 0, size, wrong, Seq(5 if wrong != prefix else 6)) == ([], 0)


@given(with_one_byte_changed(data_packets(RingId(8, ProcessId(1)))), st.integers(1, 400))
def test_reading_a_run_never_raises(packet: bytes, size: int) -> None:
    prefix = prefix_of(MessageKind.DATA, CLUSTER, RingId(8, ProcessId(1)))
    parse_run(packet, 0, size, prefix, HEADER.unpack_from(packet)[6])


def _numbered(packet: bytes, seq: int) -> bytes:
    return packet[:48] + seq.to_bytes(8, "big") + packet[56:]
