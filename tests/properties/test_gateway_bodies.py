"""Packets that are alike: kept as bytes, they say what they would say one by one."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ordercast.model.errors import WireError
from ordercast.model.ids import ConfigurationId, ProcessId, Seq
from ordercast.order.clock import Clock
from ordercast.order.gateways.bodies import AlikeBodies, BodiesAt, bodies_from, size_of
from ordercast.order.gateways.codec import decode_item, encode_item
from ordercast.order.gateways.items import Stretch
from ordercast.order.gateways.names import RingNames
from ordercast.order.gateways.network import Heard, RingEntry
from ordercast.order.gateways.packets import control_freight, parcels_of
from ordercast.order.gateways.reading import RingReading
from ordercast.order.ring.two_queues import TwoQueues
from ordercast.order.stamped.lanes import NO_STAMP
from ordercast.wire.header import DESCRIPTORS, Heading
from ordercast.wire.run import parse_run

ME = ProcessId(1 << 48 | 1)
RING = ConfigurationId(1024, ME)
HEADING = Heading(bytes(8), RING, (ME,))


@st.composite
def alike(draw: st.DrawFn) -> Stretch:
    lengths = draw(st.lists(st.integers(0, 20), min_size=1, max_size=3))
    seqs = sorted(draw(st.sets(st.integers(1, 60), min_size=1, max_size=5)))
    each, size = len(lengths), sum(lengths)
    services = draw(st.binary(min_size=each, max_size=each).map(lambda data: bytes(one % 5 for one in data)))
    head = bytes((0, each)) + DESCRIPTORS[each].pack(*range(each), *lengths) + services
    data = draw(st.binary(min_size=size * len(seqs), max_size=size * len(seqs)))
    bodies = bodies_from(head, b"before" + data, 6, len(seqs))
    if draw(st.booleans()) and len(seqs) > 1:  # as two reads brought them
        cut = draw(st.integers(1, len(seqs) - 1))
        places = BodiesAt(data, 0, size, cut), BodiesAt(b"more" + data, 4 + size * cut, size, len(seqs) - cut)
        bodies = AlikeBodies(bodies.head, bodies.size, places, len(seqs))
    return Stretch(RING, 40, ME, tuple(seqs), bodies, mask=5)


@given(alike())
def test_an_item_with_packets_that_are_alike_survives_its_bytes(stretch: Stretch) -> None:
    read = decode_item(encode_item(stretch)).item
    assert read == stretch and isinstance(read, Stretch) and isinstance(read.bodies, AlikeBodies)


@given(alike(), st.data())
def test_what_is_damaged_is_refused_or_says_something_else(stretch: Stretch, draw: st.DataObject) -> None:
    data = bytearray(encode_item(stretch))
    with pytest.raises(WireError):
        decode_item(bytes(data[: draw.draw(st.integers(0, len(data) - 1))]))
    for _ in range(draw.draw(st.integers(1, 3))):
        data[draw.draw(st.integers(0, len(data) - 1))] = draw.draw(st.integers(0, 255))
    with suppress(WireError):
        read = decode_item(bytes(data))
        assert decode_item(encode_item(*read)) == read


@given(alike(), st.integers(0, 5), st.integers(0, 5))
def test_they_are_cut_and_measured_like_any_others(stretch: Stretch, start: int, stop: int) -> None:
    plain = tuple(stretch.bodies)
    assert stretch.bodies[start:stop] == plain[start:stop]
    assert size_of(stretch.bodies[start:stop]) == size_of(plain[start:stop])


@given(alike())
def test_their_messages_are_those_of_the_packets_one_by_one(stretch: Stretch) -> None:
    def messages(some: Stretch) -> list[tuple[int, int, int, int, bytes]]:
        return [
            (seq + place // each, place % each, sender, service, bytes(payload))
            for (seq, _, senders, services, payloads, each, _), parts in parcels_of(some)
            if not parts
            for place, (sender, service, payload) in enumerate(zip(senders, services, payloads, strict=True))
        ]

    plain = Stretch(stretch.ring, 40, ME, stretch.seqs, tuple(stretch.bodies), mask=5)
    assert messages(stretch) == messages(plain)


@given(alike(), st.integers(1, 4), st.booleans())
def test_an_item_in_parts_comes_together_over_several_visits(stretch: Stretch, limit: int, is_own: bool) -> None:
    queues = TwoQueues(100, Clock())
    queues.carry([control_freight(stretch, 40)])
    reading, seq = RingReading(RING), 1
    found: list[RingEntry] = []
    while queues:
        for run in queues.runs(HEADING, ME, Seq(seq), 1, 77, limit):
            read = run if is_own else parse_run(run.burst()[0], 0, run.size, HEADING, Seq(seq))
            assert read is not None and read.count == run.count
            found += reading.entries([read], RingNames())
            seq += run.count
    assert [one.carried for one in found if isinstance(one, Heard)] == [(stretch, NO_STAMP, None)]
    assert (queues.freight_size, queues.packets(), reading.dropped, reading.unfinished_size) == (0, 0, [], 0)
