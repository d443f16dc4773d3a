"""A client on an event loop, whose daemon is played: who waits for what, and in which order it is said."""

from __future__ import annotations

import asyncio

import pytest

from ordercast.model.errors import ConnectionLost
from ordercast.session.frames import Members, encode_members
from ordercast.session.pieces import FrameKind

from .wires import PlayedClient, bounded, eventually


@bounded
async def test_who_waits_to_ask_while_the_connection_breaks_asks_in_the_next_session() -> None:
    client = PlayedClient()
    await client.open()
    first = asyncio.create_task(client.groups())
    second = asyncio.create_task(client.members("orders"))
    await eventually(lambda: client.wires[0].count(FrameKind.LIST) == 1)
    client.wires[0].breaks()
    with pytest.raises(ConnectionLost):
        await first
    await eventually(lambda: len(client.wires) == 2 and client.wires[1].count(FrameKind.MEMBERS_OF) == 1)
    client.wires[1].says(encode_members(Members(("alice@n1",), True)))
    assert await second == ("alice@n1",)
    assert client.wires[0].count(FrameKind.MEMBERS_OF) == 0
