"""Transfer between archivers, over TCP beside the group: what one has missed it takes from another.

    asks    size (4) | JSON: {"group"} for the catalogue, {"group", "branch", "first", "last"} for entries
    gets    blocks: kind (1) | size (4) | body, up to END
            CATALOGUE (JSON), START (of a segment), FRAME, REFUSED (a sentence), END

Frames travel as they are on disk, cut where the asker has the beginning already; each has its checksum.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator
from itertools import islice
from pathlib import Path
from struct import Struct
from typing import Any, Final, NamedTuple

from ordercast.archive.branches import Branch, Stretch, branch_bytes, branch_from
from ordercast.archive.files import GroupFiles
from ordercast.archive.frames import FRAME_SIZE_MAX
from ordercast.archive.layout import opening_size, segment_path, segments_of
from ordercast.archive.places import UNREADABLE, checked_branch
from ordercast.archive.reading import GroupReader
from ordercast.daemon.sockets.tcp import TcpServer
from ordercast.model.errors import UsageError, WireError

ASK: Final = Struct("!I")
BLOCK: Final = Struct("!BI")
CATALOGUE, START, FRAME, REFUSED, END = range(1, 6)
ASK_SIZE_MAX = 4096
PATIENCE_S = 20.0
ASKERS_MAX = 32
TURN = 8  # blocks that are read from disk at once
WINDOW_SIZE = 1 << 20


class Catalogue(NamedTuple):
    tree: dict[str, Branch]
    spans: dict[str, tuple[int, int]]  # first and last number that can be had


class Donor(TcpServer):
    """Hands out what is on disk."""

    def __init__(self, host: str, port: int, reader: Callable[[str], tuple[GroupReader, GroupFiles] | None]) -> None:
        super().__init__(host, port, WINDOW_SIZE)
        self._find = reader

    def refused(self, error: OSError) -> UsageError:
        why = f"{self.address}:{self.port}: {error.strerror or error}"
        return UsageError(f"other archivers cannot be served at {why}: choose another address with --serve")

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            if len(self.connections) > ASKERS_MAX:
                raise UsageError("too many others are being served: ask another archiver, or later")
            async with asyncio.timeout(PATIENCE_S):
                (size,) = ASK.unpack(await reader.readexactly(ASK.size))
                if size > ASK_SIZE_MAX:
                    raise UsageError("this is no question for an archiver")
                asked = _asked(await reader.readexactly(size))
            blocks = self._blocks(asked)
            while chunk := await asyncio.to_thread(lambda: list(islice(blocks, TURN))):
                for kind, body in chunk:
                    writer.write(BLOCK.pack(kind, len(body)))
                    writer.write(body)
                async with asyncio.timeout(PATIENCE_S):
                    await writer.drain()
        except (UsageError, WireError, FileNotFoundError) as error:
            writer.write(_block(REFUSED, str(error).encode()))
        writer.write(_block(END, b""))
        async with asyncio.timeout(PATIENCE_S):
            await writer.drain()

    def _blocks(self, asked: dict[str, Any]) -> Iterator[tuple[int, bytes | memoryview]]:
        found = self._find(asked["group"])
        if found is None:
            raise UsageError(f"{asked['group']} is not archived here")
        reader, files = found
        if "branch" not in asked:
            yield CATALOGUE, _catalogue_bytes(files)
            return
        branch, first, last = asked["branch"], asked["first"], asked["last"]
        if branch not in files.tree:
            raise UsageError(f"{asked['group']} has no branch {branch} here")
        path = reader.path / branch
        starts = {number for number, _ in segments_of(path)}
        for frame in reader.frames(Stretch(branch, first, last)):
            if frame.header.first in starts:
                yield START, _start_of(segment_path(path, frame.header.first))
            yield FRAME, frame.data


def _start_of(path: Path) -> bytes:
    size = opening_size(path)
    with path.open("rb") as file:
        return file.read(size)


def _catalogue_bytes(files: GroupFiles) -> bytes:
    tree = {name: json.loads(branch_bytes(branch)) for name, branch in list(files.tree.items())}
    return json.dumps({"tree": tree, "spans": files.durable()}).encode()


def _asked(data: bytes) -> dict[str, Any]:
    try:
        found = json.loads(data)
        asked: dict[str, Any] = {"group": str(found["group"])}
        if "branch" in found:
            asked |= {
                "branch": checked_branch(found["branch"]),
                "first": int(found["first"]),
                "last": int(found["last"]),
            }
    except UNREADABLE:
        raise UsageError("this is no question for an archiver") from None
    return asked


def _block(kind: int, body: bytes) -> bytes:
    return BLOCK.pack(kind, len(body)) + body


# Who asks


class TransferFailed(Exception):
    """It says why."""


async def ask(address: tuple[str, int], **question: Any) -> AsyncIterator[tuple[int, bytes]]:
    """The blocks of the answer. TransferFailed when there is none."""
    try:
        async with asyncio.timeout(PATIENCE_S):
            reader, writer = await asyncio.open_connection(*address, limit=WINDOW_SIZE)
    except (OSError, TimeoutError) as error:
        raise TransferFailed(f"{address[0]}:{address[1]} cannot be reached: {error or 'it does not answer'}") from None
    try:
        body = json.dumps(question).encode()
        writer.write(ASK.pack(len(body)) + body)
        while True:
            async with asyncio.timeout(PATIENCE_S):
                kind, size = BLOCK.unpack(await reader.readexactly(BLOCK.size))
                if kind == END:
                    return
                if not CATALOGUE <= kind <= REFUSED or size > FRAME_SIZE_MAX + 4096:
                    raise TransferFailed(f"{address[0]}:{address[1]} is no archiver")
                data = await reader.readexactly(size)
            if kind == REFUSED:
                raise TransferFailed(data.decode(errors="replace"))
            yield kind, data
    except (OSError, TimeoutError, asyncio.IncompleteReadError) as error:
        raise TransferFailed(f"{address[0]}:{address[1]} ended in the middle: {error}") from None
    finally:
        writer.transport.abort()


async def catalogue(address: tuple[str, int], group: str) -> Catalogue:
    async for kind, data in ask(address, group=group):
        if kind == CATALOGUE:
            try:
                found = json.loads(data)
                branches = [branch_from(json.dumps(one).encode(), group) for one in found["tree"].values()]
                tree = {branch.name: branch for branch in branches}
                spans = {
                    checked_branch(name): (int(first), int(last)) for name, (first, last) in found["spans"].items()
                }
            except UNREADABLE as error:
                raise TransferFailed(f"its catalogue cannot be read: {error}") from None
            return Catalogue(tree, spans)
    raise TransferFailed("it gave no catalogue")
