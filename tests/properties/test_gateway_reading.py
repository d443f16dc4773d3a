"""What is put on a ring is what the order of the network takes from it, at every member; what is unsound moves
nothing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ordercast.model.ids import ConfigurationId, ProcessId, Seq
from ordercast.order.clock import Clock
from ordercast.order.gateways import reading as reading_module
from ordercast.order.gateways.codec import Item
from ordercast.order.gateways.items import Carried, Column, InterestItem, NoticeItem, Statement, Stretch
from ordercast.order.gateways.names import RingNames
from ordercast.order.gateways.network import Heard
from ordercast.order.gateways.packets import control_freight, freight_from
from ordercast.order.gateways.reading import RingReading
from ordercast.order.outbox import cost, lots_from
from ordercast.order.ring.two_queues import CONTROL_SENDER, NATIVE_BLOCK, Freight, TwoQueues
from ordercast.order.stamped.lanes import Stamp
from ordercast.wire.header import EXTENDED, SAFE, Heading
from ordercast.wire.run import PacketRun, RawRun, parse_packet

from .gateway_strategies import items, sinces

ME = ProcessId(1 << 48 | 1)
RING = ConfigurationId(1024, ME)
HEADING = Heading(bytes(8), RING, (ME,))
ROOM = 300


def _packets(queues: TwoQueues, limit: int = 10_000) -> list[PacketRun]:
    return queues.runs(HEADING, ME, Seq(1), 1, 77, limit)


def _one_by_one(runs: list[PacketRun]) -> list[PacketRun]:
    """The same packets as another member reads them."""
    return [parse_packet(run.packet(Seq(seq)), HEADING) for run in runs for seq in range(run.seq, run.last + 1)]


def _carried(item: Item, since: Stamp) -> Carried | None:
    """What a gateway would carry; bodies that are no packets it never has."""
    if isinstance(item, InterestItem) or (isinstance(item, Stretch) and since == (0, 0, 0)):
        return None
    return Carried(item, since)


@given(st.lists(st.tuples(items, sinces), max_size=4), st.integers(0, 9))
def test_what_is_carried_comes_out_in_order_at_the_sender_and_at_others(
    drawn: list[tuple[Item, Stamp]], natives: int
) -> None:
    queues = TwoQueues(ROOM, Clock())
    wanted = [carried for item, since in drawn if (carried := _carried(item, since)) is not None]
    for carried in wanted:
        queues.carry(freight_from(carried, ROOM, None))
    lots = lots_from([b"native"] * natives, 4, 0)
    queues.add(lots, cost(lots))
    runs = _packets(queues)
    for read in (runs, _one_by_one(runs)):
        reading = RingReading(RING)
        entries = list(reading.entries(read, RingNames()))
        assert [one.carried for one in entries if isinstance(one, Heard)] == wanted
        assert {one.tick for one in entries} <= {77} and reading.dropped == [] and reading.unfinished_size == 0
        assert all(isinstance(one, Heard) or one.ring == RING for one in entries)
        assert sum(isinstance(one, Stretch) for one in entries) >= (natives > 0)


def test_an_interest_is_a_native_of_its_ring() -> None:
    queues, interest = TwoQueues(ROOM, Clock()), InterestItem(ME, 5)
    queues.carry([control_freight(interest, ROOM)])
    (stretch,) = RingReading(RING).entries(_packets(queues), RingNames())
    assert isinstance(stretch, Stretch) and (stretch.interest, stretch.tick) == (interest, 77)
    assert list(stretch.seqs) == [1]


def _control(data: bytes) -> Freight:
    descriptor = CONTROL_SENDER.to_bytes(4, "big") + len(data).to_bytes(2, "big") + bytes(1)
    return Freight([RawRun(SAFE | EXTENDED, 1, NATIVE_BLOCK, (), descriptor, [data])])


@given(st.lists(st.binary(max_size=40), max_size=5))
def test_what_is_unsound_is_dropped_and_the_rest_is_taken(noise: list[bytes]) -> None:
    queues, interest = TwoQueues(ROOM, Clock()), InterestItem(ME, 5)
    queues.carry([*map(_control, noise), control_freight(interest, ROOM)])
    runs = _packets(queues)
    for read in (runs, _one_by_one(runs)):
        reading = RingReading(RING)
        entries = list(reading.entries(read, RingNames()))
        assert len(entries) + len(reading.dropped) == len(noise) + 1
        assert isinstance(entries[-1], Stretch) and entries[-1].interest == interest


def test_an_item_that_has_no_end_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading_module, "UNFINISHED_SIZE_MAX", 1000)
    entry = Statement(Column(RING, None), (9, 9, 9))
    (whole,) = freight_from(Carried(NoticeItem(RING, ME, (9, 9, 9), (entry,) * 90)), ROOM, None)
    reading = RingReading(RING)
    for place in range(whole.count - 1):
        queues = TwoQueues(ROOM, Clock())
        queues.carry([Freight(whole.between(place, place + 1))])
        assert list(reading.entries(_packets(queues), RingNames())) == [] and reading.unfinished_size <= 1000
    assert whole.count > 6 and set(reading.dropped) == {"an item in parts that has no end"}
