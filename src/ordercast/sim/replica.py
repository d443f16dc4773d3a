"""One simulated replica: the core, its state, its connection to the daemon of its host, and its transfers.

It outlives its connection, and may outlive the daemon: then it joins again with its state. When it crashes itself its
memory is gone, and who comes next under its name is another life.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, assert_never

from ordercast.model.events import GroupNews, Left, Transition, View
from ordercast.model.ids import MILLISECOND, Instant
from ordercast.model.service import Service
from ordercast.replicated.core import Core
from ordercast.replicated.effects import (
    Changed,
    Confirm,
    Effect,
    Fetch,
    Freeze,
    GoOn,
    Point,
    Reason,
    Refuse,
    Release,
    Send,
    Standing,
    StopFetching,
    Why,
)
from ordercast.replicated.machine import Origin
from ordercast.replicated.wire import decode_command, decode_preface, is_command
from ordercast.sim.dictionary import Dictionary
from ordercast.sim.replica_tally import ReplicaOccurrence as Row
from ordercast.sim.station import Client, Station
from ordercast.sim.transfers import Transfer
from ordercast.trace.client_records import End
from ordercast.trace.records import STAMP_SIZE
from ordercast.trace.replica_records import (
    Applied,
    Called,
    ComponentChanged,
    GotPicture,
    Refused,
    ReplicaEnded,
    ReplicaEvent,
    ReplicaKnown,
    Returned,
    StreamCut,
)

if TYPE_CHECKING:
    from ordercast.sim.replicas import Replicas

GROUP = "state"
GO_ON_MAX_NS = 2 * MILLISECOND  # until a replica goes on with what it has to apply
_DECISIONS = (Reason.BOOTSTRAP, Reason.QUORUM, Reason.LOADED)


@dataclass(slots=True, eq=False)
class Replica:
    replicas: Replicas
    node: int
    name: str  # in full
    life: int
    core: Core = field(init=False)
    machine: Dictionary = field(init=False)
    station: Station | None = None
    client: Client | None = None  # its connection
    transfer: Transfer | None = None
    pictures: dict[Point, Freeze] = field(default_factory=dict)
    seen: Counter[tuple[int, int]] = field(default_factory=Counter)  # commands that came, by life and request
    cuts: dict[int, int] = field(default_factory=dict)  # how often it had been cut off when it called, by request
    cut: int = 0

    # Its connection

    def connect(self, station: Station, client: Client) -> None:
        self.station, self.client = station, client
        client.listener = self
        station.join(client, (GROUP,))

    def leave(self) -> None:
        if self.client is not None and self.station is not None:
            self.station.leave(self.client, (GROUP,))

    def join_again(self) -> None:
        if self.client is not None and self.station is not None:
            self.station.join(self.client, (GROUP,))

    def got(self, sender: str, data: bytes) -> None:
        payload = data[STAMP_SIZE:]
        held = self.core.held
        if is_command(payload):
            command = decode_command(payload)
            self.seen[command.life, command.request] += 1
            if self.seen[command.life, command.request] == 2:
                self.count(Row.TWICE)
            if self.core.is_deciding:
                self.count(Row.PENDING)
            elif self.transfer is not None:
                self.count(Row.KEPT)
        lineage = self.core.lineage
        self._carry_out(self.core.on_messages(sender, [payload]))
        if is_command(payload) and self.core.held > held:
            self.count(Row.HELD)
        if held and self.core.is_primary and not self.core.held:
            self.count(Row.HELD_APPLIED)
        if lineage is not None and self.core.lineage != lineage:
            self.count(Row.FORGOTTEN)

    def notified(self, news: GroupNews) -> None:
        match news:
            case View():
                if self.core.is_deciding:
                    self.count(Row.ABANDONED_ROUND)
                    if self.core.pending:
                        self.count(Row.PENDING_LOST)
                self._carry_out(self.core.on_view(news))
                self.replicas.view_came()
            case Transition():
                self._carry_out(self.core.on_transition(news))
            case Left():
                self.cut_off()
            case _:
                assert_never(news)

    def ended(self, how: End) -> None:
        """The connection is gone; the replica with it, when the host is unlucky."""
        self.station = self.client = None
        if how in (End.DAEMON_CRASHED, End.DAEMON_LEFT) and self.replicas.dies_with_daemon():
            self.die()
        elif self.replicas.is_here(self):
            if how is not End.CRASHED:
                self.count(Row.SURVIVED)
            self.cut_off()

    def cut_off(self) -> None:
        self.cut += 1
        self.tell(StreamCut(self._at(), self.life))
        self._carry_out(self.core.cut_off(self.name))

    def die(self) -> None:
        if self.transfer is not None:
            self.transfer.is_over = True
        self.replicas.forget(self)
        self.tell(ReplicaEnded(self._at(), self.life))
        if self.client is not None and self.station is not None:
            self.station.crash(self.client)

    # What it does

    def submit(self, operation: bytes) -> None:
        request, effects = self.core.submit(operation) if operation else self.core.synchronise()
        self.cuts[request] = self.cut
        self.tell(Called(self._at(), self.life, request, operation))
        self._carry_out(effects, is_new=True)
        if self.replicas.sends_twice():
            self._carry_out(self.core.send_again())

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

    def applied(self, command: bytes, origin: Origin, result: bytes) -> None:
        core, chain = self.core, int.from_bytes(self.machine.chain, "big")
        at, lineage, term = self._at(), core.lineage, core.term
        position, caller, request = origin.position, origin.life, origin.request
        self.tell(Applied(at, self.life, lineage, term, position, caller, request, command, result, chain))

    def was_loaded(self, position: int, chain: bytes) -> None:
        """The machine has another's state. (The core still knows the lineage of the old one: it says it next.)"""
        self.tell(GotPicture(self._at(), self.life, self.core.arriving_lineage, position, int.from_bytes(chain, "big")))

    def known(self) -> ReplicaKnown:
        core, chain = self.core, int.from_bytes(self.machine.chain, "big")
        is_holder = core.standing is Standing.HOLDER
        return ReplicaKnown(
            self._at(), self.life, core.is_primary, is_holder, core.count, chain, core.outstanding, len(self.pictures)
        )

    # Effects

    def _carry_out(self, effects: list[Effect], *, is_new: bool = False) -> None:
        for effect in effects:
            match effect:
                case Send():
                    self._send(effect, is_new=is_new)
                case Confirm():
                    self.count(Row.CONFIRMED)
                    if self.cuts.pop(effect.request) < self.cut:
                        self.count(Row.CONFIRMED_LATE)
                    position, result = effect.position, effect.result
                    self.tell(Returned(self._at(), self.life, effect.request, self.core.lineage, position, result))
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
                case _:
                    assert_never(effect)
        self.core.check_invariants()

    def _go_on(self) -> None:
        if not self.replicas.is_here(self):
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

    def _refused(self, effect: Refuse, *, is_new: bool) -> None:
        is_certain = effect.why is not Why.UNCERTAIN
        self.count(Row.REFUSED if is_certain else Row.UNCERTAIN)
        if is_certain and not is_new:
            self.count(Row.REFUSED_ONCE_SENT)
        self.tell(Refused(self._at(), self.life, effect.request, is_certain))

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
        decided = changed.reason in _DECISIONS
        self._count_decision(changed)
        self.tell(
            ComponentChanged(
                self._at(),
                self.life,
                changed.is_primary,
                decided,
                changed.standing is Standing.HOLDER,
                changed.holders,
                changed.members,
                changed.lineage,
                changed.term,
                changed.count,
                changed.reason.value,
            )
        )

    def _count_decision(self, changed: Changed) -> None:
        if changed.reason is Reason.NO_QUORUM:
            self.count(Row.MINORITY)
        elif changed.reason is Reason.NO_STATE:
            self.count(Row.NO_STATE)
        elif changed.reason in _DECISIONS and not changed.is_primary:
            self.count(Row.ATTEMPTED_BEGINNING if changed.reason is Reason.BOOTSTRAP else Row.ATTEMPT)
        elif changed.reason is Reason.BOOTSTRAP:
            self.count(Row.BOOTSTRAP)
        elif changed.reason is Reason.QUORUM:
            self.count(Row.PRIMARY)
        elif changed.reason is Reason.LOADED:
            self.count(Row.PRIMARY_LOADED)

    def count(self, what: Row) -> None:
        self.replicas.count(what)

    def tell(self, event: ReplicaEvent) -> None:
        self.replicas.tell(event)

    def _at(self) -> Instant:
        return self.replicas.now()
