"""Others at the group of live replicas: who listens, who joins and says nothing, who speaks without being a member; and
replicas that lose their connection."""

from __future__ import annotations

import asyncio
import os
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

import ordercast
from ordercast import NodeConfig
from ordercast.daemon.config.node import NetworkConfig
from ordercast.groups.names import meeting_of
from ordercast.model.errors import UsageError
from ordercast.order.ring.config import RingConfig
from ordercast.replicated import Changed, Dictionary, Leader, Majority, NotPrimary, Patience, Replica, ReplicaEnded
from ordercast.replicated.chained import chained
from ordercast.replicated.effects import Reason
from ordercast.replicated.recorded import RecordedReplica
from ordercast.replicated.structures.dictionary import DictionaryFront
from ordercast.replicated.wire import Force, encode_force
from ordercast.trace.replica_records import Believed, ReplicaEvent, StreamCut
from tests.live.local_daemons import Cable, daemons, live
from tests.ports import own_ports

VOTERS = Majority({"a@n1": 1, "b@n1": 1, "c@n2": 1})
HASTY = Patience(silence_s=0.05)


async def three(stack: AsyncExitStack, folder: Path) -> tuple[dict[str, str], list[DictionaryFront]]:
    addresses = await stack.enter_async_context(daemons(folder, "n1", "n2"))
    fronts = []
    for voter in sorted(VOTERS.weights):
        name, _, daemon = voter.partition("@")
        member = await stack.enter_async_context(ordercast.connect(addresses[daemon], name=name))
        replica = Replica(member, "accounts", Dictionary(), quorum=VOTERS, patience=HASTY)
        fronts.append(await stack.enter_async_context(replica))
    await asyncio.gather(*(front.ready() for front in fronts))
    return addresses, fronts


