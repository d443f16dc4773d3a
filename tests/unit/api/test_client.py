"""A client on an event loop, whose daemon is played: who waits for what, and in which order it is said."""

from __future__ import annotations

import asyncio

import pytest

from ordercast.model.errors import ConnectionLost, UsageError
from ordercast.model.events import Left, Reason, Reconnected, View
from ordercast.session.batches import decode_send
from ordercast.session.client_half import BATCH_SIZE_MAX
from ordercast.session.frames import Members, Refused, decode_names, encode_members, encode_number, encode_refused
from ordercast.session.news import encode_news
from ordercast.session.pieces import FrameKind

from ..session.vectors import AT
from .wires import CREDIT, NAME, PlayedClient, Wire, bounded, eventually


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


# Groups, in the next session


async def rejoined(*groups: str) -> tuple[PlayedClient, Wire]:
    """A client that has found a daemon again, and asks to be in its groups."""
    client = PlayedClient()
    await client.open()
    client.state.joined.update(groups)
    client.wires[0].breaks()
    await eventually(lambda: len(client.wires) == 2 and bool(client.wires[1].written))
    return client, client.wires[1]


def asked(wire: Wire) -> list[tuple[int, tuple[str, ...]]]:
    return [(kind, decode_names(body)) for kind, body in wire.frames()]


def joined(group: str) -> bytes:
    """The first view of the client there."""
    return encode_news(View(group, (NAME,), (NAME,), Reason.JOIN, (NAME,), AT), in_full=True)


@bounded
async def test_a_group_that_is_refused_after_a_reconnect_costs_no_other() -> None:
    client, wire = await rejoined("news", "orders", "wages")
    together = ("news", "orders", "wages")
    assert asked(wire) == [(FrameKind.JOIN, together)]
    wire.says(encode_refused(Refused(together, True, "it may not join wages")))
    assert asked(wire)[1:] == [(FrameKind.JOIN, (group,)) for group in together]
    for group in together[:2]:
        wire.says(joined(group))
    wire.says(encode_refused(Refused(("wages",), True, "it may not join wages")))
    assert client.joined == {"news", "orders"}
    seen = [await client.receive() for _ in range(4)]
    assert seen[3] == Left("wages") and [type(event) for event in seen[:3]] == [Reconnected, View, View]
    await client.send("orders", b"")
    with pytest.raises(UsageError, match="it may not join wages"):
        await client.send("wages", b"")
    await client.send("wages", b"it was told")


@bounded
async def test_a_group_that_is_left_before_it_is_refused_is_not_joined_again() -> None:
    client, wire = await rejoined("news", "orders")
    leaving = asyncio.create_task(client.leave("orders"))
    await eventually(lambda: wire.count(FrameKind.LEAVE) == 1)
    wire.says(encode_refused(Refused(("news", "orders"), True, "no")))
    assert asked(wire)[2:] == [(FrameKind.JOIN, ("news",))]
    wire.says(encode_refused(Refused(("orders",), False, "the client is not in the group orders")))
    with pytest.raises(UsageError, match="not in the group"):
        await leaving
    await client.send("orders", b"")


@bounded
async def test_a_join_of_several_groups_that_is_refused_later_is_refused_as_a_whole() -> None:
    client, wire = await rejoined("news", "orders")
    for group in ("news", "orders"):
        wire.says(joined(group))
    leaving = asyncio.create_task(client.leave("news", "orders"))
    await eventually(lambda: wire.count(FrameKind.LEAVE) == 1)
    for group in ("news", "orders"):
        wire.says(encode_news(Left(group)))
    await leaving
    joining = asyncio.create_task(client.join("news", "orders"))
    await eventually(lambda: wire.count(FrameKind.JOIN) == 2)
    wire.says(encode_refused(Refused(("news", "orders"), True, "no more")))
    with pytest.raises(UsageError, match="no more"):
        await joining
    assert not client.joined and wire.count(FrameKind.JOIN) == 2


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
