"""Which requests have been applied: part of the state, so that a command that is sent twice is applied once.

A session is one life of a replica that submits. Every command says up to which number its sender has all answers, so
only the results of the few requests behind that are remembered. Sessions beyond a bound are forgotten, least recently
used first; all of this is a function of the sequence of commands, and therefore the same at all replicas.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

SESSIONS_MAX = 4096


class Outcome(NamedTuple):
    """What came of a request that was applied."""

    position: int
    result: bytes


@dataclass(slots=True)
class Session:
    settled: int = 0  # its sender has the answers to all requests up to this one, and never sends them again
    outcomes: dict[int, Outcome] = field(default_factory=dict)  # by request


@dataclass(slots=True)
class Sessions:
    by_life: dict[int, Session] = field(default_factory=dict)  # least recently used first
    forgotten: int = 0  # that were not used for so long

    def outcome(self, life: int, request: int) -> Outcome | None:
        session = self.by_life.get(life)
        return None if session is None else session.outcomes.get(request)

    def knows(self, life: int, request: int) -> bool:
        """It was applied, or is too old to be."""
        session = self.by_life.get(life)
        return session is not None and (request <= session.settled or request in session.outcomes)

    def admits(self, life: int, request: int, settled: int) -> bool:
        """A command of this session has come in its turn. False when it was applied before, or is too old to be."""
        session = self.by_life.pop(life, None) or Session()
        self.by_life[life] = session
        self.forget_old()
        if settled > session.settled:
            session.settled = settled
            for number in [number for number in session.outcomes if number <= settled]:
                del session.outcomes[number]
        return request > session.settled and request not in session.outcomes

    def forget_old(self) -> None:
        while len(self.by_life) > SESSIONS_MAX:
            del self.by_life[next(iter(self.by_life))]
            self.forgotten += 1

    def remember(self, life: int, request: int, outcome: Outcome) -> None:
        self.by_life[life].outcomes[request] = outcome
