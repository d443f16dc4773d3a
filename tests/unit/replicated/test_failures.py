"""Replicas of which one fails, or is refused, without a network: what its callers, its group and its neighbours see."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import AsyncExitStack
from functools import wraps
from typing import Any

import pytest

from ordercast.groups.names import meeting_of
from ordercast.model.errors import WireError
from ordercast.replicated.desk import SUBMITTED_MAX
from ordercast.replicated.machine import Origin
from ordercast.replicated.quorum import EverySide, Majority, Rule, Side
from ordercast.replicated.replica import NotPrimary, Replica, ReplicaEnded
from ordercast.replicated.structures.base import Cut
from ordercast.replicated.structures.dictionary import Dictionary, DictionaryFront

from .hub import Hub, HubMember

PATIENCE_S = 30.0  # far more than it takes
GROUP = "g"
MEETING = meeting_of(GROUP)  # where its replicas are
THREE = Majority(dict.fromkeys("abc", 1))


def bounded(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    @wraps(test)
    def run(*arguments: Any, **options: Any) -> None:
        asyncio.run(asyncio.wait_for(test(*arguments, **options), PATIENCE_S))

    return run


class Brittle(Dictionary):
    """It cannot apply one command."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error

    def apply_all(self, commands: Sequence[bytes], origin: Origin) -> list[bytes]:
        if any(b"bad" in command for command in commands):
            raise self.error
        return list(super().apply_all(commands, origin))


class Unfreezable(Dictionary):
    def freeze(self) -> Cut:
        raise ValueError("no picture")


async def enter(
    stack: AsyncExitStack, member: HubMember, structure: Dictionary, rule: Rule, group: str = GROUP
) -> DictionaryFront:
    return await stack.enter_async_context(Replica(member, group, structure, quorum=rule))


async def ended(watch: AsyncIterator[object]) -> None:
    """Its replica has."""
    async for _ in watch:
        pass


@bounded
async def test_whoever_waits_for_room_is_refused_like_those_before() -> None:
    """More commands at once than may be underway, in a group without a primary component."""
    async with AsyncExitStack() as stack:
        alone = await enter(stack, HubMember(Hub(), "a"), Dictionary(), THREE)
        answers = await asyncio.gather(
            *(alone.set(f"{number}", b"") for number in range(SUBMITTED_MAX + 100)), return_exceptions=True
        )
    assert {type(answer) for answer in answers} == {NotPrimary} and len(answers) == SUBMITTED_MAX + 100


@pytest.mark.parametrize("error", [ValueError("no"), WireError("no")])
@bounded
async def test_a_replica_that_cannot_apply_a_command_leaves_and_the_others_go_on(error: Exception) -> None:
    hub = Hub()
    async with AsyncExitStack() as stack:
        members = [HubMember(hub, name) for name in "abc"]
        a, b = [await enter(stack, member, Dictionary(), THREE) for member in members[:2]]
        c = await enter(stack, members[2], Brittle(error), THREE)
        await asyncio.gather(a.ready(), b.ready(), c.ready())
        watch = c.watch()
        await a.set("bad", b"1")
        await ended(watch)
        with pytest.raises(ReplicaEnded, match=r"failed: .*no"):
            await c.set("x", b"1")
        await b.set("after", b"2")
        assert await a.latest("after") == b"2"
        assert await hub.left.get() == (MEETING, "c")
        await a.set("without it", b"3")


@bounded
async def test_another_replica_of_the_same_member_goes_on() -> None:
    hub, rule = Hub(), Majority({"a": 1})
    async with AsyncExitStack() as stack:
        member = HubMember(hub, "a")
        bad = await enter(stack, member, Brittle(ValueError("no")), rule, "one")
        good = await enter(stack, member, Dictionary(), rule, "two")
        await asyncio.gather(bad.ready(), good.ready())
        with pytest.raises(ReplicaEnded, match="no"):
            await bad.set("bad", b"1")
        await good.set("x", b"2")
        assert good.get("x") == b"2"
        assert await hub.left.get() == ("$replica/one", "a")


@bounded
async def test_a_donor_that_cannot_give_its_state_leaves_and_its_member_goes_on() -> None:
    hub, rule = Hub(), Majority({"a": 1})
    async with AsyncExitStack() as stack:
        member = HubMember(hub, "a")
        donor = await enter(stack, member, Unfreezable(), rule, "one")
        other = await enter(stack, member, Dictionary(), rule, "two")
        await asyncio.gather(donor.ready(), other.ready())
        await enter(stack, HubMember(hub, "b"), Dictionary(), rule, "one")
        assert await hub.left.get() == ("$replica/one", "a")
        with pytest.raises(ReplicaEnded, match=r"failed: .*no picture"):
            await donor.set("x", b"1")
        await other.set("x", b"2")


@pytest.mark.parametrize("error", [ValueError("no"), WireError("no")])
@bounded
async def test_who_cannot_unite_the_sides_leaves_and_the_others_are_united(error: Exception) -> None:
    hub = Hub()

    def raising(sides: Sequence[Side[Dictionary]]) -> Dictionary:
        raise error

    def longest(sides: Sequence[Side[Dictionary]]) -> Dictionary:
        return sides[0].state

    async with AsyncExitStack() as stack:
        members = [HubMember(hub, name) for name in "abc"]
        rules = [EverySide(raising), EverySide(longest), EverySide(longest)]
        a, b, c = [await enter(stack, member, Dictionary(), rule) for member, rule in zip(members, rules, strict=True)]
        await a.set("base", b"0")
        await c.synced()
        hub.part(MEETING, members[:2], members[2:])
        for key in "xyz":
            await b.set(key, b"1")
        await c.set("c", b"2")
        watch = a.watch()
        hub.part(MEETING, members)
        await ended(watch)
        with pytest.raises(ReplicaEnded, match=r"failed: .*no"):
            await a.set("x", b"1")
        await b.set("after", b"3")
        assert await hub.left.get() == (MEETING, "a") and await c.latest("z") == b"1"
