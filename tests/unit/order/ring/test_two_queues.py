"""Freight and natives that wait for the token of one ring."""

from __future__ import annotations

import pytest

from ordercast.model.ids import ConfigurationId, ProcessId, Seq
from ordercast.order.clock import Clock, StoredClock
from ordercast.order.outbox import cost, lots_from
from ordercast.order.ring.two_queues import NATIVE_BLOCK, Freight, TwoQueues
from ordercast.wire.header import EXTENDED, SAFE, Heading
from ordercast.wire.run import PacketRun, RawRun, parse_packet
from tests.packets import messages_of

ME = ProcessId(1 << 48 | 1)
MASKED = b"\x09" + bytes(7) + b"\x05"
HEADING = Heading(bytes(8), ConfigurationId(1024, ME), (ME,))


def _queues(natives: int = 0, clock: Clock | None = None) -> TwoQueues:
    queues = TwoQueues(100, clock or Clock())
    lots = lots_from([b"native".ljust(60, b".")] * natives, 0, 0)
    queues.add(lots, cost(lots))
    return queues


def _freight(text: bytes, packets: int = 1, *, is_local: bool = False) -> Freight:
    descriptor = bytes(4) + len(text).to_bytes(2, "big") + bytes(1)
    return Freight([RawRun(SAFE | EXTENDED, 1, NATIVE_BLOCK, (), descriptor, [text] * packets)], is_local)


def _texts(runs: list[PacketRun]) -> list[bytes]:
    packets = [run.packet(Seq(seq)) for run in runs for seq in range(run.seq, run.last + 1)]
    parcels = [messages_of(parse_packet(packet, HEADING))[0] for packet in packets]
    return [bytes(payload).rstrip(b".") for parcel in parcels for payload in parcel[4]]


def _take(queues: TwoQueues, limit: int, first: int = 1, natives_max: int | None = None) -> list[PacketRun]:
    return queues.runs(HEADING, ME, Seq(first), 3, 77, limit, natives_max)


def test_all_packets_of_a_visit_have_one_tick_and_are_safe() -> None:
    queues = _queues(3)
    queues.carry([_freight(b"one"), _freight(b"two")])
    runs = _take(queues, 10)
    assert _texts(runs) == [b"one", b"two", b"native", b"native", b"native"]
    assert [(run.seq, run.count) for run in runs] == [(1, 2), (3, 3)]
    assert {run.timestamp(seq) for run in runs for seq in range(run.seq, run.last + 1)} == {77}
    assert all(run.is_safe and run.flags & EXTENDED for run in runs)
    assert not queues and queues.packets() == 0 and queues.freight_size == 0


def test_while_freight_waits_natives_have_half_of_a_visit() -> None:
    queues = _queues(10)
    queues.carry([_freight(b"f")] * 10)
    assert _texts(_take(queues, 4)).count(b"f") == 2
    queues.is_held = True
    assert _texts(_take(queues, 4)) == [b"f"] * 4


def test_what_waits_is_counted_in_packets_and_what_is_held_does_not_count() -> None:
    queues = _queues(10)
    natives = queues.packets()
    assert natives >= 10
    queues.carry([_freight(b"f")] * 3)
    assert queues.packets() == natives + 3
    queues.is_held = True
    assert queues.packets() == 3


def test_who_may_send_more_than_its_share_leaves_half_of_the_visit_to_freight() -> None:
    queues = _queues(10)
    queues.carry([_freight(b"f")] * 10)
    assert _texts(_take(queues, 4, natives_max=100)) == [b"f"] * 2 + [b"native"] * 2


def test_natives_have_a_bound_of_their_own() -> None:
    assert _texts(_take(_queues(10), 8, natives_max=3)) == [b"native"] * 3


def test_a_hold_stops_natives_alone() -> None:
    queues = _queues(1)
    queues.is_held = True
    assert (bool(queues), queues.is_ready, queues.packets(), _take(queues, 5)) == (True, False, 0, [])
    queues.carry([_freight(b"f")])
    assert (queues.is_ready, _texts(_take(queues, 5))) == (True, [b"f"])
    queues.is_held = False
    assert _texts(_take(queues, 5)) == [b"native"]


