"""Data packets: built, taken apart, sent again, wrapped."""

from __future__ import annotations

import pytest

from ordercast.model.errors import WireError
from ordercast.model.ids import Seq
from ordercast.model.service import Service
from ordercast.wire.header import (
    HEADER_SIZE,
    ORIGIN_SIZE,
    PART_SHIFT,
    RECOVERED,
    RETRANSMITTED,
    SAFE,
    Heading,
    Part,
    digest_of,
    is_same,
    origin_of,
    recovered,
    retransmitted,
    unwrapped,
)
from ordercast.wire.run import PacketRun, build_data, parse_data, parse_packet
from tests.packets import header_of

from .vectors import CLUSTER, NEW_RING, RING, process

ME, OTHER, THIRD = process(1), process(2), process(3)
HEADING = Heading(CLUSTER, RING, (OTHER, ME))
NEW_HEADING = Heading(CLUSTER, NEW_RING, (OTHER, THIRD, ME))
AGREED = int(Service.AGREED)


def _packet(*texts: bytes, seq: int = 5, flags: int = 0) -> bytes:
    entries = [(7, len(text), AGREED, text) for text in texts]
    return build_data(HEADING, flags, entries, ME, Seq(seq), 3, 99).packet(Seq(seq))


def _messages(run: PacketRun) -> list[tuple[int, int, bytes]]:
    """Sender, service and data of each."""
    parcel = run.parcel
    assert parcel is not None and parcel[:2] == (5, ME) and len(parcel[4]) == parcel[5]
    return list(zip(*parcel[2:5], strict=True))


def test_what_is_built_is_what_is_read() -> None:
    entries = [(1, 1, AGREED, b"a"), (2, 0, int(Service.FIFO), b"")]
    built = build_data(HEADING, SAFE, entries, ME, Seq(5), 3, 99)
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
        parse_data(_packet(b"")[:HEADER_SIZE], flags, 0, ME, Seq(5))


def test_services_and_parts_that_do_not_exist_are_refused() -> None:
    packet = _packet(b"abc")
    with pytest.raises(WireError, match="a service that does not exist"):
        parse_data(packet[: HEADER_SIZE + 6] + b"\x06" + packet[HEADER_SIZE + 7 :], 0, 1, ME, Seq(5))
    with pytest.raises(WireError, match="parts that do not exist"):
        parse_data(packet, 4 << PART_SHIFT, 1, ME, Seq(5))


def test_a_retransmitted_packet_names_its_transmitter_and_its_originator() -> None:
    packet = _packet(b"abc")
    again = retransmitted(packet, OTHER)
    header = header_of(again)
    assert (header.flags, header.transmitter, header.place) == (RETRANSMITTED, OTHER, 1)
    assert (header.seq, header.round, header.timestamp) == (5, 3, 99)
    assert retransmitted(again, OTHER) == again and is_same(again, packet)
    assert not is_same(_packet(b"abd"), packet)


def test_a_recovered_packet_has_the_new_ring_outside_and_the_old_one_inside() -> None:
    packet = _packet(b"abc", flags=SAFE)
    wrapped = recovered(retransmitted(packet, OTHER), ME, NEW_HEADING, OTHER, Seq(2), 8)
    header = header_of(wrapped)
    assert (header.ring, header.length) == (NEW_HEADING.ring, len(packet) + ORIGIN_SIZE)
    assert (header.flags, header.messages) == (SAFE | RECOVERED, 1)
    assert (header.transmitter, header.place, header.seq, header.round, header.timestamp) == (OTHER, 2, 2, 8, 99)
    assert origin_of(wrapped) == (digest_of(RING), 5)
    run = parse_packet(wrapped, NEW_HEADING)
    assert run.originator == ME
    assert (run.packet(Seq(2)), run.is_safe, run.parcel, run.part) == (wrapped, SAFE, None, Part.WHOLE)


def test_an_unwrapped_packet_says_what_the_old_one_said() -> None:
    packet = _packet(b"abc", b"", flags=SAFE)
    raw = unwrapped(recovered(packet, ME, NEW_HEADING, OTHER, Seq(2), 8), HEADING)
    assert _messages(parse_packet(raw, HEADING)) == _messages(parse_packet(packet, HEADING))
    assert HEADING.is_of(raw, 0) and len(raw) == len(packet)


def test_an_originator_that_is_not_on_the_new_ring_is_replaced_by_the_representative_outside() -> None:
    packet, pair = _packet(b"abc"), Heading(CLUSTER, NEW_RING, (OTHER, THIRD))
    wrapped = recovered(packet, ME, pair, OTHER, Seq(2), 8)
    assert parse_packet(wrapped, pair).originator == OTHER
    assert parse_packet(unwrapped(wrapped, HEADING), HEADING).originator == ME


def test_a_place_beyond_the_members_is_unsound() -> None:
    packet = build_data(NEW_HEADING, 0, [(7, 1, AGREED, b"x")], ME, Seq(5), 3, 99).packet(Seq(5))
    assert parse_packet(packet, NEW_HEADING).originator == ME
    with pytest.raises(WireError, match="an originator in place 2 of a ring of 2"):
        parse_packet(packet, HEADING)


def test_a_heading_knows_the_packets_of_its_ring_and_cluster() -> None:
    packet = _packet(b"abc")
    assert HEADING.is_of(b"xx" + packet, 2) and not HEADING.is_of(packet, 1)
    assert not NEW_HEADING.is_of(packet, 0)
    assert not Heading(b"another!", RING, (OTHER, ME)).is_of(packet, 0)
    for at in range(4):
        assert not HEADING.is_of(packet[:at] + bytes((packet[at] ^ 1,)) + packet[at + 1 :], 0)


def test_a_recovered_packet_without_its_origin_is_refused() -> None:
    with pytest.raises(WireError, match="without its origin"):
        parse_data(_packet(b"abc"), RECOVERED, 1, ME, Seq(5))
