"""One simulated replica: the core, a real structure, its connection to the daemon of its host, and its transfers.

It outlives its connection, and may outlive the daemon: then it joins again with its state. When it crashes itself its
memory is gone, and who comes next under its name is another life. When it hangs, what comes for it waits, and it says
nothing. What it does around the core is what `replicated/replica.py` does around it on an event loop.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, assert_never

from ordercast.groups.names import meeting_of
from ordercast.model.events import GroupNews, Left, Transition, View, ViewId
from ordercast.model.ids import MILLISECOND, Instant
from ordercast.model.service import Service
from ordercast.replicated.batching import count_of
from ordercast.replicated.core import Core
from ordercast.replicated.departures import Departures
from ordercast.replicated.effects import (
    Changed,
    Confirm,
    Effect,
    Fetch,
    Freeze,
    GoOn,
    Point,
    Refuse,
    Release,
    Send,
    Spoilt,
    Standing,
    StopFetching,
    Why,
)
from ordercast.replicated.structures.base import Applied, Owner
from ordercast.replicated.structures.claims import Exclusive, Held
from ordercast.replicated.voice import DECISIONS, ComponentVoice
from ordercast.replicated.wire import decode_command, decode_preface, is_command
from ordercast.sim.calls import NOBODY, Asked, Calls, batch_of
from ordercast.sim.client import Client
from ordercast.sim.machine import Chained
from ordercast.sim.patience import Patience
from ordercast.sim.replica_tally import Moment, row_of_decision, rows_of_death
from ordercast.sim.replica_tally import ReplicaOccurrence as Row
from ordercast.sim.station import Station
from ordercast.sim.transfers import Transfer
from ordercast.sim.users import User
from ordercast.trace import replica_records as records
from ordercast.trace.client_records import End
from ordercast.trace.records import STAMP_SIZE

if TYPE_CHECKING:
    from ordercast.sim.replicas import Replicas

GROUP = meeting_of("state")
GO_ON_MAX_NS = 2 * MILLISECOND  # until a replica goes on with what it has to apply


@dataclass(slots=True, eq=False)
class Replica:
    replicas: Replicas
    node: int
    name: str  # in full
    life: int
    core: Core = field(init=False)
    machine: Chained = field(init=False)
    user: User = field(init=False)
    departures: Departures = field(init=False)
    station: Station | None = None
    client: Client | None = None  # its connection
    transfer: Transfer | None = None
    pictures: dict[Point, Freeze] = field(default_factory=dict)
    seen: Counter[tuple[int, int]] = field(default_factory=Counter)  # commands that came, by life and request
    calls: Calls = field(default_factory=Calls)
    cut: int = 0  # how often it was cut off
    view: ViewId | None = None
    status: Changed | None = None
    voice: ComponentVoice = field(default_factory=ComponentVoice)
    is_dead: bool = False
    is_hung: bool = False
    backlog: list[Callable[[], None]] = field(default_factory=list)  # what has come for one that hangs
    held: Held | None = None  # the lock or the lead, as it was granted last
    patience: Patience = field(init=False)

    def __post_init__(self) -> None:
        self.patience = Patience(self)

    @property
    def stint(self) -> int:
        return self.core.me.stint

    # Its connection

    def connect(self, station: Station, client: Client) -> None:
        self.station, self.client = station, client
        client.listener = self
        if self.cut:
            self.tell(records.StreamBack(self._at(), self.life))
        self._say_back()
        station.join(client, (GROUP,))

    def leave(self) -> None:
        if self.client is not None and self.station is not None:
            self.station.leave(self.client, (GROUP,))

    def join_again(self) -> None:
        if self.client is not None and self.station is not None:
            self._say_back()
            self.station.join(self.client, (GROUP,))

    def hang(self) -> None:
        self.is_hung = True
        self.count(Row.HUNG)

    def wake(self) -> None:
        self.is_hung = False
        backlog, self.backlog = self.backlog, []
        for what in backlog:
            what()

    def got(self, sender: str, data: bytes) -> None:
        if self.is_hung:
            self.backlog.append(partial(self._got, sender, data))
        else:
            self._got(sender, data)

    def _got(self, sender: str, data: bytes) -> None:
        payload = data[STAMP_SIZE:]
        held = self.core.held
        if is_command(payload):
            self._count_command(payload)
        lineage = self.core.lineage
        self._carry_out(self.core.on_messages(sender, [payload]))
        if is_command(payload) and self.core.held > held:
            self.count(Row.HELD)
        if held and self.core.is_primary and not self.core.held:
            self.count(Row.HELD_APPLIED)
        if lineage is not None and self.core.lineage != lineage:
            self.count(Row.FORGOTTEN)
        self._look()

    def _count_command(self, payload: bytes) -> None:
        command = decode_command(payload)
        self.seen[command.life, command.request] += 1
        if self.seen[command.life, command.request] == 2:
            self.count(Row.TWICE)
        if self.core.is_deciding:
            self.count(Row.PENDING)
        elif self.transfer is not None:
            self.count(Row.KEPT)

    def notified(self, news: GroupNews) -> None:
        if isinstance(news, View) and not self.is_hung and self.replicas.hangs_now(self):
            self.hang()
        if self.is_hung:
            self.backlog.append(partial(self._notified, news))
        else:
            self._notified(news)

    def _notified(self, news: GroupNews) -> None:
        match news:
            case View():
                if self.core.is_deciding:
                    self.count(Row.ABANDONED_ROUND)
                    if self.core.pending:
                        self.count(Row.PENDING_LOST)
                self.view = news.id
                self._carry_out(self.core.on_view(news))
                self.replicas.view_came(self)
                self.replicas.moment(self, Moment.ROUND)
            case Transition():
                self._carry_out(self.core.on_transition(news))
            case Left():
                self.cut_off()
                self.tell(records.StreamBack(self._at(), self.life))  # who leaves here joins again
            case _:
                assert_never(news)
        self._look()

    def ended(self, how: End) -> None:
        """The connection is gone; the replica with it, when the host is unlucky. What it has not taken by then is of no
        use, and who hangs is hardly aware of it."""
        self.station = self.client = None
        self.is_hung, self.backlog = False, []
        if how in (End.DAEMON_CRASHED, End.DAEMON_LEFT) and self.replicas.dies_with_daemon():
            self.die()
        elif not self.is_dead:
            if how is not End.CRASHED:
                self.count(Row.SURVIVED)
            self.cut_off()

    def cut_off(self) -> None:
        self.cut += 1
        self.view = None
        self.tell(records.StreamCut(self._at(), self.life))
        self._carry_out(self.core.cut_off(self.name))
        self.say_belief()

    def die(self) -> None:
        if self.is_dead:
            return
        self.is_dead = True
        for row in rows_of_death(self):
            self.count(row)
        if self.transfer is not None:
            self.transfer.is_over = True
        self.replicas.forget(self)
        self.tell(records.ReplicaEnded(self._at(), self.life))
        if self.client is not None and self.station is not None:
            self.station.crash(self.client)

    # What it is asked

    def submit(self, *operations: bytes) -> None:
        """In one turn: they travel together."""
        batch = [self._called(operation) for operation in operations]
        self._submit(batch)
        if len(batch) > 1:
            self.count(Row.BATCH)
        if self.replicas.sends_twice():
            self._carry_out(self.core.send_again())

    def read(self, question: bytes) -> None:
        """Linearised."""
        asked = self._called(b"")
        request, effects = self.core.synchronise()
        self.calls.reads[request] = asked, question
        self._carry_out(effects, is_new=True)

    def look(self, question: bytes) -> None:
        """The copy that is here."""
        self.say_belief()
        answer = self.user.answer(question)
        position = self.machine.count
        self.tell(records.Looked(self._at(), self.life, self.core.lineage, position, question, answer))

    def say_belief(self) -> None:
        holds = self.held is not None and self.held.is_held
        if self.client is None and self.held is not None:
            self.count(Row.HELD_LOST)
        self.tell(records.Believed(self._at(), self.life, self.core.is_current, holds))

    def post(self, command: bytes) -> None:
        self._submit([Asked(NOBODY, command, self.cut)])

    def _called(self, operation: bytes) -> Asked:
        asked = self.calls.ask(operation, self.cut)
        self.tell(records.Called(self._at(), self.life, asked.number, operation))
        return asked

    def _submit(self, batch: list[Asked]) -> None:
        request, effects = self.core.submit(batch_of(batch))
        self.calls.batches[request] = batch
        self.replicas.callers[self.life, request] = tuple(asked.number for asked in batch)
        self._carry_out(effects, is_new=True)

    # Departures

    def _look(self) -> None:
        """After everything that may have changed the copy, or what is known of the component."""
        self._note_grant()
        self.patience.look()
        if self.core.is_primary and not self.is_dead:
            again, self.calls.again = self.calls.again, []
            for command in again:
                self.post(command)
            self._tell_gone()

    def _note_grant(self) -> None:
        """What a live member is given when its turn has come."""
        structure = self.machine.structure
        if not isinstance(structure, Exclusive) or structure.grant is None:
            return
        grant = structure.grant
        is_mine = grant.claim.owner == Owner(self.name, self.life)
        if is_mine and (self.held is None or grant.token > self.held.token):
            self.held = Held(structure, grant.claim, grant.token, self)

    def _say_back(self) -> None:
        command = self.departures.back()
        if command is not None:
            self.count(Row.BACK)
            self.post(command)

    def _tell_gone(self) -> None:
        command = self.departures.gone(self.name, self.status)
        if command is not None and not self.calls.has_posted(command):
            self.count(Row.GONE)
            self.post(command)

    # What happens to its state

    def got_picture(self, transfer: Transfer, preface: bytes, pieces: list[bytes]) -> None:
        """WireError when it is the wrong one."""
        was_stale = self.core.standing is Standing.STALE
        held = self.core.held
        is_open = self.core.is_deciding
        effects = self.core.loaded(transfer.point, preface, pieces)
        self.transfer = None
        self.count(Row.FETCHED)
        if is_open:
            self.count(Row.FETCHED_IN_ROUND)
        else:
            self.count(Row.STALE_LOADED if was_stale else Row.FRESH_LOADED)
            if was_stale and held:
                self.count(Row.HELD_DROPPED)
        self._carry_out(effects)
        self._look()

    def applied(self, applied: Applied, index: int) -> None:
        core, (_, caller, request, position) = self.core, applied.origin
        number = self.replicas.callers[caller, request][index]
        self.tell(
            records.Applied(
                self._at(),
                self.life,
                core.lineage,
                core.term,
                position,
                caller,
                number,
                applied.command,
                applied.result,
                self._chain(),
            )
        )

    def was_loaded(self) -> None:
        """The machine has another's state. (The core still knows the lineage of the old one: it says it next.)"""
        lineage, position = self.core.arriving_lineage, self.machine.count
        self.tell(records.GotPicture(self._at(), self.life, lineage, position, self._chain()))

    def known(self) -> records.ReplicaKnown:
        core, is_holder = self.core, self.core.standing is Standing.HOLDER
        count, waiting, pictures = self.machine.count, core.outstanding, len(self.pictures)
        return records.ReplicaKnown(
            self._at(), self.life, core.is_primary, is_holder, count, self._chain(), waiting, pictures
        )

    def _chain(self) -> int:
        return int.from_bytes(self.machine.chain, "big")

    # Effects

    def _carry_out(self, effects: list[Effect], *, is_new: bool = False) -> None:
        for effect in effects:
            match effect:
                case Send():
                    self._send(effect, is_new=is_new)
                case Confirm():
                    self._confirmed(effect)
                case Refuse():
                    self._refused(effect, is_new=is_new)
                case Fetch():
                    self._fetch(effect)
                case StopFetching():
                    self._stop()
                case Freeze():
                    self.count(Row.FROZEN)
                    if decode_preface(effect.preface).held:
                        self.count(Row.HELD_TRANSFERRED)
                    self.pictures[effect.point] = effect
                case Release():
                    del self.pictures[effect.point]
                case Changed():
                    self._changed(effect)
                case GoOn():
                    self.count(Row.SLICED)
                    self.replicas.schedule(self.replicas.rng.randrange(GO_ON_MAX_NS), self._go_on)
                case Spoilt():
                    raise effect.error  # no simulated application may
                case _:
                    assert_never(effect)
        self.core.check_invariants()

    def _go_on(self) -> None:
        if self.is_dead:
            return
        if self.is_hung:
            self.backlog.append(self._go_on)
            return
        if self.core.is_deciding:
            self.count(Row.SLICED_IN_ROUND)
        effects = self.core.go_on()
        if any(isinstance(effect, Freeze) for effect in effects):
            self.count(Row.FROZEN_LATER)
        self._carry_out(effects)

    def _send(self, send: Send, *, is_new: bool) -> None:
        for payload in send.payloads:
            if is_command(payload) and not is_new:
                self.count(Row.SENT_AGAIN)
            if self.client is not None and self.station is not None:
                self.station.send(self.client, (GROUP,), Service.SAFE, payload)

    def _confirmed(self, confirm: Confirm) -> None:
        lineage = self.core.lineage
        if confirm.request in self.calls.reads:
            asked, question = self.calls.reads.pop(confirm.request)
            position = self.machine.count
            self.tell(records.Returned(self._at(), self.life, asked.number, lineage, position, b""))
            self.count(Row.READ)
            self.look(question)
            return
        for asked, position, result in self.calls.confirmed(confirm.request, confirm.result):
            if asked.number == NOBODY:
                continue
            self.count(Row.CONFIRMED)
            if asked.cut < self.cut:
                self.count(Row.CONFIRMED_LATE)
            self.tell(records.Returned(self._at(), self.life, asked.number, lineage, position, result))
        self.replicas.moment(self, Moment.CONFIRMING)

    def _refused(self, effect: Refuse, *, is_new: bool) -> None:
        is_certain = effect.why is not Why.UNCERTAIN
        for asked in self.calls.refused(effect.request):
            self.count(Row.REFUSED if is_certain else Row.UNCERTAIN)
            if is_certain and not is_new:
                self.count(Row.REFUSED_ONCE_SENT)
            self.tell(records.Refused(self._at(), self.life, asked.number, is_certain))

    def _fetch(self, fetch: Fetch) -> None:
        transfer = self.transfer
        if transfer is not None and transfer.point == fetch.point:
            self.count(Row.CONTINUED)
            transfer.go_on(fetch.donors)
            return
        self._stop()
        self.count(Row.FETCH)
        self.transfer = Transfer(self, fetch.point, fetch.donors)
        self.transfer.step()

    def _stop(self) -> None:
        if self.transfer is not None:
            self.count(Row.STOPPED)
            self.transfer.is_over = True
            self.transfer = None

    def _changed(self, changed: Changed) -> None:
        self.status = changed
        row = row_of_decision(changed)
        if row is not None:
            self.count(row)
        if changed.excluded and changed.is_primary and changed.reason in DECISIONS:
            self.count(Row.EXCLUDED_PRIMARY)
        count = self.machine.count + sum(map(count_of, self.core.unapplied()))
        self.tell(self.voice.record(self._at(), self.life, self.view, self.core.era, changed, count))
        if changed.reason in DECISIONS and not changed.is_primary:
            self.replicas.moment(self, Moment.ATTEMPTED)

    def lose_patience(self) -> None:
        effects = self.core.lose_patience()
        if effects:
            self.count(Row.IMPATIENT)
        self._carry_out(effects)

    def count(self, what: Row) -> None:
        self.replicas.count(what)

    def tell(self, event: records.ReplicaEvent) -> None:
        self.replicas.tell(event)

    def _at(self) -> Instant:
        return self.replicas.now()
