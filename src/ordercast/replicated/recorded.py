"""RecordedReplica: a replica that records what it does, and what its callers are told, for the judges of replicas.

    recorder = Recorder(folder, "till-3")
    async with RecordedReplica(recorder.replica, me, "accounts", chained(Dictionary), quorum=quorum) as accounts:
        await accounts.set("alice", b"100")

It is used as any replica: the front is the structure's own. Calls are numbered here, and commands carry the numbers
(`chained.py`), so identity comes from outside the core that is judged. All replicas of the group must be recorded.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from ordercast.api.member import Member
from ordercast.model.events import View, ViewId
from ordercast.model.lineage import Lineage
from ordercast.replicated.batching import Answer, count_of
from ordercast.replicated.chained import Chained, Command, stamped
from ordercast.replicated.effects import Answered, Changed, DeskEffect, Refusal, Standing, Ticket, Why
from ordercast.replicated.quorum import Rule, voices_of
from ordercast.replicated.replica import FrontT, Replica
from ordercast.replicated.structures.claims import Exclusive, Held
from ordercast.replicated.voice import ComponentVoice
from ordercast.trace import replica_records as records
from ordercast.trace.recording import now

Tell = Callable[[records.ReplicaEvent], None]


class RecordedReplica(Replica[FrontT]):
    def __init__(
        self,
        tell: Tell,
        member: Member,
        group: str,
        structure: Chained,
        *,
        quorum: Rule,
        on_changed: Callable[[Changed], None] | None = None,
        **settings: Any,
    ) -> None:
        """`on_changed` is told what the replica knows of its component, as soon as it does. The rest is as of any
        replica."""
        super().__init__(member, group, structure, quorum=quorum, **settings)
        self.structure = structure
        structure.on_applied, structure.on_adopted = self._on_applied, self._on_adopted
        self._tell_record, self._on_changed = tell, on_changed
        self._voices = voices_of(quorum)
        self._voice = ComponentVoice()
        self._calls = 0
        self._open: dict[Ticket, int] = {}  # calls without an answer, by ticket
        self._view: ViewId | None = None
        self._picture: tuple[Lineage | None, int] | None = None  # loaded, and its place is not known yet
        self._held: Held | None = None  # the lock or the lead, as it was granted last
        self._is_recorded = False  # its beginning is
        member.on_loss(self._on_loss)  # its own witness: it does not ask the replica whether it has noticed

    @property
    def life(self) -> int:
        return self.me.life

    # Calls

    def submit(self, command: bytes) -> Awaitable[Answer]:
        self._check_running()
        number = self._called(command)
        waiting = super().submit(stamped(self.life, number, command))
        self._open[_ticket(waiting)] = number
        return waiting

    async def synced(self) -> int:
        self._check_running()
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._open[future] = self._called(b"")
        self._do(self._desk.synchronise, future)
        await future
        return self._machine.count

    def look(self, question: bytes, answer: bytes) -> None:
        """The copy that is here was read, just now."""
        self.say_belief()
        self._settle_picture(self._machine.count)
        lineage, position = self._desk.core.lineage, self._machine.count
        self._tell_record(records.Looked(now(), self.life, lineage, position, question, answer))

    def say_belief(self) -> None:
        """What the application would be told now."""
        self._note_grant()
        holds = self._held is not None and self._held.is_held
        self._tell_record(records.Believed(now(), self.life, self.age.is_current, holds))

    def say_known(self) -> None:
        """To be called at the end of a run, when nobody has anything to do."""
        self._tell_record(self.known())

    def known(self) -> records.ReplicaKnown:
        """What this replica knows now."""
        core, count = self._desk.core, self._machine.count
        is_holder, chain = core.standing is Standing.HOLDER, self.structure.chain
        waiting = len(self._open) or core.outstanding
        return records.ReplicaKnown(now(), self.life, core.is_primary, is_holder, count, chain, waiting, core.pictures)

    def _called(self, operation: bytes) -> int:
        self._calls += 1
        self._tell_record(records.Called(now(), self.life, self._calls, operation))
        return self._calls

    def _answered(self, answered: Answered) -> None:
        lineage = self._desk.core.lineage
        for at, (ticket, result) in enumerate(zip(answered.tickets, answered.results, strict=True), answered.first):
            number = None if ticket is None else self._open.pop(ticket, None)
            if number is not None:
                self._tell_record(records.Returned(now(), self.life, number, lineage, at, result))

    def _refused(self, refusal: Refusal) -> None:
        for ticket in refusal.tickets:
            number = self._open.pop(ticket, None)
            if number is not None:
                is_certain = refusal.why is not Why.UNCERTAIN
                self._tell_record(records.Refused(now(), self.life, number, is_certain))

    # The state

    def _on_applied(self, command: Command) -> None:
        self._settle_picture(command.origin.position - 1)
        core, chain = self._desk.core, self.structure.chain
        whose = command.origin.position, command.life, command.number
        what = command.bare, command.result, chain
        self._tell_record(records.Applied(now(), self.life, core.lineage, core.term, *whose, *what))

    def _on_adopted(self) -> None:
        """The core still knows the lineage of the old state; the place is known a moment later."""
        if not self._has_begun:
            return  # it is the state in the journal
        self._picture = self._desk.core.arriving_lineage, self.structure.chain

    def _settle_picture(self, position: int) -> None:
        if self._picture is not None:
            (lineage, chain), self._picture = self._picture, None
            self._tell_record(records.GotPicture(now(), self.life, lineage, position, chain))

    def _note_grant(self) -> None:
        structure = self.structure
        if not isinstance(structure, Exclusive) or structure.grant is None:
            return
        grant = structure.grant
        is_new = self._held is None or grant.token > self._held.token
        if grant.claim.owner == self.me and is_new and self.is_in_group:
            self._held = Held(structure, grant.claim, grant.token, self)

    # What the desk decides, and what happens to the stream

    def _carry_out(self, effects: list[DeskEffect]) -> None:
        if not self._is_recorded:
            self._is_recorded = True
            what = self.structure.structure_name, self.group
            core, whose = self._desk.core, (self.life, self.me.name)
            self._tell_record(records.ReplicaStarted(now(), *whose, *self._voices, *what))
            if core.memory:
                self._tell_record(records.JournalKept(now(), self.life, core.memory))
            if core.lineage is not None:
                place = core.lineage, self._machine.count, self.structure.chain
                self._tell_record(records.GotPicture(now(), self.life, *place))
        self._settle_picture(self._machine.count)
        for effect in effects:
            match effect:
                case Answered():
                    self._answered(effect)
                case Refusal():
                    self._refused(effect)
                case Changed():
                    self._changed(effect)
        super()._carry_out(effects)

    def _changed(self, changed: Changed) -> None:
        core = self._desk.core
        count = self._machine.count + sum(map(count_of, core.unapplied()))
        self._tell_record(self._voice.record(now(), self.life, self._view, core.era, changed, count))
        if self._on_changed is not None:
            self._on_changed(changed)

    def on_view(self, view: View) -> None:
        self._view = view.id
        super().on_view(view)

    def _on_loss(self, why: str) -> None:
        if self._is_recorded:
            self._view = None
            self._tell_record(records.StreamCut(now(), self.life))
            asyncio.get_running_loop().call_soon(self.say_belief)

    def on_cut_off(self, name: str | None) -> None:
        self._view = None
        self._tell_record(records.StreamCut(now(), self.life))
        if name is not None:
            self._tell_record(records.StreamBack(now(), self.life))
        super().on_cut_off(name)

    def _end(self, error: BaseException) -> None:
        if self._ended is None and self._is_recorded:
            self._tell_record(records.ReplicaEnded(now(), self.life))
        super()._end(error)


def _ticket(waiting: Awaitable[Answer]) -> asyncio.Future[Answer]:
    assert isinstance(waiting, asyncio.Future)
    return waiting
