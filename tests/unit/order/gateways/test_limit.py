"""The order goes on up to the ticks that stable storage covers, and no further."""

from __future__ import annotations

import pytest

from ordercast.model.ids import ConfigurationId, ProcessId
from ordercast.order.gateways.items import LogicalRing, Stretch
from ordercast.order.gateways.merging import PhysicalRing
from ordercast.order.gateways.network import RingNetwork
from ordercast.order.gateways.observed import snapshot_of
from ordercast.order.gateways.timeline import Passed
from ordercast.order.gateways.views import NetworkView

ME = ProcessId(1)
ALONE = frozenset({ME})
DOMAIN = 1
OFFICE = ConfigurationId(1028, ME)
NEXT = PhysicalRing(ConfigurationId(2052, ME), ALONE, 20)


@pytest.fixture
def network() -> RingNetwork:
    network = RingNetwork(ME, {DOMAIN: OFFICE}, 1)
    network.step()
    network.passed.clear()
    return network


def _passed(network: RingNetwork) -> list[Passed]:
    network.step()
    passed = list(network.passed)
    network.passed.clear()
    return passed


def _packets(network: RingNetwork, *ticks: int) -> None:
    network.deliver(DOMAIN, [Stretch(OFFICE, tick, ME, (tick,), (b"x",)) for tick in ticks])


def test_packets_above_the_limit_wait(network: RingNetwork) -> None:
    assert network.limit(10) and not network.limit(10)
    _packets(network, 5, 10, 11)
    assert [event.last[0] for event in _passed(network) if not isinstance(event, NetworkView)] == [5, 10]
    assert network.known.place[0] == 10 and _passed(network) == []
    waiting = snapshot_of(network).waiting
    assert waiting is not None and waiting.for_disk and waiting.stamp[0] == 11
    assert network.limit(11) and len(_passed(network)) == 1


def test_packets_that_wait_above_the_limit_keep_back_a_change_behind_them(network: RingNetwork) -> None:
    network.limit(10)
    _packets(network, 5, 11)
    network.install(DOMAIN, (), ALONE, NEXT)
    assert [event.last[0] for event in _passed(network) if not isinstance(event, NetworkView)] == [5]
    network.limit(11)
    assert len(_passed(network)) == 1


def test_a_view_above_the_limit_waits(network: RingNetwork) -> None:
    network.limit(19)
    network.install(DOMAIN, (), ALONE, NEXT)
    assert _passed(network) == [] and network.known.place < LogicalRing(NEXT.id, ALONE, ALONE, NEXT.tick).birth
    network.limit(20)
    (view,) = _passed(network)
    assert isinstance(view, NetworkView) and view.id.seq == 20


def test_what_is_residual_above_the_limit_waits(network: RingNetwork) -> None:
    network.limit(10)
    network.install(DOMAIN, [Stretch(OFFICE, 11, ME, (3,), (b"x",))], ALONE, NEXT)
    assert _passed(network) == []
    network.limit(11)
    (packet,) = _passed(network)
    assert not isinstance(packet, NetworkView) and packet.first[0] == 11
