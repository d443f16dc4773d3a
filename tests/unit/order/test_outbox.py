from __future__ import annotations

from ordercast.model.service import Service
from ordercast.order.outbox import OVERHEAD, Lot, Outbox, cost, lots_from
from ordercast.wire.header import DESCRIPTOR_SIZE, PART_SHIFT, SAFE, PacketEntry, Part

from .rings import make_entry

BODY = 100 + DESCRIPTOR_SIZE  # one message of at most 100 bytes

Packet = tuple[int, list[PacketEntry]]  # flags and messages of one packet


def _outbox(*entries: PacketEntry) -> Outbox:
    outbox = Outbox(BODY)
    lots = [_lot(entry) for entry in entries]
    outbox.add(lots, cost(lots))
    return outbox


def _lot(entry: PacketEntry) -> Lot:
    sender, length, service, data = entry
    return Lot(sender, length, service, [data])


def _take(outbox: Outbox, limit: int) -> list[Packet]:
    """Packet by packet."""
    packets: list[Packet] = []
    for flags, senders, lengths, services, payloads, parts, _ in outbox.take(limit):
        for index in range(len(payloads) // len(senders)):
            its = payloads[index * len(senders) : (index + 1) * len(senders)]
            part = parts[index] if parts else Part.WHOLE
            packets.append((flags | part << PART_SHIFT, list(zip(senders, lengths, services, its, strict=True))))
    return packets


def _payloads(packet: Packet) -> list[bytes]:
    _, entries = packet
    return [data for *_, data in entries]


def _part(packet: Packet) -> Part:
    flags, _ = packet
    return Part(flags >> PART_SHIFT)


def _senders(packets: list[Packet]) -> list[int]:
    """Of packets with one message each."""
    return [sender for _, entries in packets for sender, *_ in entries]


def test_an_empty_outbox_gives_nothing() -> None:
    outbox = _outbox()
    assert not outbox and _take(outbox, 5) == []


def test_small_messages_share_a_packet() -> None:
    (packet,) = _take(_outbox(make_entry(b"a"), make_entry(b""), make_entry(b"c", Service.FIFO, 7)), 5)
    flags, entries = packet
    assert entries == [make_entry(b"a"), make_entry(b""), make_entry(b"c", Service.FIFO, 7)]
    assert flags == 0


def test_a_packet_holds_no_more_than_its_body() -> None:
    packets = _take(_outbox(*(make_entry(bytes(46)) for _ in range(3))), 5)
    assert [len(entries) for _, entries in packets] == [2, 1]


def test_safe_and_other_messages_never_share_a_packet() -> None:
    packets = _take(_outbox(make_entry(b"a"), make_entry(b"b", Service.SAFE), make_entry(b"c", Service.SAFE)), 5)
    assert [(packet[0], _payloads(packet)) for packet in packets] == [(0, [b"a"]), (SAFE, [b"b", b"c"])]


def test_what_was_not_taken_stays() -> None:
    outbox = _outbox(make_entry(b"a"), make_entry(b"b", Service.SAFE))
    assert [_payloads(packet) for packet in _take(outbox, 1)] == [[b"a"]]
    assert outbox and outbox.size == cost([_lot(make_entry(b"b"))])
    assert [_payloads(packet) for packet in _take(outbox, 1)] == [[b"b"]]
    assert not outbox


def test_the_largest_whole_message_is_not_cut_and_one_byte_more_is() -> None:
    (whole,) = _take(_outbox(make_entry(bytes(100))), 5)
    assert (whole[0], _part(whole)) == (0, Part.WHOLE)
    first, last = _take(_outbox(make_entry(bytes(101), Service.SAFE)), 5)
    assert first[0] & SAFE and last[0] & SAFE
    assert (_part(first), _part(last)) == (Part.FIRST, Part.LAST)
    assert (_payloads(first), _payloads(last)) == ([bytes(51)], [bytes(50)]), "about equally long"


def test_another_senders_messages_go_between_the_parts() -> None:
    packets = _take(_outbox(make_entry(bytes(250), sender=1), make_entry(b"small", sender=2)), 9)
    assert sorted(_senders(packets)) == [1, 1, 1, 2]
    assert _senders(packets)[-1] == 1


def test_large_messages_of_several_senders_take_turns() -> None:
    packets = _take(_outbox(make_entry(bytes(250), sender=1), make_entry(bytes(250), sender=2)), 9)
    senders = _senders(packets)
    assert sorted(senders) == [1, 1, 1, 2, 2, 2]
    assert [_part(packet) for packet in packets if _senders([packet]) == [1]] == [Part.FIRST, Part.MIDDLE, Part.LAST]


def test_a_sender_waits_for_its_own_large_message() -> None:
    outbox = _outbox(make_entry(bytes(250), sender=1), make_entry(b"after", sender=1), make_entry(b"x", sender=2))
    order = [(_senders([packet])[0], _part(packet), _payloads(packet)[0][:5]) for packet in _take(outbox, 9)]
    assert [entry for entry in order if entry[0] == 1][-1] == (1, Part.WHOLE, b"after")
    assert order.index((2, Part.WHOLE, b"x")) < order.index((1, Part.WHOLE, b"after"))


def test_a_message_cut_by_the_end_of_the_ring_is_sent_again_from_the_start() -> None:
    outbox = _outbox(make_entry(bytes(250), sender=1))
    _take(outbox, 2)
    assert outbox.start_over() == 1
    assert [_part(packet) for packet in _take(outbox, 9)] == [Part.FIRST, Part.MIDDLE, Part.LAST]


def test_nothing_starts_over_when_nothing_was_begun() -> None:
    assert _outbox(make_entry(bytes(250))).start_over() == 0


def test_the_size_counts_bytes_and_an_overhead_until_a_message_is_gone() -> None:
    outbox = _outbox(make_entry(b""), make_entry(bytes(250)))
    assert outbox.size == 250 + 2 * OVERHEAD
    _take(outbox, 2)
    assert outbox.size == 250 + OVERHEAD
    _take(outbox, 9)
    assert outbox.size == 0


# Lots


def test_messages_submitted_together_are_cut_into_lots_of_one_length() -> None:
    lots = lots_from([b"a", b"b", b"cc", b"d"], int(Service.FIFO), 7)
    assert lots == [
        Lot(7, 1, int(Service.FIFO), [b"a", b"b"]),
        Lot(7, 2, int(Service.FIFO), [b"cc"]),
        Lot(7, 1, int(Service.FIFO), [b"d"]),
    ]
    assert lots_from([], int(Service.FIFO), 7) == []


def test_full_packets_that_are_alike_are_one_load_and_what_is_left_shares_a_packet_with_others() -> None:
    """Three messages of 28 bytes fill a packet."""
    outbox = Outbox(BODY)
    messages = [f"{number:28}".encode() for number in range(8)]
    lots = [*lots_from(messages, int(Service.AGREED), 7), *lots_from([b"x"], int(Service.AGREED), 8)]
    outbox.add(lots, cost(lots))
    full, mixed = outbox.take(9)
    agreed = int(Service.AGREED)
    assert full[:4] == (0, (7,) * 3, (28,) * 3, (agreed,) * 3)
    assert full[4] == messages[:6]
    assert mixed[:4] == (0, (7, 7, 8), (28, 28, 1), (agreed,) * 3)
    assert mixed[4] == [*messages[6:], b"x"]
    assert not outbox and outbox.size == 0


def test_a_limit_in_the_middle_of_a_lot_leaves_the_rest_of_it() -> None:
    outbox = Outbox(BODY)
    messages = [f"{number:100}".encode() for number in range(5)]
    for message in messages:  # each on its own: they wait together all the same
        lots = lots_from([message], int(Service.AGREED), 7)
        outbox.add(lots, cost(lots))
    assert [_payloads(packet) for packet in _take(outbox, 2)] == [[messages[0]], [messages[1]]]
    assert outbox.size == 3 * (100 + OVERHEAD)
    assert [_payloads(packet) for packet in _take(outbox, 9)] == [[message] for message in messages[2:]]


def test_what_is_gone_from_a_long_lot_does_not_come_again() -> None:
    outbox = Outbox(BODY)
    messages = [number.to_bytes(100, "big") for number in range(5000)]
    lots = lots_from(messages, int(Service.AGREED), 7)
    outbox.add(lots, cost(lots))
    taken: list[bytes] = []
    while outbox:
        taken += [data for packet in _take(outbox, 7) for data in _payloads(packet)]
    assert taken == messages


def test_the_parts_of_a_large_message_that_is_alone_are_one_load() -> None:
    data = bytes(range(250)) * 2
    outbox = _outbox(make_entry(data, sender=1))
    first, second = outbox.take(3) + outbox.take(9)
    assert list(first[5]) == [Part.FIRST, Part.MIDDLE, Part.MIDDLE]
    assert list(second[5]) == [Part.MIDDLE, Part.LAST]
    assert b"".join(chunk for load in (first, second) for chunk in load[4]) == data


def test_what_waits_behind_a_large_message_of_its_sender_is_not_moved_one_by_one() -> None:
    """A sender's messages just larger than a packet cost each other: 8,000 of all sizes took ten seconds to pack."""
    outbox = _outbox(*(make_entry(bytes(101 + number), sender=1) for number in range(50)))
    lots = outbox._queue
    outbox.take(1)
    assert outbox._large[1].waiting is lots and not outbox._queue
    outbox.take(1)
    assert outbox._queue is lots and len(lots) == 49
