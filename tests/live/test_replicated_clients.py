"""Replicas on clients of daemons: connections that break, commands that are sent again and applied once."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

import ordercast
from ordercast.replicated import Counter, Lock, Lost, Majority, Replica, ReplicaEnded
from tests.live.local_daemons import Cable, daemons, live

VOTERS = Majority({"a@n1": 1, "b@n2": 1, "c@n2": 1})


@live
async def test_what_was_sent_before_the_connection_broke_is_applied_once(tmp_path: Path) -> None:
    async with (
        daemons(tmp_path, "n1", "n2") as addresses,
        Cable(addresses["n1"], tmp_path / "cable") as cable,
        ordercast.connect(cable.address, name="a", reconnect=True) as a,
        ordercast.connect(addresses["n2"], name="b") as b,
        ordercast.connect(addresses["n2"], name="c") as c,
        Replica(a, "count", Counter(), quorum=VOTERS) as one,
        Replica(b, "count", Counter(), quorum=VOTERS) as two,
        Replica(c, "count", Counter(), quorum=VOTERS) as three,
    ):
        await asyncio.gather(one.ready(), two.ready(), three.ready())
        numbers: list[int] = []
        for _ in range(5):
            adding = asyncio.gather(*(one.add() for _ in range(100)))
            others = asyncio.gather(*(two.add() for _ in range(20)))
            await two.synced()
            cable.cut()
            numbers += [*await adding, *await others]
        assert sorted(numbers) == list(range(1, 601))
        assert await three.latest() == 600
        await one.ready()
        assert await one.latest() == 600


@live
async def test_who_was_cut_off_has_lost_the_lock(tmp_path: Path) -> None:
    async with (
        daemons(tmp_path, "n1", "n2") as addresses,
        Cable(addresses["n1"], tmp_path / "cable") as cable,
        ordercast.connect(cable.address, name="a", reconnect=True) as a,
        ordercast.connect(addresses["n2"], name="b") as b,
        ordercast.connect(addresses["n2"], name="c") as c,
        Replica(a, "lock", Lock(), quorum=VOTERS) as one,
        Replica(b, "lock", Lock(), quorum=VOTERS) as two,
        Replica(c, "lock", Lock(), quorum=VOTERS) as three,
    ):
        await asyncio.gather(one.ready(), two.ready(), three.ready())
        with pytest.raises(Lost):
            async with one.hold() as held:
                cable.cut()
                async with two.hold() as next_held:
                    assert next_held.token > held.token
        async with one.hold() as again:
            assert again.token > next_held.token


@live
async def test_a_member_that_does_not_come_back_ends_its_replicas_with_the_reason(tmp_path: Path) -> None:
    quorum = Majority({"a@n1": 1})
    async with AsyncExitStack() as stack:
        addresses = await stack.enter_async_context(daemons(tmp_path, "n1"))
        cable = await stack.enter_async_context(Cable(addresses["n1"], tmp_path / "cable"))
        a = await stack.enter_async_context(ordercast.connect(cable.address, name="a"))
        count = await stack.enter_async_context(Replica(a, "count", Counter(), quorum=quorum))
        await count.ready()
        assert await count.add() == 1
        adding = asyncio.create_task(count.add())
        cable.cut()
        with pytest.raises(ReplicaEnded, match="the connection to the daemon broke"):
            await adding
            await count.add()
        assert count.value in (1, 2)
