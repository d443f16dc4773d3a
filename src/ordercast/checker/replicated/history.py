"""What replicas did, indexed once for all their judges.

The reference is the sequence of commands of a lineage by the word of whoever applied each first; the others are
compared with it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ordercast.model.events import ViewId
from ordercast.trace.client_records import Calm
from ordercast.trace.records import Ended, Healed
from ordercast.trace.replica_records import (
    Applied,
    Called,
    ComponentChanged,
    GotPicture,
    Read,
    Refused,
    ReplicaEnded,
    ReplicaEvent,
    ReplicaKnown,
    ReplicaStarted,
    Returned,
    StreamCut,
)

Call = tuple[int, int]  # life and request
Place = tuple[ViewId | None, int]  # lineage and position


@dataclass(slots=True, eq=False)
class ReplicaLife:
    started: ReplicaStarted
    ended: ReplicaEnded | None = None
    remembers: bool = False  # it held the state in a primary component, and has missed nothing since
    last: ComponentChanged | None = None
    known: ReplicaKnown | None = None
    lineages: set[ViewId] = field(default_factory=set)  # in which it held the state of a primary component

    def __str__(self) -> str:
        return f"{self.started.name} (life {self.started.life})"


class ReplicaHistory:
    def __init__(self) -> None:
        self.lives: dict[int, ReplicaLife] = {}
        self.by_name: dict[str, ReplicaLife] = {}  # the latest of each name
        self.steps: list[Applied | GotPicture | Returned] = []  # in the order of the history
        self.reference: dict[Place, Applied] = {}
        self.terms: dict[Place, ViewId] = {}  # the first in which anybody applied it
        self.calls: dict[Call, Called] = {}
        self.returns: dict[Call, Returned] = {}
        self.refusals: dict[Call, Refused] = {}
        self.reads: list[Read] = []
        self.decisions: list[
            tuple[ComponentChanged, tuple[ReplicaLife, ...]]
        ] = []  # with those who held other lineages
        self.electors: list[tuple[ViewId, ReplicaLife]] = []  # who was said to hold the state, and in which term
        self.healed: Healed | None = None
        self.ended: Ended | None = None
        self.faults: list[str] = []

    @property
    def is_complete(self) -> bool:
        return self.ended is not None and self.ended.complete

    def observe(self, event: ReplicaEvent) -> None:
        match event:
            case ReplicaStarted():
                self.lives[event.life] = self.by_name[event.name] = ReplicaLife(event)
            case Called():
                self.calls[event.life, event.request] = event
            case Returned():
                self.steps.append(event)
                self.returns[event.life, event.request] = event
            case Refused():
                self.refusals[event.life, event.request] = event
            case Read():
                self.reads.append(event)
            case Applied():
                self._applied(event)
            case GotPicture():
                self.steps.append(event)
            case ComponentChanged():
                self._changed(event)
            case StreamCut():
                self.lives[event.life].remembers = False
            case ReplicaEnded():
                self.lives[event.life].ended = event
            case ReplicaKnown():
                self.lives[event.life].known = event
            case Healed():
                self.healed = event
            case Ended():
                self.ended = event
            case Calm():
                pass

    def _applied(self, event: Applied) -> None:
        self.steps.append(event)
        place = event.lineage, event.position
        self.reference.setdefault(place, event)
        if event.term is not None:
            self.terms[place] = min(event.term, self.terms.get(place, event.term))

    def _changed(self, event: ComponentChanged) -> None:
        life = self.lives[event.life]
        life.last = event
        if event.lineage is None or event.term is None or not event.is_holder:
            return
        if event.is_primary or event.decided:
            life.remembers = life.remembers or life.started.name in event.holders
            life.lineages.add(event.lineage)
            self.electors += [(event.term, self.by_name[name]) for name in event.holders]
        if event.is_primary and event.decided:
            others = tuple(
                other for other in self.lives.values() if other.ended is None and other.lineages - {event.lineage}
            )
            self.decisions.append((event, others))

    def lineages(self) -> list[ViewId]:
        return sorted({lineage for lineage, _ in self.reference if lineage is not None})

    def sequence(self, lineage: ViewId) -> list[Applied]:
        return [step for (where, _), step in sorted(self.reference.items(), key=_by_place) if where == lineage]


def _by_place(item: tuple[Place, Applied]) -> tuple[bool, ViewId | None, int]:
    (lineage, position), _ = item
    return lineage is not None, lineage, position
