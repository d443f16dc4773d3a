"""Pipes: simulated connections between clients and their daemons. Bytes arrive in order, each write after a delay.

A write may arrive in two pieces, cut anywhere, so that readers of frames are exercised. A pipe that breaks loses what
is on its way; either way the other end is told at last.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any, Protocol

from ordercast.model.ids import MICROSECOND, MILLISECOND

_DELAY_NS = (20 * MICROSECOND, 300 * MICROSECOND)
_LATE_NS = (MILLISECOND, 8 * MILLISECOND)
_LATE_PROBABILITY = 0.03
_CUT_PROBABILITY = 0.1  # that a write arrives in two pieces


class Scheduler(Protocol):
    """Virtual time."""

    now: int

    def schedule(self, at: int, action: Callable[..., None], *arguments: Any) -> None: ...


@dataclass(slots=True, eq=False)
class Pipe:
    """One direction of a connection."""

    scheduler: Scheduler
    rng: Random
    arrive: Callable[[bytes], None]
    ended: Callable[[], None]  # nothing more will arrive
    is_prompt: bool = False  # it takes no time, and cuts nothing
    is_over: bool = False  # nothing more is written
    _busy_until: int = 0
    _pieces: list[bytes] = field(default_factory=list)  # on their way
    _is_ending: bool = False  # and so is the end

    @property
    def is_empty(self) -> bool:
        """Nothing is on its way, nor is the end."""
        return not (self._pieces or self._is_ending)

    def write(self, data: bytes) -> None:
        if self.is_over or not data:
            return
        if not self.is_prompt and len(data) > 1 and self.rng.random() < _CUT_PROBABILITY:
            place = self.rng.randrange(1, len(data))
            self._send(data[:place])
            data = data[place:]
        self._send(data)

    def finish(self) -> None:
        """Nothing more is written: what is on its way arrives, and then the end."""
        if not self.is_over:
            self.is_over = self._is_ending = True
            self.scheduler.schedule(self._arrival(), self._end_arrived)

    def cut(self) -> None:
        """The connection breaks: what is on its way is lost."""
        self._pieces.clear()
        self.finish()

    def _send(self, data: bytes) -> None:
        self._pieces.append(data)
        self.scheduler.schedule(self._arrival(), self._arrived, data)

    def _arrival(self) -> int:
        if self.is_prompt:
            return self.scheduler.now
        is_late = self.rng.random() < _LATE_PROBABILITY
        at = self.scheduler.now + self.rng.randrange(*(_LATE_NS if is_late else _DELAY_NS))
        self._busy_until = max(at, self._busy_until)
        return self._busy_until

    def _arrived(self, data: bytes) -> None:
        if self._pieces and self._pieces[0] is data:
            self._pieces.pop(0)
            self.arrive(data)

    def _end_arrived(self) -> None:
        self._is_ending = False
        self.ended()
