"""What is passed up: messages in parts are kept as long as the ring that numbered them is a part of the topology."""

from __future__ import annotations

from ordercast.model.configuration import ChangeReason
from ordercast.model.ids import ConfigurationId, Incarnation, NodeId, process_id_from
from ordercast.order.gateways.items import BegunMessage, Processes
from ordercast.order.gateways.passing import PassingUp
from ordercast.order.gateways.views import NetworkView

ME, OTHER = (process_id_from(NodeId(node), Incarnation(1)) for node in (1, 2))


def _view(number: int, *, sources: Processes) -> NetworkView:
    """I am alone, whoever may still be a source."""
    alone = frozenset({ME})
    before, now = (ConfigurationId(2 * each, ME) for each in (number, number + 1))
    return NetworkView(now, before, (number, 1, 1), alone, (), alone, ChangeReason.GIVEN_UP, sources=sources)


def test_what_a_member_has_begun_is_kept_while_its_ring_may_bring_more() -> None:
    passing = PassingUp(_view(1, sources=frozenset({ME, OTHER})))
    passing.learn_begun([BegunMessage(OTHER, 0, (1, 1, 1), b"the first parts")])
    passing.effects([_view(2, sources=frozenset({ME, OTHER}))], ME)
    assert [begun.originator for begun in passing.begun()] == [OTHER]
    passing.effects([_view(3, sources=frozenset({ME}))], ME)
    assert passing.begun() == ()
