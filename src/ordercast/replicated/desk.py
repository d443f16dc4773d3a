"""The desk of one replica: all that it decides beside I/O. Pure: no clock, no sockets, no randomness.

It stands between the core (`core.py`) and a driver, live (`replica.py`) or simulated, which are alike for that:

    the application    commands, gathered into batches (`batching.py`); calls that only wait for what is confirmed
    the group          its views, signals and messages; a connection that is lost, and one that is back
    the transfer       what comes from donors of a state (`arrival.py`)
    time               `wake`, at `next_deadline`: members that are silent for too long, donors that give nothing

Every input gives effects for the driver, to be carried out in order; after each it sends what is in `outgoing`, as soon
as it can. The desk decides what is dropped unsent when the connection is lost, which commands are submitted again, who
is told of its answer, and, for structures of which members own parts, which departures are to be told: all copies must
let go of what somebody had at one place in the order, so the first of the holders says who is gone (GONE), and who
begins, or was cut off for a while, says that what it had is lost (BACK).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import assert_never

from ordercast.model.errors import WireError
from ordercast.model.events import Transition, View
from ordercast.model.ids import SECOND, Instant
from ordercast.replicated.arrival import Arrival, Incoming, Patience
from ordercast.replicated.batching import Batches, CommandBatch, decode_results, encode_batch
from ordercast.replicated.book import Book
from ordercast.replicated.core import Core
from ordercast.replicated.effects import (
    Abandoned,
    Answered,
    Changed,
    Confirm,
    DeskEffect,
    Effect,
    Fetch,
    Freeze,
    GoOn,
    HangUp,
    Point,
    Reason,
    Refusal,
    Refuse,
    Release,
    Send,
    Spoilt,
    StopFetching,
    Ticket,
)
from ordercast.replicated.facts import Round
from ordercast.replicated.frames import TransferFrame, key_of
from ordercast.replicated.scribe import Scribe
from ordercast.replicated.structures.base import BACK_COMMAND, Owned, gone_command
from ordercast.replicated.structures.ticking import TICK_S, Timed, tick_command
from ordercast.replicated.told import Filling, Told
from ordercast.replicated.wire import is_command

SUBMITTED_MAX = 4096  # by the application and not answered; more wait
OUTSTANDING_MAX = 2 * SUBMITTED_MAX  # batches of the core, with those that nobody waits for any more
RANK_MAX = 8  # of a replica among those who say ticks
ROUNDS = 3  # of a view, in which members are waited for as long as usual
DOUBLINGS_MAX = 10


class Desk(Scribe):
    def __init__(
        self,
        group: str,
        core: Core,
        machine: Told,
        patience: Patience,
        *,
        submitted_max: int = SUBMITTED_MAX,
        tick_ns: int = int(TICK_S * SECOND),
        book: Book | None = None,
    ) -> None:
        """`machine` is the core's. With a `book` there is a journal."""
        super().__init__(core, book)
        self.status: Changed | None = None  # what is known of the component
        self.wrong_pictures = 0  # states that came, and were not those that were wanted
        self._group = group.encode()
        self._machine = machine
        self._owned = machine.structure if isinstance(machine.structure, Owned) else None
        self._timed = machine.structure if isinstance(machine.structure, Timed) else None
        self._tick_ns = tick_ns
        self._ticks = -1  # of the structure, when the next one became due
        self._tick_due: Instant | None = None
        self._patience = patience
        self._batches = Batches(submitted_max)
        self._again: list[bytes] = []  # commands that nobody waits for and that were refused
        self._arrival: Arrival[Incoming] | None = None  # the state that is being fetched
        self._point: Point  # of that one
        self._round: Round | None = None  # that members are awaited in
        self._silence_ends: Instant | None = None  # when the patience with them is over
        self._is_turn_due = False  # a GoOn is not answered yet
        self._is_core_behind = False  # and the core wants it

    # Questions

    @property
    def mark(self) -> tuple[int, int, Changed | None, bool]:
        """Equal marks: the copy is the same, as current as it was, and so is what is known of the component."""
        return self._machine.count, self._machine.loads, self.status, self.core.is_current

    @property
    def next_deadline(self) -> Instant | None:
        stall = None if self._arrival is None else self._arrival.deadline
        return min((at for at in (self._silence_ends, stall, self._tick_due) if at is not None), default=None)

    @property
    def is_fetching(self) -> bool:
        return self._arrival is not None

    @property
    def pieces(self) -> int:
        """The pieces of the state that is being fetched, so far."""
        return 0 if self._arrival is None else self._arrival.pieces

    @property
    def is_idle(self) -> bool:
        """Nothing is to be sent, submitted, applied or written."""
        is_written = self._book is None or self._book.is_idle
        return is_written and not (self.outgoing or self.asides or self._is_turn_due)

    def is_queued(self, ticket: object) -> bool:
        """There was no room for this command so far: nothing of it was sent."""
        return self._batches.is_queued(ticket)

    # The application

    def begin(self) -> list[DeskEffect]:
        """Before it joins the group."""
        effects: list[DeskEffect] = []
        self._say_back(effects)
        return effects

    def add(self, command: bytes, ticket: Ticket | None) -> bool:
        """Submit the command in the next turn; with no ticket nobody waits for it, and it is submitted again when it
        was refused. Whether `go_on` is to be called soon. (The hot path: no effects.)"""
        if not self._batches.add(command, ticket) or self._is_turn_due:
            return False
        self._is_turn_due = True
        return True

    def go_on(self, now: Instant) -> list[DeskEffect]:
        """The answer to a GoOn: others have had their turn."""
        effects: list[DeskEffect] = []
        self._is_turn_due = False
        self._submit(now, effects)
        if not self._is_core_behind:
            return effects
        self._is_core_behind = False
        self._take(now, self.core.go_on(), effects)
        return self._settled(now, effects)

    def synchronise(self, now: Instant, ticket: Ticket) -> list[DeskEffect]:
        """Answered when everything that was confirmed anywhere before is in the copy here."""
        effects: list[DeskEffect] = []
        self._submit(now, effects)
        number, found = self.core.synchronise()
        self._batches.underway[number] = CommandBatch([], [ticket])
        self._take(now, found, effects)
        return effects

    def send_again(self, now: Instant) -> list[DeskEffect]:
        """The driver is not sure that what was sent went out."""
        return self._result(now, self.core.send_again())

    def force(self) -> bytes | None:
        """Return what asks the members to go on without a quorum; None where that is not needed. It says nothing of
        this replica, so it waits for nothing that is to be sent or written."""
        return next((effect.payloads[0] for effect in self.core.force() if isinstance(effect, Send)), None)

    def end(self, now: Instant, why: str) -> list[DeskEffect]:
        """It is over: nobody gets an answer any more, and what is here is of no membership."""
        effects = self.lost(now, why)
        self._round = self._silence_ends = self._tick_due = None
        return [*effects, Abandoned(*self._batches.clear())]

    def _submit(self, now: Instant, effects: list[DeskEffect]) -> None:
        """Give the core what this turn has brought."""
        for batch in self._batches.take():
            number, found = self.core.submit(encode_batch(batch.commands))
            self._batches.underway[number] = batch
            self._take(now, found, effects)

    def _post(self, command: bytes, effects: list[DeskEffect]) -> None:
        if self.add(command, None):
            effects.append(GoOn())

    # The group

    def on_view(self, now: Instant, view: View) -> list[DeskEffect]:
        return self._result(now, self.core.on_view(view))

    def on_transition(self, now: Instant, transition: Transition) -> list[DeskEffect]:
        return self._result(now, self.core.on_transition(transition))

    def on_messages(
        self, now: Instant, sender: str, payloads: Iterable[bytes], is_again: bool = False
    ) -> list[DeskEffect]:
        effects: list[DeskEffect] = []
        machine = self._machine
        count, loads, status = machine.count, machine.loads, self.status
        self._take(now, self.core.on_messages(sender, payloads, is_again), effects)
        if status is self.status and (count, loads) == (machine.count, machine.loads):
            return effects
        return self._settled(now, effects)

    def lost(self, now: Instant, why: str) -> list[DeskEffect]:
        """The stream is over, for now: what is here is neither current nor held, and whoever waits for that to end is
        told first."""
        self._drop_outgoing()
        effects: list[DeskEffect] = []
        if self.core.is_in_group:
            found = self.core.cut_off(self.core.me.name, Reason.LOST)
            noted = [replace(effect, note=why) if isinstance(effect, Changed) else effect for effect in found]
            self._take(now, noted, effects)
        return self._settled(now, effects)

    def cut_off(self, now: Instant, name: str | None) -> list[DeskEffect]:
        """The replica has left the group; or (with its name from now on) was out of it, and a new view follows. Nothing
        that was not sent yet is of use: what still matters is sent again."""
        self._drop_outgoing()
        effects: list[DeskEffect] = []
        self._take(now, self.core.cut_off(name or self.core.me.name), effects)
        if name is not None:
            self._say_back(effects)
        return self._settled(now, effects)

    # The transfer

    def on_connected(self, now: Instant) -> list[DeskEffect]:
        return [] if self._arrival is None else self._arrival.on_connected(now)

    def on_broken(self, now: Instant, why: str) -> list[DeskEffect]:
        return [] if self._arrival is None else self._arrival.on_broken(now, why)

    def on_frame(self, now: Instant, frame: TransferFrame) -> list[DeskEffect]:
        if self._arrival is None:
            return []
        effects = self._arrival.on_frame(now, frame)
        if self._arrival.is_done:
            self._load(now, self._arrival, effects)
        return effects

    def _load(self, now: Instant, arrival: Arrival[Incoming], effects: list[DeskEffect]) -> None:
        """The whole picture is here."""
        self._arrival = None  # before what the core wants next, which may be another
        taken = arrival.taken
        try:
            if taken.preface is None:
                raise WireError("there is nothing in it")
            found = self.core.loaded(self._point, taken.preface, taken.filling)
        except WireError as error:
            self.wrong_pictures += 1
            self._arrival = arrival
            effects += arrival.again(now, f"the state that came is not the one wanted: {error}")
        else:
            self._take(now, found, effects)
            self._settled(now, effects)

    def _fetch(self, now: Instant, fetch: Fetch, effects: list[DeskEffect]) -> None:
        """Fetch a state; of the same point, go on with what has come so far."""
        if self._arrival is None or self._point != fetch.point:
            self._point = fetch.point
            self._arrival = Arrival(self._group, key_of(fetch.point), self._incoming, self._patience)
        effects += self._arrival.ask(now, fetch.donors)

    def _incoming(self) -> Incoming:
        return Incoming(Filling(self._machine.structure.blank()))

    # Time

    def wake(self, now: Instant) -> list[DeskEffect]:
        """A deadline has come, perhaps."""
        effects: list[DeskEffect] = []
        if self._arrival is not None:
            effects += self._arrival.wake(now)
        if self._silence_ends is not None and now >= self._silence_ends:
            self._round = self._silence_ends = None  # the patience begins anew, if it is still open
            self._take(now, self.core.lose_patience(), effects)
        if self._tick_due is not None and now >= self._tick_due:
            self._tick_due = None
            self._say_tick(effects)
        return self._settled(now, effects)

    def _watch_ticks(self, now: Instant) -> None:
        """The next tick is due when the last one was applied long enough ago. The first of the holders says it; the
        others do when it does not."""
        timed = self._timed
        if timed is None or not timed.awaits_tick or not self.core.is_primary:
            self._tick_due, self._ticks = None, -1
        elif self._tick_due is None or self._ticks != timed.ticks:
            self._ticks = timed.ticks
            self._tick_due = Instant(now + self._tick_ns * (2 + self._rank) // 2)

    @property
    def _rank(self) -> int:
        holders = () if self.status is None else self.status.holders
        me = self.core.me.name
        return min(holders.index(me), RANK_MAX) if me in holders else RANK_MAX

    def _say_tick(self, effects: list[DeskEffect]) -> None:
        timed = self._timed
        if timed is not None and timed.awaits_tick and self.core.is_primary:
            command = tick_command(timed.ticks + 1)
            if not self._batches.has_posted(command):
                self._post(command, effects)

    def _watch_round(self, now: Instant) -> None:
        """A silent member costs the group this time once at a view, and nothing at any other. One that was only slow,
        again and again, opens round after round: then it is waited for longer and longer, until it is in time."""
        is_open = self.core.round
        if is_open != self._round:
            self._round = is_open
            self._silence_ends = None if is_open is None else Instant(now + self._silence_ns(is_open[1]))

    def _silence_ns(self, number: int) -> int:
        doublings = min(max(0, number - ROUNDS), DOUBLINGS_MAX)
        return int(self._patience.silence_s * SECOND) << doublings

    # What the core decides

    def _result(self, now: Instant, found: list[Effect]) -> list[DeskEffect]:
        effects: list[DeskEffect] = []
        self._take(now, found, effects)
        return self._settled(now, effects)

    def _take(self, now: Instant, found: list[Effect], effects: list[DeskEffect]) -> None:
        book = self._book
        if book is not None:
            self._note(book, effects)
        for effect in found:
            match effect:
                case Send() if book is not None:
                    book.send(effect.payloads, is_bound=not all(map(is_command, effect.payloads)))
                case Send():
                    self.outgoing += effect.payloads
                case Confirm():
                    self._confirmed(effect, effects)
                case Refuse():
                    self._refused(effect, effects)
                case Fetch():
                    self._fetch(now, effect, effects)
                case StopFetching():
                    self._arrival = None
                    effects.append(HangUp())
                case GoOn():
                    self._is_core_behind = True
                    self._ask_turn(effects)
                case Changed():
                    self.status = effect
                    effects.append(effect)
                case Freeze() | Release() | Spoilt():
                    effects.append(effect)
                case _:
                    assert_never(effect)
        if book is not None:
            self._release(book, effects)

    def _ask_turn(self, effects: list[DeskEffect]) -> None:
        if not self._is_turn_due:
            self._is_turn_due = True
            effects.append(GoOn())

    def _confirmed(self, confirm: Confirm, effects: list[DeskEffect]) -> None:
        batch, is_new = self._batches.settle(confirm.request)
        if batch is not None and batch.commands:
            assert confirm.result, "a command was confirmed of which no result is known"
            effects.append(Answered(batch.tickets, *decode_results(confirm.result)))
        elif batch is not None:
            effects.append(Answered(batch.tickets, self._machine.count, (b"",)))
        if is_new:
            self._ask_turn(effects)

    def _refused(self, refuse: Refuse, effects: list[DeskEffect]) -> None:
        batch, is_new = self._batches.settle(refuse.request)
        if batch is not None:
            self._again += batch.posted
            if callers := batch.callers:
                effects.append(Refusal(callers, refuse.why))
        if is_new:
            self._ask_turn(effects)

    def _settled(self, now: Instant, effects: list[DeskEffect]) -> list[DeskEffect]:
        """After everything that may have changed the copy, or what is known of the component."""
        self._watch_round(now)
        if self._timed is not None:
            self._watch_ticks(now)
        if not self.core.refuses:  # ahead of all that callers do from now on
            again, self._again = self._again, []
            for command in again:
                self._post(command, effects)
        if self.core.is_primary:
            gone = self._departed()
            if gone is not None and not self._batches.has_posted(gone):
                self._post(gone, effects)
        return effects

    # Departures

    def _say_back(self, effects: list[DeskEffect]) -> None:
        if self._owned is not None:
            self._post(BACK_COMMAND, effects)

    def _departed(self) -> bytes | None:
        """The command that tells of owners who are gone, at the first of the holders."""
        status = self.status
        if self._owned is None or status is None or status.holders[:1] != (self.core.me.name,):
            return None
        gone = [owner for owner in self._owned.owners() if owner.name not in status.members]
        return gone_command(gone) if gone else None
