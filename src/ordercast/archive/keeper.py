"""Keeper: keeps the archive of one group. Obeys the lineage; writes, says and fetches for it."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ordercast.archive.branches import Branch, Cause, ancestors
from ordercast.archive.entries import Item
from ordercast.archive.files import GroupFiles
from ordercast.archive.layout import group_folder
from ordercast.archive.lineage import Begin, Fetch, Lineage, Say, StopFetching, Write
from ordercast.archive.pen import Draft, Pen
from ordercast.archive.places import Place
from ordercast.archive.reading import GroupReader
from ordercast.archive.spool import Spool
from ordercast.archive.statements import DonorAddress, Kind, Statement, statement_from
from ordercast.archive.transfer import Filling, Hole, TransferFailed
from ordercast.disk.writer import DiskWriter
from ordercast.model.errors import WireError
from ordercast.model.events import Transition, View

BACKFILL_ROUNDS = 20
COMPLAINED_MAX = 100


class Keeper:
    def __init__(
        self, group: str, folder: Path, journal: DiskWriter, segment_size: int, tell: Callable[[str], None]
    ) -> None:
        self.group = group
        self.files = GroupFiles(group_folder(folder, group))
        self.reader = GroupReader(folder, group)
        self.says: list[Statement] = []  # to the control group; the archiver takes them
        self.acks: list[tuple[str, bytes]] = []  # to sinks, when everything before is safe; likewise
        self.address: DonorAddress | None = None  # where this archiver hands out what it has
        self._journal = journal
        self._tell = tell
        self._pen = Pen(segment_size)
        self._spool = Spool(self.files.folder)
        self._filling = Filling(group, self.files, journal, tell)
        self._lineage = Lineage(group, "")
        self._addresses: dict[str, DonorAddress] = {}
        self._complained: set[str] = set()  # of whom a person was told
        self._task: asyncio.Task[None] | None = None
        self._backfill: asyncio.Task[None] | None = None

    @property
    def place(self) -> Place | None:
        """Where it is; None while it is not settled."""
        return self._lineage.place if self._lineage.is_settled else None

    @property
    def has_room(self) -> bool:
        """More can wait here for its place."""
        return self._spool.has_room()

    @property
    def waiting(self) -> int:
        return self._lineage.waiting

    def begin(self, me: str) -> None:
        """A new life in the group."""
        self._stop(self._task)
        self._stop(self._backfill)
        self.flush()
        stopped = self._pen.place or self.files.tip
        self._lineage = Lineage(self.group, me, stopped)
        self._spool.clear()

    async def close(self) -> None:
        for task in (self._task, self._backfill):
            self._stop(task)
            if task is not None:
                await asyncio.gather(task, return_exceptions=True)
        self.flush()

    # The ordered stream

    def on_item(self, item: Item) -> None:
        lineage = self._lineage
        lineage.on_item(item if lineage.is_settled else self._spool.put(item))
        self._obey()

    def on_control(self, news: View | Transition) -> None:
        if isinstance(news, View):
            self._addresses = {name: at for name, at in self._addresses.items() if name in news.members}
        self._lineage.on_control(news)
        self._obey()

    def on_statement(self, sender: str, data: bytes) -> None:
        if not self._lineage.hears(sender):
            self._complain(sender, "it is none of them")
            return
        try:
            statement = statement_from(data, self.group)
        except WireError as error:
            self._complain(sender, str(error))
            return
        if statement.address is not None and sender != self._lineage.me:
            self._addresses[sender] = statement.address
        self._lineage.on_statement(sender, statement)
        self._obey()

    def _complain(self, sender: str, why: str) -> None:
        """Log each complaint once: who says something wrong may say it without end."""
        if sender not in self._complained and len(self._complained) < COMPLAINED_MAX:
            self._complained.add(sender)
            self._tell(f"{sender} says something to the archivers of {self.group}, and is not heard: {why}")

    def _obey(self) -> None:
        if not self._lineage.actions:
            return
        actions, self._lineage.actions = self._lineage.actions, []
        for action in actions:
            match action:
                case Write(item):
                    self._pen.write(self._spool.get(item))
                case Say(statement):
                    sinks = self._pen.sinks.document() if statement.kind is Kind.TIP else {}
                    self.says.append(replace(statement, address=self.address, sinks=sinks))
                case Begin(branch, sinks):
                    self._begin(branch, sinks)
                case Fetch(place, speaker):
                    self._fetch(place, speaker)
                case StopFetching():
                    self._stop_fetching()
        if self._lineage.is_settled and not self._lineage.waiting:
            self._spool.clear()

    def _begin(self, branch: Branch, sinks: tuple[Mapping[str, Any], ...]) -> None:
        if branch.has_gap and self._pen.place != branch.parents[0]:
            self._pen.go_on(branch.parents[0], self.files.state(branch.parents[0]))
        self.flush()
        self._pen.begin(Place(branch.name, branch.base), sinks)
        self._journal.put(self.files, lambda: self.files.begin(branch, is_own=True))
        self._tell(_branch_text(self.group, branch))
        if branch.cause is Cause.MERGE:
            self._stop(self._backfill)
            self._backfill = asyncio.get_running_loop().create_task(self._fetch_others(branch))

    # What others have

    def _known_addresses(self, first: str = "") -> list[DonorAddress]:
        names = sorted(self._addresses, key=lambda name: (name != first, name))
        return [self._addresses[name] for name in names]

    def _fetch(self, place: Place, speaker: str) -> None:
        self._stop(self._task)
        self._task = asyncio.get_running_loop().create_task(self._fill(place, speaker))

    async def _fill(self, place: Place, speaker: str) -> None:
        before = self._filling.fetched
        await self._filling.up_to(place, lambda: self._known_addresses(speaker))
        state = await self._journal.do(self.files, lambda: self._settled_at(place))
        if fetched := self._filling.fetched - before:
            self._tell(f"{self.group}: fetched {fetched / 1e6:,.1f} MB from other archivers, up to {place}")
        self._pen.go_on(place, state)
        self._lineage.stopped = place
        self._lineage.filled(place)
        self._obey()
        self.on_said()

    def _settled_at(self, place: Place) -> Any:
        """On the journal's thread: this is our own history now."""
        self.files.begin(self.files.tree[place.branch], is_own=True)
        self.files.move_tip(place)
        return self.files.state(place)

    def on_said(self) -> None:
        """The archiver's: something is to be said, and nothing has come."""

    def _stop_fetching(self) -> None:
        self._stop(self._task)
        stopped = self._lineage.stopped
        if stopped is not None and (last := self.files.last(stopped.branch)) is not None:
            self._lineage.stopped = Place(stopped.branch, max(last, stopped.number))

    async def _fetch_others(self, branch: Branch) -> None:
        """The histories that others had, until nothing of them is missing, or nobody has it. A hole is left only when
        everybody was asked."""
        has_more = False  # behind a hole
        for turn in range(BACKFILL_ROUNDS):
            await asyncio.sleep(0.1 * turn)
            missing = [parent for parent in branch.parents if (self.files.last(parent.branch) or 0) < parent.number]
            if not missing and not has_more:
                return
            has_more = False
            own = {self._lineage.place.branch} if self._lineage.place is not None else set()
            for address in self._known_addresses():
                try:
                    await self._filling.others(address, own | self._later_than(branch), with_holes=turn > 0)
                except Hole:
                    has_more = True
                except TransferFailed as error:
                    self._tell(f"{self.group}: a branch could not be fetched yet: {error}")

    def _later_than(self, branch: Branch) -> set[str]:
        """Branches that we write, or may write yet."""
        tree = dict(self.files.tree)  # the journal's thread adds to it
        return {name for name in tree if branch.name in ancestors(tree, name)}

    @staticmethod
    def _stop(task: asyncio.Task[None] | None) -> None:
        if task is not None and task is not asyncio.current_task():
            task.cancel()

    # The disk

    def flush(self) -> None:
        """Hand over what was written. Sinks are answered when it is safe."""
        self._pen.flush()
        drafts, self._pen.drafts = self._pen.drafts, []
        if drafts:
            write_drafts(self._journal, self.files, drafts)
        commits, self._pen.commits = self._pen.commits, []
        for sender, commit, place in commits:
            document = {
                "ordercast": "sink",
                "group": self.group,
                "sink": commit.sink,
                "batch": commit.batch,
                "outcome": commit.outcome.value,
                "place": str(place),
            }
            self.acks.append((sender, json.dumps(document, separators=(",", ":")).encode()))


def _branch_text(group: str, branch: Branch) -> str:
    behind = ", ".join(map(str, branch.parents))
    match branch.cause:
        case Cause.ROOT if branch.parents:
            return f"{group}: branch {branch.name} begins behind {behind}, with a gap: nobody has what came in between"
        case Cause.ROOT:
            return f"{group}: branch {branch.name} begins"
        case Cause.FORK:
            return f"{group}: branch {branch.name} begins behind {behind}: some archivers are out of reach"
        case Cause.MERGE:
            return f"{group}: branch {branch.name} begins behind {behind}: archivers come together"


def write_drafts(writer: DiskWriter, files: GroupFiles, drafts: Sequence[Draft]) -> None:
    """In the archiver's own history. They are sealed on the writer's thread."""

    def job() -> None:
        now = time.time_ns()
        for draft in drafts:
            files.append(draft.branch, [draft.seal(now)], draft.start, is_own=True)

    writer.put(files, job, sum(len(part) for draft in drafts for part in draft.parts))
