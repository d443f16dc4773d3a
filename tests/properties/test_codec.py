"""Whatever can be said survives the wire; whatever else comes is a WireError and nothing worse."""

from __future__ import annotations

from contextlib import suppress

from hypothesis import given
from hypothesis import strategies as st

from ordercast.model.effects import Parcel
from ordercast.model.errors import WireError
from ordercast.model.ids import ConfigurationId, ProcessId, Seq
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
    prefix_of,
    recovered,
    retransmitted,
    unwrapped,
)
from ordercast.wire.messages import WireMessage
from ordercast.wire.run import parse_data

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
        lambda rest: prefix_of(MessageKind.TOKEN, CLUSTER, ConfigurationId(8, ProcessId(1))) + rest
    ),
)


def _said(packet: bytes) -> tuple[Parcel | None, int]:
    """The messages, and what part they are. Columns may be any sequences: as tuples they can be compared."""
    _, _, flags, count, _, originator, seq, _, _ = HEADER.unpack_from(packet)
    run = parse_data(packet, flags, count, originator, seq)
    assert (run.packet(seq), run.seq, run.count, run.is_safe) == (packet, seq, 1, flags & SAFE)
    if run.parcel is None:
        return None, run.part
    seq, originator, senders, services, payloads, each, base = run.parcel
    return (seq, originator, tuple(senders), tuple(services), tuple(payloads), each, base), run.part


@given(messages)
def test_every_control_message_survives_the_wire(message: WireMessage) -> None:
    packet = encode(CLUSTER, message)
    assert decode(packet, CLUSTER) == message
    kind, ring = kind_of(packet, CLUSTER)
    name = type(message).__name__.removesuffix("Token").removesuffix("Copy").upper() or "TOKEN"
    assert (kind.name, ring) == (name, message.ring)


@given(data_packets(), processes)
def test_retransmission_changes_the_transmitter_and_one_flag_only(packet: bytes, me: ProcessId) -> None:
    again = retransmitted(packet, me)
    before, after = list(HEADER.unpack_from(packet)), list(HEADER.unpack_from(again))
    assert after[2] == before[2] | RETRANSMITTED and after[4] == me
    before[2], before[4] = after[2], after[4]
    assert after == before and again[HEADER_SIZE:] == packet[HEADER_SIZE:]
    assert _said(again) == _said(packet)


@given(data_packets(), rings, processes, u64)
def test_an_old_packet_survives_being_wrapped_for_a_new_ring(
    packet: bytes, ring: ConfigurationId, me: ProcessId, seq: int
) -> None:
    wrapped = recovered(packet, prefix_of(MessageKind.DATA, CLUSTER, ring), me, Seq(seq), 9)
    assert kind_of(wrapped, CLUSTER) == (MessageKind.DATA, ring)
    assert _said(wrapped) == (None, 0)
    raw = unwrapped(wrapped, packet[: PREFIX.size])
    assert _said(raw) == _said(packet)
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
        _said(data)


@given(st.binary(min_size=HEADER_SIZE, max_size=HEADER_SIZE + 64), u8, st.one_of(st.integers(0, 8), u8))
def test_parsing_data_with_any_flags_and_count_raises_wire_error_and_nothing_else(
    data: bytes, flags: int, count: int
) -> None:
    with suppress(WireError):
        run = parse_data(data, flags, count, ProcessId(1), Seq(1))
        assert (run.packet(Seq(1)), run.is_safe) == (data, flags & SAFE)
        assert (run.parcel is None) == bool(flags & RECOVERED)
        if run.parcel is not None:
            assert run.part == flags >> PART_SHIFT
            assert [len(column) for column in run.parcel[2:5]] == [count] * 3
            assert run.parcel[5] == count
