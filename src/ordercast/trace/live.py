"""Recording a live node: what happens is gathered on its event loop and written by a thread.

`LiveTrace` is called on the loop. It appends to a list, looks at messages as soon as there are enough of them that it
costs little for each, and never waits for a disk. `flush` hands the list over; the thread looks at what is left, makes
one Arrow batch and writes it in one go. Nearly all of that is work on whole arrays, for which the thread does not hold
the interpreter. A process that is killed loses what it had not handed over, except its submissions, which are in its
journal. Nothing is dropped in silence: when the disk fails, or falls so far behind that memory would fill, the
recording ends, `error` says why, and the trace says that it has no end.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ordercast.model.effects import Deliver
from ordercast.model.ids import SECOND, Instant, ProcessId
from ordercast.model.notes import Marked, Occurred, Visited
from ordercast.trace.digests import digest, looked_at
from ordercast.trace.live_columns import Gathered
from ordercast.trace.live_file import CONTROL, FULL, MULTILINEAR, LiveInfo
from ordercast.trace.live_items import DeliveredRun, Item, SubmittedRun, look
from ordercast.trace.live_writer import EVENT_SIZE, Files, LiveStream
from ordercast.trace.records import DeliveredBatch, Event, Noted, Started, Submitted

QUIET_NS = 10 * SECOND
LOOK_SIZE = 1 << 15  # so many bytes of delivered messages are looked at together, unless a flush comes before
SEEN_SIZE = 60  # bytes that a delivered message is taken to hold once it was looked at
MESSAGE_SIZE = 100  # bytes that a message is taken to hold beside its payload


class LiveTrace(LiveStream[Item]):
    """Records one process. All methods but `close` return at once."""

    def __init__(
        self, folder: Path, name: str, process: ProcessId, *, full: bool, file_size_max: int, files_max: int
    ) -> None:
        """Makes the folder and the first file. TraceError says what is in the way."""
        info = LiveInfo(name, process, FULL if full else CONTROL, 0, 0, digest=MULTILINEAR)
        self.is_full = full
        self._is_quiet = True  # nothing but notes of a quiet engine was gathered, and not for long
        self._quiet_until = 0
        self._unseen: list[DeliveredRun] = []  # of what was gathered, nobody has looked at these yet
        self._unseen_size = 0
        super().__init__(Files(folder, info, file_size_max, files_max), Gathered(process))

    def record(self, event: Event) -> None:
        """Anything that happened. What the level does not ask for is left out."""
        if not self.is_full and _is_detail(event):
            return
        size = EVENT_SIZE
        if isinstance(event, Submitted | DeliveredBatch):
            size += MESSAGE_SIZE * len(event.messages)
        if isinstance(event, Submitted):
            for (_, sender, counter), digest_, service, length in event.messages:
                one = np.array([length]), np.array([digest_])
                self._remember(SubmittedRun(event.at, sender, counter, service, *one, event.destinations))
        self._add(event, size)
        if isinstance(event, Started):  # from now on the folder knows that this process exists
            self._is_quiet = False
            self.flush()
        elif _is_quiet(event):
            self._quiet_until = self._quiet_until or event.at + QUIET_NS
            self._is_quiet &= event.at < self._quiet_until
        else:
            self._is_quiet = False

    def flush(self) -> None:
        """Hand over what was gathered. Notes that a quiet engine makes all the time are kept for some seconds, if
        nothing else came: a batch costs as much as many of them."""
        if not self._is_quiet:
            super().flush()
            self._is_quiet, self._quiet_until = True, 0

    def submitted(
        self,
        at: Instant,
        sender: int,
        first: int,
        service: int,
        payloads: Sequence[bytes],
        destinations: tuple[str, ...] = (),
    ) -> None:
        """The engine is about to be given these, in this order: call it before, so that nothing is sent that a kill
        could make unknown. Their stamps have this sender, and counters that go on from `first`."""
        if self.is_full:
            if len(payloads) == 1:
                sizes, found = np.array([len(payloads[0])]), np.array([digest(payloads[0])])
            else:
                sizes, found, _ = looked_at(payloads, 0)
            run = SubmittedRun(at, sender, first, service, sizes, found, destinations)
            self._remember(run)
            self._is_quiet = False
            self._add(run, EVENT_SIZE + MESSAGE_SIZE * len(payloads))

    def delivered(self, at: Instant, deliver: Deliver, size: int) -> None:
        """The engine delivered this, so many bytes with what an object costs; it must not be changed afterwards."""
        if not self.is_full or self.error is not None:
            return
        self._is_quiet = False
        run = DeliveredRun(at, deliver)
        self._unseen.append(run)
        self._unseen_size += size
        if self._unseen_size >= LOOK_SIZE:
            look(self._unseen)
            self._unseen, self._unseen_size = [], 0
        self._add(run, EVENT_SIZE + SEEN_SIZE * run.count)

    def _hand_over(self, *, is_last: bool) -> None:
        self._unseen, self._unseen_size = [], 0  # the writer's thread looks at them
        super()._hand_over(is_last=is_last)

    def _remember(self, run: SubmittedRun) -> None:
        if self._is_recording and self._writer.journal is not None:
            self._writer.journal.put(*run[:-1], is_bound=bool(run.destinations))


def _is_quiet(event: Event) -> bool:
    """Tell whether an engine to which nothing happens makes such events."""
    if not isinstance(event, Noted):
        return False
    note = event.note
    if isinstance(note, Visited):
        return not (note.sent or note.retransmitted or note.requested)
    return isinstance(note, Occurred | Marked)


def _is_detail(event: Event) -> bool:
    return isinstance(event, Submitted | DeliveredBatch) or (
        isinstance(event, Noted) and isinstance(event.note, Visited | Marked)
    )
