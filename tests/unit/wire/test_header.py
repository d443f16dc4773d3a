"""Data packets: built, taken apart, sent again, wrapped."""

from __future__ import annotations

import pytest

from ordercast.model.errors import WireError
from ordercast.model.ids import Seq
from ordercast.model.service import Service
from ordercast.wire.header import (
    HEADER,
    PART_SHIFT,
    RECOVERED,
    RETRANSMITTED,
    SAFE,
    MessageKind,
    Part,
    origin_of,
    prefix_of,
    recovered,
    retransmitted,
    unwrapped,
)
from ordercast.wire.run import PacketRun, build_data, parse_data

from .vectors import CLUSTER, NEW_RING, RING, process

PREFIX = prefix_of(MessageKind.DATA, CLUSTER, RING)
NEW_PREFIX = prefix_of(MessageKind.DATA, CLUSTER, NEW_RING)
ME, OTHER = process(1), process(2)
AGREED = int(Service.AGREED)


def _packet(*texts: bytes, seq: int = 5, flags: int = 0) -> bytes:
    entries = [(7, len(text), AGREED, text) for text in texts]
    return build_data(PREFIX, flags, entries, ME, Seq(seq), 3, 99).packet(Seq(seq))


def _messages(run: PacketRun) -> list[tuple[int, int, bytes]]:
    """Sender, service and data of each."""
    parcel = run.parcel
    assert parcel is not None and parcel[:2] == (5, ME) and len(parcel[4]) == parcel[5]
    return list(zip(*parcel[2:5], strict=True))


def test_what_is_built_is_what_is_read() -> None:
    entries = [(1, 1, AGREED, b"a"), (2, 0, int(Service.FIFO), b"")]
    built = build_data(PREFIX, SAFE, entries, ME, Seq(5), 3, 99)
    read = parse_data(built.packet(Seq(5)), SAFE, 2, ME, Seq(5))
    assert _messages(built) == _messages(read) == [(1, AGREED, b"a"), (2, Service.FIFO, b"")]
    assert (built.is_safe, built.part) == (read.is_safe, read.part) == (SAFE, Part.WHOLE)
    assert (read.seq, read.count) == (built.seq, built.count) == (5, 1)


def test_payloads_of_equal_length_are_cut_like_any_others() -> None:
    read = parse_data(_packet(b"abc", b"def", b"ghi"), 0, 3, ME, Seq(5))
    assert [data for *_, data in _messages(read)] == [b"abc", b"def", b"ghi"]


@pytest.mark.parametrize("part", [Part.FIRST, Part.MIDDLE, Part.LAST])
def test_a_part_is_alone_in_its_packet(part: Part) -> None:
    flags = part << PART_SHIFT | SAFE
    assert parse_data(_packet(b"abc", flags=flags), flags, 1, ME, Seq(5)).part == part
    with pytest.raises(WireError, match="parts that do not exist"):
        parse_data(_packet(b"abc", b"def"), flags, 2, ME, Seq(5))


def test_descriptors_speak_of_exactly_the_bytes_that_came() -> None:
    packet = _packet(b"abc")
    for wrong in (packet[:-1], packet + b"x"):
        with pytest.raises(WireError, match="descriptors speak of 3 bytes of payload"):
            parse_data(wrong, 0, 1, ME, Seq(5))


def test_more_descriptors_than_bytes_are_refused() -> None:
    with pytest.raises(WireError, match="2 descriptors do not fit"):
        parse_data(_packet(b"abc"), 0, 2, ME, Seq(5))


@pytest.mark.parametrize("flags", [0, SAFE, Part.FIRST << PART_SHIFT])
def test_a_packet_without_messages_is_refused(flags: int) -> None:
    with pytest.raises(WireError):
        parse_data(_packet(b"")[:72], flags, 0, ME, Seq(5))


def test_services_and_parts_that_do_not_exist_are_refused() -> None:
    packet = _packet(b"abc")
    with pytest.raises(WireError, match="a service that does not exist"):
        parse_data(packet[:78] + b"\x06" + packet[79:], 0, 1, ME, Seq(5))
    with pytest.raises(WireError, match="parts that do not exist"):
        parse_data(packet, 4 << PART_SHIFT, 1, ME, Seq(5))


def test_a_retransmitted_packet_names_its_transmitter_and_its_originator() -> None:
    packet = _packet(b"abc")
    again = retransmitted(packet, OTHER)
    _, _, flags, _, transmitter, originator, seq, token_round, timestamp = HEADER.unpack_from(again)
    assert (flags, transmitter, originator) == (RETRANSMITTED, OTHER, ME)
    assert (seq, token_round, timestamp) == (5, 3, 99)
    assert retransmitted(again, OTHER) == again


def test_a_recovered_packet_has_the_new_ring_outside_and_the_old_one_inside() -> None:
    packet = _packet(b"abc", flags=SAFE)
    wrapped = recovered(retransmitted(packet, OTHER), NEW_PREFIX, OTHER, Seq(2), 8)
    prefix, length, flags, count, transmitter, originator, seq, token_round, timestamp = HEADER.unpack_from(wrapped)
    assert (prefix, length) == (NEW_PREFIX, len(packet) + 24)
    assert (flags, count) == (SAFE | RECOVERED, 1)
    assert (transmitter, originator, seq, token_round, timestamp) == (OTHER, ME, 2, 8, 99)
    assert origin_of(wrapped) == (RING, 5)
    run = parse_data(wrapped, flags, count, ME, Seq(2))
    assert (run.packet(Seq(2)), run.is_safe, run.parcel, run.part) == (wrapped, SAFE, None, Part.WHOLE)


def test_an_unwrapped_packet_says_what_the_old_one_said() -> None:
    packet = _packet(b"abc", b"", flags=SAFE)
    raw = unwrapped(recovered(packet, NEW_PREFIX, OTHER, Seq(2), 8), PREFIX)
    assert _messages(parse_data(raw, SAFE, 2, ME, Seq(5))) == _messages(parse_data(packet, SAFE, 2, ME, Seq(5)))
    assert raw[:28] == PREFIX and len(raw) == len(packet)


def test_a_recovered_packet_without_its_origin_is_refused() -> None:
    with pytest.raises(WireError, match="without its origin"):
        parse_data(_packet(b"abc"), RECOVERED, 1, ME, Seq(5))
