"""What replicas did, indexed once for all their judges.

The reference is the sequence of commands of a lineage by the word of whoever applied each first; the others are
compared with it. A replica remembers when it was to hold the state in a primary component, formed or attempted, and has
missed nothing since.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ordercast.checker.replicated.electorates import Electorates, Round
from ordercast.model.lineage import Lineage, Term
from ordercast.model.promises import GroupPromise, ReplicaPromise
from ordercast.trace.client_records import Calm
from ordercast.trace.records import Ended, Healed, Unrecorded
from ordercast.trace.replica_records import (
    Applied,
    Believed,
    Called,
    ComponentChanged,
    GotPicture,
    JournalKept,
    Looked,
    Refused,
    ReplicaEnded,
    ReplicaEvent,
    ReplicaKnown,
    ReplicaStarted,
    Returned,
    StreamBack,
    StreamCut,
)

Call = tuple[int, int]  # life and request
Place = tuple[Lineage | None, int]  # lineage and position


@dataclass(slots=True, eq=False)
class ReplicaLife:
    started: ReplicaStarted
    ended: ReplicaEnded | None = None
    lineage: Lineage | None = None  # of its state; None: it has none
    remembers: bool = False
    known: ReplicaKnown | None = None
    lineages: set[Lineage] = field(default_factory=set)  # in which it held the state, as it decided
    memory: int = 0  # what its journal is called; 0: it keeps none
    is_cut: bool = False  # it gets nothing of the stream

    def __str__(self) -> str:
        return f"{self.started.name} (life {self.started.life})"


class ReplicaHistory:
    def __init__(self) -> None:
        self.lives: dict[int, ReplicaLife] = {}
        self.steps: list[Applied | GotPicture | Returned] = []  # in the order of the history
        self.looks: dict[Place, list[Looked]] = {}
        self.reference: dict[Place, Applied] = {}
        self.terms: dict[Place, Term] = {}  # the first in which anybody applied it
        self.calls: dict[Call, Called] = {}
        self.returns: dict[Call, Returned] = {}
        self.refusals: dict[Call, Refused] = {}
        self.decisions: list[
            tuple[ComponentChanged, tuple[ReplicaLife, ...]]
        ] = []  # with those who held other lineages
        self.electorates = Electorates()
        self.cut_beliefs: list[Believed] = []  # said while the stream was cut, or after a replica had ended
        self.excluded: dict[Round, set[str]] = {}  # names, in each round that was decided without them
        self.claims: list[tuple[Round, int]] = []  # lives that were current in a round, by their own word
        self._begun: set[Lineage] = set()  # lineages; a beginning that was only attempted may never have been
        self.healed: Healed | None = None
        self.promised: frozenset[GroupPromise | ReplicaPromise] | None = None
        self.ended: Ended | None = None
        self.memories: dict[str, int] = {}  # what the journal of each name is called; 0: it keeps none
        self.elected: dict[str, int] = {}  # the journal of each who held the state in a primary component
        self.anew: list[tuple[ComponentChanged, Lineage]] = []  # beginnings although journals had this sequence
        self.faults: list[str] = []

    @property
    def is_durable(self) -> bool:
        """Journals are kept."""
        return any(self.memories.values())

    @property
    def is_complete(self) -> bool:
        return self.ended is not None and self.ended.complete

    def observe(self, event: ReplicaEvent) -> None:
        match event:
            case ReplicaStarted():
                self.lives[event.life] = ReplicaLife(event)
                self.memories[event.name] = 0
            case JournalKept():
                self.lives[event.life].memory = event.memory
                self.memories[self.lives[event.life].started.name] = event.memory
            case Called():
                self.calls[event.life, event.request] = event
            case Returned():
                self.steps.append(event)
                self.returns[event.life, event.request] = event
            case Refused():
                self.refusals[event.life, event.request] = event
            case Applied():
                self._applied(event)
            case GotPicture():
                self.steps.append(event)
                self._has_state(self.lives[event.life], event.lineage)
            case Looked():
                self.looks.setdefault((event.lineage, event.position), []).append(event)
            case ComponentChanged():
                self._changed(event)
            case StreamCut():
                self.lives[event.life].remembers = False
                self.lives[event.life].is_cut = True
                self.electorates.cut(event.life)
            case StreamBack():
                self.lives[event.life].is_cut = False
            case Believed():
                if self.lives[event.life].is_cut:
                    self.cut_beliefs.append(event)
            case ReplicaEnded():
                self.lives[event.life].ended = event
                self.lives[event.life].is_cut = True
            case ReplicaKnown():
                self.lives[event.life].known = event
            case Healed():
                self.healed = event
            case Ended():
                self.ended = event
            case Unrecorded():
                self.faults.append(event.why)
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
        if life.is_cut:
            self.cut_beliefs.append(Believed(event.at, event.life, event.is_primary and event.is_holder, False))
        if event.view is not None and event.is_primary and event.is_holder:
            self.claims.append(((event.view, event.round), event.life))
            self.excluded.setdefault((event.view, event.round), set()).update(event.excluded)
        self._has_state(life, event.lineage)
        self.electorates.changed(event, life.started.name)
        if event.elects and life.started.name in event.holders and event.is_holder:
            life.remembers = True
        if event.lineage is None or event.term is None or not event.is_holder:
            return
        if event.is_primary or event.decided:
            life.lineages.add(event.lineage)
        if event.is_primary and event.elects:
            self.elected.update((name, self.memories[name]) for name in event.holders if name in self.memories)
        if event.is_primary and event.decided and self.is_durable and not event.lineage.side:
            lost = {step.lineage for step in self.returns.values()} - {event.lineage, None}
            self.anew += [(event, lineage) for lineage in lost if lineage is not None and not lineage.side]
        if event.is_primary and event.decided:
            self._begun.add(event.lineage)
            elsewhere = self._begun - {event.lineage}
            others = tuple(life for life in self.lives.values() if life.ended is None and life.lineages & elsewhere)
            self.decisions.append((event, others))

    def _has_state(self, life: ReplicaLife, lineage: Lineage | None) -> None:
        """What it remembers of another sequence counts for nothing. But a beginning of which somebody made something is
        not to be forgotten: whoever does is held to it."""
        if lineage is None and life.lineage in self._begun:
            return
        if lineage != life.lineage:
            life.lineage, life.remembers = lineage, False

    def lineages(self) -> list[Lineage]:
        return sorted({lineage for lineage, _ in self.reference if lineage is not None})

    def sequence(self, lineage: Lineage) -> list[Applied]:
        return [step for (where, _), step in sorted(self.reference.items(), key=_by_place) if where == lineage]


def _by_place(item: tuple[Place, Applied]) -> tuple[bool, Lineage | None, int]:
    (lineage, position), _ = item
    return lineage is not None, lineage, position
