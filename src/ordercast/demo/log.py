"""What happens in the demo, one line each, with its time: kept for the result, and told to whoever shows it.

Lines are held for a moment. So those who see the same thing, such as a view, share a line, and what a daemon logs
stands before what its clients read, though it comes by a slower way.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum

HOLD_S = 0.3


class Kind(Enum):
    CHAPTER = "chapter"  # what is about to happen, in words
    LIFE = "life"  # a daemon starts
    FAULT = "fault"
    REPAIR = "repair"
    VIEW = "view"  # of the daemons
    GROUP = "group"  # who is in a group, as its members read it
    STATE = "state"  # of the replicated dictionary
    RATE = "rate"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class Entry:
    at: float  # seconds since the demo began
    kind: Kind
    who: tuple[str, ...]  # daemons
    text: str


@dataclass(slots=True)
class _Held:
    at: float
    kind: Kind
    who: set[str] = field(default_factory=set)


class Log:
    def __init__(self, on_entry: Callable[[Entry], None]) -> None:
        self.entries: list[Entry] = []
        self._on_entry = on_entry
        self._began, self._began_wall = time.monotonic(), time.time()
        self._held: dict[tuple[Kind, str], _Held] = {}

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._began

    def tell(self, kind: Kind, text: str, *who: str, wall: float | None = None) -> None:
        """`wall`: when it was, by the wall clock; now, unless told."""
        at = self.seconds if wall is None else wall - self._began_wall
        held = self._held.get((kind, text))
        if held is None:
            held = self._held[kind, text] = _Held(at, kind)
            asyncio.get_running_loop().call_later(HOLD_S, self._release, at)
        held.who.update(who)

    def chapter(self, text: str) -> None:
        self.flush()
        self._put(Entry(self.seconds, Kind.CHAPTER, (), text))

    def flush(self) -> None:
        self._release(float("inf"))

    def _release(self, until: float) -> None:
        """What was up to that time, in the order of time."""
        due = sorted((held.at, text) for (_, text), held in self._held.items() if held.at <= until)
        for _, text in due:
            key = next(key for key in self._held if key[1] == text)
            held = self._held.pop(key)
            self._put(Entry(held.at, held.kind, tuple(sorted(held.who)), text))

    def _put(self, entry: Entry) -> None:
        self.entries.append(entry)
        self._on_entry(entry)
