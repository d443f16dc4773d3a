"""What is passed up: messages in parts are kept as long as the ring that numbered them is a part of the topology. Own
messages that were passed hollow have their places told."""

from __future__ import annotations

from collections import Counter

from ordercast.model.configuration import ChangeReason
from ordercast.model.effects import Placed
from ordercast.model.ids import ConfigurationId, Incarnation, NodeId, ProcessId, process_id_from
from ordercast.model.notes import Occurrence
from ordercast.model.service import Service
from ordercast.order.gateways.items import BegunMessage, Processes, Stretch
from ordercast.order.gateways.passing import PassingUp
from ordercast.order.gateways.views import NetworkView
from ordercast.order.stamped.lanes import StampedRun
from ordercast.wire.header import DESCRIPTORS, Part

ME, OTHER = (process_id_from(NodeId(node), Incarnation(1)) for node in (1, 2))


def _view(number: int, *, sources: Processes) -> NetworkView:
    """I am alone, whoever may still be a source."""
    alone = frozenset({ME})
    before, now = (ConfigurationId(2 * each, ME) for each in (number, number + 1))
    return NetworkView(now, before, (number, 1, 1), alone, (), alone, ChangeReason.GIVEN_UP, sources=sources)


def test_what_a_member_has_begun_is_kept_while_its_ring_may_bring_more() -> None:
    passing = PassingUp(_view(1, sources=frozenset({ME, OTHER})), Counter())
    passing.learn_begun([BegunMessage(OTHER, 0, (1, 1, 1), b"the first parts")])
    passing.effects([_view(2, sources=frozenset({ME, OTHER}))], ME)
    assert [begun.originator for begun in passing.begun()] == [OTHER]
    assert not passing.occurred[Occurrence.LARGE_CUT]
    passing.effects([_view(3, sources=frozenset({ME}))], ME)
    assert passing.begun() == ()
    assert passing.occurred[Occurrence.LARGE_CUT] == 1


def test_places_of_own_messages_count_as_passed_up() -> None:
    """Else a process that leaves would wait for them for ever."""
    passing, ring = PassingUp(_view(1, sources=frozenset({ME})), Counter()), ConfigurationId(1028, ME)
    body = bytes((Part.WHOLE, 1)) + DESCRIPTORS[1].pack(5, 4) + bytes((Service.AGREED,)) + b"lone"
    run = StampedRun((9, 7, 3), (9, 7, 3), Stretch(ring, 9, ME, (3,), (body,), mask=2))
    (placed,) = passing.places([run])
    assert isinstance(placed, Placed) and placed.origin == ConfigurationId(9, ProcessId(7))
    ((number, originator, senders, services, payloads, _, _),) = placed.parcels
    assert (number, originator, list(payloads)) == (3, ME, [b"lone"])
    assert (list(senders), list(services)) == ([5], [Service.AGREED])
    assert passing.own == 1


def test_a_packet_that_cannot_be_has_no_place() -> None:
    passing = PassingUp(_view(1, sources=frozenset({ME})), Counter())
    stretch = Stretch(ConfigurationId(1028, ME), 9, ME, (3,), (b"\xff",), mask=2)
    assert passing.places([StampedRun((9, 7, 3), (9, 7, 3), stretch)]) == [] and passing.own == 0
