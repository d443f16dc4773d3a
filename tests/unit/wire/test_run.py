"""Data packets in a row: where a run begins and ends, and what it gives out."""

from __future__ import annotations

import pytest

from ordercast.model.effects import Broadcast, Deliver, Delivered
from ordercast.model.errors import WireError
from ordercast.model.ids import ConfigurationId, ProcessId, Seq
from ordercast.model.service import Service
from ordercast.wire.header import (
    FLAGS_AT,
    HEADER_SIZE,
    ORIGIN_SIZE,
    PART_SHIFT,
    SAFE,
    Heading,
    PacketEntry,
    Part,
    recovered,
    retransmitted,
)
from ordercast.wire.run import Load, PacketRun, build_data, build_runs, parse_data, parse_run
from tests.packets import header_of

from .vectors import CLUSTER, NEW_RING, RING, process

ME, OTHER = process(1), process(2)
HEADING = Heading(CLUSTER, RING, (ME, OTHER))
NEW_HEADING = Heading(CLUSTER, NEW_RING, (ME, OTHER))
AGREED, FIFO = int(Service.AGREED), int(Service.FIFO)


def _entry(data: bytes, sender: int = 7, service: int = AGREED) -> PacketEntry:
    return sender, len(data), service, data


def _packet(
    seq: int,
    *entries: PacketEntry,
    flags: int = 0,
    me: ProcessId = ME,
    heading: Heading = HEADING,
    token_round: int = 3,
    timestamp: int = 99,
) -> bytes:
    """It says its seq when nothing else is given."""
    carried = entries or (_entry(_text(seq)),)
    return build_data(heading, flags, carried, me, Seq(seq), token_round, timestamp).packet(Seq(seq))


def _text(seq: int) -> bytes:
    return f"this is what the packet {seq} says".encode()


LENGTH = len(_text(5))
GOOD = [_packet(seq) for seq in (5, 6, 7)]
SIZE = len(GOOD[0])


def _read(data: bytes, start: int = 0, size: int = SIZE, expected: int = 5) -> PacketRun:
    run = parse_run(data, start, size, HEADING, Seq(expected))
    assert run is not None
    return run


def _packets(run: PacketRun) -> list[bytes]:
    return [run.packet(Seq(seq)) for seq in range(run.seq, run.seq + run.count)]


def _messages(*runs: PacketRun) -> list[Delivered]:
    return list(Deliver(RING, RING, [run.parcel for run in runs if run.parcel is not None]).messages())


# Reading


def test_packets_that_are_alike_and_next_in_order_are_one_run() -> None:
    run = _read(b"".join(GOOD))
    assert (run.seq, run.last, run.count, run.size) == (5, 7, 3, SIZE)
    assert (run.is_safe, run.part) == (0, Part.WHOLE)
    assert _packets(run) == GOOD
    assert _messages(run) == [(seq, 0, ME, 7, AGREED, _text(seq)) for seq in (5, 6, 7)]


def test_a_run_may_begin_in_the_middle_of_a_read() -> None:
    run = _read(b"".join(GOOD), SIZE, expected=6)
    assert _packets(run) == GOOD[1:]
    assert [message[5] for message in _messages(run)] == [_text(6), _text(7)]


def test_every_packet_has_as_many_messages_as_the_others_and_each_its_slot() -> None:
    packets = [_packet(seq, _entry(b"one", 1), _entry(b"two", 2, FIFO)) for seq in (5, 6)]
    run = _read(b"".join(packets), size=len(packets[0]))
    assert _messages(run) == [
        (5, 0, ME, 1, AGREED, b"one"),
        (5, 1, ME, 2, FIFO, b"two"),
        (6, 0, ME, 1, AGREED, b"one"),
        (6, 1, ME, 2, FIFO, b"two"),
    ]


def test_what_is_different_in_packets_that_are_alike() -> None:
    """Seq, round, timestamp, and the bytes of the messages."""
    other = _packet(6, _entry(b"x" * LENGTH), token_round=4, timestamp=7)
    run = _read(GOOD[0] + other + GOOD[2])
    assert _packets(run) == [GOOD[0], other, GOOD[2]]
    assert [message[5] for message in _messages(run)] == [_text(5), b"x" * LENGTH, _text(7)]


ELSEWHERE = Heading(CLUSTER, ConfigurationId(9, ME), (ME, OTHER))
STRANGE = Heading(bytes(8), RING, (ME, OTHER))


