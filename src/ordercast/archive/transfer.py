"""Transfer between archivers, over TCP beside the group: what one has missed it takes from another, into its own files.

    asks    size (4) | JSON: {"group"} for the catalogue, {"group", "branch", "first", "last"} for entries
    gets    blocks: kind (1) | size (4) | body, up to END
            CATALOGUE (JSON), START (of a segment), FRAME, REFUSED (a sentence), END

Frames travel as they are on disk, cut where the asker has the beginning already; each has its checksum. All of it is
sealed under a secret that the donor's statements tell the archivers (`daemon/sockets/sealed_streams.py`).
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator
from itertools import islice
from pathlib import Path
from struct import Struct
from typing import Any, Final, NamedTuple

from ordercast.archive.branches import Branch, Stretch, ancestors, branch_bytes, branch_from
from ordercast.archive.files import GroupFiles
from ordercast.archive.frames import FRAME_SIZE_MAX, header_from, is_whole
from ordercast.archive.layout import Start, opening_size, segment_path, segments_of, start_from
from ordercast.archive.places import UNREADABLE, Place, checked_branch
from ordercast.archive.reading import GroupReader
from ordercast.archive.statements import DonorAddress
from ordercast.daemon.sockets.sealed_streams import answer_sealed, ask_sealed, new_secret
from ordercast.daemon.sockets.tcp import TcpServer
from ordercast.disk.writer import DiskWriter
from ordercast.model.errors import UsageError, WireError

ASK: Final = Struct("!I")
BLOCK: Final = Struct("!BI")
CATALOGUE, START, FRAME, REFUSED, END = range(1, 6)
ASK_SIZE_MAX = 4096
PATIENCE_S = 20.0
ASKERS_MAX = 32
TURN = 8  # blocks that are read from disk at once
WINDOW_SIZE = 1 << 20
RETRY_S = 0.1
RETRY_MAX_S = 2.0
CHUNK_SIZE = 4 << 20


class Catalogue(NamedTuple):
    tree: dict[str, Branch]
    spans: dict[str, tuple[int, int]]  # first and last number that can be had


class Donor(TcpServer):
    """Hands out what is on disk."""

    def __init__(self, host: str, port: int, reader: Callable[[str], tuple[GroupReader, GroupFiles] | None]) -> None:
        super().__init__(host, port, WINDOW_SIZE)
        self._find = reader
        self._secret = new_secret()

    @property
    def where(self) -> DonorAddress:
        return DonorAddress(self.address, self.port, self._secret)

    def refused(self, error: OSError) -> UsageError:
        why = f"{self.address}:{self.port}: {error.strerror or error}"
        return UsageError(f"other archivers cannot be served at {why}: choose another address with --serve")

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with asyncio.timeout(PATIENCE_S):
            question, answer = await answer_sealed(reader, writer, self._secret)
        try:
            if len(self.connections) > ASKERS_MAX:
                raise UsageError("too many others are being served: ask another archiver, or later")
            async with asyncio.timeout(PATIENCE_S):
                (size,) = ASK.unpack(await question.readexactly(ASK.size))
                if size > ASK_SIZE_MAX:
                    raise UsageError("this is no question for an archiver")
                asked = _asked(await question.readexactly(size))
            blocks = self._blocks(asked)
            while chunk := await asyncio.to_thread(lambda: list(islice(blocks, TURN))):
                for kind, body in chunk:
                    answer.write(BLOCK.pack(kind, len(body)))
                    answer.write(body)
                async with asyncio.timeout(PATIENCE_S):
                    await answer.drain()
        except (UsageError, WireError, FileNotFoundError) as error:
            answer.write(_block(REFUSED, str(error).encode()))
        answer.write(_block(END, b""))
        async with asyncio.timeout(PATIENCE_S):
            await answer.drain()

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


class Hole(TransferFailed):
    """Numbers would be missing if the rest came from this one: somebody else may have them."""

    def __init__(self, branch: str, first: int, last: int) -> None:
        super().__init__(f"{branch}:{first} to {last} is not kept there any more")
        self.branch, self.size = branch, last - first + 1


async def ask(address: DonorAddress, **question: Any) -> AsyncIterator[tuple[int, bytes]]:
    """The blocks of the answer. TransferFailed when there is none."""
    try:
        async with asyncio.timeout(PATIENCE_S):
            reader, writer = await asyncio.open_connection(address.host, address.port, limit=WINDOW_SIZE)
    except (OSError, TimeoutError) as error:
        raise TransferFailed(f"{address[0]}:{address[1]} cannot be reached: {error or 'it does not answer'}") from None
    try:
        body = json.dumps(question).encode()
        async with asyncio.timeout(PATIENCE_S):
            answer, asked = await ask_sealed(reader, writer, address.secret)
        asked.write(ASK.pack(len(body)) + body)
        while True:
            async with asyncio.timeout(PATIENCE_S):
                kind, size = BLOCK.unpack(await answer.readexactly(BLOCK.size))
                if kind == END:
                    return
                if not CATALOGUE <= kind <= REFUSED or size > FRAME_SIZE_MAX + 4096:
                    raise TransferFailed(f"{address[0]}:{address[1]} is no archiver")
                data = await answer.readexactly(size)
            if kind == REFUSED:
                raise TransferFailed(data.decode(errors="replace"))
            yield kind, data
    except WireError as error:
        raise TransferFailed(f"{address.host}:{address.port}: {error}") from None
    except (OSError, TimeoutError, asyncio.IncompleteReadError) as error:
        raise TransferFailed(f"{address[0]}:{address[1]} ended in the middle: {error}") from None
    finally:
        writer.transport.abort()


async def catalogue(address: DonorAddress, group: str) -> Catalogue:
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


class Filling:
    """Brings the branches of one group."""

    def __init__(self, group: str, files: GroupFiles, journal: DiskWriter, tell: Callable[[str], None]) -> None:
        self._group = group
        self._files = files
        self._journal = journal
        self._tell = tell
        self._told = ""  # why it has not come
        self.fetched = 0  # bytes

    async def up_to(self, place: Place, addresses: Callable[[], list[DonorAddress]]) -> None:
        """Everything behind this place, and up to it. Tries for ever: it is cancelled when nobody has it any more. A
        hole is left only when everybody was asked: before what the one has from whom the fewest numbers are missing."""
        pause, self._told = RETRY_S, ""
        while True:
            holes: list[tuple[Hole, DonorAddress]] = []
            for address in addresses():
                if await self._could(address, place, holes):
                    return
            if holes:
                hole, address = min(holes, key=lambda one: one[0].size)
                asked = len(holes)
                if await self._could(address, place, holes, hole.branch):
                    return
                if len(holes) > asked:
                    continue  # this branch is here, and the next has a hole, too: for that one everybody is asked
            await asyncio.sleep(pause)
            pause = min(RETRY_MAX_S, 2 * pause)

    async def _could(
        self, address: DonorAddress, place: Place, holes: list[tuple[Hole, DonorAddress]], with_hole_in: str = ""
    ) -> bool:
        """Tells whether everything up to the place has come from here."""
        try:
            await self._from(address, place, with_hole_in)
        except Hole as hole:
            holes.append((hole, address))
        except TransferFailed as error:
            if str(error) != self._told:
                self._told = str(error)
                self._tell(f"{place} of {self._group} could not be fetched: {error}; trying again")
        else:
            return True
        return False

    async def _from(self, address: DonorAddress, place: Place, with_hole_in: str) -> None:
        """What this one has on the way to a place. TransferFailed when it does not have the place itself."""
        found = await catalogue(address, self._group)
        if place.branch not in found.tree:
            raise TransferFailed(f"{address[0]}:{address[1]} does not have the branch {place.branch} yet")
        for name in sorted(ancestors(found.tree, place.branch), key=lambda name: found.tree[name].base):
            limit = place.number if name == place.branch else None
            await self._branch(address, found, name, limit, with_hole=name == with_hole_in)
        if place.number > found.tree[place.branch].base and found.spans.get(place.branch, (0, 0))[1] < place.number:
            raise TransferFailed(f"{address[0]}:{address[1]} does not have {place} on disk yet")

    async def others(self, address: DonorAddress, but: set[str], *, with_holes: bool) -> None:
        """What this one has of branches that are not ours: histories that others had. Hole when there is more, and
        numbers before it would be missing."""
        found = await catalogue(address, self._group)
        holes = []
        for name in sorted(found.tree, key=lambda name: found.tree[name].base):
            try:
                if name not in but:
                    await self._branch(address, found, name, None, with_hole=with_holes)
            except Hole as hole:
                holes.append(hole)
        if holes:
            raise holes[0]

    async def _branch(
        self, address: DonorAddress, found: Catalogue, name: str, limit: int | None, *, with_hole: bool
    ) -> None:
        branch: Branch = found.tree[name]
        await self._journal.do(self._files, lambda: self._files.begin(branch, is_own=False))
        if name not in found.spans:
            return
        first, last = found.spans[name]
        have = self._files.last(name)
        assert have is not None
        last = last if limit is None else min(limit, last)
        if have >= last:
            return
        if first > have + 1 and not with_hole:
            raise Hole(name, have + 1, first - 1)
        if first > have + 1:
            self._tell(f"{self._group}: {name}:{have + 1} to {first - 1} is kept by nobody who could be asked")
        await self._entries(address, name, max(first, have + 1), last)

    async def _entries(self, address: DonorAddress, name: str, first: int, last: int) -> None:
        start: Start | None = None
        frames: list[bytes] = []
        size = 0
        async for kind, data in ask(address, group=self._group, branch=name, first=first, last=last):
            if kind == START:
                await self._append(name, frames, start)
                frames, size, start = [], 0, _start(data)
            elif kind == FRAME:
                first = _number_behind(data, first, is_start=start is not None and not frames)
                frames.append(data)
                size += len(data)
                self.fetched += len(data)
                if size >= CHUNK_SIZE:
                    await self._append(name, frames, start)
                    frames, size, start = [], 0, None
        await self._append(name, frames, start)

    async def _append(self, name: str, frames: list[bytes], start: Start | None) -> None:
        if frames:
            await self._journal.do(self._files, lambda: self._files.append(name, frames, start, is_own=False))


def _start(data: bytes) -> Start:
    try:
        return start_from(data)[0]
    except WireError as error:
        raise TransferFailed(str(error)) from None


def _number_behind(data: bytes, wanted: int, *, is_start: bool) -> int:
    """The number after a frame that came. What is damaged, or is not the next, never reaches the disk; where a segment
    begins, numbers may be missing."""
    try:
        header = header_from(data)
    except WireError as error:
        raise TransferFailed(str(error)) from None
    if not is_whole(data, 0, header) or header.size != len(data):
        raise TransferFailed("a frame came damaged")
    if header.first != wanted and not (is_start and header.first > wanted):
        raise TransferFailed(f"number {header.first} came where {wanted} was wanted")
    return header.last + 1
