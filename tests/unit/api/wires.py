"""Clients whose daemon is played: what they write is kept, and what the daemon says is put into their hands."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Coroutine
from functools import wraps
from pathlib import Path
from typing import Any

from ordercast.api.client import Client
from ordercast.api.link import ClientLink
from ordercast.api.target import DaemonTarget
from ordercast.session.addresses import Address, UnixAddress
from ordercast.session.client_half import ClientHalf
from ordercast.session.frames import SlowPolicy, Welcome, encode_welcome
from ordercast.session.pieces import HEADER

HERE = UnixAddress(Path("/n1.sock"))
NAME = "alice@n1"
CREDIT = 1000


def bounded(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Run it on an event loop, for a few seconds at most: what hangs fails."""

    @wraps(test)
    def run(*arguments: Any, **options: Any) -> None:
        asyncio.run(asyncio.wait_for(test(*arguments, **options), 20))

    return run


async def eventually(is_so: Callable[[], bool]) -> None:
    while not is_so():  # noqa: ASYNC110
        await asyncio.sleep(0)


class Wire(asyncio.Transport):
    """One connection of a client."""

    def __init__(self, link: ClientLink) -> None:
        super().__init__()
        self.link = link
        self.written = b""
        self._is_closing = False
        link.connection_made(self)
        self.written = b""  # without the greeting
        self.says(encode_welcome(Welcome(NAME, 1 << 20, CREDIT)))

    def says(self, *frames: bytes) -> None:
        for encoded in frames:
            self.link.get_buffer(-1)[: len(encoded)] = encoded
            self.link.buffer_updated(len(encoded))

    def breaks(self) -> None:
        self._is_closing = True
        self.link.connection_lost(None)

    def frames(self) -> list[tuple[int, bytes]]:
        """Kind and body of all that was written."""
        found, at = [], 0
        while at < len(self.written):
            length, kind = HEADER.unpack_from(self.written, at)
            found.append((kind, self.written[at + HEADER.size : at + HEADER.size + length - 1]))
            at += HEADER.size + length - 1
        return found

    def count(self, kind: int) -> int:
        return [each for each, _ in self.frames()].count(kind)

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        with socket.socket(socket.AF_UNIX) as sock:
            return sock

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written += data

    def is_closing(self) -> bool:
        return self._is_closing

    def abort(self) -> None:
        if not self._is_closing:
            self._is_closing = True
            asyncio.get_running_loop().call_soon(self.link.connection_lost, None)


class PlayedClient(Client):
    """One that finds a daemon whenever it looks for one, and gets a new wire there."""

    def __init__(self, *, reconnect: bool = True) -> None:
        super().__init__(DaemonTarget(lambda: (HERE,), "alice", SlowPolicy.WAIT, reconnect))
        self.wires: list[Wire] = []

    async def _reach(self, address: Address, seconds: float) -> ClientLink:
        self.wires.append(Wire(ClientLink(self, ClientHalf("alice", SlowPolicy.WAIT))))
        return self.wires[-1].link