def _changed(packet: bytes, at: int, piece: bytes) -> bytes:
    return packet[:at] + piece + packet[at + len(piece) :]


@pytest.mark.parametrize(
    ("third", "is_sound"),
    [
        pytest.param(_packet(7, heading=ELSEWHERE), False, id="ring"),
        pytest.param(_packet(7, heading=STRANGE), False, id="cluster"),
        pytest.param(_changed(GOOD[2], 22, b"\2"), False, id="kind"),
        pytest.param(_changed(GOOD[2], 2, b"\2"), False, id="version"),
        pytest.param(_changed(GOOD[2], 3, b"\1"), False, id="key"),
        pytest.param(_changed(GOOD[2], 33, b"\0\2"), False, id="place beyond the members"),
        pytest.param(_packet(8), False, id="later seq"),
        pytest.param(_packet(6), False, id="same seq again"),
        pytest.param(_packet(7, flags=SAFE), True, id="safe"),
        pytest.param(_packet(7, flags=Part.FIRST << PART_SHIFT), True, id="part"),
        pytest.param(_packet(7, _entry(bytes(LENGTH - 7)), _entry(b"")), True, id="count"),
        pytest.param(_packet(7, me=OTHER), True, id="originator"),
        pytest.param(retransmitted(GOOD[2], ME), True, id="sent again"),
        pytest.param(_changed(GOOD[2], 14, OTHER.to_bytes(8, "big")), True, id="transmitter"),
        pytest.param(_packet(7, _entry(_text(7), sender=8)), True, id="sender"),
        pytest.param(_packet(7, _entry(_text(7), service=FIFO)), True, id="service"),
        pytest.param(_packet(7, _entry(b"shorter")), True, id="shorter, the last of its read"),
        pytest.param(_packet(7, _entry(b"shorter")).ljust(SIZE, b"\0"), True, id="shorter, with something behind it"),
        pytest.param(_packet(7, _entry(bytes(LENGTH + 1))), False, id="longer than its piece of the read"),
        pytest.param(GOOD[2][:-1], False, id="cut short"),
        pytest.param(GOOD[2][:HEADER_SIZE], False, id="header alone"),
        pytest.param(GOOD[2][:10], False, id="piece of a header"),
        pytest.param(_changed(GOOD[2], HEADER_SIZE + 6, b"\x06"), False, id="service that does not exist"),
        pytest.param(_changed(GOOD[2], HEADER_SIZE + 4, b"\0\x09"), False, id="descriptor that does not fit"),
        pytest.param(
            recovered(_packet(2, _entry(bytes(LENGTH - ORIGIN_SIZE))), ME, HEADING, ME, Seq(7), 3), True, id="recovered"
        ),
        pytest.param(b"", False, id="none"),
    ],
)
def test_a_run_ends_before_the_first_packet_that_is_not_like_the_others(third: bytes, is_sound: bool) -> None:
    """That one begins a run of its own, unless it is not next in order or not sound."""
    read = b"".join((GOOD[0], GOOD[1], third))
    run = _read(read)
    assert _packets(run) == GOOD[:2]
    assert [message[5] for message in _messages(run)] == [_text(5), _text(6)]
    rest = parse_run(read, 2 * SIZE, SIZE, HEADING, Seq(7))
    assert (rest is not None) == is_sound
    if rest is not None:
        assert _packets(rest) == [third[: header_of(third).length]]


@pytest.mark.parametrize("expected", [4, 6])
def test_a_run_begins_with_the_packet_that_is_expected(expected: int) -> None:
    assert parse_run(b"".join(GOOD), 0, SIZE, HEADING, Seq(expected)) is None
    assert parse_run(b"".join(GOOD), 0, SIZE, NEW_HEADING, Seq(5)) is None


@pytest.mark.parametrize("size", [1, HEADER_SIZE, SIZE - 1])
def test_a_packet_longer_than_its_piece_of_the_read_is_left_alone(size: int) -> None:
    assert parse_run(b"".join(GOOD), 0, size, HEADING, Seq(5)) is None


def test_of_packets_in_one_piece_of_a_read_only_the_first_is_there() -> None:
    """Nobody sends several as one datagram."""
    run = _read(b"".join((*GOOD, _packet(8))), size=2 * SIZE)
    assert _packets(run) == GOOD[:1]


