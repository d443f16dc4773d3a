"""Clients in blocking form: who reads the socket, what happens while nobody does, and moving to an event loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from ordercast import BlockingClient, ConnectionLost, Event, Left, Message, Reconnected, UsageError, View, connect
from tests.live.local_daemons import Cable, daemons, live


async def beside(folder: Path, program: Callable[[str], None]) -> None:
    """A blocking program beside a daemon; what it connects to can be cut, with the second argument."""
    async with daemons(folder, "n1") as at:
        await asyncio.to_thread(program, at["n1"])


def message(me: BlockingClient) -> Message:
    for event in me:
        if isinstance(event, Message):
            return event
    raise AssertionError("the stream has ended")


@live
async def test_a_connection_that_breaks_while_nobody_calls_is_noticed_and_replaced(tmp_path: Path) -> None:
    loop, lost = asyncio.get_running_loop(), threading.Event()

    def play(cable: Cable) -> None:
        with connect(cable.address, name="me", reconnect=True, on_lost=lambda why: lost.set()) as me:
            me.join("orders")
            me.send("orders", b"before", confirm=True)
            loop.call_soon_threadsafe(cable.cut)
            assert lost.wait(30)  # no call of this client is under way
            me.send("orders", b"after", confirm=True)
            seen: list[Event] = []
            while not seen or not (isinstance(seen[-1], Message) and seen[-1].data == b"after"):
                event = me.receive(30)
                assert event is not None
                seen.append(event)
            kinds = [type(event) for event in seen]
            assert kinds == [View, Message, Reconnected, View, Message]

    async with daemons(tmp_path, "n1") as at, Cable(at["n1"], tmp_path / "cable") as cable:
        await asyncio.to_thread(play, cable)


@live
async def test_a_reader_goes_on_in_the_next_session(tmp_path: Path) -> None:
    loop = asyncio.get_running_loop()

    def play(cable: Cable) -> None:
        with connect(cable.address, name="me", reconnect=True) as me:
            me.join("orders")
            seen: list[Event] = []

            def reads() -> None:
                for event in me:
                    seen.append(event)
                    if isinstance(event, Message):
                        return

            reader = threading.Thread(target=reads)
            reader.start()
            loop.call_soon_threadsafe(cable.cut)
            while reader.is_alive():
                try:
                    me.send("orders", b"there", confirm=True)
                except ConnectionLost:
                    continue
                reader.join()
            assert Reconnected in [type(event) for event in seen] or len(seen) == 2

    async with daemons(tmp_path, "n1") as at, Cable(at["n1"], tmp_path / "cable") as cable:
        await asyncio.to_thread(play, cable)


@live
async def test_without_reconnect_everybody_who_waits_is_told(tmp_path: Path) -> None:
    loop = asyncio.get_running_loop()

    def play(cable: Cable) -> None:
        with connect(cable.address) as me:
            me.join("orders")
            assert isinstance(me.receive(), View)
            failures: list[BaseException] = []

            def reads() -> None:
                try:
                    me.receive()
                except ConnectionLost as error:
                    failures.append(error)

            reader = threading.Thread(target=reads)
            reader.start()
            loop.call_soon_threadsafe(cable.cut)
            reader.join(30)
            assert len(failures) == 1
            with pytest.raises(ConnectionLost):
                me.send("orders", b"too late")

    async with daemons(tmp_path, "n1") as at, Cable(at["n1"], tmp_path / "cable") as cable:
        await asyncio.to_thread(play, cable)


@live
async def test_a_function_that_raises_is_reported_and_the_client_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop, reported = asyncio.get_running_loop(), threading.Event()
    said: list[str] = []

    def report(arguments: threading.ExceptHookArgs) -> None:
        said.append(str(arguments.exc_value))
        reported.set()

    monkeypatch.setattr(threading, "excepthook", report)

    def raises(why: str) -> None:
        raise ValueError("a mistake of the application's")

    def play(cable: Cable) -> None:
        with connect(cable.address, reconnect=True, on_lost=raises) as me:
            loop.call_soon_threadsafe(cable.cut)
            assert reported.wait(30)
            me.send("orders", b"there", confirm=True)
        assert said == ["a mistake of the application's"]

    async with daemons(tmp_path, "n1") as at, Cable(at["n1"], tmp_path / "cable") as cable:
        await asyncio.to_thread(play, cable)


@live
async def test_a_reader_is_woken_when_another_thread_drains_or_leaves_its_group(tmp_path: Path) -> None:
    def play(address: str) -> None:
        with connect(address) as me:
            me.join("orders")
            seen: list[list[Event]] = []
            with me.group("news") as news:
                reader = threading.Thread(target=lambda: seen.append(list(news)))
                reader.start()
                assert isinstance(me.receive(), View)
            reader.join(30)
            main = threading.Thread(target=lambda: seen.append(list(me)))
            main.start()
            me.drain()
            main.join(30)
            kinds = [[type(event) for event in events] for events in seen]
            assert kinds[0] in ([], [View]) and kinds[1] == [Left]

    await beside(tmp_path, play)


@live
async def test_threads_that_send_much_share_the_socket(tmp_path: Path) -> None:
    def play(address: str) -> None:
        with connect(address) as me:

            def sends() -> None:
                for _ in range(100):
                    me.send("nobody", bytes(90_000))

            threads = [threading.Thread(target=sends) for _ in range(3)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            me.send("nobody", b"", confirm=True)

    await beside(tmp_path, play)


@live
async def test_a_client_moves_to_an_event_loop_with_all_it_has(tmp_path: Path) -> None:
    """One thread reads the stream meanwhile, another group is read apart, and something came that nobody has read."""

    def play(address: str) -> None:
        with connect(address, name="me") as me, connect(address, name="you") as you:
            me.join("orders")
            seen: list[Event] = []
            done = threading.Event()

            def reads() -> None:
                for event in me:
                    seen.append(event)
                    if isinstance(event, Message) and event.data == b"last":
                        done.set()
                        return

            reader = threading.Thread(target=reads)
            with me.group("news") as news:
                you.send("news", b"unread", confirm=True)
                reader.start()
                you.send("orders", b"first", confirm=True)
                assert me.run(me.member.groups()) == {"orders": 1, "news": 1}
                assert me.name == "me@n1" and me.joined == {"orders", "news"}
                assert isinstance(news.receive(30), View)
                unread = news.receive(30)
                assert isinstance(unread, Message) and unread.data == b"unread"
            assert me.joined == {"orders"} and me.groups() == {"orders": 1}
            me.send("orders", b"last", confirm=True)
            assert done.wait(30)
            reader.join()
            assert [event.data for event in seen if isinstance(event, Message)] == [b"first", b"last"]
            reply = threading.Thread(target=lambda: you.reply(message(you), b"here"))
            reply.start()
            assert me.request("you@n1", b"where?", timeout=30).data == b"here"
            reply.join()
        assert me.receive() is None
        with pytest.raises(UsageError, match="the client is closed"):
            me.run(me.member.groups())

    await beside(tmp_path, play)


@live
async def test_a_client_without_a_session_moves_and_finds_one(tmp_path: Path) -> None:
    loop, lost = asyncio.get_running_loop(), threading.Event()

    def play(cable: Cable) -> None:
        with connect(cable.address, name="me", reconnect=True, on_lost=lambda why: lost.set()) as me:
            me.join("orders")
            loop.call_soon_threadsafe(cable.cut)
            assert lost.wait(30)
            assert me.run(_sent(me)) is None
            assert message(me).data == b"there"

    async with daemons(tmp_path, "n1") as at, Cable(at["n1"], tmp_path / "cable") as cable:
        await asyncio.to_thread(play, cable)


async def _sent(me: BlockingClient) -> None:
    await me.member.send("orders", b"there", confirm=True)