@live
async def test_who_listens_to_the_public_name_sees_nothing_and_stops_nothing(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        addresses, fronts = await three(stack, tmp_path)
        listener = await stack.enter_async_context(ordercast.connect(addresses["n1"]))
        await listener.join("accounts")
        assert await listener.members("accounts") == (listener.name,)
        for number in range(10):
            await fronts[number % 3].set("k", b"%d" % number)
        await listener.send("accounts", b"the only one")
        stream = aiter(listener)
        views = await anext(stream)
        message = await anext(stream)
        assert isinstance(views, ordercast.View) and isinstance(message, ordercast.Message)
        assert message.data == b"the only one"


@live
async def test_others_can_neither_join_nor_speak_where_replicas_meet(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        addresses, fronts = await three(stack, tmp_path)
        mallory = await stack.enter_async_context(ordercast.connect(addresses["n1"], name="mallory"))
        meeting = meeting_of("accounts")
        with pytest.raises(
            UsageError, match=r"^the group \$replica/accounts cannot be joined: the replicas of accounts"
        ):
            await mallory.join(meeting)
        with pytest.raises(UsageError, match=r"^only its members send to the group \$replica/accounts"):
            await mallory.send(meeting, b"force")
        assert len(await mallory.members(meeting)) == 3
        await fronts[0].set("k", b"v")


@live
async def test_a_member_that_says_nothing_is_excluded_by_the_others(tmp_path: Path) -> None:
    """As a clumsy client of its own make would do, or a replica that hangs."""
    async with AsyncExitStack() as stack:
        addresses, fronts = await three(stack, tmp_path)
        silent = await stack.enter_async_context(ordercast.connect(addresses["n2"], name="silent"))
        await silent.meet(meeting_of("accounts"))
        await fronts[0].set("k", b"v")
        for front in fronts:
            assert await front.latest("k") == b"v"
            assert front.status is not None and front.status.excluded == ("silent@n2",)


@live
async def test_force_counts_from_replicas_alone(tmp_path: Path) -> None:
    """Of one of three, which is left alone, no command is taken, whatever a member says that is no replica."""
    async with AsyncExitStack() as stack:
        addresses = await stack.enter_async_context(daemons(tmp_path, "n1"))
        member = await stack.enter_async_context(ordercast.connect(addresses["n1"], name="a"))
        replica = Replica(member, "accounts", Dictionary(), quorum=VOTERS, patience=HASTY)
        alone = await stack.enter_async_context(replica)
        mallory = await stack.enter_async_context(ordercast.connect(addresses["n1"], name="mallory"))
        watch = alone.watch()
        await mallory.meet(meeting_of("accounts"))
        async for event in mallory:
            if isinstance(event, ordercast.View):
                view = event.id
                break
        async for event in watch:
            if isinstance(event, Changed) and event.reason is Reason.NO_STATE and event.excluded == ("mallory@n1",):
                break
        await mallory.send(meeting_of("accounts"), encode_force(Force(view)), ordercast.Service.SAFE, confirm=True)
        with pytest.raises(
            NotPrimary, match="waiting for b@n1, c@n2: all who must be there at a beginning are a@n1, b@n1"
        ):
            await alone.set("k", b"v")
        await replica.force()
        await alone.set("k", b"v")


@live
async def test_a_leader_whose_connection_breaks_knows_at_once_and_is_back_by_itself(tmp_path: Path) -> None:
    quorum = Majority({"a@n1": 1})
    async with (
        daemons(tmp_path, "n1") as addresses,
        Cable(addresses["n1"], tmp_path / "cable") as cable,
        ordercast.connect(cable.address, name="a", reconnect=True) as me,
        Replica(me, "lead", Leader(), quorum=quorum) as lead,
    ):
        await lead.ready()
        held = await lead.campaign()
        seen: list[tuple[bool, bool, bool]] = []
        me.on_loss(lambda why: seen.append((held.is_held, lead.age.is_current, lead.leader is None)))
        cable.cut()
        await lead.lost(held)
        assert seen == [(False, False, True)]
        assert (await lead.campaign(timeout=60)).token > held.token
        assert not held.is_held


@live
async def test_a_node_that_ends_ends_what_its_replicas_believe(tmp_path: Path) -> None:
    ring = RingConfig(cluster=f"node that ends {os.getpid()}")
    config = NodeConfig(name="n1", ring=ring, network=NetworkConfig(port=own_ports()))
    async with ordercast.Node(config, name="a") as node:
        quorum = Majority({node.name: 1})
        async with Replica(node, "lead", Leader(), quorum=quorum) as lead:
            await lead.ready()
            held = await lead.campaign()
            losing = asyncio.create_task(lead.lost(held))
            await asyncio.sleep(0)
            await node.close()
            await losing
            assert not held.is_held and not lead.age.is_current and lead.leader is None
            with pytest.raises(ReplicaEnded):
                await lead.campaign()


@live
async def test_what_a_recorded_replica_believes_when_it_loses_its_connection_is_recorded(tmp_path: Path) -> None:
    events: list[ReplicaEvent] = []
    async with (
        daemons(tmp_path, "n1") as addresses,
        Cable(addresses["n1"], tmp_path / "cable") as cable,
        ordercast.connect(cable.address, name="a", reconnect=True) as me,
    ):
        quorum = Majority({"a@n1": 1})
        replica = RecordedReplica[DictionaryFront](events.append, me, "accounts", chained(Dictionary), quorum=quorum)
        async with replica as accounts:
            await accounts.ready()
            await accounts.set("k", b"v")
            replica.look(b"k", b"v")
            cable.cut()
            await accounts.set("k", b"w")
            await accounts.ready()
    first_cut = next(at for at, event in enumerate(events) if isinstance(event, StreamCut))
    beliefs = [event for event in events[first_cut:] if isinstance(event, Believed)]
    assert beliefs and not beliefs[0].is_current
    assert any(isinstance(event, Believed) and event.is_current for event in events[:first_cut])
