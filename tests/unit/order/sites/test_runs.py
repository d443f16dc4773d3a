"""Units in a row: the same bytes, the same order and the same messages as one by one."""

from __future__ import annotations

from typing import Any, SupportsIndex

import pytest

from ordercast.model.effects import Deliver, Parcel
from ordercast.model.ids import ProcessId
from ordercast.model.inputs import Submissions
from ordercast.model.service import Service
from ordercast.order.sites.codec import decode, encode
from ordercast.order.sites.frames import DataEntry
from ordercast.order.sites.order import WideOrder
from ordercast.order.sites.outbox import WideOutbox, queued_from
from ordercast.order.sites.runs import EntriesInARow, EntryRun, build_entries, read_entries, rows_of
from ordercast.order.sites.units import SessionRun, Unit, UnitBody, UnitRun

from .test_order import VIEW, A, B, passed

DIGEST = VIEW.digest


def body(first: int, *payloads: bytes) -> UnitBody:
    return UnitBody((SessionRun(7, first, len(payloads), Service.AGREED),), payloads)


@pytest.mark.parametrize("destinations", [(), (3, 9)])
@pytest.mark.parametrize("each", [1, 3])
def test_entries_in_a_row_are_the_same_bytes_as_one_by_one(each: int, destinations: tuple[int, ...]) -> None:
    payloads = [bytes((number,)) * 5 for number in range(4 * each)]
    run = EntryRun(DIGEST, destinations, SessionRun(7, 11, len(payloads), Service.AGREED), each, payloads)
    entries = build_entries(run)
    for index, entry in enumerate(entries):
        at = index * each
        assert decode(entry) == DataEntry(DIGEST, destinations, body(11 + at, *payloads[at : at + each]))
        assert encode(decode(entry)) == entry
    read = read_entries(entries)
    assert read is not None and read._replace(payloads=list(read.payloads)) == run and read.entries == 4


def test_a_run_ends_where_an_entry_is_not_like_the_first() -> None:
    entries = [encode(DataEntry(DIGEST, (), body(number, b"x"))) for number in (1, 2, 4)]
    found = read_entries(entries)
    assert found is not None and found.entries == 2
    longer = encode(DataEntry(DIGEST, (), body(3, b"xy")))
    elsewhere = encode(DataEntry(bytes(8), (), body(3, b"x")))
    for other in (longer, elsewhere):
        found = read_entries([*entries[:2], other])
        assert found is not None and found.entries == 2


@pytest.mark.parametrize("each", [1, 3])
def test_a_run_ends_where_a_number_is_not_the_next_one(each: int) -> None:
    payloads = [bytes((number,)) * 5 for number in range(4 * each)]
    run = EntryRun(DIGEST, (), SessionRun(7, 11, len(payloads), Service.AGREED), each, payloads)
    entries = build_entries(run)
    later = build_entries(run._replace(run=run.run._replace(first=11 + 4 * each + 1)))
    found = read_entries(entries + later)
    assert found is not None and found._replace(payloads=list(found.payloads)) == run
    assert read_entries(entries[1:]) == read_entries(entries[1:] + later)


def test_what_a_daemon_laid_itself_is_known_unread_as_far_as_it_is_the_next_under_way() -> None:
    outbox = WideOutbox(1000)
    outbox.add(queued_from(Submissions([bytes((number,)) * 900 for number in range(6)]), 1000))
    laid = outbox.next(DIGEST, 4)
    assert len(laid) == 4
    assert outbox.given(laid[1:]) is None and outbox.given([bytes(bytearray(laid[0]))]) is None
    for start, stop in ((0, 1), (1, 4)):
        said, read = outbox.given(laid[start:stop]), read_entries(laid[start:stop])
        assert said is not None and read is not None
        assert list(said.payloads) == list(read.payloads) and said[:4] == read[:4]
        outbox.seen(stop - start, is_void=False)
    assert outbox.given(laid) is None


@pytest.mark.parametrize(
    "entry",
    [
        b"",
        b"\1",
        encode(DataEntry(DIGEST, (), UnitBody((SessionRun(7, 1, 1, Service.AGREED),), (b"x",), 0, 2))),
        encode(DataEntry(DIGEST, (), body(1, b"x", b"yz"))),
        encode(DataEntry(DIGEST, (), body(1, b"x"))) + b"more",
        encode(DataEntry(DIGEST, (), body(1, b"x")))[:-1],
    ],
)
def test_what_is_no_such_entry_is_left_to_others(entry: bytes) -> None:
    assert read_entries([entry]) is None


def run_of(stamp: int, previous: int, first: int, count: int, service: Service = Service.AGREED) -> UnitRun:
    payloads = [f"0.{first + index}".encode() for index in range(count)]
    return UnitRun(0, stamp, previous, A, SessionRun(0, first, count, service), 1, payloads)


def test_a_run_passes_as_far_as_every_other_stream_is_past_it() -> None:
    order = WideOrder(VIEW, A)
    order.take_run(run_of(50, 0, 1, 6))
    order.promise(1, 0, 52, 0)
    order.promise(2, 0, 99, 0)
    assert passed(order) == ["0.1", "0.2", "0.3"]  # 52 of rank 0 lies below 52 of rank 1
    order.promise(1, 0, 60, 0)
    assert passed(order) == ["0.4", "0.5", "0.6"] and order.place == (55, 0, 0)


def test_safe_units_of_a_run_pass_when_everybody_has_them_and_are_let_go_then() -> None:
    order = WideOrder(VIEW, A)
    order.take_run(run_of(50, 0, 1, 4, Service.SAFE))
    for rank in (1, 2):
        order.promise(rank, 0, 99, 52)
    order.acknowledge(0, 99)
    assert passed(order) == ["0.1", "0.2"] and sorted(order.own.units) == [52]
    for rank in (1, 2):
        order.acknowledge(rank, 99)
    assert passed(order) == ["0.3", "0.4"] and not order.own.units and not order.own_size