def test_a_bound_that_is_not_stored_stops_both() -> None:
    clock = StoredClock()
    clock.start({})
    queues = _queues(1, clock)
    queues.carry([_freight(b"f")])
    assert (queues.is_waiting, queues.is_ready, queues.packets(), _take(queues, 5)) == (True, False, 0, [])
    clock.writes()
    clock.persisted()
    assert (queues.is_ready, len(_texts(_take(queues, 5)))) == (True, 2)


def test_what_is_first_goes_before_all_that_waits() -> None:
    queues = _queues()
    queues.carry([_freight(b"b")])
    queues.carry([_freight(b"hello"), _freight(b"a")], is_first=True)
    assert _texts(_take(queues, 9)) == [b"hello", b"a", b"b"]


def test_freight_goes_in_the_order_in_which_it_came() -> None:
    queues = _queues()
    assert not queues
    queues.carry([_freight(b"a"), _freight(b"b")])
    queues.carry([_freight(b"c")])
    assert queues and _texts(_take(queues, 9)) == [b"a", b"b", b"c"]


@pytest.mark.parametrize("is_first", [True, False])
def test_what_was_begun_is_finished_before_anything_else(is_first: bool) -> None:
    queues = _queues()
    queues.carry([_freight(b"item", packets=3), _freight(b"a")])
    assert _texts(_take(queues, 2)) == [b"item"] * 2
    queues.carry([_freight(b"new")], is_first=is_first)
    assert _texts(_take(queues, 9)) == [b"item", *((b"new", b"a") if is_first else (b"a", b"new"))]


def test_freight_is_cut_where_a_visit_ends() -> None:
    one, two = (_freight(text, packets=2).runs[0] for text in (b"one", b"two"))
    freight = Freight([one, two])
    assert [[len(run.payloads) for run in freight.between(start, 4)] for start in range(4)] == [
        [2, 2],
        [1, 2],
        [2],
        [1],
    ]
    assert [[len(run.payloads) for run in freight.between(0, stop)] for stop in range(4)] == [[], [1], [2], [2, 1]]
    assert [run.payloads[0] for run in freight.between(1, 3)] == [b"one", b"two"]


def test_messages_share_packets_with_those_that_go_the_same_way() -> None:
    queues = _queues()
    for text, block in ((b"a", b""), (b"b", b""), (b"c", MASKED), (b"d", MASKED), (b"e", b"")):
        lots = lots_from([text], 0, 1, block)
        queues.add(lots, cost(lots))
    runs = _take(queues, 9)
    assert [(run.block(run.seq), tuple(messages_of(run)[0][4])) for run in runs] == [
        (NATIVE_BLOCK, (b"a", b"b")),
        (MASKED, (b"c", b"d")),
        (NATIVE_BLOCK, (b"e",)),
    ]


def test_parts_of_a_message_go_everywhere() -> None:
    queues = _queues()
    lots = lots_from([bytes(200)], 0, 1, MASKED)
    queues.add(lots, cost(lots))
    runs = _take(queues, 9)
    assert sum(run.count for run in runs) == 3 and {run.block(run.seq) for run in runs} == {NATIVE_BLOCK}


def test_freight_whose_packets_stand_for_themselves_goes_on_where_the_ring_ended() -> None:
    queues, (run,) = _queues(), _freight(b"f", packets=3).runs
    queues.carry([Freight([run], is_divisible=True)])
    assert _texts(_take(queues, 2)) == [b"f"] * 2
    assert queues.start_over() == 0
    assert _texts(_take(queues, 9)) == [b"f"] and (queues.packets(), queues.freight_size) == (0, 0)


def test_a_ring_that_ends_takes_along_what_is_local_and_what_was_begun_starts_over() -> None:
    queues = _queues()
    queues.carry([_freight(b"mark", is_local=True), _freight(b"item", packets=3), _freight(b"mark", is_local=True)])
    assert _texts(_take(queues, 3)) == [b"mark", b"item", b"item"]
    assert queues.start_over() == 1
    assert queues.packets() == 3 and _texts(_take(queues, 9)) == [b"item"] * 3 and queues.freight_size == 0


def test_what_was_begun_and_is_local_does_not_start_over() -> None:
    queues = _queues()
    queues.carry([_freight(b"mark", packets=2, is_local=True)])
    assert _texts(_take(queues, 1)) == [b"mark"]
    assert queues.start_over() == 0 and not queues
