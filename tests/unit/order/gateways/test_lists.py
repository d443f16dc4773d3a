"""Node lists of a process on several rings: one list, whichever ring learns it."""

from __future__ import annotations

import pytest

from ordercast.model.effects import Enlisted
from ordercast.model.errors import UsageError
from ordercast.model.ids import Incarnation, Instant, NodeId
from ordercast.order.gateways.lists import NodeLists
from ordercast.order.gateways.node import GatewayNode
from ordercast.order.ring.config import RingConfig
from ordercast.order.setup import Domain
from ordercast.sim.rosters import sim_roster

NOW = Instant(0)
OLD, NEW = sim_roster(1, (1, 2)), sim_roster(2, (1, 2, 3))
GUESTS = sim_roster(9, (7, 8)).entries


def test_a_newer_list_goes_to_the_rings_that_lack_it() -> None:
    lists = NodeLists()
    assert lists.newer_than(None) is None and lists.told() == []
    lists.hear(0, Enlisted(OLD))
    lists.hear(1, Enlisted(NEW))
    lists.hear(0, Enlisted(OLD))
    assert lists.newer_than(None) == lists.newer_than(OLD) == NEW and lists.newer_than(NEW) is None


def test_the_driver_is_told_once_of_all_that_have_to_be_reached() -> None:
    lists = NodeLists()
    lists.hear(0, Enlisted(NEW, GUESTS[:1]))
    lists.hear(1, Enlisted(NEW, GUESTS[1:]))
    assert lists.told() == [Enlisted(NEW, GUESTS)] and lists.told() == []


def test_a_gateway_has_one_list_on_all_its_rings() -> None:
    engine = GatewayNode(NodeId(1), RingConfig(), (Domain(0, "a"), Domain(1, "b")))
    engine.start({}, Incarnation(1), NOW)
    effects = engine.enlist(NEW, NOW)
    assert [effect for effect in effects if isinstance(effect, Enlisted)] == [Enlisted(NEW)]
    assert {ring.roster for ring in engine._rings} == {NEW}
    with pytest.raises(UsageError, match="bring it up to date"):
        engine.enlist(OLD, NOW)