def test_a_view_that_is_about_to_end_holds_single_units() -> None:
    order = WideOrder(VIEW, A)
    order.take_run(run_of(50, 0, 1, 4))
    for rank in (1, 2):
        order.promise(rank, 0, 52, 0)
    assert passed(order) == ["0.1", "0.2", "0.3"]
    order.unroll()
    held = order.own.units
    assert all(isinstance(one, Unit) for one in held.values()) and sorted(held) == [50, 51, 52, 53]
    assert [order.own.single(stamp).previous for stamp in (50, 51, 53)] == [0, 50, 52]
    assert [one.is_delivered for one in held.values()] == [True, True, True, False]
    order.promise(1, 0, 99, 0)
    order.promise(2, 0, 99, 0)
    assert passed(order) == ["0.4"]


def far_apart(stamp: int, count: int, step: int) -> UnitRun:
    payloads = [f"0.{index + 1}".encode() for index in range(count)]
    return UnitRun(0, stamp, 7, A, SessionRun(0, 1, count, Service.AGREED), 1, payloads, step=step)


@pytest.mark.parametrize(("line", "count"), [(52, 0), (53, 1), (55, 1), (56, 2), (58, 2), (59, 3), (99, 4)])
def test_units_of_several_packets_pass_by_the_stamps_of_their_last_ones(line: int, count: int) -> None:
    order = WideOrder(VIEW, A)
    order.take_run(far_apart(53, 4, 3))  # 53, 56, 59, 62
    order.promise(1, 0, line, 0)
    order.promise(2, 0, 99, 0)
    assert passed(order) == [f"0.{number + 1}" for number in range(count)]
    order.promise(1, 0, 99, 0)
    assert passed(order) == [f"0.{number + 1}" for number in range(count, 4)] and order.place == (62, 0, 0)


def test_they_are_held_until_everybody_has_the_last_one() -> None:
    order = WideOrder(VIEW, A)
    order.take_run(far_apart(53, 4, 3))
    for rank in (1, 2):
        order.promise(rank, 0, 99, 99)
    order.acknowledge(0, 62)
    order.walk()
    assert order.own_size == 12 + 4
    order.acknowledge(0, 63)
    order.walk()
    assert not order.own_size and not order.own.units


def test_so_they_are_one_by_one() -> None:
    run = far_apart(53, 4, 3)
    singles = run.singles()
    assert [(unit.stamp, unit.previous) for unit in singles] == [(53, 7), (56, 53), (59, 56), (62, 59)]
    assert run.parcels(50, run.payloads) == [
        (number, A, (0,), bytes((Service.AGREED,)), [payload], 1, 0)
        for number, payload in zip((3, 6, 9, 12), run.payloads, strict=True)
    ]
    for last in range(53, 62):
        head, rest = run.split(last)
        assert head.singles() + rest.singles() == singles and head.last <= last < rest.stamp


def test_entries_of_one_daemon_that_are_as_far_apart_are_a_row() -> None:
    parcels: list[Parcel] = []
    stamps: list[list[int]] = []

    def add(originator: ProcessId, seq: int, *entries: bytes) -> None:
        parcels.append((seq, originator, (), b"", entries, 1, 0))
        stamps.append([seq + 100 + index for index in range(len(entries))])

    add(A, 1, b"1", b"2")
    add(A, 3, b"3")  # in the next read
    add(A, 6, b"6")  # of three packets, and so the next
    add(A, 9, b"9")
    add(A, 10, b"10", b"11")  # of one packet
    add(B, 12, b"12")
    add(B, 14, b"14", b"15")  # behind a packet of somebody else's message
    rows = rows_of(Deliver(VIEW.id, VIEW.id, parcels, stamps=stamps))
    assert [(row.originator, row.seq, row.step, row.entries) for row in rows] == [
        (A, 1, 1, [b"1", b"2", b"3"]),
        (A, 6, 3, [b"6", b"9"]),
        (A, 10, 1, [b"10", b"11"]),
        (B, 12, 1, [b"12"]),
        (B, 14, 1, [b"14", b"15"]),
    ]
    assert rows[1].stamps == [106, 109] and rows[1].last == 9
    assert rows[1].behind(1, 64) == EntriesInARow(A, 9, [b"9"], [109], 3)


def test_early_runs_go_up_at_once_and_once() -> None:
    order = WideOrder(VIEW, A)
    order.take_run(run_of(50, 0, 1, 3, Service.FIFO))
    assert passed(order) == ["0.1", "0.2", "0.3"]
    for rank in (1, 2):
        order.promise(rank, 0, 99, 0)
    assert passed(order) == []


def test_where_senders_take_turns_little_is_looked_at_in_vain(monkeypatch: pytest.MonkeyPatch) -> None:
    def one(sender: int, number: int) -> bytes:
        return encode(DataEntry(DIGEST, (), UnitBody((SessionRun(sender, number, 1, Service.AGREED),), (b"x",))))

    looked = 0

    class Looked(bytes):
        def __getitem__(self, key: SupportsIndex | slice) -> Any:
            nonlocal looked
            looked += 1
            return super().__getitem__(key)

    entries = [Looked(one(sender, number)) for number in range(1, 101) for sender in (7, 8, 8, 8)][:100]
    taken = 0
    while taken < len(entries):
        found = read_entries(entries[taken:])
        assert found is not None and found.entries in (1, 2, 3)
        taken += found.entries
    assert looked < 30 * len(entries)
