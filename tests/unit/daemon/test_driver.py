"""What an engine asks for never ends its driver: a packet that cannot be sent is counted."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from ordercast.daemon.driver import Driver
from ordercast.daemon.status.counters import Counters, SocketCounters
from ordercast.model.effects import Broadcast, Burst, Effect, Endpoint, Room, SendTo, Unicast
from ordercast.model.errors import UsageError
from ordercast.model.ids import MAIN, Incarnation, NodeId, process_id_from

TARGET = process_id_from(NodeId(32767), Incarnation(1))


class FakeSockets:
    """Whatever is sent raises."""

    def __init__(self, error: Exception) -> None:
        self.error = error
        self.data = SimpleNamespace(counters=SocketCounters())
        self.token = SimpleNamespace(counters=SocketCounters())
        self.link = SimpleNamespace(counters=SocketCounters())

    def broadcast(self, bursts: object) -> None:
        raise self.error

    def send_to(self, node: NodeId, packet: bytes) -> None:
        raise self.error

    def unicast(self, target: NodeId | Endpoint, bursts: list[Burst]) -> None:
        raise self.error


class FakeEngine:
    def submit(self, *_: object) -> list[Effect]:
        bursts = [(b"data", 4)]
        return [SendTo(TARGET, b"token"), Broadcast(bursts, networks=(0, 1)), Unicast(TARGET, bursts), Room(1)]

    def next_deadline(self) -> None:
        return None


class FakeApplication:
    def __init__(self) -> None:
        self.failures: list[BaseException] = []
        self.rooms = 0

    def on_room(self) -> None:
        self.rooms += 1

    def on_failure(self, error: BaseException) -> None:
        self.failures.append(error)


@pytest.mark.parametrize(
    "error",
    [
        OverflowError("sendto(): port must be 0-65535."),
        OSError("no route"),
        ValueError("no such address"),
        UsageError("node 4 is not in the configuration"),
    ],
)
def test_what_cannot_be_sent_is_counted_and_the_rest_is_carried_out(error: Exception) -> None:
    async def scene() -> tuple[FakeApplication, list[FakeSockets]]:
        application, networks = FakeApplication(), [FakeSockets(error), FakeSockets(error)]
        parts = cast(Any, (FakeEngine(), {MAIN: networks}, None, application, Counters()))
        Driver(*parts).submit([])
        return application, networks

    application, networks = asyncio.run(scene())
    assert not application.failures and application.rooms == 1
    assert [network.token.counters.send_failures for network in networks] == [1, 0]
    assert [network.data.counters.send_failures for network in networks] == [1, 1]
    assert [network.link.counters.send_failures for network in networks] == [1, 0]
