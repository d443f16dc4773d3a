"""The loop of a daemon: its own sockets are read inside `select`, everything else is asyncio's as ever."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from collections.abc import Callable, Coroutine
from types import FrameType
from typing import Any

import pytest

from ordercast.daemon.loop import DaemonLoop, ReadingSelector


def on_daemon_loop(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    with asyncio.Runner(loop_factory=DaemonLoop) as runner:
        runner.run(work())


def pair() -> tuple[socket.socket, socket.socket]:
    ends = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    for end in ends:
        end.setblocking(False)
    return ends


def test_packets_are_read_inside_select_and_streams_served_beside(tmp_path: Any) -> None:
    async def work() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, DaemonLoop)
        here, there = pair()
        came: list[bytes] = []
        two = asyncio.Event()

        def read() -> None:
            came.append(here.recv(10))
            if len(came) == 2:
                two.set()

        loop.read_in_select(here.fileno(), read)

        async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(await reader.readexactly(5))
            await writer.drain()
            writer.close()

        path = tmp_path / "s"
        async with await asyncio.start_unix_server(echo, path):
            reader, writer = await asyncio.open_unix_connection(path)
            there.send(b"one")
            writer.write(b"hello")
            assert await reader.read(-1) == b"hello"
            there.send(b"two")
            await two.wait()
            assert came == [b"one", b"two"]
            writer.close()
        loop.stop_reading(here.fileno())
        loop.stop_reading(here.fileno())  # twice is no mistake
        there.send(b"three")
        await asyncio.sleep(0)
        assert await loop.run_in_executor(None, lambda: 7) == 7
        assert len(came) == 2
        here.close()
        there.close()

    on_daemon_loop(work)


def test_what_a_reader_raises_is_reported_and_the_loop_goes_on() -> None:
    async def work() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, DaemonLoop)
        told: list[dict[str, Any]] = []
        loop.set_exception_handler(lambda _, context: told.append(context))
        here, there = pair()
        done = asyncio.Event()

        def read() -> None:
            if here.recv(10) == b"bad":
                raise ValueError("for a test")
            done.set()

        loop.read_in_select(here.fileno(), read)
        there.send(b"bad")
        there.send(b"good")
        await done.wait()
        assert [str(context["exception"]) for context in told] == ["for a test"]
        loop.stop_reading(here.fileno())
        here.close()
        there.close()

    on_daemon_loop(work)


def test_readers_and_writers_of_asyncio_come_and_go() -> None:
    selector = ReadingSelector()
    here, there = pair()
    key = selector.register(here, 3, "both")
    assert selector.select(0) == [(key, 2)]
    with pytest.raises(KeyError):
        selector.register(here, 1)
    there.send(b"x")
    assert selector.select(0) == [(key, 3)]
    key = selector.modify(here, 1, "reads")
    assert selector.select(0) == [(key, 1)] and selector.get_key(here).data == "reads"
    assert list(selector.get_map()) == [here.fileno()]
    selector.unregister(here)
    assert selector.select(0) == []
    with pytest.raises(KeyError):
        selector.unregister(here)
    reader, writer = os.pipe()
    selector.register(reader, 1)
    os.close(reader)
    selector.unregister(reader)  # closed before: nothing is wrong
    os.close(writer)
    selector.close()
    here.close()
    there.close()


def _calls(loop: asyncio.AbstractEventLoop, packets: int) -> int:
    """Functions called to bring so many lone packets to a function."""
    here, there = pair()
    calls = seen = 0

    def count(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    def read() -> None:
        nonlocal seen
        here.recv(10)
        seen += 1
        if seen == packets:
            loop.stop()
        else:
            there.send(b"next")

    if isinstance(loop, DaemonLoop):
        loop.read_in_select(here.fileno(), read)
    else:
        loop.add_reader(here.fileno(), read)
    there.send(b"first")
    sys.setprofile(count)
    try:
        loop.run_forever()
    finally:
        sys.setprofile(None)
    loop.close()
    here.close()
    there.close()
    return calls


def test_a_packet_costs_fewer_calls_than_with_a_reader_of_asyncio() -> None:
    plain, own = _calls(asyncio.SelectorEventLoop(), 100), _calls(DaemonLoop(), 100)
    assert own < plain * 0.75, f"{own / 100} calls for a packet against {plain / 100}"
