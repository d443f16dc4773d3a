"""A node alone on its ring: what it does of its own accord, and what waits for its disk."""

from __future__ import annotations

from collections.abc import Callable

from ordercast.model.effects import Deliver, Effect, LeaveDone, Persist, Placed
from ordercast.model.ids import Incarnation, Instant, NodeId
from ordercast.model.inputs import Submission
from ordercast.model.service import Service
from ordercast.order.catalogue import entry_of
from ordercast.order.clock import CLOCK_KEY, CLOCK_RESERVE
from ordercast.order.gateways.items import Stretch
from ordercast.order.gateways.node import GatewayNode
from ordercast.order.ring.config import RingConfig
from ordercast.order.setup import Domain
from ordercast.wire.header import DESCRIPTORS, Part

NOW = Instant(0)
BODY = bytes((Part.WHOLE, 1)) + DESCRIPTORS[1].pack(5, 4) + bytes((Service.AGREED,)) + b"lone"


def _begun() -> GatewayNode:
    """Return a node all of whose writes are stored."""
    node = GatewayNode(NodeId(1), RingConfig(), [Domain(0, "office")])
    todo = node.start({}, Incarnation(1), NOW)
    while todo:
        effect = todo.pop(0)
        if isinstance(effect, Persist):
            todo += node.persisted(effect.key, NOW)
    return node


def _wait(node: GatewayNode, effects: list[Effect], is_done: Callable[[], bool]) -> None:
    while not is_done():
        deadline = node.next_deadline()
        assert deadline is not None, "it waits for nothing more"
        effects += node.wake(deadline)


def test_what_waited_for_the_bound_of_the_clock_goes_on_as_soon_as_it_is_stored() -> None:
    node = _begun()
    network = node.network
    assert network is not None
    network.deliver(0, [Stretch(network.known.own[0], 3 * CLOCK_RESERVE, node.process, (9,), (BODY,))])
    effects = [*node.behind(False, NOW), *node.wake(NOW)]
    assert any(isinstance(effect, Persist) and effect.key == CLOCK_KEY for effect in effects)
    assert not any(isinstance(effect, Deliver) for effect in effects)
    assert any(isinstance(effect, Deliver) for effect in node.persisted(CLOCK_KEY, NOW))


def test_whoever_is_passed_its_own_messages_is_not_told_their_places_besides_and_can_leave() -> None:
    node = _begun()
    effects = node.submit([Submission(b"lone", sender=5, destinations=("g",))], NOW)
    _wait(node, effects, lambda: any(isinstance(effect, Deliver) for effect in effects))
    effects += node.leave(Instant(node.next_deadline() or 0))
    _wait(node, effects, lambda: node.is_gone)
    assert not any(isinstance(effect, Placed) for effect in effects)
    assert any(isinstance(effect, LeaveDone) for effect in effects)


def test_places_may_be_told_later_than_those_of_messages_behind_them() -> None:
    assert entry_of("gateways").overtakes
