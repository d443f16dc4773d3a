"""What the judges are told of one simulated replica, and what a swarm counts of it. It changes nothing.

Calls have numbers of their own, and commands carry them (`replicated/chained.py`): the witness knows who was answered
what without asking the desk.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from ordercast.groups.names import meeting_of
from ordercast.model.events import ViewId
from ordercast.model.ids import Instant
from ordercast.model.lineage import Lineage
from ordercast.replicated.batching import count_of
from ordercast.replicated.chained import NOBODY, Command
from ordercast.replicated.effects import (
    Answered,
    Changed,
    DeskEffect,
    Dial,
    Freeze,
    Progress,
    Refusal,
    Standing,
    Ticket,
    Why,
)
from ordercast.replicated.frames import REQUEST
from ordercast.replicated.structures.base import BACK, GONE, Owned, Owner
from ordercast.replicated.structures.claims import Exclusive, Held
from ordercast.replicated.structures.ticking import TICK
from ordercast.replicated.voice import DECISIONS, ComponentVoice
from ordercast.replicated.wire import Exclude, decode, decode_command, decode_preface, is_command
from ordercast.sim.replica_tally import Moment, row_of_decision
from ordercast.sim.replica_tally import ReplicaOccurrence as Row
from ordercast.trace import replica_records as records

if TYPE_CHECKING:
    from ordercast.sim.replica import Replica

GROUP_NAME = "state"
GROUP = meeting_of(GROUP_NAME)


@dataclass(slots=True, eq=False)
class Asked:
    """A call: the ticket of the desk."""

    number: int
    cut: int  # how often its replica had been cut off
    question: bytes | None = None  # of a read
    is_over: bool = False

    def done(self) -> bool:
        return self.is_over


class Before(NamedTuple):
    """What was so before something happened."""

    held: int
    lineage: Lineage | None
    loads: int
    is_stale: bool
    is_deciding: bool
    is_fetching: bool
    unsent: int
    wrong_pictures: int
    kept_back: int
    ahead: int


@dataclass(slots=True, eq=False)
class Witness:
    replica: Replica
    seen: Counter[tuple[int, int]] = field(default_factory=Counter)  # commands that came, by life and request
    sent: int = 0  # the last request that was
    calls: int = 0
    asked: dict[int, Asked] = field(default_factory=dict)  # without an answer, by number
    cut: int = 0  # how often it was cut off
    view: ViewId | None = None
    fetched: tuple[bytes, ViewId | None] = (b"", None)  # the key that was dialled for last, and in which view
    voice: ComponentVoice = field(default_factory=ComponentVoice)
    is_beginning: bool = True  # there is no desk yet
    held: Held | None = None  # the lock or the lead, as it was granted last

    # Whatever happens

    def before(self) -> Before:
        desk, core = self.replica.desk, self.replica.desk.core
        return Before(
            core.held,
            core.lineage,
            desk.mark[1],
            core.standing is Standing.STALE,
            core.is_deciding,
            desk.is_fetching,
            len(desk.outgoing),
            desk.wrong_pictures,
            core.kept_back,
            core.ahead,
        )

    def after(self, before: Before, effects: list[DeskEffect]) -> None:
        self._note_grant()
        desk = self.replica.desk
        if len(desk.outgoing) < before.unsent:
            self.count(Row.UNSENT)
        if desk.core.kept_back > before.kept_back:
            self.count(Row.HELD_BACK)
        if desk.core.ahead > before.ahead:
            self.count(Row.AHEAD)
        if any(isinstance(effect, Progress) and effect.is_done for effect in effects):
            self._fetched(before)
        elif before.is_fetching and not desk.is_fetching:
            self.count(Row.STOPPED)
        for effect in effects:
            if isinstance(effect, Freeze):
                self.count(Row.FROZEN)
                if decode_preface(effect.preface).held:
                    self.count(Row.HELD_TRANSFERRED)
            elif isinstance(effect, Progress) and effect.trouble and not effect.donor:
                self.count(Row.BEGUN_AGAIN)

    def _fetched(self, before: Before) -> None:
        if self.replica.desk.wrong_pictures > before.wrong_pictures:
            self.count(Row.WRONG_PICTURE)
            return
        self.count(Row.FETCHED)
        if before.is_deciding:
            self.count(Row.FETCHED_IN_ROUND)
            return
        self.count(Row.STALE_LOADED if before.is_stale else Row.FRESH_LOADED)
        if before.is_stale and before.held:
            self.count(Row.HELD_DROPPED)

    def went_on(self, before: Before, effects: list[DeskEffect]) -> None:
        if before.held:
            self.count(Row.SLICED)
            if before.is_deciding:
                self.count(Row.SLICED_IN_ROUND)
            if any(isinstance(effect, Freeze) for effect in effects):
                self.count(Row.FROZEN_LATER)

    def _note_grant(self) -> None:
        """What a live member is given when its turn has come."""
        structure, replica = self.replica.structure, self.replica
        if not isinstance(structure, Exclusive) or structure.grant is None:
            return
        grant = structure.grant
        is_mine = grant.claim.owner == Owner(replica.name, replica.life)
        if is_mine and (self.held is None or grant.token > self.held.token):
            self.held = Held(structure, grant.claim, grant.token, replica)

    # The group

    def viewed(self, view: ViewId) -> None:
        core = self.replica.desk.core
        if core.is_deciding:
            self.count(Row.ABANDONED_ROUND)
            if core.pending:
                self.count(Row.PENDING_LOST)
        self.view = view

    def came(self, payload: bytes) -> None:
        if not is_command(payload):
            return
        command = decode_command(payload)
        self.seen[command.life, command.request] += 1
        if self.seen[command.life, command.request] == 2:
            self.count(Row.TWICE)
        if self.replica.desk.core.is_deciding:
            self.count(Row.PENDING)
        elif self.replica.desk.is_fetching:
            self.count(Row.KEPT)

    def got(self, payload: bytes, before: Before, effects: list[DeskEffect]) -> None:
        desk, core = self.replica.desk, self.replica.desk.core
        if is_command(payload) and core.held > before.held:
            self.count(Row.HELD)
        if before.held and core.is_primary and not core.held:
            self.count(Row.HELD_APPLIED)
        if before.lineage is not None and core.lineage != before.lineage and desk.mark[1] == before.loads:
            self.count(Row.FORGOTTEN)
        if any(isinstance(effect, Refusal) and effect.why is not Why.UNCERTAIN for effect in effects):
            self.count(Row.REFUSED_ONCE_SENT)

    def sends(self, payload: bytes) -> None:
        if is_command(payload):
            request = decode_command(payload).request
            if request <= self.sent:
                self.count(Row.SENT_AGAIN)
            self.sent = max(self.sent, request)
        elif isinstance(decode(payload), Exclude):
            self.count(Row.IMPATIENT)

    def is_cut(self) -> None:
        self.cut += 1
        self.view = None
        self.tell(records.StreamCut(self.at, self.replica.life))

    def is_back(self) -> None:
        self.tell(records.StreamBack(self.at, self.replica.life))

    def dials(self, dial: Dial) -> None:
        key = dial.request[REQUEST.size + len(GROUP_NAME) :]
        if key != self.fetched[0]:
            self.count(Row.FETCH)
        elif self.view != self.fetched[1]:
            self.count(Row.CONTINUED)
        self.fetched = key, self.view

    # Calls and answers

    def called(self, operation: bytes, question: bytes | None = None) -> Asked:
        self.calls += 1
        asked = self.asked[self.calls] = Asked(self.calls, self.cut, question)
        self.tell(records.Called(self.at, self.replica.life, asked.number, operation))
        return asked

    def _settle(self, asked: Ticket) -> Asked:
        assert isinstance(asked, Asked) and not asked.is_over, "a call has two answers"
        asked.is_over = True
        del self.asked[asked.number]
        return asked

    def answered(self, answered: Answered) -> None:
        if len(answered.tickets) > 1:
            self.count(Row.BATCH)
        for at, (ticket, result) in enumerate(zip(answered.tickets, answered.results, strict=True), answered.first):
            if ticket is not None:
                self._returned(self._settle(ticket), at, result)

    def _returned(self, asked: Asked, position: int, result: bytes) -> None:
        lineage = self.replica.desk.core.lineage
        self.tell(records.Returned(self.at, self.replica.life, asked.number, lineage, position, result))
        if asked.question is None:
            self.count(Row.CONFIRMED_LATE if asked.cut < self.cut else Row.CONFIRMED)
        else:
            self.count(Row.READ)
            self.look(asked.question)

    def refused(self, refusal: Refusal) -> None:
        is_certain = refusal.why is not Why.UNCERTAIN
        for ticket in refusal.tickets:
            asked = self._settle(ticket)
            self.count(Row.REFUSED if is_certain else Row.UNCERTAIN)
            self.tell(records.Refused(self.at, self.replica.life, asked.number, is_certain))

    def gave_up(self, asked: Asked) -> None:
        """What was not sent has no effect."""
        self.count(Row.GAVE_UP)
        self._settle(asked)
        self.tell(records.Refused(self.at, self.replica.life, asked.number, True))

    def look(self, question: bytes) -> None:
        """The copy that is here is read."""
        self.say_belief()
        replica = self.replica
        lineage, answer = replica.desk.core.lineage, replica.user.answer(question)
        self.tell(records.Looked(self.at, replica.life, lineage, self.position, question, answer))

    def say_belief(self) -> None:
        holds = self.held is not None and self.held.is_held
        if self.replica.client is None and self.held is not None:
            self.count(Row.HELD_LOST)
        self.tell(records.Believed(self.at, self.replica.life, self.replica.desk.core.is_current, holds))

    # The state

    def applied(self, command: Command) -> None:
        replica, core, origin = self.replica, self.replica.desk.core, command.origin
        if command.number == NOBODY and origin.life == replica.life and command.bare[0] != TICK:
            self.count({BACK: Row.BACK, GONE: Row.GONE}[command.bare[0]])
        self.tell(
            records.Applied(
                self.at,
                replica.life,
                core.lineage,
                core.term,
                origin.position,
                command.life,
                command.number,
                command.bare,
                command.result,
                replica.structure.chain,
            )
        )

    def begins(self) -> None:
        """Begin with what the picture in the journal has, if there is one."""
        self.is_beginning = False
        core, chain = self.replica.desk.core, self.replica.structure.chain
        if core.lineage is not None:
            self.tell(records.GotPicture(self.at, self.replica.life, core.lineage, self.position, chain))

    def was_loaded(self) -> None:
        """The machine has another's state. (The core still knows the lineage of the old one: it says it next.)"""
        if self.is_beginning:
            return
        lineage, chain = self.replica.desk.core.arriving_lineage, self.replica.structure.chain
        self.tell(records.GotPicture(self.at, self.replica.life, lineage, self.position, chain))

    def changed(self, changed: Changed) -> None:
        row, core = row_of_decision(changed), self.replica.desk.core
        if row is not None:
            self.count(row)
        if changed.excluded and changed.is_primary and changed.reason in DECISIONS:
            self.count(Row.EXCLUDED_PRIMARY)
        count = self.position + sum(map(count_of, core.unapplied()))
        self.tell(self.voice.record(self.at, self.replica.life, self.view, core.era, changed, count))
        if changed.reason in DECISIONS and not changed.is_primary:
            self.replica.replicas.moment(self.replica, Moment.ATTEMPTED)

    def known(self) -> records.ReplicaKnown:
        replica, core = self.replica, self.replica.desk.core
        is_holder, chain = core.standing is Standing.HOLDER, replica.structure.chain
        waiting, pictures = len(self.asked) or core.outstanding, len(replica.pictures)
        return records.ReplicaKnown(
            self.at, replica.life, core.is_primary, is_holder, self.position, chain, waiting, pictures, self._ghosts()
        )

    def _ghosts(self) -> int:
        """How many owners of parts of the state are not connected, by the simulator's word."""
        structure = self.replica.structure
        owners = structure.owners() if isinstance(structure, Owned) else ()
        return sum(not self.replica.replicas.is_connected(owner.life) for owner in owners)

    @property
    def position(self) -> int:
        """The position of the last command in the copy."""
        return self.replica.desk.mark[0]

    @property
    def at(self) -> Instant:
        return self.replica.replicas.now()

    def count(self, what: Row) -> None:
        self.replica.replicas.count(what)

    def tell(self, event: records.ReplicaEvent) -> None:
        self.replica.replicas.tell(event)
