"""Requests, replies, headers and draining: on clients and embedded nodes, in both forms."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

from ordercast import JSON, ConnectionLost, Message, UsageError, connect
from ordercast.api.member import Member
from tests.live.local_daemons import daemons, live
from tests.live.test_group_readers import FORMS, member


async def serve(me: Member, count: int) -> None:
    async for event in me:
        if isinstance(event, Message) and event.wants_reply:
            await me.reply(event, JSON.pack([event.data.decode(), event.headers.get("lang")]))
            count -= 1
            if not count:
                return


@live
@pytest.mark.parametrize("form", FORMS)
async def test_a_request_gets_its_reply_apart_from_the_stream(tmp_path: Path, form: str) -> None:
    async with member(form, tmp_path) as me:
        await me.join("prices")
        serving = asyncio.create_task(serve(me, 3))
        asked = [me.request("prices", b"%d" % number, timeout=20, headers={"lang": "de"}) for number in range(2)]
        replies = await asyncio.gather(*asked, me.request(me.name, b"direct", timeout=20))
        assert [JSON.unpack(reply) for reply in replies] == [["0", "de"], ["1", "de"], ["direct", None]]
        assert {reply.sender for reply in replies} == {me.name}
        await serving
        await me.send(me.name, b"plain", headers={"a": "b"})
        found = await me.receive(timeout=20)
        assert isinstance(found, Message) and found.data == b"plain"
        assert found.headers == {"a": "b"} and not found.wants_reply
        with pytest.raises(UsageError, match="wants no reply"):
            await me.reply(found, b"")
        with pytest.raises(TimeoutError, match=r"no reply from nobody@n1 within 0\.01 s"):
            await me.request("nobody@n1", b"", timeout=0.01)


@live
@pytest.mark.parametrize("form", FORMS)
async def test_draining_ends_the_stream_behind_what_has_come(tmp_path: Path, form: str) -> None:
    async with member(form, tmp_path) as me:
        await me.join("orders", "chat")
        await me.send_many("orders", [b"%d" % number for number in range(500)])
        await me.drain()
        assert me.joined == set()
        assert [event.data for event in [each async for each in me] if isinstance(event, Message)] == [
            b"%d" % number for number in range(500)
        ]
        with pytest.raises(UsageError, match="is draining, and joins nothing any more"):
            await me.join("orders")
        await me.send("orders", b"sent all the same", confirm=True)


@live
async def test_a_request_ends_with_the_connection(tmp_path: Path) -> None:
    async with daemons(tmp_path, "n1") as at, connect(at["n1"]) as me:
        asking = asyncio.create_task(me.request("nobody", b"", timeout=60))
        await me.send("nobody", b"", confirm=True)
        await me.close()
        with pytest.raises(ConnectionLost, match="no reply can come any more: the client was closed"):
            await asking


@live
async def test_the_blocking_form_asks_replies_and_drains(tmp_path: Path) -> None:
    async with daemons(tmp_path, "n1") as at:
        await asyncio.to_thread(_blocking, at["n1"])


def _blocking(address: str) -> None:
    with connect(address, name="server") as server, connect(address, name="me") as me:
        server.join("prices")

        def answer() -> None:
            for event in server:
                if isinstance(event, Message) and event.wants_reply:
                    server.reply(event, JSON.pack({"price": 3}))

        thread = threading.Thread(target=answer)
        thread.start()
        assert JSON.unpack(me.request("prices", b"tea", timeout=20)) == {"price": 3}
        server.drain()
        thread.join(20)
        assert not thread.is_alive()
        assert next(server, None) is None
