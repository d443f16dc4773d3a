"""Filling: brings branches that others have into one's own files."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from ordercast.archive.branches import Branch, ancestors
from ordercast.archive.files import GroupFiles
from ordercast.archive.frames import header_from, is_whole
from ordercast.archive.journal import Journal
from ordercast.archive.layout import Start, start_from
from ordercast.archive.places import Place
from ordercast.archive.transfer import FRAME, START, Catalogue, TransferFailed, ask, catalogue
from ordercast.model.errors import WireError

RETRY_S = 0.1
RETRY_MAX_S = 2.0
CHUNK_SIZE = 4 << 20

Address = tuple[str, int]


class Filling:
    """Brings the branches of one group."""

    def __init__(self, group: str, files: GroupFiles, journal: Journal, tell: Callable[[str], None]) -> None:
        self._group = group
        self._files = files
        self._journal = journal
        self._tell = tell
        self.fetched = 0  # bytes

    async def up_to(self, place: Place, addresses: Callable[[], list[Address]]) -> None:
        """Everything behind this place, and up to it. Tries for ever: it is cancelled when nobody has it any more."""
        pause, told = RETRY_S, ""
        while True:
            for address in addresses():
                try:
                    await self._from(address, place)
                    return
                except TransferFailed as error:
                    if str(error) != told:
                        told = str(error)
                        self._tell(f"{place} of {self._group} could not be fetched: {told}; trying again")
            await asyncio.sleep(pause)
            pause = min(RETRY_MAX_S, 2 * pause)

    async def _from(self, address: Address, place: Place) -> None:
        found = await catalogue(address, self._group)
        if place.branch not in found.tree:
            raise TransferFailed(f"{address[0]}:{address[1]} does not have the branch {place.branch} yet")
        if place.number > found.tree[place.branch].base and found.spans.get(place.branch, (0, 0))[1] < place.number:
            raise TransferFailed(f"{address[0]}:{address[1]} does not have {place} on disk yet")
        for name in sorted(ancestors(found.tree, place.branch), key=lambda name: found.tree[name].base):
            limit = place.number if name == place.branch else None
            await self._branch(address, found, name, limit)

    async def others(self, address: Address, but: set[str]) -> None:
        """What this one has of branches that are not ours: histories that others had."""
        found = await catalogue(address, self._group)
        for name in sorted(found.tree, key=lambda name: found.tree[name].base):
            if name not in but:
                await self._branch(address, found, name, None)

    async def _branch(self, address: Address, found: Catalogue, name: str, limit: int | None) -> None:
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
        if first > have + 1:
            self._tell(f"{self._group}: {name}:{have + 1} to {first - 1} is not kept anywhere any more")
        await self._entries(address, name, max(first, have + 1), last)

    async def _entries(self, address: Address, name: str, first: int, last: int) -> None:
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
