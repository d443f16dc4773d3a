"""Links over TCP: packets off connections, and what becomes of connections on which nothing comes."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable

import pytest

from ordercast.daemon.sockets import streams
from ordercast.daemon.sockets.streams import LinkStreams
from ordercast.model.ids import Attachment
from ordercast.model.inputs import Packet
from ordercast.wire.head import HEAD_SIZE, LENGTH_AT

Came = asyncio.Queue[bytes]
Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Connect = Callable[[], Awaitable[Connection]]


def packet(payload: bytes) -> bytes:
    size = HEAD_SIZE + len(payload)
    return bytes(LENGTH_AT) + size.to_bytes(2, "big") + bytes(HEAD_SIZE - LENGTH_AT - 2) + payload


def served(scene: Callable[[LinkStreams, Came, Connect], Awaitable[None]]) -> None:
    """Play with streams that listen, the payloads that came to them, and a way to connect to them."""

    async def play() -> None:
        came, connections = Came(), []
        served = LinkStreams("127.0.0.1", 0, Attachment(0))
        port = served._listener.getsockname()[1]

        def receive(packets: list[Packet]) -> None:
            for one in packets:
                came.put_nowait(bytes(one.data[HEAD_SIZE:]))

        async def connect() -> Connection:
            connections.append(await asyncio.open_connection("127.0.0.1", port))
            return connections[-1]

        served.start(receive)
        task = served._tasks[None]
        await task
        try:
            await scene(served, came, connect)
        finally:
            served.close()
            for _, writer in connections:
                writer.close()

    asyncio.run(asyncio.wait_for(play(), 30))


def test_packets_are_cut_off_a_connection_as_they_come() -> None:
    async def scene(served: LinkStreams, came: Came, connect: Connect) -> None:
        _, writer = await connect()
        both = packet(b"one") + packet(b"two")
        writer.write(both[: HEAD_SIZE + 5])
        assert await came.get() == b"one"
        writer.write(both[HEAD_SIZE + 5 :])
        assert await came.get() == b"two"

    served(scene)


def test_strangers_who_say_nothing_keep_no_site_out() -> None:
    async def scene(served: LinkStreams, came: Came, connect: Connect) -> None:
        strangers = [await connect() for _ in range(streams.CONNECTIONS_MAX)]
        _, writer = await connect()
        writer.write(packet(b"of a site"))
        assert await came.get() == b"of a site"
        assert await strangers[0][0].read() == b"", "the first of them had to go"
        assert len(served._incoming) == streams.CONNECTIONS_MAX

    served(scene)


def test_of_too_many_connections_the_one_that_was_silent_for_longest_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "CONNECTIONS_MAX", 3)

    async def scene(served: LinkStreams, came: Came, connect: Connect) -> None:
        (_, first), (second, _), (_, third) = [await connect() for _ in range(3)]
        for writer in (third, first):
            writer.write(packet(b"heard"))
            assert await came.get() == b"heard"
        _, fourth = await connect()
        assert await second.read() == b""
        for writer in (first, third, fourth):
            writer.write(packet(b"still here"))
            assert await came.get() == b"still here"

    served(scene)


def test_the_kernel_asks_connections_on_which_nothing_comes() -> None:
    async def scene(served: LinkStreams, came: Came, connect: Connect) -> None:
        _, writer = await connect()
        writer.write(packet(b"hello"))
        await came.get()
        (transport,) = served._incoming
        sock = transport.get_extra_info("socket")
        assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        options = (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT)
        told = [sock.getsockopt(socket.IPPROTO_TCP, option) for option in options]
        assert told == [streams.SILENT_S, streams.ASKED_EVERY_S, streams.ASKED_MAX]

    served(scene)


def test_an_impossible_length_ends_a_connection() -> None:
    async def scene(served: LinkStreams, came: Came, connect: Connect) -> None:
        reader, writer = await connect()
        writer.write(bytes(HEAD_SIZE))
        assert await reader.read() == b""
        assert not served._incoming

    served(scene)
