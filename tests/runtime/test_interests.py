"""A live node over an engine that takes its time to subscribe: a join waits for it, messages of others do not."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from ordercast import Node
from ordercast.model.effects import Effect, Subscribed
from ordercast.model.ids import Instant
from ordercast.model.inputs import Interest
from ordercast.order.ring.node import RingNode
from tests.live.stage import alone, live


@live
async def test_a_join_waits_until_the_engine_is_subscribed_and_a_last_leave_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told: asyncio.Queue[Interest] = asyncio.Queue()

    def interest(self: RingNode, changes: Sequence[Interest], now: Instant) -> list[Effect]:
        for change in changes:
            told.put_nowait(change)
        return []

    monkeypatch.setattr(RingNode, "interest", interest)
    async with Node(alone()) as node:
        joining = asyncio.ensure_future(node.join("g"))
        assert await told.get() == Interest(f"@{node.host.config.name}", is_wanted=True)
        assert await told.get() == Interest("g", is_wanted=True)
        assert await node.groups() == {} and not joining.done() and node.host.requests_waiting == 1
        node.host.on_subscribed(Subscribed(("g",)))
        await joining
        assert await node.groups() == {"g": 1} and node.host.requests_waiting == 0
        await node.leave("g")
        assert await told.get() == Interest("g", is_wanted=False)
