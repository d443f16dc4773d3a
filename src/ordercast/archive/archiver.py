"""Archiver: a client that joins groups and keeps what is delivered to them.

    async with Archiver("archive", ["orders"]) as archiver:
        await archiver.run()

It reads whole batches, and hands what has come to the journal whenever nothing more waits to be read: so a busy group
is written in large pieces, and a quiet one at once.
"""

from __future__ import annotations

import asyncio
import fcntl
import math
import os
import time
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from ordercast.api.client import Client
from ordercast.api.connect import connect
from ordercast.archive.files import GroupFiles
from ordercast.archive.keeper import Keeper
from ordercast.archive.layout import LOCK
from ordercast.archive.pen import SEGMENT_SIZE
from ordercast.archive.places import checked_archived
from ordercast.archive.reading import GroupReader
from ordercast.archive.statements import statement_bytes
from ordercast.archive.transfer import Donor
from ordercast.disk.writer import RETRY_MAX_S, RETRY_S, DiskWriter
from ordercast.groups.names import GROUPS_MAX, control_group
from ordercast.model.errors import UsageError
from ordercast.model.events import Batch, Dropped, Left, Piece, Reconnected, Transition, View
from ordercast.model.service import Service
from ordercast.trace.private_files import make_private_folder, open_private, remark_on_folder

GATHER_SIZE = 1 << 20  # that is handed to the journal at the latest
RETAIN_EVERY_S = 30.0


@dataclass(frozen=True, slots=True)
class Options:
    at: str | None = None  # the daemon's address
    name: str = ""
    wait_s: float = math.inf  # for the daemon to come up
    serve: tuple[str, int] = ("127.0.0.1", 0)  # for other archivers
    keep_size: int | None = None  # bytes of each group
    keep_s: float | None = None
    segment_size: int = SEGMENT_SIZE
    sync_pause_s: float = 0.01


