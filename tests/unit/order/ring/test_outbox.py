from __future__ import annotations

from ordercast.model.service import Service
from ordercast.order.ring.outbox import OVERHEAD, Load, Outbox, cost
from ordercast.wire.header import DESCRIPTOR_SIZE, PART_SHIFT, SAFE, Entry, Part

from .rings import make_entry

BODY = 100 + DESCRIPTOR_SIZE  # one message of at most 100 bytes


def _outbox(*entries: Entry) -> Outbox:
    outbox = Outbox(BODY)
    outbox.add(entries, cost(entries))
    return outbox


def _payloads(load: Load) -> list[bytes]:
    _, entries = load
    return [data for *_, data in entries]


def _part(load: Load) -> Part:
    flags, _ = load
    return Part(flags >> PART_SHIFT)


def _senders(loads: list[Load]) -> list[int]:
    """Of packets with one message each."""
    return [sender for _, entries in loads for sender, *_ in entries]


def test_an_empty_outbox_gives_nothing() -> None:
    outbox = _outbox()
    assert not outbox and outbox.take(5) == []


def test_small_messages_share_a_packet() -> None:
    (load,) = _outbox(make_entry(b"a"), make_entry(b""), make_entry(b"c", Service.FIFO, 7)).take(5)
    flags, entries = load
    assert entries == [make_entry(b"a"), make_entry(b""), make_entry(b"c", Service.FIFO, 7)]
    assert flags == 0


def test_a_packet_holds_no_more_than_its_body() -> None:
    loads = _outbox(*(make_entry(bytes(46)) for _ in range(3))).take(5)
    assert [len(entries) for _, entries in loads] == [2, 1]


def test_safe_and_other_messages_never_share_a_packet() -> None:
    loads = _outbox(make_entry(b"a"), make_entry(b"b", Service.SAFE), make_entry(b"c", Service.SAFE)).take(5)
    assert [(load[0], _payloads(load)) for load in loads] == [(0, [b"a"]), (SAFE, [b"b", b"c"])]


def test_what_was_not_taken_stays() -> None:
    outbox = _outbox(make_entry(b"a"), make_entry(b"b", Service.SAFE))
    assert [_payloads(load) for load in outbox.take(1)] == [[b"a"]]
    assert outbox and outbox.size == cost([make_entry(b"b")])
    assert [_payloads(load) for load in outbox.take(1)] == [[b"b"]]
    assert not outbox


def test_the_largest_whole_message_is_not_cut_and_one_byte_more_is() -> None:
    (whole,) = _outbox(make_entry(bytes(100))).take(5)
    assert (whole[0], _part(whole)) == (0, Part.WHOLE)
    first, last = _outbox(make_entry(bytes(101), Service.SAFE)).take(5)
    assert first[0] & SAFE and last[0] & SAFE
    assert (_part(first), _part(last)) == (Part.FIRST, Part.LAST)
    assert (_payloads(first), _payloads(last)) == ([bytes(100)], [bytes(1)])


def test_another_senders_messages_go_between_the_parts() -> None:
    loads = _outbox(make_entry(bytes(250), sender=1), make_entry(b"small", sender=2)).take(9)
    assert sorted(_senders(loads)) == [1, 1, 1, 2]
    assert _senders(loads)[-1] == 1


def test_large_messages_of_several_senders_take_turns() -> None:
    loads = _outbox(make_entry(bytes(250), sender=1), make_entry(bytes(250), sender=2)).take(9)
    senders = _senders(loads)
    assert sorted(senders) == [1, 1, 1, 2, 2, 2]
    assert [_part(load) for load in loads if _senders([load]) == [1]] == [Part.FIRST, Part.MIDDLE, Part.LAST]


def test_a_sender_waits_for_its_own_large_message() -> None:
    outbox = _outbox(make_entry(bytes(250), sender=1), make_entry(b"after", sender=1), make_entry(b"x", sender=2))
    order = [(_senders([load])[0], _part(load), _payloads(load)[0][:5]) for load in outbox.take(9)]
    assert [entry for entry in order if entry[0] == 1][-1] == (1, Part.WHOLE, b"after")
    assert order.index((2, Part.WHOLE, b"x")) < order.index((1, Part.WHOLE, b"after"))


def test_a_message_cut_by_the_end_of_the_ring_is_sent_again_from_the_start() -> None:
    outbox = _outbox(make_entry(bytes(250), sender=1))
    outbox.take(2)
    assert outbox.start_over() == 1
    assert [_part(load) for load in outbox.take(9)] == [Part.FIRST, Part.MIDDLE, Part.LAST]


def test_nothing_starts_over_when_nothing_was_begun() -> None:
    assert _outbox(make_entry(bytes(250))).start_over() == 0


def test_the_size_counts_bytes_and_an_overhead_until_a_message_is_gone() -> None:
    outbox = _outbox(make_entry(b""), make_entry(bytes(250)))
    assert outbox.size == 250 + 2 * OVERHEAD
    outbox.take(2)
    assert outbox.size == 250 + OVERHEAD
    outbox.take(9)
    assert outbox.size == 0
