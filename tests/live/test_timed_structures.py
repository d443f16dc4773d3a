"""What ends with time, and what a dictionary can be asked: on live replicas."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import islice
from typing import Any

import pytest

from ordercast import Node, UsageError
from ordercast.replicated import Dictionary, KeyChanged, Lock, Lost, Majority, Queue, Reloaded, Replica, TimedOut
from ordercast.replicated import told as told_module
from ordercast.replicated.structures.base import Structure
from tests.live.local_daemons import live
from tests.live.stage import alone


@asynccontextmanager
async def replica(structure: Structure[Any]) -> AsyncIterator[Any]:
    async with Node(alone(), name="me") as me, Replica(me, "g", structure, quorum=Majority({me.name: 1})) as front:
        await front.ready(timeout=20)
        yield front


async def taken(changes: AsyncIterator[Any], count: int) -> list[tuple[object, object]]:
    found: list[tuple[object, object]] = []
    async for change in changes:
        assert isinstance(change, KeyChanged)
        found.append((change.key, change.value))
        if len(found) == count:
            return found
    raise AssertionError("it has ended")


@live
async def test_a_dictionary_is_read_by_key_prefix_and_range_and_several_keys_change_at_once() -> None:
    async with replica(Dictionary()) as accounts:
        for key in ("b/2", "a/1", "b/1", b"raw", "c"):
            await accounts.set(key, "1")
        assert list(accounts) == ["b/2", "a/1", "b/1", b"raw", "c"] == accounts.keys()
        assert accounts["a/1"] == "1" and accounts.values() == ["1"] * 5
        with pytest.raises(KeyError):
            accounts["nobody"]
        assert [key for key, _ in accounts.prefix("b/")] == ["b/1", "b/2"]
        assert [key for key, _ in accounts.range("a/1", "b/2")] == ["a/1", "b/1"]
        assert [key for key, _ in accounts.range(b"")] == [b"raw"]
        with pytest.raises(UsageError, match="from bytes to bytes, or from str to str"):
            accounts.range("a", b"b")
        await accounts.delete("b/1")
        await accounts.set("b/0", "1")
        assert [key for key, _ in accounts.prefix("b/")] == ["b/0", "b/2"]
        refused = await accounts.compare_and_set_many({"c": "1", "d": "1"}, {"c": None})
        assert (refused.succeeded, refused.found, "c" in accounts) == (False, {"c": "1", "d": None}, True)
        done = await accounts.compare_and_set_many({"c": "1", "d": None}, {"c": None, "d": "2"})
        assert done.succeeded and "c" not in accounts and accounts["d"] == "2"


@live
async def test_changes_are_told_from_a_position_on_as_far_as_they_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(told_module, "PAST_MAX", 4)
    async with replica(Dictionary()) as accounts:
        places = [await accounts.set("a", str(number)) for number in range(4)]
        await accounts.compare_and_set_many({}, {"a": None, "b": "x"})
        assert await taken(accounts.changes(after=places[1]), 4) == [("a", "2"), ("a", "3"), ("a", None), ("b", "x")]
        assert isinstance(await anext(accounts.changes(after=0)), Reloaded)


@live
async def test_keys_go_with_their_lease_unless_it_is_kept_or_they_are_set_without() -> None:
    async with replica(Dictionary()) as accounts:
        lease = await accounts.lease(0.01)
        changes = accounts.changes()
        for key in ("a", "b", "c"):
            await accounts.set(key, "1", lease=lease)
        await accounts.set("b", "mine")
        assert await taken(changes, 6) == [("a", "1"), ("b", "1"), ("c", "1"), ("b", "mine"), ("a", None), ("c", None)]
        assert not await accounts.keep(lease) and not await accounts.revoke(lease)
        with pytest.raises(UsageError, match="is over: ask for another one"):
            await accounts.set("a", "1", lease=lease)
        async with accounts.leased(0.3) as kept:
            await accounts.set("d", "1", lease=kept)
            for _ in islice(iter(int, 1), 4):  # more ticks than the lease has
                await taken_tick(accounts)
            assert accounts["d"] == "1"
        assert await taken(changes, 2) == [("d", "1"), ("d", None)]
        with pytest.raises(UsageError, match="-1 is no time: give seconds"):
            await accounts.lease(-1)


async def taken_tick(front: Any) -> None:
    before = front.machine.ticks
    async for _ in front.watch():
        if front.machine.ticks > before:
            return


@live
async def test_a_lock_that_is_not_renewed_goes_to_the_next() -> None:
    async with replica(Lock()) as lock:
        held = await lock.acquire(ttl=0.01)
        assert await lock.renew(held)
        with pytest.raises(TimedOut):
            await lock.acquire(timeout=0.001)
        other = await lock.acquire(timeout=20)
        assert other.token > held.token and not held.is_held and not await lock.renew(held)
        assert await lock.release(other)
        with pytest.raises(Lost, match="its time was over"):
            async with lock.hold(ttl=0.01) as short:
                await lock.lost(short, timeout=20)


@live
async def test_jobs_come_later_come_back_and_die() -> None:
    async with replica(Queue()) as jobs:
        number = await jobs.put("late", delay=0.01, attempts=2)
        assert (len(jobs), jobs.later) == (0, 1)
        first = await jobs.take(visibility=0.01, timeout=20)
        assert (first.number, first.value, first.attempt) == (number, "late", 1)
        assert await jobs.extend(first)
        second = await jobs.take(timeout=20)  # since the first was too slow
        assert second.attempt == 2 and not await jobs.acknowledge(first)
        assert await jobs.give_back(second)
        assert jobs.dead == [(number, "late")] and len(jobs) == 0
        assert await jobs.revive(number) and not await jobs.revive(number)
        assert await jobs.acknowledge(await jobs.take(timeout=20))
        await jobs.put("bad", attempts=1)
        await jobs.give_back(await jobs.take(timeout=20))
        assert await jobs.discard(jobs.dead[0][0]) and jobs.dead == []
        with pytest.raises(UsageError, match="cannot be tried 0 times"):
            await jobs.put("never", attempts=0)
