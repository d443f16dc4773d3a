"""Replicas that record what they do, in files: a history of theirs is VALID, and not when it is spoiled."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import ordercast
from ordercast.checker.replicated.panel import check_replicas
from ordercast.checker.verdict import Outcome
from ordercast.model.ids import Instant
from ordercast.model.promises import ReplicaPromise
from ordercast.replicated.chained import chained
from ordercast.replicated.quorum import Majority
from ordercast.replicated.recorded import RecordedReplica
from ordercast.replicated.replica import NotPrimary
from ordercast.replicated.structures.dictionary import SET, Dictionary, DictionaryFront
from ordercast.replicated.structures.fields import optional_bytes, value_bytes
from ordercast.trace.cluster import append_cluster_event
from ordercast.trace.evidence_folder import history_in
from ordercast.trace.recording import Recorder
from ordercast.trace.replica_records import Applied, GotPicture, Looked, ReplicaEvent, Returned
from ordercast.trace.replica_rows import REPLICAS
from tests.live.local_daemons import daemons, live

VOTERS = Majority({"kv@n1": 1, "kv@n2": 1, "kv@n3": 1})


class World:
    """Each host has a recorder of its own, as if the replicas were in programs of their own."""

    def __init__(self, addresses: dict[str, str], traces: Path) -> None:
        self._recorders = {name: Recorder(traces, name, survives_kill=True) for name in addresses}
        self._addresses = addresses
        self._stacks: dict[str, AsyncExitStack] = {}

    async def come(self, name: str) -> Used:
        stack = self._stacks[name] = AsyncExitStack()
        client = await stack.enter_async_context(ordercast.connect(self._addresses[name], name="kv"))
        tell = self._recorders[name].replica
        replica = RecordedReplica[DictionaryFront](tell, client, "accounts", chained(Dictionary), quorum=VOTERS)
        return Used(replica, await stack.enter_async_context(replica))

    async def go(self, name: str) -> None:
        await self._stacks.pop(name).aclose()

    async def close(self) -> None:
        for name in list(self._stacks):
            await self.go(name)
        for recorder in self._recorders.values():
            recorder.close()


class Used(NamedTuple):
    replica: RecordedReplica[DictionaryFront]
    front: DictionaryFront

    async def work(self, times: int) -> None:
        front = self.front
        for number in range(times):
            await front.set(f"{self.replica.life}/{number}", "x" * 100)
            await front.compare_and_set("shared", front.get("shared"), f"{self.replica.life}/{number}")
            value = await front.latest("shared")
            self.replica.look(value_bytes("shared"), optional_bytes(value))


async def history(folder: Path) -> list[ReplicaEvent]:
    """All write; one goes and comes back without memory; then the others go, and a write is refused."""
    traces = folder / "traces"
    async with daemons(folder, "n1", "n2", "n3") as addresses:
        world = World(addresses, traces)
        try:
            one, two, three = [await world.come(name) for name in ("n1", "n2", "n3")]
            await asyncio.gather(*(used.front.ready() for used in (one, two, three)))
            await asyncio.gather(*(used.work(10) for used in (one, two, three)))
            await world.go("n3")
            await one.front.ready()
            await one.work(5)
            back = await world.come("n3")
            await back.front.ready()
            await asyncio.gather(two.work(5), back.work(5))
            await world.go("n1")
            await world.go("n2")
            with pytest.raises(NotPrimary):
                while True:
                    await back.front.set("refused", b"")
            append_cluster_event(traces, "healed", alive=[])
            back.replica.say_known()
            append_cluster_event(traces, "settled")
        finally:
            await world.close()
    return history_in(traces, REPLICAS)


Spoil = Callable[[list[Any]], list[ReplicaEvent]]


def changed(kind: type, number: int, **fields: Any) -> Spoil:
    """One event of a kind, by its number among them, with other fields. Of answers, to those who changed something."""

    def spoil(events: list[Any]) -> list[ReplicaEvent]:
        found = [place for place, event in enumerate(events) if isinstance(event, kind)]
        place = [place for place in found if kind is not Returned or events[place].result][number]
        return [*events[:place], replace(events[place], **fields), *events[place + 1 :]]

    return spoil


SPOILT: list[tuple[Spoil, ReplicaPromise]] = [
    (
        changed(Applied, 20, operation=bytes([SET]) + value_bytes("other") + value_bytes("1.1")),
        ReplicaPromise.SAME_COMMANDS,
    ),
    (changed(Applied, 20, chain=1), ReplicaPromise.SAME_COMMANDS),
    (changed(GotPicture, 0, chain=1), ReplicaPromise.SAME_COMMANDS),
    (changed(Applied, 20, request=1), ReplicaPromise.ONCE),
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