class Archiver:
    def __init__(
        self,
        folder: Path | str,
        groups: Sequence[str],
        options: Options | None = None,
        tell: Callable[[str], None] = lambda text: None,
    ) -> None:
        """`tell` gets a sentence whenever something happens that a person may want to know."""
        self.folder = Path(folder)
        self.options = options or Options()
        self.name = ""  # as the others see it
        self._groups = [checked_archived(group) for group in dict.fromkeys(groups)]
        if not self._groups:
            raise UsageError("name at least one group")
        self._tell = tell
        self._stack = AsyncExitStack()
        self._keepers: dict[str, Keeper] = {}
        self._controls = {control_group(group): group for group in self._groups}
        self._tasks: set[asyncio.Task[None]] = set()
        self._gathered = 0

    async def __aenter__(self) -> Self:
        try:
            await self._open()
        except BaseException:
            await self._stack.aclose()
            raise
        return self

    async def __aexit__(self, *how: object) -> None:
        await self._stack.aclose()

    async def _open(self) -> None:
        lock = _locked(self.folder)
        self._stack.callback(os.close, lock)
        self.journal = DiskWriter(self.options.sync_pause_s, self._tell_of_disk, self._relieve)
        self._stack.push_async_callback(self.journal.close)
        if (remark := remark_on_folder(self.folder)) is not None:
            self._tell(remark)
        for group in self._groups:
            self._keepers[group] = self._keeper_of(group)
        self._stack.push_async_callback(self._close)
        donor = await self._stack.enter_async_context(Donor(*self.options.serve, self._found))
        connecting = connect(
            self.options.at,
            name=self.options.name,
            slow="hold",
            reconnect=True,
            on_lost=self._on_lost,
            wait=self.options.wait_s,
            sinks=True,
        )
        self._client: Client = await self._stack.enter_async_context(connecting)
        self.name = self._client.name
        for keeper in self._keepers.values():
            keeper.address = donor.where
            keeper.on_said = self._hand_over  # type: ignore[method-assign]
            keeper.begin(self._client.name)
        self._spawn(self._retain())

    def _keeper_of(self, group: str) -> Keeper:
        try:
            return Keeper(group, self.folder, self.journal, self.options.segment_size, self._tell)
        except OSError as error:
            raise _unusable(self.folder, error) from error

    def _tell_of_disk(self, text: str) -> None:
        self._tell(f"{self.folder}: {text}")

    async def _close(self) -> None:
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for keeper in self._keepers.values():
            await keeper.close()
        await self.journal.close()
        if isinstance(self.journal.failure, OSError):
            self._tell_of_disk("what came last is not written: the next start takes it from others, or marks the gap")
        for keeper in self._keepers.values():
            keeper.files.close()

    def _found(self, group: str) -> tuple[GroupReader, GroupFiles] | None:
        keeper = self._keepers.get(group)
        return None if keeper is None else (keeper.reader, keeper.files)

    def keeper(self, group: str) -> Keeper:
        return self._keepers[group]

    # The ordered stream

    async def run(self) -> None:
        """Until it is cancelled. While the disk does not write, nothing is read: everybody waits for this client, or
        its daemon disconnects it; then it connects again and takes what it missed from others, or marks the gap."""
        wanted = [name for group in self._groups for name in (control_group(group), group)]
        joining = asyncio.ensure_future(self._join(wanted))
        joining.add_done_callback(self._done)
        try:
            async for piece in self._client.batches():
                self._take(piece)
                if not self._client.inbox.size or self._gathered >= GATHER_SIZE:
                    self._hand_over()
                    await self.journal.room()
                    await self._spool_room()
        finally:
            joining.cancel()

    async def _spool_room(self) -> None:
        """What waits for its place must have room somewhere."""
        pause = RETRY_S
        while crowded := [group for group, keeper in self._keepers.items() if not keeper.has_room]:
            if pause == RETRY_S:
                self._tell_of_disk(f"what waits to be written to {', '.join(crowded)} has no room: make some")
            await asyncio.sleep(pause)
            pause = min(RETRY_MAX_S, 2 * pause)

    async def _join(self, wanted: Sequence[str]) -> None:
        each = GROUPS_MAX - GROUPS_MAX % 2  # a group and its control group are joined together
        for start in range(0, len(wanted), each):
            await self._client.meet(*wanted[start : start + each])

    def _take(self, piece: Piece) -> None:
        match piece:
            case Batch():
                self._take_batch(piece)
            case View() | Transition():
                if piece.group in self._controls:
                    self._keepers[self._controls[piece.group]].on_control(piece)
                else:
                    self._keepers[piece.group].on_item(piece)
            case Reconnected():
                self._tell(
                    f"connected again as {piece.name}: what was missed is taken from other archivers, if there are any"
                )
                self.name = piece.name
                for keeper in self._keepers.values():
                    keeper.begin(piece.name)
            case Left() | Dropped():
                raise UsageError(f"{self.name} was put out of a group: another client of its name is there")

    def _take_batch(self, batch: Batch) -> None:
        for name in batch.groups:
            keeper = self._keepers.get(name)
            if keeper is not None:
                keeper.on_item(batch)
                self._gathered += sum(map(len, batch.data))
            elif name in self._controls and batch.groups == (name,):
                for data in batch.data:
                    self._keepers[self._controls[name]].on_statement(batch.sender, data)

    def _hand_over(self) -> None:
        """To the journal, and to the group what is to be said there."""
        self._gathered = 0
        for group, keeper in self._keepers.items():
            keeper.flush()
            if keeper.says:
                says, keeper.says = keeper.says, []
                payloads = [statement_bytes(statement) for statement in says]
                self._spawn(self._say(control_group(group), payloads))
            if keeper.acks:
                acks, keeper.acks = keeper.acks, []
                self._spawn(self._acknowledge(keeper, acks))

    async def _say(self, control: str, payloads: list[bytes]) -> None:
        await self._client.send_many(control, payloads, Service.AGREED)

    async def _acknowledge(self, keeper: Keeper, acks: list[tuple[str, bytes]]) -> None:
        await self.journal.do(keeper.files, lambda: None)
        for sender, ack in acks:
            await self._client.send(sender, ack)

    async def _retain(self) -> None:
        if self.options.keep_size is None and self.options.keep_s is None:
            return
        while True:
            await asyncio.sleep(RETAIN_EVERY_S)
            for keeper in self._keepers.values():
                await self.retain(keeper)

    def _relieve(self) -> None:
        """Removes what need not be kept; on the journal's thread, while the disk is full."""
        for keeper in self._keepers.values():
            self._retained(keeper)

    def _retained(self, keeper: Keeper) -> list[Path]:
        if self.options.keep_size is None and self.options.keep_s is None:
            return []
        older_than = None if self.options.keep_s is None else time.time() - self.options.keep_s
        return keeper.files.retain(self.options.keep_size, older_than)

    async def retain(self, keeper: Keeper) -> None:
        removed = await self.journal.do(keeper.files, lambda: self._retained(keeper))
        if removed:
            self._tell(f"{keeper.group}: {len(removed)} old segments were removed")

    def _spawn(self, work: object) -> None:
        task = asyncio.ensure_future(work)  # type: ignore[call-overload]
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._tell(f"something could not be said to the group: {error}")

    def _on_lost(self, why: str) -> None:
        self._tell(f"{why}; looking for a daemon …")


def _unusable(folder: Path, error: OSError) -> UsageError:
    return UsageError(f"{folder} cannot be used: {error.strerror}; make room there, or choose another with --dir")


def _locked(folder: Path) -> int:
    try:
        make_private_folder(folder)
        lock = open_private(folder / LOCK, os.O_RDWR | os.O_CREAT)
    except OSError as error:
        raise _unusable(folder, error) from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        raise UsageError(f"another archiver writes to {folder}: choose another folder with --dir") from None
    return lock
