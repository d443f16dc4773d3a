"""The trace of a live node: what happened, in the records that the checkers read.

At level full every payload is stamped with who it is before the engine sees it, and the stamp is taken off again before
the application does: identity must come from outside the engine that is to be judged. Bit 31 of the engine's sender
number says that there is a stamp, so that nodes which record and nodes which do not understand each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

from ordercast.daemon.config import TraceConfig, TraceLevel
from ordercast.model.effects import Deliver, Parcel
from ordercast.model.ids import Instant, ProcessId
from ordercast.model.inputs import Submission
from ordercast.trace.live import LiveTrace
from ordercast.trace.records import STAMP_SIZE, STAMPED, Event, MessageId, stamped


class Recording:
    def __init__(self, config: TraceConfig, name: str, process: ProcessId) -> None:
        """Opens the first file; TraceError says what is in the way."""
        self.is_full = config.level is TraceLevel.FULL
        self._process = process
        self._counters: dict[int, count[int]] = {}
        self._trace = LiveTrace(
            config.folder,
            name,
            process,
            full=self.is_full,
            file_size_max=config.file_size_max,
            files_max=config.files_max,
        )

    @property
    def error(self) -> str | None:
        return self._trace.error

    def record(self, event: Event) -> None:
        self._trace.record(event)

    def submitted(self, submissions: Sequence[Submission], at: Instant) -> list[Submission]:
        """The same, stamped."""
        marked: list[Submission] = []
        rows: list[tuple[int, int, int, bytes]] = []
        for submission in submissions:
            sender, service = submission.sender, submission.service
            number = next(self._counters.setdefault(sender, count(1)))
            data = stamped(MessageId(self._process, sender, number), submission.data)
            rows.append((sender, number, int(service), data))
            marked.append(Submission(data, service, sender | STAMPED, submission.destinations))
        self._trace.submitted(at, rows)
        return marked

    def delivered(self, deliver: Deliver, at: Instant) -> None:
        self._trace.delivered(at, deliver)

    def flush(self) -> None:
        self._trace.flush()

    def close(self) -> None:
        self._trace.close()


def without_stamps(deliver: Deliver) -> Deliver:
    """What the application submitted. A process stamps all of its messages or none."""
    if not any(parcel[2][0] & STAMPED for parcel in deliver.parcels):
        return deliver
    return Deliver(deliver.view, deliver.ring, [_without_stamp(parcel) for parcel in deliver.parcels], deliver.ordered)


def _without_stamp(parcel: Parcel) -> Parcel:
    seq, originator, senders, services, payloads, each = parcel
    if not senders[0] & STAMPED:
        return parcel
    cut = [data[STAMP_SIZE:] for data in payloads]
    return seq, originator, [sender & ~STAMPED for sender in senders], services, cut, each
