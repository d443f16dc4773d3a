"""The trace of a live node: what happened, in the records that the checkers read.

At level full every payload is stamped with who it is before the engine sees it, and the stamp is taken off again before
the application does: identity must come from outside the engine that is to be judged. Bit 31 of the engine's sender
number says that there is a stamp, so that nodes which record and nodes which do not understand each other.
"""

from __future__ import annotations

import sys

from ordercast.daemon.config.node import TraceConfig, TraceLevel
from ordercast.model.effects import Deliver
from ordercast.model.ids import Instant, ProcessId
from ordercast.model.inputs import Submissions
from ordercast.trace.live import LiveTrace
from ordercast.trace.live_stamp import live_stamped
from ordercast.trace.records import STAMPED, Event

SWITCH_INTERVAL_S = 0.0002  # of Python's threads; the usual one, 5 ms, is many rotations


class Recording:
    def __init__(self, config: TraceConfig, name: str, process: ProcessId) -> None:
        """Opens the first file; TraceError says what is in the way."""
        self.is_full = config.level is TraceLevel.FULL
        if self.is_full:  # the writer works while the event loop waits: the loop must not wait long to go on
            sys.setswitchinterval(min(sys.getswitchinterval(), SWITCH_INTERVAL_S))
        self._process = process
        self._counters: dict[int, int] = {}  # messages submitted, by sender
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

    def submitted(self, submissions: Submissions, at: Instant) -> Submissions:
        """The same, stamped."""
        sender, service = submissions.sender, submissions.service
        first = self._counters.get(sender, 0) + 1
        self._counters[sender] = first + len(submissions.payloads) - 1
        payloads = live_stamped(self._process, sender, first, submissions.payloads)
        self._trace.submitted(at, sender, first, int(service), payloads, submissions.destinations)
        return Submissions(payloads, service, sender | STAMPED, submissions.destinations)

    def delivered(self, deliver: Deliver, at: Instant, size: int) -> None:
        """`size` is about what the messages hold in memory."""
        self._trace.delivered(at, deliver, size)

    def flush(self) -> None:
        self._trace.flush()

    def close(self) -> None:
        self._trace.close()