def test_behind_the_end_there_is_no_run() -> None:
    for start in (3 * SIZE, 3 * SIZE + 1, 9 * SIZE):
        assert parse_run(b"".join(GOOD), start, SIZE, HEADING, Seq(5)) is None


def test_recovered_packets_are_runs_of_one_without_messages() -> None:
    wrapped = [recovered(packet, ME, NEW_HEADING, ME, Seq(at), 3) for at, packet in enumerate(GOOD, 1)]
    run = parse_run(b"".join(wrapped), 0, len(wrapped[0]), NEW_HEADING, Seq(1))
    assert run is not None and (_packets(run), run.parcel) == (wrapped[:1], None)


@pytest.mark.parametrize("lengths", [(2, 1, 3), (0, 4), (3, 0), (1, 2, 1)])
def test_messages_of_several_lengths_are_cut_where_they_end(lengths: tuple[int, ...]) -> None:
    """Also when together they are as long as equal ones would be."""
    entries = {
        seq: [_entry(f"{seq}{slot}ab".encode()[:length]) for slot, length in enumerate(lengths)] for seq in (5, 6, 7)
    }
    packets = [_packet(seq, *carried) for seq, carried in entries.items()]
    size, read = len(packets[0]), b"".join(packets)
    runs: list[PacketRun] = []
    while sum(run.count for run in runs) < 3:
        seq = 5 + sum(run.count for run in runs)
        runs.append(_read(read, (seq - 5) * size, size, seq))
    assert [packet for run in runs for packet in _packets(run)] == packets
    assert _messages(*runs) == [
        (seq, slot, ME, 7, AGREED, data) for seq in entries for slot, (_, _, _, data) in enumerate(entries[seq])
    ]


def test_parts_of_a_message_are_a_run_too() -> None:
    flags = Part.MIDDLE << PART_SHIFT | SAFE
    run = _read(b"".join(_packet(seq, flags=flags) for seq in (5, 6)))
    assert (run.count, run.part, run.is_safe) == (2, Part.MIDDLE, SAFE)


# Giving out


def test_some_of_the_packets_have_their_own_messages() -> None:
    packets = [_packet(seq, _entry(f"{seq}a".encode(), 1), _entry(f"{seq}b".encode(), 2)) for seq in (5, 6, 7, 8)]
    run = _read(b"".join(packets), size=len(packets[0]))
    seq, originator, senders, services, payloads, each, base = run.parcel_of(6, 7)
    assert (seq, originator, each, base) == (6, ME, 2, 0)
    assert (list(senders), list(services)) == ([1, 2, 1, 2], [AGREED] * 4)
    assert list(payloads) == [b"6a", b"6b", b"7a", b"7b"]
    assert run.parcel_of(5, 8) is run.parcel


