"""A client on an event loop, whose daemon is played: who waits for what, and in which order it is said."""

from __future__ import annotations

import asyncio

import pytest

from ordercast.model.errors import ConnectionLost
from ordercast.session.batches import decode_send
from ordercast.session.client_half import BATCH_SIZE_MAX
from ordercast.session.frames import Members, encode_members, encode_number
from ordercast.session.pieces import FrameKind

from .wires import CREDIT, PlayedClient, Wire, bounded, eventually


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


# Messages in the order of the calls


@bounded
async def test_messages_are_sent_in_the_order_of_the_calls_though_one_waits_for_credit() -> None:
    client = PlayedClient()
    await client.open()
    (wire,) = client.wires

    async def one() -> None:
        await client.send("orders", b"1a" + bytes(CREDIT - 100))
        await client.send("orders", b"1b")

    calls = [asyncio.create_task(client.send("orders", bytes(CREDIT - 100))), asyncio.create_task(one())]
    await eventually(lambda: wire.count(FrameKind.WANT) == 1)
    calls.append(asyncio.create_task(client.send("orders", b"2a")))
    await asyncio.sleep(0)
    wire.says(encode_number(FrameKind.CREDIT, 10 * CREDIT))
    calls.append(asyncio.create_task(client.send("orders", b"3a")))
    await asyncio.gather(*calls)
    assert [data[0][:2] for data in sent(wire)] == [bytes(2), b"1a", b"2a", b"1b", b"3a"]


@bounded
async def test_what_is_sent_in_portions_is_sent_as_a_whole_before_what_comes_later() -> None:
    client = PlayedClient()
    await client.open()
    (wire,) = client.wires
    many = asyncio.create_task(client.send_many("orders", [bytes(BATCH_SIZE_MAX // 3)] * 7))
    await eventually(lambda: wire.count(FrameKind.WANT) == 1)
    later = asyncio.create_task(client.send("orders", b"later"))
    while not later.done():
        wire.says(encode_number(FrameKind.CREDIT, BATCH_SIZE_MAX // 4))
        await asyncio.sleep(0)
    await many
    *portions, last = sent(wire)
    assert last == (b"later",) and sum(map(len, portions)) == 7 and len(portions) > 1


@bounded
async def test_who_waits_for_credit_and_is_cancelled_lets_the_others_pass() -> None:
    client = PlayedClient()
    await client.open()
    (wire,) = client.wires
    first = asyncio.create_task(client.send("orders", bytes(2 * CREDIT)))
    await eventually(lambda: wire.count(FrameKind.WANT) == 1)
    second = asyncio.create_task(client.send("orders", b"second"))
    await asyncio.sleep(0)
    first.cancel()
    await second
    await client.send("orders", b"third")
    assert sent(wire) == [(b"second",), (b"third",)]


def sent(wire: Wire) -> list[tuple[bytes, ...]]:
    """The messages of each frame."""
    found = []
    for kind, body in wire.frames():
        if kind == FrameKind.SEND:
            send = decode_send(body)
            found.append(tuple(payload.removeprefix(send.head) for payload in send.payloads))
    return found
