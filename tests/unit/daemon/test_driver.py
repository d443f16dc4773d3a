"""What an engine asks for never ends its driver: a packet that cannot be sent is counted."""

from __future__ import annotations

import asyncio
import time
from types import SimpleNamespace
from typing import Any, cast

import pytest

from ordercast.daemon import driver
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


class TimedEngine:
    """Its deadline is what the scene says; every input leads to nothing."""

    def __init__(self) -> None:
        self.deadline: int | None = None
        self.wakes = 0

    def submit(self, *_: object) -> list[Effect]:
        return []

    def wake(self, now: int) -> list[Effect]:
        self.wakes += 1
        return []

    def next_deadline(self) -> int | None:
        return self.deadline


class FailingEngine(TimedEngine):
    def receive(self, *_: object) -> list[Effect]:
        raise RuntimeError("it broke in the middle")


class OneRead:
    """A socket with something to be read, once."""

    is_drained = True

    def __init__(self) -> None:
        self.left = [object()]
        self.data = self.token = self
        self.link = None
        self.lanes = ()

    def drain(self) -> list[object]:
        left, self.left = self.left, []
        return left

    read_one = drain


def test_an_engine_that_fails_in_what_is_read_before_a_timer_is_not_woken_again() -> None:
    async def scene() -> tuple[FailingEngine, FakeApplication]:
        engine, application, has_failed = FailingEngine(), FakeApplication(), asyncio.Event()
        sockets = [OneRead(), OneRead()]
        driven = Driver(*cast(Any, (engine, {MAIN: sockets}, None, application, Counters())))
        failed = application.on_failure

        def ended(error: BaseException) -> None:
            failed(error)
            driven.stop()
            has_failed.set()

        application.on_failure = ended  # type: ignore[method-assign]
        application.begin_turn = application.end_turn = lambda: None  # type: ignore[attr-defined]
        engine.deadline = time.monotonic_ns()
        driven.submit([])
        await asyncio.wait_for(has_failed.wait(), 30)
        await asyncio.sleep(0)
        driven.submit([])
        return engine, application

    engine, application = asyncio.run(scene())
    assert engine.wakes == 0 and len(application.failures) == 1


@pytest.mark.parametrize(("young_s", "wakes"), [(0.002, 0), (0.0, 1)])
def test_a_timer_that_would_soon_go_off_for_nothing_moves_away_unless_it_was_only_just_set(
    young_s: float, wakes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With `young_s` 0 the deadline moves away in the instant in which the timer was set."""
    clock = [time.monotonic_ns()]
    monkeypatch.setattr(driver, "_now", lambda: clock[0])

    async def scene() -> TimedEngine:
        engine = TimedEngine()
        driven = Driver(*cast(Any, (engine, {}, None, FakeApplication(), Counters())))
        engine.deadline = clock[0] + 5_000_000
        driven.submit([])
        clock[0] += int(young_s * 1e9)
        engine.deadline = clock[0] + 10**12
        driven.submit([])
        await asyncio.sleep(0.03)
        driven.stop()
        return engine

    assert asyncio.run(scene()).wakes == wakes
