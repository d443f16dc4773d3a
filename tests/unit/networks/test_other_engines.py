"""The layer under an engine that is no ring: it asks what packets are, and reads the clear head alone."""

from __future__ import annotations

import pytest

from ordercast.model.effects import Broadcast, SendTo
from ordercast.model.ids import ProcessId
from ordercast.networks.config import Replication
from ordercast.order.ring.config import RingConfig
from ordercast.order.traffic import Traffic
from ordercast.wire.head import with_head

from .stage import CLUSTER, ME, TWO, FakeEngine, Stage, alarms

NEWS, ORDER = 77, 2  # kinds; a ring's token is 2


class NewsTraffic(Traffic):
    """Data without tokens."""

    data = frozenset({NEWS})


class NewsEngine(FakeEngine):
    @property
    def traffic(self) -> Traffic:
        return NewsTraffic()


@pytest.fixture
def stage() -> Stage:
    return Stage(Replication.PASSIVE, engine=NewsEngine())


def packet(kind: int, sender: ProcessId = TWO) -> bytes:
    return with_head(CLUSTER, sender, bytes((kind,)) + bytes(20))


def test_its_data_are_spread_over_the_networks_and_all_else_goes_everywhere(stage: Stage) -> None:
    news = [Broadcast([(packet(NEWS, ME), 43)]) for _ in range(3)]
    sent = stage.send(*news, Broadcast([(packet(ORDER, ME), 43)]), SendTo(TWO, packet(ORDER, ME)))
    networks = [effect.networks for effect in sent if isinstance(effect, Broadcast | SendTo)]
    assert networks == [(0,), (1,), (0,), (0, 1), (0, 1)]


def test_nothing_of_it_waits_and_everything_goes_up_at_once(stage: Stage) -> None:
    given = [packet(NEWS), packet(ORDER), packet(1), packet(5)]
    stage.give(0, *given)
    assert stage.up == given
    assert stage.layer.next_deadline() is None


def test_its_data_are_counted_by_transmitter(stage: Stage) -> None:
    many = 2 * stage.config.message_lag(RingConfig())
    assert not alarms([effect for _ in range(many) for effect in stage.give(0, packet(ORDER))])
    (alarm,) = alarms([effect for _ in range(many) for effect in stage.give(0, packet(NEWS))])
    assert (alarm.network, alarm.process) == (1, TWO)
