"""The journal of a simulated replica: the same files as live ones (`replicated/journal.py`) on a simulated disk.

Jobs are done one after the other, each takes its time, and then everything is made safe, as the thread of a live
replica does it (`disk/writer.py`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from ordercast.model.ids import MICROSECOND, MILLISECOND
from ordercast.replicated.effects import Snapshot, Write
from ordercast.replicated.journal import Journal
from ordercast.sim.disk import PowerFailed
from ordercast.sim.replica_tally import ReplicaOccurrence as Row

if TYPE_CHECKING:
    from ordercast.sim.replica import Replica

JOB_MIN_NS, JOB_MAX_NS = 20 * MICROSECOND, 2 * MILLISECOND

Job = tuple[Callable[[], object], Callable[[object], None]]  # what is written, and what is told when it is safe


@dataclass(slots=True, eq=False)
class SimJournal:
    replica: Replica
    journal: Journal
    jobs: deque[Job] = field(default_factory=deque)
    slowness: int = 1  # of the disk
    is_busy: bool = False
    snapshot: Snapshot | None = None  # the last one that was asked for

    def write(self, write: Write) -> None:
        self._put(partial(self.journal.append, write.number, write.notes), lambda _: self._written(write.number))

    def take(self, snapshot: Snapshot) -> None:
        """Piece by piece, between other writes."""
        self.snapshot = snapshot
        self._put(partial(self.journal.begin, snapshot.stance), lambda _: None)
        self._go_on(snapshot, snapshot.frozen.pieces())

    def _go_on(self, snapshot: Snapshot, pieces: Iterator[bytes]) -> None:
        if self.snapshot is not snapshot:
            return  # another takes its place
        piece = next(pieces, None)
        if piece is None:
            self._put(partial(self.journal.finish, snapshot.number), partial(self._pictured, snapshot))
        else:
            self._put(partial(self.journal.add, piece), lambda _: self._go_on(snapshot, pieces))

    def _written(self, number: int) -> None:
        self.replica.written(number)

    def _pictured(self, snapshot: Snapshot, size: object) -> None:
        if self.snapshot is snapshot:
            assert isinstance(size, int)
            self.replica.pictured(snapshot.number, size)

    def _put(self, job: Callable[[], object], then: Callable[[object], None]) -> None:
        self.jobs.append((job, then))
        if not self.is_busy:
            self.is_busy = True
            self._soon()

    def _soon(self) -> None:
        replicas = self.replica.replicas
        replicas.schedule(self.slowness * replicas.rng.randrange(JOB_MIN_NS, JOB_MAX_NS), self._work)

    def _work(self) -> None:
        if self.replica.is_dead:
            return
        jobs, self.jobs = list(self.jobs), deque()
        try:
            results = [job() for job, _ in jobs]
            self.journal.sync()
        except PowerFailed:
            self.replica.witness.count(Row.KILLED_WRITING)
            self.replica.replicas.power_failed(self.replica)
            return
        self.is_busy = False
        for (_, then), result in zip(jobs, results, strict=True):
            then(result)
        if self.jobs and not self.is_busy:
            self.is_busy = True
            self._soon()
