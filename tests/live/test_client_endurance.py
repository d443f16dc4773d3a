"""Clients in bad company: a ring that is busy, threads that wait while others close, callbacks that raise, daemons that
hang up at once."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import ordercast
from ordercast import ConnectionLost, Message, Reconnected, UsageError, View
from ordercast.api.blocking import BlockingClient
from ordercast.api.link import ClientLink
from ordercast.session.addresses import addresses_from, is_trusted
from ordercast.session.client_half import ClientHalf
from ordercast.session.frames import SlowPolicy
from tests.live.stage import alone, daemon, eventually, live


@live
async def test_tasks_that_wait_for_credit_never_send_more_than_they_have(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with daemon(tmp_path) as here, ordercast.connect(here.unix) as me:
        room, turns = here.host._has_room_for, 0

        def seldom(size: int) -> bool:
            """The ring takes something every other time that it is asked."""
            nonlocal turns
            turns += 1
            if turns % 2:
                asyncio.get_running_loop().call_soon(here.host._pump_soon)
                return False
            return room(size)

        monkeypatch.setattr(here.host, "_has_room_for", seldom)

        async def busy() -> None:
            for _ in range(100):
                await me.send("nobody", bytes(90_000))

        await asyncio.gather(busy(), busy(), busy())
        await me.send("nobody", b"", confirm=True)


@live
async def test_credit_is_looked_at_again_by_who_waited_for_it() -> None:
    """Whoever is woken finds that somebody else was quicker."""

    class Nobody:
        def on_news(self, link: ClientLink, news: object, size: int) -> None:
            raise AssertionError

        def on_lost(self, link: ClientLink, why: str) -> None:
            raise AssertionError

    class Wire(asyncio.Transport):
        def __init__(self) -> None:
            super().__init__()
            self.sent: list[bytes] = []

        def write(self, data: bytes | bytearray | memoryview) -> None:
            self.sent.append(bytes(data))

        def is_closing(self) -> bool:
            return False

    link, wire = ClientLink(Nobody(), ClientHalf("", SlowPolicy.WAIT)), Wire()
    link._transport = wire
    link.half.credit = 0
    passed = 0

    def frames() -> Iterator[int]:
        nonlocal passed
        yield 1
        assert link.half.credit > 0
        link.half.credit -= 1
        passed += 1

    waiting = [asyncio.create_task(link.in_turn(frames())) for _ in range(3)]
    await asyncio.sleep(0)
    for paid in (1, 2, 3):
        link.half.credit = 1
        link._paid.set()
        for _ in range(10):
            await asyncio.sleep(0)
        assert passed == paid
    await asyncio.gather(*waiting)


def test_threads_that_wait_are_told_when_another_closes_the_client(tmp_path: Path) -> None:
    ready, stop, places = threading.Event(), threading.Event(), []

    async def serve() -> None:
        async with daemon(tmp_path) as here:
            here.host._has_room_for = lambda size: False  # type: ignore[method-assign]
            places.append(here.unix)
            ready.set()
            await asyncio.get_running_loop().run_in_executor(None, stop.wait)

    server = threading.Thread(target=lambda: asyncio.run(serve()))
    server.start()
    assert ready.wait(30)
    ended: list[str] = []

    def waits(me: BlockingClient, what: str) -> None:
        try:
            if what == "send":
                me.send("g", b"x", confirm=True)
            elif what == "join":
                me.join("g", "h")
            else:
                assert me.receive() is None
                raise ConnectionLost("the stream has ended")
        except ConnectionLost:
            ended.append(what)

    try:
        for _ in range(10):
            with ordercast.connect(places[0]) as me:
                threads = [threading.Thread(target=waits, args=(me, what)) for what in ("send", "join", "read")]
                for thread in threads:
                    thread.start()
                while not me._direct.state.waiters.await_changes or not me._direct.state.waiters.unconfirmed:
                    pass
            for thread in threads:
                thread.join(30)
                assert not thread.is_alive()
    finally:
        stop.set()
        server.join()
    assert sorted(ended) == ["join"] * 10 + ["read"] * 10 + ["send"] * 10


@live
async def test_a_callback_that_raises_takes_nothing_with_it(tmp_path: Path) -> None:
    told: list[str] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: told.append(str(context.get("exception"))))

    def raises(why: str) -> None:
        raise ValueError("a mistake of the application's")

    async with daemon(tmp_path) as here, ordercast.connect(here.unix, on_lost=raises) as me:
        (connection,) = here.server.connections
        connection.abort()
        with pytest.raises(ConnectionLost):
            await anext(aiter(me))
    assert told == ["a mistake of the application's"]


@live
async def test_a_close_that_is_cancelled_ends_the_stream_all_the_same(tmp_path: Path) -> None:
    async with daemon(tmp_path) as here, ordercast.connect(here.unix) as me:
        reading = asyncio.create_task(anext(aiter(me)))
        await asyncio.sleep(0)
        closing = asyncio.create_task(me.close())
        await asyncio.sleep(0)
        closing.cancel()
        await asyncio.gather(closing, return_exceptions=True)
        with pytest.raises(StopAsyncIteration):
            await reading


@live
async def test_a_join_after_a_reconnection_is_not_taken_for_the_rejoining(tmp_path: Path) -> None:
    async with daemon(tmp_path) as here, ordercast.connect(here.unix, name="a", reconnect=True) as me:
        await me.join("g")
        (connection,) = here.server.connections
        connection.abort()
        events = aiter(me)
        while not isinstance(await anext(events), Reconnected):
            pass
        await me.leave("g")
        await me.join("g")
        kinds = [type(await anext(events)).__name__ for _ in range(3)]
        assert kinds == ["View", "Left", "View"]


@live
async def test_the_rest_of_a_batch_comes_first_in_batches(tmp_path: Path) -> None:
    async with daemon(tmp_path) as here, ordercast.connect(here.unix) as me:
        await me.join("g")
        await me.send_many("g", [b"1", b"2", b"3"], confirm=True)
        assert isinstance(await anext(aiter(me)), View)
        first = await anext(aiter(me))
        assert isinstance(first, Message) and first.data == b"1"
        rest = await anext(me.batches())
        assert isinstance(rest, ordercast.Batch) and list(rest.data) == [b"2", b"3"]


@live
async def test_a_client_is_connected_once(tmp_path: Path) -> None:
    async with daemon(tmp_path) as here:
        connecting = ordercast.connect(here.unix)
        async with connecting:
            pass
        with pytest.raises(UsageError, match="connected once"):
            await connecting.__aenter__()


@live
async def test_whoever_does_not_greet_has_no_place_among_the_clients(tmp_path: Path) -> None:
    async with daemon(tmp_path, alone(), sessions_max=1) as here:
        path = here.unix.removeprefix("unix://")
        strangers = [await asyncio.open_unix_connection(path) for _ in range(5)]
        await eventually(lambda: len(here.server.connections) == 5)
        async with ordercast.connect(here.unix) as me:
            assert me.name == "c1@n1"
            with pytest.raises(UsageError, match="as many clients as it may"):
                await ordercast.connect(here.unix).__aenter__()
        for _, writer in strangers:
            writer.close()


def test_a_folder_that_others_can_write_is_not_trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "sockets"
    folder.mkdir(mode=0o700)
    monkeypatch.setenv("ORDERCAST_FOLDER", str(folder))
    assert is_trusted(folder)
    folder.chmod(0o777)
    assert not is_trusted(folder) and addresses_from(None) == []
    link = tmp_path / "link"
    link.symlink_to(tmp_path)
    assert not is_trusted(link) and not is_trusted(tmp_path / "nowhere")
    if os.geteuid() == 0:
        folder.chmod(0o700)
        os.chown(folder, 12345, 12345)
        assert not is_trusted(folder)
