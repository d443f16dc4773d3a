"""Whatever can be said survives the wire; whatever else comes is a WireError and nothing worse."""

from __future__ import annotations

from contextlib import suppress

from hypothesis import given
from hypothesis import strategies as st

from ordercast.model.effects import Parcel
from ordercast.model.errors import WireError
from ordercast.model.ids import ConfigurationId, ProcessId, Seq
from ordercast.networks.probe import Probe, decode_probe, encode_probe
from ordercast.order.ring.traffic import RING_TRAFFIC
from ordercast.wire.codec import CONTROL, decode, encode
from ordercast.wire.head import KIND_AT, kind_of, transmitter_of, with_head
from ordercast.wire.header import (
    EXTENDED,
    HEADER_SIZE,
    ORIGIN_SIZE,
    PART_SHIFT,
    RECOVERED,
    RETRANSMITTED,
    SAFE,
    MessageKind,
    is_same,
    recovered,
    retransmitted,
    unwrapped,
)
from ordercast.wire.messages import CommitToken, Token, WireMessage
from ordercast.wire.run import parse_data, parse_packet
from tests.packets import header_of, is_of_ring

from .strategies import (
    CLUSTER,
    control_packets,
    cut_short,
    data_packets,
    heading_of,
    messages,
    originators,
    packets,
    probes,
    processes,
    recovered_packets,
    rings,
    u8,
    u64,
    with_one_byte_changed,
)

RING = ConfigurationId(8, ProcessId(1))
garbage = st.one_of(
    st.binary(max_size=200),
    st.tuples(st.sampled_from(MessageKind), st.binary(max_size=300)).map(
        lambda drawn: with_head(CLUSTER, ProcessId(1), CONTROL.pack(drawn[0], 8, 1) + drawn[1])
    ),
)


def _said(packet: bytes) -> tuple[Parcel | None, int]:
    """The messages, and what part they are. Columns may be any sequences: as tuples they can be compared."""
    header = header_of(packet)
    run, seq = parse_packet(packet, heading_of(RING)), header.seq
    assert (run.packet(seq), run.seq, run.count, run.is_safe) == (packet, seq, 1, header.flags & SAFE)
    if run.parcel is None:
        return None, run.part
    number, originator, senders, services, payloads, each, base = run.parcel
    return (number, originator, tuple(senders), tuple(services), tuple(payloads), each, base), run.part


@given(messages)
def test_every_control_message_survives_the_wire(message: WireMessage) -> None:
    packet = encode(CLUSTER, message)
    assert decode(packet, CLUSTER) == message
    name = type(message).__name__.removesuffix("Token").removesuffix("Copy").upper() or "TOKEN"
    assert MessageKind(kind_of(packet, CLUSTER)).name == name
    assert transmitter_of(packet) == message.sender


@given(data_packets(), processes)
def test_retransmission_changes_the_transmitter_and_one_flag_only(packet: bytes, me: ProcessId) -> None:
    again = retransmitted(packet, me)
    before, after = header_of(packet), header_of(again)
    assert after == before._replace(transmitter=me, flags=before.flags | RETRANSMITTED)
    assert again[HEADER_SIZE:] == packet[HEADER_SIZE:]
    assert is_same(packet, again) and not is_same(packet, again[:-1] + bytes((again[-1] ^ 1,)))
    assert _said(again) == _said(packet)


@given(data_packets(RING), originators, rings, processes, u64)
def test_an_old_packet_survives_being_wrapped_for_a_new_ring(
    packet: bytes, originator: ProcessId, ring: ConfigurationId, me: ProcessId, seq: int
) -> None:
    wrapped = recovered(packet, originator, heading_of(ring), me, Seq(seq), 9)
    assert kind_of(wrapped, CLUSTER) == MessageKind.DATA and is_of_ring(wrapped, ring)
    assert len(wrapped) == len(packet) + ORIGIN_SIZE
    assert _said(wrapped) == (None, 0)
    assert parse_packet(wrapped, heading_of(ring)).originator == originator
    raw = unwrapped(wrapped, heading_of(RING))
    assert _said(raw) == _said(packet) and len(raw) == len(packet)
    before, after = header_of(packet), header_of(raw)
    assert (after.ring, after.place, after.seq) == (before.ring, before.place, before.seq)


@given(st.one_of(garbage, packets, with_one_byte_changed(packets), cut_short(packets)))
def test_decoding_raises_wire_error_and_nothing_else(data: bytes) -> None:
    for read in (kind_of, decode, decode_probe):
        with suppress(WireError):
            read(data, CLUSTER)


@given(probes)
def test_every_probe_survives_the_wire(probe: Probe) -> None:
    assert decode_probe(encode_probe(CLUSTER, probe), CLUSTER) == probe


@given(st.one_of(garbage, packets, with_one_byte_changed(packets), cut_short(packets)))
def test_whatever_has_a_kind_may_be_asked_what_it_is(data: bytes) -> None:
    """Layers below an engine ask before anything is checked but the length."""
    if len(data) > KIND_AT:
        name = RING_TRAFFIC.token(data)
        assert name is None or len(data) >= 55
        assert (RING_TRAFFIC.name(data) is not None) == (data[KIND_AT] in RING_TRAFFIC.data | RING_TRAFFIC.tokens)


@given(messages)
def test_traffic_and_codec_read_one_token_and_one_commit_token(message: WireMessage) -> None:
    packet = encode(CLUSTER, message)
    if isinstance(message, Token):
        assert RING_TRAFFIC.token(packet) == (message.ring, message.token_seq, message.seq)
    agreed = RING_TRAFFIC.agreed(packet)
    assert agreed == (message.ring if isinstance(message, CommitToken) else None)


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
        assert (run.parcel is None) == bool(flags & (RECOVERED | EXTENDED))
        if run.parcel is not None:
            assert run.part == flags >> PART_SHIFT
            assert [len(column) for column in run.parcel[2:5]] == [count] * 3
            assert run.parcel[5] == count
