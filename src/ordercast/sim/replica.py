"""One simulated replica: a driver of the desk (`replicated/desk.py`), as `replicated/replica.py` is on an event loop.

It has a real structure, a connection to the daemon of its host, and one to the donor of a state (`transfers.py`). It
outlives its connection, and may outlive the daemon: then it joins again with its state. When it crashes itself its
memory is gone, and who comes next under its name is another life. When it hangs, what comes for it waits, and it says
nothing. A witness (`replica_witness.py`) tells the judges what happens.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, assert_never

from ordercast.model.events import GroupNews, Left, Transition, View
from ordercast.model.ids import MICROSECOND, MILLISECOND
from ordercast.model.service import Service
from ordercast.replicated.chained import Chained, stamped
from ordercast.replicated.desk import Desk
from ordercast.replicated.effects import (
    Abandoned,
    Answered,
    Changed,
    DeskEffect,
    Dial,
    Freeze,
    GoOn,
    HangUp,
    Progress,
    Refusal,
    Release,
    Snapshot,
    Spoilt,
    Write,
)
from ordercast.replicated.frames import TransferFrame, key_of
from ordercast.sim.client import Outgoing, SimClient
from ordercast.sim.replica_journal import SimJournal
from ordercast.sim.replica_tally import Moment, rows_of_death
from ordercast.sim.replica_tally import ReplicaOccurrence as Row
from ordercast.sim.replica_witness import GROUP, Asked, Witness
from ordercast.sim.transfers import Line
from ordercast.sim.users import User
from ordercast.trace.client_records import End
from ordercast.trace.records import STAMP_SIZE
from ordercast.trace.replica_records import ReplicaEnded

if TYPE_CHECKING:
    from ordercast.sim.replicas import Replicas

TURN_MAX_NS = 2 * MILLISECOND  # until a replica goes on with what it has to apply or to submit
SEND_MAX_NS = 200 * MICROSECOND  # until what is to be sent is with the daemon
GIVE_UP_MAX_NS = 20 * MILLISECOND  # until a caller without patience gives up


@dataclass(slots=True, eq=False)
class Replica:
    replicas: Replicas
    node: int
    name: str  # in full
    life: int
    structure: Chained
    user: User
    desk: Desk = field(init=False)
    line: Line = field(init=False)
    witness: Witness = field(init=False)
    client: SimClient | None = None  # its connection
    journal: SimJournal | None = None
    pictures: dict[bytes, Freeze] = field(default_factory=dict)  # that it serves, by key
    is_dead: bool = False
    is_hung: bool = False
    backlog: list[Callable[[], None]] = field(default_factory=list)  # what waits for one that hangs
    is_sending: bool = False
    timer: int | None = None  # when it wakes up

    def __post_init__(self) -> None:
        self.line, self.witness = Line(self), Witness(self)
        self.structure.on_applied = self.witness.applied

    @property
    def stint(self) -> int:
        return self.desk.core.me.stint

    # Driving the desk

    def _do(self, happens: Callable[..., list[DeskEffect]], *arguments: Any) -> list[DeskEffect]:
        """Tell the desk, carry out what it makes of it, and return that."""
        if self.is_dead:
            return []
        before = self.witness.before()
        effects = happens(self.replicas.now(), *arguments)
        self._carry_out(effects)
        self.desk.core.check_invariants()
        self.witness.after(before, effects)
        if (self.desk.outgoing or self.desk.asides) and not self.is_sending:
            self.is_sending = True
            self.replicas.schedule(self.replicas.rng.randrange(SEND_MAX_NS), lambda: self.when_awake(self._send))
        self._arm()
        return effects

    def _arm(self) -> None:
        deadline = self.desk.next_deadline
        if deadline is not None and (self.timer is None or deadline < self.timer):
            self.timer = deadline
            self.replicas.schedule(deadline - self.replicas.now(), partial(self._ring, deadline))

    def _ring(self, at: int) -> None:
        if at == self.timer:
            self.timer = None
            self.when_awake(lambda: self._do(self.desk.wake))

    def _soon(self) -> None:
        self.replicas.schedule(self.replicas.rng.randrange(TURN_MAX_NS), lambda: self.when_awake(self._go_on))

    def _go_on(self) -> None:
        before = self.witness.before()
        self.witness.went_on(before, self._do(self.desk.go_on))

    def _send(self) -> None:
        """What a connection that is gone was given is lost."""
        self.is_sending = False
        payloads, self.desk.outgoing = self.desk.outgoing, []
        asides, self.desk.asides = self.desk.asides, []
        if self.client is None:
            return
        for payload in payloads:
            self.witness.sends(payload)
            self.client.send(Outgoing((GROUP,), Service.SAFE, (payload,)))
        for payload in asides:
            self.client.send(Outgoing((GROUP,), Service.AGREED, (payload,)))
        self.replicas.submit_at(self.node)

    def _carry_out(self, effects: list[DeskEffect]) -> None:
        for effect in effects:
            match effect:
                case Answered():
                    self.witness.answered(effect)
                    self.replicas.moment(self, Moment.CONFIRMING)
                case Refusal():
                    self.witness.refused(effect)
                case Dial():
                    self.witness.dials(effect)
                    self.line.dial(effect)
                case HangUp():
                    self.line.hang_up()
                case Freeze():
                    self.pictures[key_of(effect.point)] = effect
                case Release():
                    del self.pictures[key_of(effect.point)]
                case Changed():
                    self.witness.changed(effect)
                case GoOn():
                    self._soon()
                case Progress():
                    pass  # nobody watches
                case Write():
                    assert self.journal is not None
                    self.journal.write(effect)
                case Snapshot():
                    assert self.journal is not None
                    self.journal.take(effect)
                case Spoilt():
                    raise effect.error  # no simulated application may
                case Abandoned():
                    raise AssertionError("a simulated replica ends by being killed")
                case _:
                    assert_never(effect)

    # Hanging

    def hang(self) -> None:
        self.is_hung = True
        self.witness.count(Row.HUNG)

    def wake(self) -> None:
        self.is_hung = False
        backlog, self.backlog = self.backlog, []
        for what in backlog:
            what()

    def when_awake(self, what: Callable[[], object]) -> None:
        if self.is_hung:
            self.backlog.append(lambda: self.when_awake(what))
        elif not self.is_dead:
            what()

    # Its connection to the daemon

    def connect(self, client: SimClient) -> None:
        self.client = client
        client.listener = self
        if self.witness.cut:
            self.witness.is_back()
            self._do(self.desk.cut_off, self.name)
        else:
            self._carry_out(self.desk.begin())
        client.join((GROUP,))

    def leave(self) -> None:
        """Leave, and join again."""
        if self.client is not None:
            self.client.leave((GROUP,))
            self.client.join((GROUP,))

    def _hear(self, what: Callable[[], None]) -> None:
        """What has come on a connection, and was not taken when that is gone, is of no use."""
        client = self.client
        self.when_awake(lambda: what() if self.client is client else None)

    def got(self, sender: str, data: bytes, is_again: bool) -> None:
        self._hear(lambda: self._got(sender, data[STAMP_SIZE:], is_again))

    def _got(self, sender: str, payload: bytes, is_again: bool) -> None:
        before = self.witness.before()
        self.witness.came(payload)
        self.witness.got(payload, before, self._do(self.desk.on_messages, sender, [payload], is_again))

    def notified(self, news: GroupNews) -> None:
        if isinstance(news, View) and not self.is_hung and self.replicas.hangs_now(self):
            self.hang()
        self._hear(lambda: self._notified(news))

    def _notified(self, news: GroupNews) -> None:
        match news:
            case View():
                self.witness.viewed(news.id)
                self._do(self.desk.on_view, news)
                self.replicas.view_came(self)
                self.replicas.moment(self, Moment.ROUND)
            case Transition():
                self._do(self.desk.on_transition, news)
            case Left():
                self.witness.is_cut()
                self._do(self.desk.cut_off, self.name)
                self.witness.say_belief()
                self.witness.is_back()  # who leaves here joins again
            case _:
                assert_never(news)

    def ended(self, how: End) -> None:
        """The connection is gone; the replica with it, when the host is unlucky. Who hangs wakes up."""
        self.client = None
        if how in (End.DAEMON_CRASHED, End.DAEMON_LEFT) and self.replicas.dies_with_daemon():
            self.die()
        elif not self.is_dead:
            if how is not End.CRASHED:
                self.witness.count(Row.SURVIVED)
            self.witness.is_cut()
            self._do(self.desk.lost, "its connection is gone")
            self.witness.say_belief()
            self.wake()

    def die(self) -> None:
        if self.is_dead:
            return
        self.is_dead = True
        for row in rows_of_death(self):
            self.witness.count(row)
        self.line.hang_up()
        self.replicas.died(self)
        self.replicas.forget(self)
        self.witness.tell(ReplicaEnded(self.replicas.now(), self.life))
        if self.client is not None:
            self.client.crash()

    # Its journal

    def written(self, number: int) -> None:
        self.when_awake(lambda: self._do(self.desk.written, number))

    def pictured(self, number: int, size: int) -> None:
        if number:
            self.written(number)
        self.when_awake(lambda: self._do(self.desk.pictured, size))

    # Its connection to a donor

    def connected(self) -> None:
        self._do(self.desk.on_connected)

    def broken(self, why: str) -> None:
        self._do(self.desk.on_broken, why)

    def framed(self, frame: TransferFrame) -> None:
        self._do(self.desk.on_frame, frame)

    # What it is asked

    def submit(self, *operations: bytes) -> None:
        """In one turn: they travel together, if there is room."""
        for operation in operations:
            asked = self.witness.called(operation)
            if self.desk.add(stamped(self.life, asked.number, operation), asked):
                self._soon()
            if self.desk.is_queued(asked):
                self.witness.count(Row.QUEUED)
            if self.replicas.gives_up():
                delay_ns = self.replicas.rng.randrange(GIVE_UP_MAX_NS)
                self.replicas.schedule(delay_ns, partial(self._give_up, asked))
        if self.replicas.sends_twice():
            self._do(self.desk.send_again)

    def hurry(self) -> None:
        """What was asked for is with the daemon at once, for scenes that need it there."""
        self._go_on()
        self._send()

    def _give_up(self, asked: Asked) -> None:
        """For what was sent the caller waits on, not to be in doubt."""
        if not self.is_dead and self.desk.is_queued(asked):
            self.witness.gave_up(asked)

    def read(self, question: bytes) -> None:
        """Linearised."""
        self._do(self.desk.synchronise, self.witness.called(b"", question))
