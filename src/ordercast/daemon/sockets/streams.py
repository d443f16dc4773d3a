"""Packets of links over TCP, for paths that let nothing else through.

Each side connects to the other and writes there; it reads what comes on connections that others made. A packet's head
says its length, so that nothing else has to stand between packets, and who sent it. To the engine this is a path that
loses nothing while a connection lasts: what a connection had when it broke, or has no room for, is a packet that got
lost, and the link asks for it. TCP blocks: bytes that are lost on the way hold up all behind them.

Whoever reads notices nothing when a path breaks without a word: the kernel asks a connection that is silent, and closes
it when nobody answers. When there are too many, the one that has been silent for longest goes.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Sequence
from contextlib import suppress

from ordercast.daemon.sockets.udp import SocketAddress, address_of
from ordercast.daemon.status.counters import SocketCounters
from ordercast.model.effects import Burst
from ordercast.model.errors import UsageError
from ordercast.model.ids import Attachment
from ordercast.model.inputs import Lane, Packet
from ordercast.wire.head import HEAD_SIZE, LENGTH_AT

ROOM = 1 << 20  # bytes that a connection takes ahead of the network
CONNECTIONS_MAX = 256
CONNECT_S = 5.0
LOST_MS = 3_000  # after which a connection is given up on which nothing is acknowledged
SILENT_S, ASKED_EVERY_S, ASKED_MAX = 10, 5, 3  # when the other end of a connection is asked, how often, how many times

Receive = Callable[[list[Packet]], None]


class LinkStreams:
    """The connections of one node to other sites, and from them."""

    def __init__(self, address: str, port: int, attachment: Attachment) -> None:
        """Listen; UsageError says what is in the way."""
        self._attachment = attachment
        self._source = address
        self._incoming: dict[asyncio.BaseTransport, None] = {}  # those that have been silent for longest first
        self._outgoing: dict[SocketAddress, asyncio.WriteTransport] = {}
        self._tasks: dict[SocketAddress | None, asyncio.Task[None]] = {}
        self._server: asyncio.Server | None = None
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        self._listener = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self._listener.bind(address_of(address, port))
        except OSError as error:
            self._listener.close()
            raise UsageError(f"{address} port {port} (links by TCP) cannot be opened: {error.strerror}") from error

    def start(self, receive: Receive) -> None:
        """Take connections; packets that come on them go to `receive`."""
        self._tasks[None] = asyncio.get_running_loop().create_task(self._serve(receive))

    def close(self) -> None:
        for task in self._tasks.values():
            task.cancel()
        for transport in (*self._incoming, *self._outgoing.values()):
            with suppress(RuntimeError):  # the loop has ended
                transport.close()
        if self._server is not None:
            self._server.close()
        self._listener.close()

    # What comes

    async def _serve(self, receive: Receive) -> None:
        self._server = await asyncio.get_running_loop().create_server(
            lambda: _Incoming(self._incoming, receive, self._attachment), sock=self._listener
        )

    # What leaves

    def send(self, address: SocketAddress, bursts: Sequence[Burst], counters: SocketCounters) -> None:
        """Write packets to whoever listens there; without a connection, or room on it, they are lost."""
        data = b"".join(data for data, _ in bursts)
        transport = self._outgoing.get(address)
        if transport is None or transport.is_closing():
            self._connect(address)
        elif transport.get_write_buffer_size() + len(data) <= ROOM:
            transport.write(data)
            counters.sends += 1
            counters.bytes_sent += len(data)
            counters.packets_sent += sum(-(-len(each) // size) for each, size in bursts)
            return
        counters.send_failures += 1

    def _connect(self, address: SocketAddress) -> None:
        task = self._tasks.get(address)
        if task is None or task.done():
            self._tasks[address] = asyncio.get_running_loop().create_task(self._connected(address))

    async def _connected(self, address: SocketAddress) -> None:
        """Make a connection; one that cannot be made is tried again when there is something to send."""
        with suppress(OSError):
            async with asyncio.timeout(CONNECT_S):
                transport, _ = await asyncio.get_running_loop().create_connection(
                    asyncio.Protocol, address[0], address[1], local_addr=(self._source, 0)
                )
            transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, LOST_MS)
            self._outgoing[address] = transport


class _Incoming(asyncio.Protocol):
    """A connection that another node made, cut into packets."""

    def __init__(
        self, all_of_them: dict[asyncio.BaseTransport, None], receive: Receive, attachment: Attachment
    ) -> None:
        self._all = all_of_them
        self._receive = receive
        self._attachment = attachment
        self._came = bytearray()
        self._transport: asyncio.BaseTransport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        if len(self._all) >= CONNECTIONS_MAX:
            silent = next(iter(self._all))
            del self._all[silent]
            silent.close()
        self._transport = transport
        self._all[transport] = None
        ask_when_silent(transport.get_extra_info("socket"))

    def connection_lost(self, error: Exception | None) -> None:
        self._all.pop(self._transport, None)

    def data_received(self, data: bytes) -> None:
        """Cut off whole packets. One that says an impossible length ends the connection."""
        del self._all[self._transport]
        self._all[self._transport] = None
        self._came += data
        packets, at = [], 0
        while at + HEAD_SIZE <= len(self._came):
            size = int.from_bytes(self._came[at + LENGTH_AT : at + LENGTH_AT + 2], "big")
            if size <= HEAD_SIZE:
                self._transport.close()
                break
            if at + size > len(self._came):
                break
            packets.append(Packet(bytes(self._came[at : at + size]), size, Lane.LINK, self._attachment, 0))
            at += size
        del self._came[:at]
        if packets:
            self._receive(packets)


def ask_when_silent(sock: socket.socket) -> None:
    """Have the kernel close a connection of which nothing is heard, and whose other end does not answer any more."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, SILENT_S)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, ASKED_EVERY_S)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, ASKED_MAX)
