"""A client of a Spread daemon, as far as a load needs one: it joins a group, sends, and reads, by the protocol of
Spread 5 without authentication.

A daemon of Spread ends a session that is 1,000 messages behind, and holds no sender back. So each client has a share of
900 messages under way, and waits for its own to come back before it sends more.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from typing import NamedTuple

from ordercast.model.service import Service

SCHEME = "spread://"
VERSION = bytes((5, 0, 1))
FLAGS = 1  # membership messages are wanted
NO_AUTHENTICATION = b"NULL".ljust(90, b"\0")
ACCEPTED = 1
MARK = 0x80000080  # in types and hints of those who write the lowest byte first
NAME_SIZE = 32
HEADS = tuple(struct.Struct(f"{order}I{NAME_SIZE}siIi") for order in "<>")  # type, name, groups, hint, bytes of data
HEAD_SIZE = HEADS[0].size
SERVICES = {Service.RELIABLE: 0x2, Service.FIFO: 0x4, Service.CAUSAL: 0x8, Service.AGREED: 0x10, Service.SAFE: 0x20}
DATA, REGULAR_VIEW, JOIN, REJECTED = 0x3F, 0x1000, 0x10000, 0x400000
QUEUE_MAX = 900  # messages that may wait for a session; its daemon ends it at 1,000
READ_SIZE = 1 << 18


class SpreadBatch(NamedTuple):
    """Messages that came one behind the other."""

    data: list[bytes]


class SpreadView(NamedTuple):
    members: tuple[bytes, ...]


class SpreadFrame(NamedTuple):
    """What a daemon sends."""

    type: int
    name: bytes  # of the sender, or of the group that a view is of
    groups: tuple[bytes, ...]
    data: bytes


class SpreadError(Exception):
    """A daemon refuses something, or says what is not of its protocol."""


def frame(kind: int, name: bytes, group: bytes, data: bytes = b"") -> bytes:
    """Return what a client sends to one group."""
    return HEADS[0].pack(kind | MARK, name, 1, MARK, len(data)) + group.ljust(NAME_SIZE, b"\0") + data


def frames(buffer: bytearray) -> Iterator[SpreadFrame]:
    """Take whole frames off the beginning of a buffer."""
    at = 0
    while len(buffer) - at >= HEAD_SIZE:
        kind, name, groups, _, size = HEADS[0].unpack_from(buffer, at)
        if kind & MARK != MARK:  # the daemon writes the highest byte first
            kind, name, groups, _, size = HEADS[1].unpack_from(buffer, at)
        if kind & REJECTED or groups < 0 or size < 0:
            raise SpreadError(f"the daemon has sent a frame of type {kind:#x}")
        body = at + HEAD_SIZE + NAME_SIZE * groups
        if len(buffer) < body + size:
            break
        names = (bytes(buffer[start : start + NAME_SIZE]) for start in range(at + HEAD_SIZE, body, NAME_SIZE))
        yield SpreadFrame(
            kind & ~MARK,
            name.rstrip(b"\0"),
            tuple(one.rstrip(b"\0") for one in names),
            bytes(buffer[body : body + size]),
        )
        at = body + size
    del buffer[:at]


class SpreadClient:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, name: bytes, share: int) -> None:
        """`name` is the private group of the session; `share` messages of its own may be under way."""
        self._reader, self._writer = reader, writer
        self._name = name
        self._share = share
        self._under_way = 0
        self._came_back = asyncio.Event()

    async def join(self, group: str) -> None:
        self._writer.write(frame(JOIN, self._name, group.encode()))
        await self._writer.drain()

    async def send(self, group: str, data: bytes, service: Service) -> None:
        await self.send_many(group, [data], service)

    async def send_many(self, group: str, messages: Sequence[bytes], service: Service) -> None:
        """Send messages to a group that this client is in."""
        kind, to = SERVICES[service], group.encode()
        for at in range(0, len(messages), self._share):
            some = messages[at : at + self._share]
            while self._under_way + len(some) > self._share:
                self._came_back.clear()
                await self._came_back.wait()
            self._under_way += len(some)
            self._writer.write(b"".join([frame(kind, self._name, to, data) for data in some]))
            await self._writer.drain()

    async def batches(self) -> AsyncIterator[SpreadBatch | SpreadView]:
        """Read what comes, as long as the session lasts."""
        buffer = bytearray()
        while read := await self._reader.read(READ_SIZE):
            buffer += read
            messages: list[bytes] = []
            for one in frames(buffer):
                if one.type & DATA:
                    messages.append(one.data)
                    self._under_way -= one.name == self._name
                elif one.type & REGULAR_VIEW:
                    if messages:
                        yield SpreadBatch(messages)
                        messages = []
                    yield SpreadView(one.groups)
            self._came_back.set()
            if messages:
                yield SpreadBatch(messages)
        raise SpreadError("the daemon has ended the session")


@asynccontextmanager
async def connected(address: str, name: str, clients: int) -> AsyncIterator[SpreadClient]:
    """Connect to the daemon at `spread://HOST:PORT`, as one of so many clients that send to one group."""
    host, _, port = address.removeprefix(SCHEME).rpartition(":")
    if not (host and port.isdigit()):
        raise SpreadError("write the address of a Spread daemon as spread://HOST:PORT")
    reader, writer = await asyncio.open_connection(host, int(port))
    try:
        writer.write(VERSION + bytes((FLAGS, len(name))) + name.encode())
        await _piece(reader, "refuses the name")
        writer.write(NO_AUTHENTICATION)
        accepted = (await reader.readexactly(1))[0]
        if accepted != ACCEPTED:
            raise SpreadError(f"the daemon refuses the session: {accepted - 256}")
        await reader.readexactly(3)  # its version
        private = await _piece(reader, "names no group of the session")
        yield SpreadClient(reader, writer, private, max(1, QUEUE_MAX // clients))
    finally:
        writer.close()


async def _piece(reader: asyncio.StreamReader, refusal: str) -> bytes:
    """Read bytes behind their number; a number that is negative is a refusal."""
    size = (await reader.readexactly(1))[0]
    if not 0 < size < 128:
        raise SpreadError(f"the daemon {refusal}: {size - 256 if size else 0}")
    return await reader.readexactly(size)
