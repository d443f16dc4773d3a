"""The number of the newest view in stable storage: written before a daemon is ready for the view, so that the views of
its node's next life come after it. A disk that refuses or hangs does not stop it: after some patience it goes on
without, and says so."""

from __future__ import annotations

from ordercast.model.effects import Alarm, AlarmKind, Effect, Persist, Record
from ordercast.model.ids import Instant, ProcessId
from ordercast.model.inputs import Stored
from ordercast.model.notes import Occurred, Occurrence
from ordercast.order.engine import CONFIGURATION_SEQ_KEY, stored_configuration_seq
from ordercast.order.membership.bounds import stored_ring_seq
from ordercast.order.sites.views import next_seq


class WideStorage:
    def __init__(self, patience_ns: int) -> None:
        self._patience_ns = patience_ns
        self._confirmed = 0
        self._wanted = 0
        self._written: int | None = None  # the one write that is outstanding
        self.is_without = False
        self.deadline: Instant | None = None  # of patience

    def start(self, stored: Stored) -> int:
        """Return the seq of the first view of this life."""
        self._confirmed = stored_ring_seq(stored_configuration_seq(stored)) or 0
        return next_seq(self._confirmed)

    def has(self, seq: int) -> bool:
        return self._confirmed >= seq or (self.is_without and self._wanted >= seq)

    def want(self, seq: int, now: Instant) -> list[Effect]:
        """Have this seq written; `has` tells when it may be used."""
        self._wanted = max(self._wanted, seq)
        if self._confirmed >= seq:
            return []
        if self.deadline is None and not self.is_without:
            self.deadline = Instant(now + self._patience_ns)
        return self._write()

    def _write(self) -> list[Effect]:
        if self._written is not None or self._wanted <= self._confirmed:
            return []
        self._written = self._wanted
        return [Persist(CONFIGURATION_SEQ_KEY, self._written.to_bytes(8, "big"))]

    def persisted(self, me: ProcessId) -> list[Effect]:
        assert self._written is not None, "a seq is confirmed that was written"
        self._confirmed, self._written = self._written, None
        if self._confirmed < self._wanted:
            return self._write()
        self.deadline = None
        if not self.is_without:
            return []
        self.is_without = False
        text = "stable storage is in use again: the number of the newest view is stored"
        return [Alarm(AlarmKind.STORAGE_REPAIRED, text, me), Record(Occurred(Occurrence.STORAGE_AGAIN))]

    def wake(self, me: ProcessId, now: Instant) -> list[Effect]:
        if self.deadline is None or now < self.deadline:
            return []
        self.deadline, self.is_without = None, True
        text = "a view is used whose number is not stored: views of the next life may not come after it"
        return [Alarm(AlarmKind.WITHOUT_STORAGE, text, me), Record(Occurred(Occurrence.WITHOUT_STORAGE))]
