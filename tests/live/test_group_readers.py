"""Groups of one member that are read apart: on clients and embedded nodes, in both forms, and beside a replica."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from ordercast import Batch, ConnectionLost, Left, Message, Node, Reconnected, ThreadedNode, UsageError, View, connect
from ordercast.api.group_reader import GroupReader
from ordercast.api.member import Member
from ordercast.replicated import Counter, Dictionary, Majority, Replica
from tests.live.local_daemons import Cable, daemons, live
from tests.live.stage import alone

FORMS = ("client", "node", "threaded")


@asynccontextmanager
async def member(form: str, folder: Path) -> AsyncIterator[Member]:
    if form == "client":
        async with daemons(folder, "n1") as at, connect(at["n1"], name="me") as client:
            yield client
    elif form == "node":
        async with Node(alone(), name="me") as node:
            yield node
    else:
        async with ThreadedNode(alone(), name="me") as threaded:
            yield threaded


async def data_of(reader: GroupReader | Member, count: int) -> list[bytes]:
    found: list[bytes] = []
    async for event in reader:
        if isinstance(event, Message):
            found.append(event.data)
            if len(found) == count:
                break
    return found


@live
@pytest.mark.parametrize("form", FORMS)
async def test_events_are_taken_one_by_one_within_a_time_and_nothing_is_lost_by_a_timeout(
    tmp_path: Path, form: str
) -> None:
    async with member(form, tmp_path) as me:
        async with me.group("orders") as orders:
            for reader in (me, orders):
                if reader is me:
                    await me.join("chat")
                assert isinstance(await anext(reader), View)
                with pytest.raises(TimeoutError):
                    await reader.receive(timeout=0.001)
                group = "chat" if reader is me else "orders"
                await me.send_many(group, [b"one", b"two", b"three"])
                found = [await reader.receive(timeout=10), await anext(reader), await reader.receive()]
                assert [event.data for event in found if isinstance(event, Message)] == [b"one", b"two", b"three"]
            assert repr(orders) == f"<GroupReader orders of {me.name}>"
            assert repr(me) == f"<{type(me).__name__} {me.name} in chat, orders>"
        assert await orders.receive() is None
    if form == "client":
        assert repr(me) == f"<{type(me).__name__} {me.name}, closed>"
        with pytest.raises(UsageError, match="the client was closed: connect again"):
            await me.__aenter__()  # type: ignore[attr-defined]


@live
@pytest.mark.parametrize("form", FORMS)
async def test_each_group_is_read_apart_and_the_rest_by_the_member(tmp_path: Path, form: str) -> None:
    async with member(form, tmp_path) as me:
        await me.join("chat")
        async with me.group("orders") as orders, me.group("prices") as prices:
            for number in range(20):
                for group in ("orders", "prices", "chat"):
                    await me.send(group, b"%s %d" % (group.encode(), number))
            await me.send(("orders", "prices", "chat"), b"to all")
            expected = {
                group: [b"%s %d" % (group, n) for n in range(20)] + [b"to all"] for group in (b"orders", b"chat")
            }
            assert await data_of(me, 21) == expected[b"chat"], "in any order of reading"
            assert await data_of(orders, 21) == expected[b"orders"]
            assert len(await data_of(prices, 21)) == 21
        assert me.joined == {"chat"}
        await me.send(("orders", "chat"), b"after")
        assert await data_of(me, 1) == [b"after"]
        async with me.group("orders") as orders:
            first = await anext(aiter(orders))
            assert isinstance(first, View) and first.members == (me.name,)


@live
@pytest.mark.parametrize("form", FORMS)
async def test_a_member_that_carries_replicas_reads_its_groups_too(tmp_path: Path, form: str) -> None:
    async with member(form, tmp_path) as me:
        rule = Majority({me.name: 1})
        async with (
            Replica(me, "accounts", Dictionary(), quorum=rule) as accounts,
            me.group("orders") as orders,
            Replica(me, "tally", Counter(), quorum=rule) as tally,
        ):
            await me.join("chat")
            await accounts.ready()
            await tally.ready()
            for number in range(10):
                await accounts.set(f"a{number}", b"1")
                await tally.add(1)
                await me.send("orders", b"%d" % number)
                await me.send("chat", b"%d" % number)
            assert await data_of(orders, 10) == await data_of(me, 10) == [b"%d" % number for number in range(10)]
            assert (tally.value, accounts.get("a9")) == (10, b"1")
            with pytest.raises(UsageError, match="somebody else reads the group orders"):
                async with me.group("orders"):
                    pass


@live
async def test_a_replica_needs_nobody_to_read_what_is_sent_to_its_member(tmp_path: Path) -> None:
    async with (
        daemons(tmp_path, "n1") as at,
        connect(at["n1"], name="me") as me,
        connect(at["n1"]) as other,
        Replica(me, "tally", Counter(), quorum=Majority({me.name: 1})) as tally,
    ):
        await tally.ready()
        for _ in range(8):
            await other.send(me.name, bytes(1 << 20))  # twice what a client may have unread
        assert await tally.add(1) == 1


@live
async def test_a_connection_that_breaks_is_told_to_every_reader(tmp_path: Path) -> None:
    async with daemons(tmp_path, "n1") as at, Cable(at["n1"], tmp_path / "cable") as cable:
        async with connect(cable.address, name="me", reconnect=True) as me, me.group("orders") as orders:
            await me.join("chat")
            cable.cut()
            for reader in (orders, me):
                async for event in reader:
                    if isinstance(event, Reconnected):
                        assert event.joined == ("chat", "orders")
                        break
            await me.send("orders", b"again")
            assert await data_of(orders, 1) == [b"again"]
        async with connect(cable.address, name="you") as you:
            with pytest.raises(ConnectionLost):
                async with you.group("orders") as orders:
                    cable.cut()
                    async for _ in orders:
                        pass


@live
async def test_the_blocking_form_reads_groups_apart_too(tmp_path: Path) -> None:
    def play(address: str) -> None:
        with connect(address, name="me") as me:
            me.join("chat")
            with me.group("orders") as orders, me.group("prices") as prices:
                me.send_many("orders", [b"1", b"2", b"3"])
                me.send("chat", b"hello")
                view, one = orders.receive(30), orders.receive(30)
                assert isinstance(view, View) and isinstance(one, Message) and one.data == b"1"
                rest = next(orders.batches())
                assert isinstance(rest, Batch) and rest.data == [b"2", b"3"]
                assert isinstance(prices.receive(30), View)
                with pytest.raises(TimeoutError):
                    prices.receive(0.01)
                for event in me:
                    if isinstance(event, Message):
                        assert event.data == b"hello"
                        break
            assert orders.receive() is None, "the block is over"
            me.leave("chat")
            assert isinstance(me.receive(30), Left)

    async with daemons(tmp_path, "n1") as at:
        await asyncio.to_thread(play, at["n1"])