@pytest.mark.parametrize(("start", "expected"), [(0, GOOD), (SIZE, GOOD[1:])])
def test_a_burst_has_the_packets_of_the_run_and_nothing_else_of_the_read(start: int, expected: list[bytes]) -> None:
    another = _packet(8, me=OTHER)
    run = _read(b"".join((*GOOD, another)), start, expected=5 + start // SIZE)
    data, size = run.burst()
    assert (data, size) == (b"".join(expected), SIZE)
    assert Broadcast([run.burst()]).packets == expected


def test_a_packet_with_something_behind_it_is_given_out_without_that() -> None:
    run = parse_data(b"before" + GOOD[0] + b"behind", 0, 1, ME, Seq(5), 6, 6 + SIZE)
    assert run.packet(Seq(5)) == GOOD[0]
    assert run.burst() == (GOOD[0], SIZE)
    assert _messages(run) == [(5, 0, ME, 7, AGREED, _text(5))]
    with pytest.raises(WireError, match="descriptors speak of"):
        parse_data(GOOD[0] + b"behind", 0, 1, ME, Seq(5))


# Building


def _load(*texts: bytes, flags: int = 0, sender: int = 7, service: int = AGREED) -> Load:
    """Packets with one message each."""
    return flags, (sender,), (len(texts[0]),), (service,), list(texts), b"", b""


def test_loads_that_are_alike_become_one_run_numbered_and_stamped_in_turn() -> None:
    texts = (b"one", b"two", b"six")
    loads = [_load(b"one", b"two", flags=SAFE), _load(b"six", flags=SAFE)]
    (run,) = build_runs(HEADING, loads, ME, Seq(5), 3, 99)
    assert (run.seq, run.count, run.is_safe, run.part) == (5, 3, SAFE, Part.WHOLE)
    assert _messages(run) == [(seq, 0, ME, 7, AGREED, text) for seq, text in enumerate(texts, 5)]
    headers = [header_of(packet) for packet in _packets(run)]
    assert [header[8:] for header in headers] == [(5, 3, 99), (6, 3, 100), (7, 3, 101)]
    size = HEADER_SIZE + 7 + 3
    assert {header[:8] for header in headers} == {(b"oC\3\0", size, CLUSTER, ME, HEADING.ring, SAFE, 1, 0)}


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(_load(b"one", flags=SAFE), id="flags"),
        pytest.param(_load(b"three"), id="length"),
        pytest.param(_load(b"one", sender=8), id="sender"),
        pytest.param(_load(b"one", service=FIFO), id="service"),
        pytest.param((0, (7, 7), (3, 3), (AGREED, AGREED), [b"one", b"two"], b"", b""), id="count"),
    ],
)
def test_a_load_that_is_not_like_the_one_before_it_begins_a_run(other: Load) -> None:
    loads = [_load(b"one"), _load(b"two"), other, _load(b"six")]
    runs = build_runs(HEADING, loads, ME, Seq(5), 3, 99)
    assert [(run.seq, run.count) for run in runs] == [(5, 2), (7, 1), (8, 1)]
    packets = [packet for run in runs for packet in _packets(run)]
    assert [header_of(packet)[8:] for packet in packets] == [(5 + at, 3, 99 + at) for at in range(4)]
    assert packets == [
        _packet(5 + at, *zip(senders, lengths, services, payloads, strict=True), flags=flags, timestamp=99 + at)
        for at, (flags, senders, lengths, services, payloads, _, _) in enumerate(loads)
    ]


def test_nothing_to_send_is_no_run() -> None:
    assert build_runs(HEADING, [], ME, Seq(5), 3, 99) == []


def _parts(*texts: bytes, size: int = 5) -> list[bytes]:
    """Messages in two parts each, the last one padded."""
    chunks = [text[at : at + size] for text in texts for at in (0, size)]
    load = 0, (7,), (size,), (AGREED,), chunks, bytes((Part.FIRST, Part.LAST)) * len(texts), b""
    (run,) = build_runs(HEADING, [load], ME, Seq(5), 3, 99)
    return _packets(run)


def test_parts_of_several_messages_are_one_run_and_padding_is_taken_off() -> None:
    packets = _parts(b"abcdefg", b"hijklmn")
    assert len({len(packet) for packet in packets}) == 1
    run = parse_run(b"".join(packets), 0, len(packets[0]), HEADING, Seq(5))
    assert run is not None and run.parcel is not None
    assert (run.count, list(run.parts)) == (4, [Part.FIRST, Part.LAST] * 2)
    assert list(run.parcel[4]) == [b"abcde", b"fg", b"hijkl", b"mn"]
    assert _packets(run) == packets


@pytest.mark.parametrize("at", [0, 3, 4, 6, 14, 22, 23, 31, 32, 33, 42, 59, 64, 65])
def test_a_run_of_parts_ends_before_a_packet_that_does_not_belong_to_it(at: int) -> None:
    """Opening, key, length, cluster, transmitter, kind, ring, flags, count, originator, seq, sender, length beyond the
    packet, service."""
    packets = _parts(b"abcdefg", b"hijklmn")
    wrong = bytearray(packets[2])
    wrong[at] ^= 0x40
    run = parse_run(b"".join((*packets[:2], wrong, packets[3])), 0, len(wrong), HEADING, Seq(5))
    assert run is not None and run.count == 2


def test_only_the_last_part_may_be_padded() -> None:
    last = _parts(b"abcdefg")[1]
    for part in Part:
        packet = _changed(last, FLAGS_AT, bytes((part << PART_SHIFT,)))
        if part is Part.LAST:
            read = parse_data(packet, part << PART_SHIFT, 1, ME, Seq(6))
            assert read.parcel is not None and list(read.parcel[4]) == [b"fg"]
        else:
            with pytest.raises(WireError):
                parse_data(packet, part << PART_SHIFT, 1, ME, Seq(6))
