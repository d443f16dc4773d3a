"""Replicas with journals on real disks: all end at once, a majority comes back, and has what was confirmed."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

import ordercast
from ordercast.cli.main import run
from ordercast.model.errors import UsageError
from ordercast.replicated import Dictionary, LastMajority, Majority, Replica, TimedOut
from ordercast.replicated.structures.dictionary import DictionaryFront
from tests.live.local_daemons import daemons, live

VOTERS = Majority({"kv@n1": 1, "kv@n2": 1, "kv@n3": 1})


async def come(stack: AsyncExitStack, address: str, journal: Path, name: str = "kv") -> DictionaryFront:
    client = await stack.enter_async_context(ordercast.connect(address, name=name))
    return await stack.enter_async_context(Replica(client, "accounts", Dictionary(), quorum=VOTERS, journal=journal))


@live
async def test_a_majority_that_comes_back_has_what_was_confirmed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with daemons(tmp_path, "n1", "n2", "n3") as addresses:
        async with AsyncExitStack() as stack:
            fronts = [await come(stack, addresses[name], tmp_path / f"j-{name}") for name in addresses]
            await asyncio.gather(*(front.ready() for front in fronts))
            await asyncio.gather(*(front.set(f"{at}", str(at)) for at, front in enumerate(fronts * 20)))
        assert run(["journal", str(tmp_path / "j-n1")]) == 0
        assert "kv@n1 in accounts" in capsys.readouterr().out
        async with AsyncExitStack() as stack:
            two = [await come(stack, addresses[name], tmp_path / f"j-{name}") for name in ("n3", "n2")]
            await asyncio.gather(*(front.ready() for front in two))
            assert {front.get(f"{at}") for at, front in enumerate(two * 30)} == {str(at) for at in range(60)}
            await two[0].set("more", "1")
            third = await come(stack, addresses["n1"], tmp_path / "j-n1")
            await third.ready()
            assert third.get("more") == "1" and third.get("7") == "7"
            with pytest.raises(UsageError, match="another replica writes"):
                await come(stack, addresses["n2"], tmp_path / "j-n1", "other")
        async with ordercast.connect(addresses["n1"], name="kv") as me:
            replica = Replica(me, "accounts", Dictionary(), quorum=VOTERS, journal=tmp_path / "j-n1")
            async with replica as front:
                with pytest.raises(TimedOut, match=r"waiting for kv@n2, kv@n3"):
                    await front.ready(timeout=1.0)
                await replica.force()
                await front.ready()
                assert front.get("more") == "1"
                await front.set("more", "2")


@live
async def test_a_journal_is_its_replicas_own_and_needs_configured_voices(tmp_path: Path) -> None:
    async with daemons(tmp_path, "n1") as addresses, ordercast.connect(addresses["n1"], name="kv") as me:
        alone = Majority({"kv@n1": 1})
        async with Replica(me, "one", Dictionary(), quorum=alone, journal=tmp_path / "j") as front:
            await front.ready()
        with pytest.raises(UsageError, match="the journal of kv@n1 in one"):
            async with Replica(me, "other", Dictionary(), quorum=alone, journal=tmp_path / "j"):
                pass
        rule = LastMajority(frozenset({"kv@n1"}))
        with pytest.raises(UsageError, match="configured voices"):
            async with Replica(me, "third", Dictionary(), quorum=rule, journal=tmp_path / "k"):
                pass
