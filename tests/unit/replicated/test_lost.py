"""A replica whose member has lost the stream knows it at once, and says so; and calls that do not wait for ever."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest

from ordercast.groups.names import meeting_of
from ordercast.model.events import Reconnected
from ordercast.replicated import Changed, Counter, Dictionary, Leader, Lock, Majority, Replica
from ordercast.replicated.arrival import Patience
from ordercast.replicated.desk import SUBMITTED_MAX
from ordercast.replicated.effects import Reason
from ordercast.replicated.replica import NotPrimary, ReplicaEnded, TimedOut
from ordercast.replicated.structures.claims import Held
from ordercast.replicated.structures.counter import CounterFront
from ordercast.replicated.structures.leader import LeaderFront
from ordercast.replicated.structures.lock import LockFront

from .hub import Hub, HubMember
from .test_failures import bounded

ALONE = Majority({"a": 1})
THREE = Majority(dict.fromkeys("abc", 1))
WHY = "the connection to the daemon broke: it was closed"
SOON = 0.01  # seconds: far less than anything takes that never comes


async def led(stack: AsyncExitStack) -> tuple[HubMember, LeaderFront]:
    member = HubMember(Hub(), "a")
    front = await stack.enter_async_context(Replica(member, "g", Leader(), quorum=ALONE))
    await front.ready()
    return member, front


def beliefs(held: Held, front: LeaderFront) -> tuple[bool, bool, bool]:
    return held.is_held, front.age.is_current, front.leader is not None


@bounded
async def test_a_leader_that_lost_the_stream_knows_at_once() -> None:
    async with AsyncExitStack() as stack:
        member, front = await led(stack)
        held = await front.campaign()
        losing = asyncio.create_task(front.lost(held))
        await asyncio.sleep(0)
        assert beliefs(held, front) == (True, True, True)
        watch = front.watch()
        member.lose(WHY)
        assert beliefs(held, front) == (False, False, False) and front.holder is None
        await losing
        await front.lost(held)
        event = await anext(watch)
        assert isinstance(event, Changed) and event.reason is Reason.LOST and event.note == WHY
        assert event.sentence.endswith(WHY) and front.status == event and not event.is_primary


@bounded
async def test_who_is_back_does_not_hold_what_it_held_before() -> None:
    async with AsyncExitStack() as stack:
        member, front = await led(stack)
        held = await front.campaign()
        member.lose(WHY)
        member.come_back()
        await front.ready()
        assert not held.is_held
        again = await front.campaign()
        assert again.is_held and again.token > held.token and not held.is_held
        assert front.leader is not None and front.leader.token == again.token


@bounded
async def test_what_came_before_the_loss_and_was_not_read_makes_nobody_current() -> None:
    hub = Hub()
    async with AsyncExitStack() as stack:
        member = HubMember(hub, "a")
        front: CounterFront = await stack.enter_async_context(Replica(member, "g", Counter(), quorum=ALONE))
        await front.ready()
        hub.part(meeting_of("g"), [member])  # a view that is in the stream and not read
        member.lose(WHY)
        for _ in range(10):
            await asyncio.sleep(0)
            assert not front.age.is_current
        member.lose("once more")  # before it has read that it was back
        member.tell(Reconnected("a", (), 0, None, WHY))
        hub.part(meeting_of("g"), [member])
        for _ in range(10):
            await asyncio.sleep(0)
            assert not front.age.is_current
        hub.forget(meeting_of("g"), member)
        member.come_back()
        await front.ready()


@bounded
async def test_a_command_that_waits_while_the_stream_is_lost_says_that_it_may_take_effect() -> None:
    async with AsyncExitStack() as stack:
        member = HubMember(Hub(), "a")
        front: CounterFront = await stack.enter_async_context(Replica(member, "g", Counter(), quorum=ALONE))
        await front.ready()
        member.lose(WHY)
        with pytest.raises(TimedOut, match=f"within 0.01 s; the command may yet take effect .*{WHY}") as caught:
            await front.add(timeout=SOON)
        assert caught.value.is_uncertain and isinstance(caught.value, TimeoutError)
        with pytest.raises(TimedOut, match=WHY) as reading:
            await front.latest(timeout=SOON)
        assert not reading.value.is_uncertain
        adding = asyncio.create_task(front.add())
        member.come_back()
        assert await adding in (1, 2) and await front.latest() == 2  # each was applied once


@bounded
async def test_calls_in_flight_when_the_member_ends_say_that_they_may_have_been_applied() -> None:
    async with AsyncExitStack() as stack:
        member = HubMember(Hub(), "a")
        front = await stack.enter_async_context(Replica(member, "g", Lock(), quorum=ALONE))
        await front.ready()
        held = await front.acquire()
        losing = asyncio.create_task(front.lost(held))
        releasing = asyncio.create_task(front.release(held))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        member.end(ConnectionError(WHY))
        await losing
        with pytest.raises(ReplicaEnded, match=f"{WHY}; the command had no answer yet, and may") as caught:
            await releasing
        assert caught.value.is_uncertain and not held.is_held and not front.age.is_current
        with pytest.raises(ReplicaEnded, match=WHY) as late:
            await front.acquire()
        assert not late.value.is_uncertain


@bounded
async def test_who_is_closed_is_neither_current_nor_holds() -> None:
    async with AsyncExitStack() as stack:
        _, front = await led(stack)
        held = await front.campaign()
        await stack.aclose()
        assert not held.is_held and not front.age.is_current and front.leader is None


@bounded
async def test_who_does_not_get_the_lock_in_time_does_not_wait_for_it() -> None:
    hub = Hub()
    async with AsyncExitStack() as stack:
        fronts: list[LockFront] = [
            await stack.enter_async_context(Replica(HubMember(hub, name), "g", Lock(), quorum=THREE)) for name in "abc"
        ]
        await asyncio.gather(*(front.ready() for front in fronts))
        held = await fronts[0].acquire()
        with pytest.raises(TimedOut, match=r"^g: no answer within 0.01 s \("):
            await fronts[1].acquire(timeout=SOON)
        await fronts[1].synced()
        assert await fronts[0].release(held)
        await fronts[2].acquire(timeout=10)


@bounded
async def test_waiting_and_refusals_name_who_is_missing() -> None:
    hub = Hub()
    missing = "waiting for c: all who must be there at a beginning are a, b, c; force\\(\\) begins without"
    async with AsyncExitStack() as stack:
        replicas = [Replica(HubMember(hub, name), "g", Dictionary(), quorum=THREE) for name in "ab"]
        a, b = [await stack.enter_async_context(replica) for replica in replicas]
        watch = a.watch()
        with pytest.raises(TimedOut, match=missing):
            await a.ready(timeout=SOON)
        with pytest.raises(NotPrimary, match=f"g has no primary component here: .*{missing}"):
            await b.set("k", b"v")
        assert a.status is not None and a.status.missing == ("c",)
        await replicas[0].force()
        await asyncio.gather(a.ready(), b.ready())
        await b.set("k", b"v")
        changes = [await anext(watch) for _ in range(1)]
        assert isinstance(changes[0], Changed)


@bounded
async def test_a_member_that_says_nothing_costs_the_others_their_patience_once() -> None:
    hub, patience = Hub(), Patience(silence_s=SOON)
    async with AsyncExitStack() as stack:
        fronts = [
            await stack.enter_async_context(
                Replica(HubMember(hub, name), "g", Dictionary(), quorum=THREE, patience=patience)
            )
            for name in "abc"
        ]
        await asyncio.gather(*(front.ready() for front in fronts))
        await HubMember(hub, "stranger").meet(meeting_of("g"))
        await fronts[0].set("k", b"v")
        assert fronts[0].status is not None and fronts[0].status.excluded == ("stranger",)
        assert await fronts[2].latest("k") == b"v"


@bounded
async def test_a_claim_that_had_no_room_before_the_stream_was_lost_does_not_keep_the_lock() -> None:
    """It is ordered behind the word that one is back, so it is granted: and taken by nobody."""
    async with AsyncExitStack() as stack:
        member = HubMember(Hub(), "a")
        lock: LockFront = await stack.enter_async_context(Replica(member, "g", Lock(), quorum=ALONE))
        await lock.ready()
        member.lose(WHY)
        waiting = [asyncio.create_task(lock.acquire()) for _ in range(SUBMITTED_MAX + 1)]
        await asyncio.sleep(0)
        for task in waiting[:-2]:
            task.cancel()
        member.come_back()
        for task in waiting[-2:]:
            assert await lock.release(await task)


async def three_locks(stack: AsyncExitStack) -> tuple[Hub, list[HubMember], list[LockFront]]:
    hub = Hub()
    members = [HubMember(hub, name) for name in "abc"]
    fronts = [await stack.enter_async_context(Replica(each, "g", Lock(), quorum=THREE)) for each in members]
    for front in fronts:
        await front.ready()
    return hub, members, fronts


@bounded
async def test_a_block_whose_end_is_refused_gives_the_lock_back_later() -> None:
    async with AsyncExitStack() as stack:
        hub, members, (first, second, _) = await three_locks(stack)
        with pytest.raises(NotPrimary):
            async with first.hold():
                refusals = first.watch()
                hub.part(meeting_of("g"), *([member] for member in members))
                await told(refusals, Reason.NO_QUORUM)
        hub.part(meeting_of("g"), members)
        held = await second.acquire()
        assert held.is_held


@bounded
async def test_who_is_cancelled_at_the_end_of_a_block_gives_the_lock_back_later() -> None:
    async with AsyncExitStack() as stack:
        hub, members, (first, second, _) = await three_locks(stack)
        has_it, is_over, news = asyncio.Event(), asyncio.Event(), first.watch()

        async def hold() -> None:
            async with first.hold():
                has_it.set()
                await is_over.wait()

        working = asyncio.create_task(hold())
        await has_it.wait()
        hub.part(meeting_of("g"), *([member] for member in members))
        is_over.set()
        await asyncio.sleep(0)  # the release waits to be sent
        working.cancel()
        with pytest.raises(asyncio.CancelledError):
            await working
        await told(news, Reason.NO_QUORUM)
        hub.part(meeting_of("g"), members)
        held = await second.acquire()
        assert held.is_held


async def told(news: AsyncIterator[object], reason: Reason) -> None:
    async for event in news:
        if isinstance(event, Changed) and event.reason is reason:
            return
