"""The tape of a daemon as the simulator runs it: the shipped one, with somebody who looks on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ordercast.model.effects import Deliver, Install
from ordercast.model.ids import ConfigurationId, Instant, ProcessId
from ordercast.order.sites.attempt import WideAttempt
from ordercast.order.sites.frames import RecoveredFrame, StateFrame, UpdateFrame
from ordercast.order.sites.interest import Wishes
from ordercast.order.sites.node import SitesNode
from ordercast.order.sites.outbox import WideOutbox
from ordercast.order.sites.runs import EntriesInARow
from ordercast.order.sites.states import REGULAR
from ordercast.order.sites.storage import WideStorage
from ordercast.order.sites.tape import Tape, Where

if TYPE_CHECKING:
    from ordercast.sim.sites.witness import SitesWitness


class WatchedTape(Tape):
    def __init__(
        self,
        witness: SitesWitness,
        engine: SitesNode,
        me: ProcessId,
        site: int,
        outbox: WideOutbox,
        storage: WideStorage,
        wishes: Wishes,
    ) -> None:
        super().__init__(me, site, outbox, storage, wishes)
        self.engine = engine
        self._witness = witness
        self._newest: dict[int, UpdateFrame] = {}  # of the view, by rank

    def take(self, data: bytes, originator: ProcessId, seq: int, stamp: int, where: Where) -> None:
        before = None if where is Where.REGULAR or not self.is_begun else [one.line for one in self.order.streams]
        super().take(data, originator, seq, stamp, where)
        if before is not None and self.state == REGULAR:
            self._witness.ended(self, before, stamp, where)
        self._witness.read(self)

    def take_alike(self, row: EntriesInARow, where: Where) -> int:
        taken = super().take_alike(row, where)
        self._witness.read(self)
        return taken

    def go_on(self, now: Instant) -> None:
        attempt, before = self.attempt, len(self.effects)
        had_all = attempt is None or attempt.has_all
        was_said = attempt is None or attempt.is_said
        super().go_on(now)
        if attempt is not None:
            if any(isinstance(effect, Deliver) and effect.ordered for effect in self.effects[before:]):
                self._witness.delivered_after_begin(self)
            if attempt.has_all and not had_all:
                self._witness.took_over(self, attempt)
            if attempt.is_said and not was_said:
                self._witness.said_ready(self, attempt)
        self._witness.went_on(self, now)

    def _state_frame(self, attempt: ConfigurationId) -> StateFrame:
        frame = super()._state_frame(attempt)
        self._witness.stated(self, frame)
        return frame

    def _take_recovered(self, attempt: WideAttempt, frame: RecoveredFrame) -> None:
        super()._take_recovered(attempt, frame)
        if frame.view == self.view.digest and self.order.has(frame.rank, frame.stamp):
            self._witness.recovered(self, frame)

    def _take_update(self, frame: UpdateFrame) -> None:
        counts = self._is_of_view(frame.view, frame.rank)
        super()._take_update(frame)
        if counts:
            newest = self._newest.get(frame.rank)
            if newest is None or newest.view != frame.view or frame.line >= newest.line:
                self._newest[frame.rank] = newest = frame
            self._witness.updated(self, newest)

    def _install(self, attempt: WideAttempt) -> None:
        before, ended = len(self.effects), self.order
        super()._install(attempt)
        passed = [effect for effect in self.effects[before:] if isinstance(effect, Deliver | Install)]
        self._witness.installed(self, attempt, ended, passed)
