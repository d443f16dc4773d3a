"""A layer beneath an engine, which looks like an engine: what it does not change it passes on.

Whoever lies between an engine and its driver sees every packet in `receive` and every effect in `outward`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from ordercast.model.effects import Effect
from ordercast.model.ids import MAIN, Attachment, ConfigurationId, Incarnation, Instant, Seq
from ordercast.model.inputs import Interest, Lane, Packet, Stored, Submission, Submissions
from ordercast.model.promises import Promises
from ordercast.model.roster import Roster
from ordercast.order.engine import Engine
from ordercast.order.traffic import Traffic


class PassingLayer(ABC):
    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._traffic = engine.traffic

    @property
    def above(self) -> Engine:
        """The engine that speaks through this layer."""
        return self._engine

    @abstractmethod
    def outward(self, effects: list[Effect], now: Instant) -> list[Effect]:
        """Return what the engine asked for, as this layer lets it out; also when the engine was told something past
        this layer, which has no word for it."""

    @abstractmethod
    def start(self, stored: Stored, incarnation: Incarnation, now: Instant) -> list[Effect]: ...

    @abstractmethod
    def receive(self, packets: Sequence[Packet], now: Instant) -> list[Effect]: ...

    @abstractmethod
    def wake(self, now: Instant) -> list[Effect]: ...

    @abstractmethod
    def next_deadline(self) -> Instant | None: ...

    # What a driver asks

    @property
    def promises(self) -> Promises:
        return self._engine.promises

    @property
    def traffic(self) -> Traffic:
        return self._traffic

    def room(self) -> int:
        return self._engine.room()

    def want_room(self, size: int) -> None:
        self._engine.want_room(size)

    def is_idle(self) -> bool:
        return self._engine.is_idle()

    def first_lane(self, attachment: Attachment = MAIN) -> Lane:
        return self._engine.first_lane(attachment)

    def holds(self, ring: ConfigurationId, seq: Seq) -> bool:
        return self._engine.holds(ring, seq)

    def deniable(self, configuration: ConfigurationId) -> tuple[Seq, Seq] | None:
        return self._engine.deniable(configuration)

    def check_invariants(self, *, thorough: bool = True) -> None:
        self._engine.check_invariants(thorough=thorough)

    # What a driver does

    def submit(self, submissions: Sequence[Submission | Submissions], now: Instant) -> list[Effect]:
        return self.outward(self._engine.submit(submissions, now), now)

    def persisted(self, key: str, now: Instant) -> list[Effect]:
        return self.outward(self._engine.persisted(key, now), now)

    def interest(self, changes: Sequence[Interest], now: Instant) -> list[Effect]:
        return self.outward(self._engine.interest(changes, now), now)

    def enlist(self, roster: Roster, now: Instant, attachment: Attachment = MAIN) -> list[Effect]:
        return self.outward(self._engine.enlist(roster, now, attachment), now)

    def behind(self, is_behind: bool, now: Instant) -> list[Effect]:
        return self.outward(self._engine.behind(is_behind, now), now)

    def leave(self, now: Instant) -> list[Effect]:
        return self.outward(self._engine.leave(now), now)
