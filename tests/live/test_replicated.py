"""Replicas on nodes of this machine, on loopback: structures, late joiners, members that go, and no quorum."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from functools import wraps
from itertools import count
from typing import Any, TypeVar

import pytest

from ordercast import Node, NodeConfig, UsageError
from ordercast.daemon.config.node import NetworkConfig
from ordercast.model.ids import MILLISECOND
from ordercast.order.ring.config import RingConfig
from ordercast.replicated.effects import Changed, Progress, Standing
from ordercast.replicated.quorum import LastMajority, Majority
from ordercast.replicated.replica import NotPrimary, Replica, ReplicaEnded
from ordercast.replicated.structures.barrier import Barrier
from ordercast.replicated.structures.base import Applied, Reloaded, Structure
from ordercast.replicated.structures.counter import Counter
from ordercast.replicated.structures.dictionary import Dictionary, DictionaryFront, KeyChanged
from ordercast.replicated.structures.leader import Leader
from ordercast.replicated.structures.lock import Lock
from ordercast.replicated.structures.queue import Queue
from tests.ports import own_ports

PATIENCE_S = 150.0
GROUP = "accounts"
_NUMBERS = count(1)
FrontT = TypeVar("FrontT")


def live(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    @wraps(test)
    def bounded(*arguments: Any, **options: Any) -> None:
        asyncio.run(asyncio.wait_for(test(*arguments, **options), PATIENCE_S))

    return bounded


class Cluster:
    """Nodes of this process, strangers to those of other tests."""

    def __init__(self) -> None:
        name = f"replicated {os.getpid()} {next(_NUMBERS)}"
        self.ring = RingConfig(cluster=name, consensus_ns=100 * MILLISECOND)
        self.network = NetworkConfig(port=own_ports())
        self.stacks: dict[str, AsyncExitStack] = {}

    async def node(self, name: str) -> Node:
        self.stacks[name] = AsyncExitStack()
        config = NodeConfig(name=f"h{name}", ring=self.ring, network=self.network)
        return await self.stacks[name].enter_async_context(Node(config, name=name))

    async def replica(self, name: str, structure: Structure[FrontT], quorum: Majority | LastMajority) -> FrontT:
        node = await self.node(name)
        replica = Replica(node, GROUP, structure, quorum=quorum, founding=True)
        return await self.stacks[name].enter_async_context(replica)

    async def replicas(self, make: Callable[[], Structure[FrontT]], names: str, voters: str = "") -> list[FrontT]:
        """All of them, with a state."""
        quorum = majority(voters or names)
        fronts = [await self.replica(name, make(), quorum) for name in names]
        await asyncio.gather(*(front.ready() for front in fronts))  # type: ignore[attr-defined]
        return fronts

    async def stop(self, name: str) -> None:
        await self.stacks.pop(name).aclose()


def majority(names: str) -> Majority:
    return Majority({f"{name}@h{name}": 1 for name in names})


@asynccontextmanager
async def cluster() -> AsyncIterator[Cluster]:
    made = Cluster()
    try:
        yield made
    finally:
        for name in list(made.stacks):
            await made.stop(name)


# The dictionary


@live
async def test_what_one_sets_all_have() -> None:
    async with cluster() as nodes:
        one, two, three = await nodes.replicas(Dictionary, "abc")
        positions = [await one.set("k", b"1"), await two.set("k", b"2"), await three.set(b"other", "text")]
        assert positions == sorted(set(positions))
        for front in (one, two, three):
            assert await front.latest("k") == b"2"
            assert front.items() == [("k", b"2"), (b"other", "text")]
            assert front.age.is_current
        assert await two.delete("k")
        assert not await three.delete("k")
        assert await one.latest("k") is None


@live
async def test_of_those_who_compare_and_set_one_succeeds() -> None:
    async with cluster() as nodes:
        fronts = await nodes.replicas(Dictionary, "abc")
        results = await asyncio.gather(*(front.compare_and_set("k", None, b"%d" % n) for n, front in enumerate(fronts)))
        (winner,) = [n for n, result in enumerate(results) if result.succeeded]
        assert {result.found for result in results if not result.succeeded} == {b"%d" % winner}


@live
async def test_many_commands_at_once_come_in_the_order_of_each() -> None:
    async with cluster() as nodes:
        fronts = await nodes.replicas(Dictionary, "ab")
        watch = fronts[0].watch()

        async def write(front: DictionaryFront, name: str) -> list[int]:
            return await asyncio.gather(*(front.set(f"{name}{n}", b"x") for n in range(3000)))

        written = await asyncio.gather(write(fronts[0], "a"), write(fronts[1], "b"))
        assert all(positions == sorted(positions) for positions in written)
        await asyncio.gather(*(front.synced() for front in fronts))
        assert fronts[0].items() == fronts[1].items()
        assert len(fronts[0]) == 6000
        events = [await anext(watch) for _ in range(6000)]
        told = [event.origin.position for event in events if isinstance(event, Applied)]
        assert told == sorted([*written[0], *written[1]])


@live
async def test_changes_are_told_in_order() -> None:
    async with cluster() as nodes:
        one, two = await nodes.replicas(Dictionary, "ab")
        changes = one.changes()
        first = await two.set("k", b"1")
        await two.compare_and_set("k", b"0", b"9")
        await one.compare_and_set("k", b"1", b"2")
        await two.delete("k")
        seen = [await anext(changes) for _ in range(3)]
        assert seen[0] == KeyChanged("k", b"1", first, "b@hb")
        assert [change.value for change in seen if isinstance(change, KeyChanged)] == [b"1", b"2", None]


# Joining and going


@live
async def test_a_late_joiner_gets_the_state_and_what_follows() -> None:
    async with cluster() as nodes:
        one, two = await nodes.replicas(Dictionary, "ab")
        for n in range(50):
            await one.set(f"key {n}", b"%d" % n * 5000)
        writing = asyncio.create_task(write_on(two, 200))
        late = await nodes.replica("c", Dictionary(), majority("ab"))
        watch = late.watch()
        await late.ready()
        await writing
        await late.synced()
        assert late.items() == one.items()
        assert await late.set("from the late one", b"x")
        assert await one.latest("from the late one") == b"x"
        events = [await anext(watch)]
        while not (isinstance(events[-1], Changed) and "c@hc" in events[-1].holders):
            events.append(await anext(watch))
        told = [event for event in events if isinstance(event, Progress)]
        assert told[-1].is_done and told[-1].size > 0
        assert any(isinstance(event, Reloaded) for event in events)
        assert events[-1].standing is Standing.HOLDER


async def write_on(front: DictionaryFront, times: int) -> None:
    for n in range(times):
        await front.set(f"more {n}", b"x" * 100)


@live
async def test_a_minority_serves_reads_and_refuses_writes() -> None:
    async with cluster() as nodes:
        one, _, _ = await nodes.replicas(Dictionary, "abc")
        await one.set("k", b"1")
        watch = one.watch()
        await nodes.stop("b")
        await one.synced()
        await nodes.stop("c")
        while True:
            event = await anext(watch)
            if isinstance(event, Changed) and event.members == ("a@ha",) and event.holders:
                break
        with pytest.raises(NotPrimary, match="are no quorum") as caught:
            await one.set("k", b"2")
        assert not caught.value.is_uncertain
        with pytest.raises(NotPrimary):
            await one.latest("k")
        assert one.get("k") == b"1"
        assert not one.age.is_current
        again = await nodes.replica("b", Dictionary(), majority("abc"))
        assert again.get("k") is None


@live
async def test_a_replica_that_comes_back_is_loaded_and_counts_again() -> None:
    async with cluster() as nodes:
        one, _, three = await nodes.replicas(Dictionary, "abc")
        await one.set("k", b"1")
        await nodes.stop("b")
        await one.set("k", b"2")
        again = await nodes.replica("b", Dictionary(), majority("abc"))
        await again.ready()
        assert again.get("k") == b"2"
        await nodes.stop("c")
        await one.ready()
        assert await again.set("k", b"3")
        assert await one.latest("k") == b"3"
        assert three.get("k") == b"2"
        with pytest.raises(ReplicaEnded):
            await three.set("k", b"4")


@live
async def test_the_last_majority_may_shrink_to_one() -> None:
    async with cluster() as nodes:
        quorum = LastMajority(frozenset({"a@ha", "b@hb", "c@hc"}))
        fronts = [await nodes.replica(name, Dictionary(), quorum) for name in "abc"]
        await asyncio.gather(*(front.ready() for front in fronts))
        await fronts[2].set("k", b"1")
        for name in "cb":
            await nodes.stop(name)
            await fronts[0].ready()
        assert await fronts[0].set("k", b"2")


@live
async def test_one_member_carries_several_replicas() -> None:
    async with cluster() as nodes:
        node = await nodes.node("a")
        quorum = majority("a")
        async with (
            Replica(node, "accounts", Dictionary(), quorum=quorum) as accounts,
            Replica(node, "visits", Counter(), quorum=quorum) as visits,
        ):
            await asyncio.gather(accounts.ready(), visits.ready())
            await accounts.set("k", b"1")
            assert await visits.add(5) == 5
            with pytest.raises(UsageError, match="already"):
                await Replica(node, "visits", Counter(), quorum=quorum).__aenter__()
            assert await visits.add(-7) == -2
        async with Replica(node, "visits", Counter(), quorum=quorum) as visits:
            await visits.ready()
            assert await visits.add() == 1


@live
async def test_nothing_is_left_behind() -> None:
    before = asyncio.all_tasks()
    async with cluster() as nodes:
        one, _ = await nodes.replicas(Dictionary, "ab")
        await one.set("k", b"1")
    assert asyncio.all_tasks() == before


# The other structures


@live
async def test_those_who_count_get_different_numbers() -> None:
    async with cluster() as nodes:
        fronts = await nodes.replicas(Counter, "abc")
        numbers = await asyncio.gather(*(fronts[n % 3].add() for n in range(30)))
        assert sorted(numbers) == list(range(1, 31))
        assert [await front.latest() for front in fronts] == [30] * 3


@live
async def test_a_lock_goes_from_one_to_the_next_in_order() -> None:
    async with cluster() as nodes:
        one, two, three = await nodes.replicas(Lock, "abc")
        first = await one.acquire()
        waiting = []
        for number, front in enumerate((two, three), 1):
            waiting.append(asyncio.create_task(front.acquire()))
            await seen(one, lambda number=number: len(one.machine.waiters) == number)  # type: ignore[misc]
        assert first.is_held
        assert await one.release(first)
        second = await waiting[0]
        assert not waiting[1].done()
        assert await two.release(second)
        third = await waiting[1]
        assert first.token < second.token < third.token
        assert not await two.release(second)


async def seen(front: Any, is_so: Callable[[], bool]) -> None:
    """The copy of this front is as wanted."""
    watch = front.watch()
    while not is_so():
        await anext(watch)


@live
async def test_who_is_gone_has_lost_the_lock() -> None:
    async with cluster() as nodes:
        one, two, _ = await nodes.replicas(Lock, "abc")
        held = await one.acquire()
        waiting = asyncio.create_task(two.acquire())
        await seen(one, lambda: len(one.machine.waiters) == 1)
        await nodes.stop("a")
        assert (await waiting).token > held.token


@live
async def test_who_does_not_want_the_lock_any_more_is_passed_over() -> None:
    async with cluster() as nodes:
        one, two = await nodes.replicas(Lock, "ab")
        async with one.hold():
            waiting = asyncio.create_task(two.acquire())
            await seen(one, lambda: len(one.machine.waiters) == 1)
            waiting.cancel()
            await seen(one, lambda: not one.machine.waiters)
        async with asyncio.timeout(PATIENCE_S), one.hold() as held:
            assert held.is_held
        with pytest.raises(ZeroDivisionError):
            async with one.hold():
                _ = 1 / 0
        async with two.hold() as held:
            assert held.is_held


@live
async def test_the_next_candidate_leads_when_the_leader_goes() -> None:
    async with cluster() as nodes:
        one, two, three = await nodes.replicas(Leader, "abc")
        await one.campaign()
        standing = asyncio.create_task(two.campaign())
        first = await three.changed(None)
        assert first is not None and first.name == "a@ha"
        await nodes.stop("a")
        held = await standing
        second = await three.changed(first)
        assert second is not None and second == ("b@hb", held.token)
        losing = asyncio.create_task(two.lost(held))
        assert await two.resign(held)
        await losing
        assert two.leader is None


@live
async def test_what_a_dead_worker_had_taken_is_done_by_another() -> None:
    async with cluster() as nodes:
        one, two, three = await nodes.replicas(Queue, "abc")
        taking = asyncio.create_task(two.take())
        numbers = [await one.put(f"job {n}") for n in range(3)]
        lost = await taking
        assert (lost.number, lost.value) == (numbers[0], "job 0")
        done = await three.take()
        assert done.value == "job 1"
        assert await three.acknowledge(done)
        assert not await three.acknowledge(done)
        await nodes.stop("b")
        await seen(three, lambda: len(three) == 2)
        again = await three.take()
        assert again.number == lost.number
        assert await three.give_back(again)
        assert (await three.take()).number == lost.number


@live
async def test_a_barrier_opens_for_all_at_once() -> None:
    async with cluster() as nodes:
        fronts = await nodes.replicas(lambda: Barrier(3), "abc")
        for times in (1, 2):
            assert await asyncio.gather(*(front.wait() for front in fronts)) == [times] * 3
        gone = asyncio.create_task(fronts[0].wait())
        await seen(fronts[1], lambda: fronts[1].waiting == 1)
        gone.cancel()
        await seen(fronts[1], lambda: fronts[1].waiting == 0)
