"""Replicas that record what they do: a history of theirs is VALID, and not when it is spoiled."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import ordercast
from ordercast.checker.replicated.panel import check_replicas
from ordercast.checker.verdict import Outcome
from ordercast.model.ids import Instant
from ordercast.model.promises import ReplicaPromise
from ordercast.replicated.quorum import Majority
from ordercast.replicated.recorder import RecordedFront, ReplicaRecorder, set_command
from ordercast.replicated.replica import NotPrimary
from ordercast.trace.replica_records import Applied, GotPicture, Looked, ReplicaEvent, Returned
from tests.live.local_daemons import daemons, live

VOTERS = Majority({"kv@n1": 1, "kv@n2": 1, "kv@n3": 1})


class World:
    def __init__(self, addresses: dict[str, str]) -> None:
        self.recorder = ReplicaRecorder()
        self._addresses = addresses
        self._stacks: dict[str, AsyncExitStack] = {}

    async def come(self, name: str) -> RecordedFront:
        stack = self._stacks[name] = AsyncExitStack()
        client = await stack.enter_async_context(ordercast.connect(self._addresses[name], name="kv"))
        return await stack.enter_async_context(self.recorder.replica(client, "accounts", VOTERS))

    async def go(self, name: str) -> None:
        await self._stacks.pop(name).aclose()

    async def close(self) -> None:
        for name in list(self._stacks):
            await self.go(name)


async def work(front: RecordedFront, times: int) -> None:
    for number in range(times):
        await front.set(f"{front.replica.life}/{number}", "x" * 100)
        await front.compare_and_set("shared", front.plain.get("shared"))
        await front.latest("shared")


async def history(folder: Path) -> list[ReplicaEvent]:
    """All write; one goes and comes back without memory; then the others go, and a write is refused."""
    async with daemons(folder, "n1", "n2", "n3") as addresses:
        world = World(addresses)
        try:
            one, two, three = [await world.come(name) for name in ("n1", "n2", "n3")]
            await asyncio.gather(*(front.plain.ready() for front in (one, two, three)))
            await asyncio.gather(*(work(front, 10) for front in (one, two, three)))
            await world.go("n3")
            await one.plain.ready()
            await work(one, 5)
            back = await world.come("n3")
            await back.plain.ready()
            await asyncio.gather(work(two, 5), work(back, 5))
            await world.go("n1")
            await world.go("n2")
            with pytest.raises(NotPrimary):
                while True:
                    await back.set("refused")
            world.recorder.end(back)
            return list(world.recorder.events)
        finally:
            await world.close()


Spoil = Callable[[list[Any]], list[ReplicaEvent]]


def changed(kind: type, number: int, **fields: Any) -> Spoil:
    """One event of a kind, by its number among them, with other fields. Of answers, to those who changed something."""

    def spoil(events: list[Any]) -> list[ReplicaEvent]:
        found = [place for place, event in enumerate(events) if isinstance(event, kind)]
        place = [place for place in found if kind is not Returned or events[place].result][number]
        return [*events[:place], replace(events[place], **fields), *events[place + 1 :]]

    return spoil


SPOILT: list[tuple[Spoil, ReplicaPromise]] = [
    (changed(Applied, 20, operation=set_command("other", "1.1")), ReplicaPromise.SAME_COMMANDS),
    (changed(Applied, 20, chain=1), ReplicaPromise.SAME_COMMANDS),
    (changed(GotPicture, 0, chain=1), ReplicaPromise.SAME_COMMANDS),
    (changed(Applied, 20, caller=1, request=1), ReplicaPromise.ONCE),
    (changed(Returned, 10, position=10_000), ReplicaPromise.CONFIRMATIONS),
    (changed(Returned, 10, result=b"\0\0"), ReplicaPromise.LINEARISABLE),
    (changed(Looked, -1, answer=b"\0"), ReplicaPromise.LINEARISABLE),
    (changed(Looked, -1, position=3), ReplicaPromise.LINEARISABLE),
    (changed(Looked, -1, position=10_000), ReplicaPromise.LINEARISABLE),
    (changed(Returned, -1, at=Instant(1)), ReplicaPromise.LINEARISABLE),
]


def test_what_replicas_record_is_valid_and_not_when_it_is_spoilt(tmp_path: Path) -> None:
    events: list[ReplicaEvent] = []

    @live
    async def record() -> None:
        events.extend(await history(tmp_path))

    record()
    verdicts = check_replicas(events)
    assert len(verdicts) == len(ReplicaPromise)
    assert {verdict.outcome for verdict in verdicts} <= {Outcome.VALID, Outcome.NOT_EXERCISED}, verdicts
    for spoil, promise in SPOILT:
        found = {verdict.promise: verdict.outcome for verdict in check_replicas(spoil(events))}
        assert found[promise] is Outcome.INVALID, (promise, found)
