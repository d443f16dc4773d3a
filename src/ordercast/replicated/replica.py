"""Replica: a structure that is the same at all members of a group.

    async with Replica(me, "accounts", Dictionary(), quorum=Majority({"a@n1": 1, "b@n2": 1, "c@n3": 1})) as accounts:
        await accounts.ready()
        await accounts.set("alice", b"100")    # returns when it is confirmed

It carries out what the desk (`desk.py`) decides: sends, serves and fetches states, and answers those who wait. `me` is
any `Member`, a client or an embedded node; it may carry replicas of several groups. When it was out of the group for a
while, what waits is sent again, and applied once.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Generic, TypeVar, assert_never, cast

from ordercast.api.member import Member
from ordercast.groups.names import AT, FORCES, meeting_of
from ordercast.model.arguments import check_timeout
from ordercast.model.errors import ConnectionLost, Error, UsageError
from ordercast.model.events import Batch, Transition, View
from ordercast.model.ids import SECOND, Instant
from ordercast.model.service import Service
from ordercast.replicated.arrival import Patience
from ordercast.replicated.batching import Answer
from ordercast.replicated.book import Book
from ordercast.replicated.core import Core
from ordercast.replicated.desk import OUTSTANDING_MAX, Desk
from ordercast.replicated.dispatcher import Dispatcher
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
    Ticket,
    Why,
    Write,
)
from ordercast.replicated.frames import TransferFrame, address_of, key_of
from ordercast.replicated.live_journal import LiveJournal
from ordercast.replicated.quorum import EverySide, Rule
from ordercast.replicated.spill import Spill
from ordercast.replicated.structures.base import Age, Applied, Owner, Reloaded, Structure
from ordercast.replicated.told import Told
from ordercast.replicated.transfer import Donor, Line
from ordercast.replicated.watching import Watch, Watchers
from ordercast.replicated.wire import is_force

FrontT = TypeVar("FrontT")
T = TypeVar("T")
COMMAND_SIZE_MAX = 15 << 20
LEAVE_S = 5.0
_OUTCOMES = {
    (True, True): "; the command may yet take effect",
    (True, False): "; the command was not sent, and has no effect",
    (False, False): "",
}  # of a call that took too long, by whether it is a command, and whether that was sent


class _Doubtful(Error):
    """An error after which a command may have been applied, or may be yet, if `is_uncertain`."""

    def __init__(self, sentence: str, is_uncertain: bool = False) -> None:
        super().__init__(sentence)
        self.is_uncertain = is_uncertain


class NotPrimary(_Doubtful):
    """The command was refused: the members that can be reached are no primary component. `is_uncertain`: it had been
    sent before the component changed, so it may have been applied, or may be later."""


class ReplicaEnded(_Doubtful):
    """The replica was closed, or its member has failed. `is_uncertain`: the command had been sent, and may have been
    applied, or may be yet."""


class TimedOut(_Doubtful, TimeoutError):
    """It took longer than the caller wanted to wait. `is_uncertain`: the command was sent, and may yet take effect."""


def _check_arguments(member: object, structure: object, quorum: object) -> None:
    """UsageError says which of them is something else than it should be."""
    if not hasattr(member, "meet"):
        raise UsageError(f"{type(member).__name__} is no client of asyncio: a blocking one has a BlockingReplica")
    if isinstance(structure, type):
        raise UsageError(f"give the structure, {structure.__name__}(), and not its class")
    if not hasattr(quorum, "is_quorum"):
        raise UsageError(f"a {type(quorum).__name__} is no quorum: give Majority, LastMajority or EverySide")


class Replica(Generic[FrontT]):
    def __init__(
        self,
        member: Member,
        group: str,
        structure: Structure[FrontT],
        *,
        quorum: Rule,
        founding: bool = False,
        host: str = "127.0.0.1",
        port: int = 0,
        folder: Path | None = None,
        patience: Patience | None = None,
        journal: Path | str | None = None,
    ) -> None:
        """`quorum`: `Majority`, `LastMajority` or `EverySide`, the same at all members. `founding`: this is the first
        life of this replica ever (asked by `LastMajority` alone). `host` and `port`: where others fetch the state from;
        they must be able to reach it. `folder`: for commands that come while a state is on its way; the system's folder
        for temporary files unless told. `journal`: a folder in which the replica remembers its state over a crash or a
        power cut; with `Majority`, and then at all who vote."""
        _check_arguments(member, structure, quorum)
        self.group = group
        self._member = member
        self._structure = structure
        self._watchers = Watchers()
        self._machine = Told(structure, self._watchers, quorum.on_merge if isinstance(quorum, EverySide) else None)
        self._patience = patience or Patience()
        self._donor = Donor(host, port, self._patience)
        self._line = Line(self._connected, self._framed, self._broken)
        self._settings = (quorum, founding, folder)
        self._journal_path = None if journal is None else Path(journal)
        self._journal: LiveJournal | None = None
        self._desk: Desk
        self._has_begun = False  # there is a desk
        self._meeting, self._forces = meeting_of(group), FORCES + group
        self._has_outgoing = asyncio.Event()
        self._sending: asyncio.Task[None] | None = None
        self._left = asyncio.Event()
        self._now = cast("Callable[[], Instant]", time.monotonic_ns)  # the event loop's clock, in one call
        self._timer: asyncio.TimerHandle | None = None
        self._seen: object = None  # the desk's mark when waiters were told last
        self._ended: BaseException | None = None
        self._leaving: asyncio.Task[None] | None = None  # after a failure
        self._new_future: Callable[[], asyncio.Future[Answer]]
        self._repeated: set[asyncio.Task[None]] = set()  # what is done again and again

    def __repr__(self) -> str:
        return f"<Replica of {self.group}, {type(self._structure).__name__}: enter it with `async with`>"

    # Beginning and end

    async def __aenter__(self) -> FrontT:
        await self._donor.__aenter__()
        try:
            await self._begin()
            return self._structure.front(self)
        except BaseException:
            await self._stop(ReplicaEnded(f"the replica of {self.group} could not begin"))
            raise

    async def _begin(self) -> None:
        rule, founding, folder = self._settings
        self._structure.take()
        for name in rule.needed() if AT in self._member.name else ():
            if AT not in name:
                raise UsageError(
                    f"the quorum names {name!r}: write full names, as this replica's is {self._member.name}"
                )
        if self._journal_path is not None:
            self._journal = await LiveJournal.opened(self._journal_path, self.group, self._member.name)
            self._journal.begin(self._written, self._pictured, self.on_failed)
        core = Core(
            self._member.name,
            secrets.randbits(64),
            self._machine,
            rule,
            address=address_of(self._donor.place),
            founding=founding,
            outstanding_max=OUTSTANDING_MAX,
            tails=partial(Spill, folder),
            remembered=None if self._journal is None else self._journal.remembered,
            structure=self._structure.NAME,
        )
        book = None if self._journal is None else Book()
        self._desk = Desk(self.group, core, self._machine, self._patience, book=book)
        self._new_future = asyncio.get_running_loop().create_future
        self._has_begun = True
        self._carry_out(self._desk.begin())
        Dispatcher.of(self._member).add(self._meeting, self)
        self._sending = asyncio.get_running_loop().create_task(self._send_all())
        await self._member.meet(self._meeting)

    async def __aexit__(self, *how: object) -> None:
        if self._leaving is not None:
            await self._leaving
        elif self._ended is None:
            await self._leave()
        await self._stop(ReplicaEnded(f"the replica of {self.group} was closed"))

    async def _leave(self) -> None:
        with suppress(Exception):
            async with asyncio.timeout(LEAVE_S):
                await self._member.leave(self._meeting)
                await self._left.wait()

    async def _stop(self, error: BaseException) -> None:
        self._end(error)
        await Dispatcher.of(self._member).remove(self._meeting, self)
        await self._line.stop()
        for task in list(self._repeated):
            task.cancel()
        await asyncio.gather(*self._repeated, return_exceptions=True)
        if self._sending is not None:
            self._sending.cancel()
            await asyncio.gather(self._sending, return_exceptions=True)
        await self._donor.__aexit__(None, None, None)
        if self._journal is not None:
            await self._journal.close()

    def _end(self, error: BaseException) -> None:
        if self._ended is not None:
            return
        self._ended = error
        if self._timer is not None:
            self._timer.cancel()
        if self._has_begun:
            self._carry_out(self._desk.end(self._now(), str(error)))
        self._watchers.look()
        self._watchers.end(error)

    # What a front asks for (see `structures/base.py`)

    @property
    def status(self) -> Changed | None:
        """What is known of the component; None: nothing yet."""
        return self._desk.status if self._has_begun else None

    @property
    def me(self) -> Owner:
        return Owner(self._desk.core.me.name, self._desk.core.me.life)

    @property
    def stint(self) -> int:
        return self._desk.core.me.stint

    @property
    def is_in_group(self) -> bool:
        return self._desk.core.is_in_group

    @property
    def age(self) -> Age:
        term = self.status.term if self.status is not None else None
        return Age(term, self._machine.count, self._desk.core.is_current)

    async def ready(self) -> None:
        await self.until(lambda: self._desk.core.is_current or None)

    async def within(
        self,
        waiting: Awaitable[T],
        timeout: float | None,
        *,
        is_command: bool = False,
        awaited: Callable[[], str] | None = None,
    ) -> T:
        try:
            check_timeout(timeout)
        except UsageError:
            if isinstance(waiting, Coroutine):
                waiting.close()
            raise
        try:
            async with asyncio.timeout(timeout) as limit:
                return await waiting
        except TimeoutError:
            if not limit.expired():
                raise
            is_uncertain = is_command and not self._desk.is_queued(waiting)
            outcome = _OUTCOMES[is_command, is_uncertain]
            is_current = self._desk.core.is_current
            why = self._known if not is_current else "" if awaited is None else awaited()
            because = f" ({why})" if why else ""
            raise TimedOut(f"{self.group}: no answer within {timeout:g} s{outcome}{because}", is_uncertain) from None

    @property
    def _known(self) -> str:
        return "nothing is known of the others yet" if self.status is None else self.status.sentence

    def submit(self, command: bytes) -> Awaitable[Answer]:
        """A future and no coroutine: this is the hot path."""
        if len(command) > COMMAND_SIZE_MAX:
            raise UsageError(f"a command of {len(command):,} bytes is too large, at most {COMMAND_SIZE_MAX:,}")
        if self._ended is not None:
            self._check_running()
        future = self._new_future()
        if self._desk.add(command, future):
            asyncio.get_running_loop().call_soon(self._go_on)
        return future

    def post(self, command: bytes) -> None:
        if self._ended is None and self._desk.add(command, None):
            asyncio.get_running_loop().call_soon(self._go_on)

    def repeat(self, deed: Callable[[], Coroutine[Any, Any, bool]], every: float) -> Callable[[], object]:
        async def go_on() -> None:
            is_wanted = True
            while is_wanted and self._ended is None:
                await asyncio.sleep(every)
                with suppress(Error):  # without a primary component: time stands still there, too
                    is_wanted = await deed()

        task = asyncio.get_running_loop().create_task(go_on())
        self._repeated.add(task)
        task.add_done_callback(self._repeated.discard)
        return task.cancel

    async def synced(self) -> int:
        self._check_running()
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._do(self._desk.synchronise, future)
        await future
        return self._machine.count

    async def until(self, ready: Callable[[], T | None]) -> T:
        self._check_running()
        return await self._watchers.until(ready)

    async def force(self, *, timeout: float | None = None) -> None:
        """Make the members that can be reached the primary component, with the best state that one of them has, or the
        empty one if nobody has any, though they are no quorum. What only others had is given up: use it when those will
        never come back, and when all who are to go on are here, for these have votes from then on. Returns when there
        is a primary component. UsageError when this client has no right to it."""
        self._check_running()
        asked = self._desk.force()
        if asked is not None:  # it goes to another group, too, which its daemon may refuse
            await self._member.send((self._meeting, self._forces), asked, Service.SAFE, confirm=True)
        await self.within(self.until(lambda: self._desk.core.is_primary or None), timeout)

    def watch(self, *kinds: type, after: int | None = None) -> Watch[Any]:
        watch = self._watchers.watch(*(kinds or (Applied, Reloaded, Changed, Progress)))
        if after is not None:
            for applied in self._machine.applied_after(after):
                watch.put(applied)
        return watch

    def _check_running(self) -> None:
        if self._ended is not None:
            raise ReplicaEnded(str(self._ended)) from self._ended

    # What the dispatcher hands over

    def on_view(self, view: View) -> None:
        self._do(self._desk.on_view, view)

    def on_transition(self, transition: Transition) -> None:
        self._do(self._desk.on_transition, transition)

    def on_messages(self, batch: Batch) -> None:
        data = batch.data
        if self._forces not in batch.groups and any(map(is_force, data)):
            data = [payload for payload in data if not is_force(payload)]  # of somebody without the right to it
        self._do(self._desk.on_messages, batch.sender, data, batch.places.is_again)

    def on_lost(self, why: str) -> None:
        self._do(self._desk.lost, why)

    def on_cut_off(self, name: str | None) -> None:
        self._left.set()
        self._do(self._desk.cut_off, name)

    def on_ended(self, error: BaseException) -> None:
        self._end(ReplicaEnded(f"the replica of {self.group} has ended: {error}"))

    def on_failed(self, error: Exception) -> None:
        """The application's code or its disk failed: the copy here may not be what the others have. It leaves the
        group, so that nobody waits for it."""
        if self._ended is None:
            why = str(error) if isinstance(error, UsageError) else repr(error)
            self._end(ReplicaEnded(f"the replica of {self.group} has failed: {why}"))
            self._leaving = asyncio.get_running_loop().create_task(self._leave())

    # What comes beside it

    def _connected(self) -> None:
        self._do(self._desk.on_connected)

    def _framed(self, frame: TransferFrame) -> None:
        self._do(self._desk.on_frame, frame)

    def _broken(self, why: str) -> None:
        self._do(self._desk.on_broken, why)

    def _go_on(self) -> None:
        self._do(self._desk.go_on)

    def _written(self, number: int) -> None:
        self._do(self._desk.written, number)

    def _pictured(self, size: int) -> None:
        self._do(self._desk.pictured, size)

    def _wake(self) -> None:
        self._timer = None
        self._do(self._desk.wake)

    # What the desk decides

    def _do(self, happens: Callable[..., list[DeskEffect]], *arguments: Any) -> None:
        """Tell the desk, unless all is over, and carry out what it makes of it."""
        if self._ended is not None:
            return
        try:
            self._carry_out(happens(self._now(), *arguments))
        except Exception as error:
            self.on_failed(error)
            return
        desk = self._desk
        if desk.outgoing or desk.asides:
            self._has_outgoing.set()
        mark = desk.mark
        if mark != self._seen:
            self._seen = mark
            self._watchers.look()
        deadline = desk.next_deadline
        if deadline is not None:
            self._arm(deadline)

    def _arm(self, deadline: Instant) -> None:
        """One timer: it may come too early, and never too late."""
        at = deadline / SECOND
        if self._timer is None or at < self._timer.when():
            if self._timer is not None:
                self._timer.cancel()
            self._timer = asyncio.get_running_loop().call_at(at, self._wake)

    async def _send_all(self) -> None:
        """What waits goes out together: the busier, the fewer calls."""
        while True:
            await self._has_outgoing.wait()
            self._has_outgoing.clear()
            payloads, self._desk.outgoing = self._desk.outgoing, []
            asides, self._desk.asides = self._desk.asides, []
            try:
                if asides:
                    await self._member.send_many(self._meeting, asides, Service.AGREED)
                if payloads:
                    await self._member.send_many(self._meeting, payloads, Service.SAFE)
            except ConnectionLost:
                pass  # the stream says so too, and then all that matters is sent again
            except Exception as error:
                self._end(ReplicaEnded(f"the replica of {self.group} cannot send: {error}"))
                return

    def _carry_out(self, effects: list[DeskEffect]) -> None:
        for effect in effects:
            match effect:
                case Answered():
                    _answer(effect)
                case Refusal():
                    _fail(effect.tickets, self._refusal(effect.why))
                case Abandoned():
                    self._abandon(effect)
                case Dial():
                    self._line.dial(effect)
                case HangUp():
                    self._line.hang_up()
                case Freeze():
                    self._donor.offer(self.group.encode(), key_of(effect.point), effect)
                case Release():
                    self._donor.withdraw(self.group.encode(), key_of(effect.point))
                case Changed() | Progress():
                    self._watchers.tell(effect)
                case GoOn():
                    asyncio.get_running_loop().call_soon(self._go_on)
                case Spoilt():
                    self.on_failed(effect.error)
                case Write():
                    assert self._journal is not None
                    self._journal.write(effect)
                case Snapshot():
                    assert self._journal is not None
                    self._journal.take(effect)
                case _:
                    assert_never(effect)

    def _refusal(self, why: Why) -> Exception:
        if why is Why.BUSY:
            return UsageError(f"{OUTSTANDING_MAX:,} batches of commands have no answer yet: this one was not sent")
        return NotPrimary(f"{self.group} has no primary component here: {self._known}", why is Why.UNCERTAIN)

    def _abandon(self, abandoned: Abandoned) -> None:
        assert self._ended is not None
        sentence = f"{self._ended}; the command had no answer yet, and may have been applied"
        _fail(abandoned.sent, ReplicaEnded(sentence, is_uncertain=True), is_seen=True)
        _fail(abandoned.others, self._ended, is_seen=True)


# The tickets of live replicas are futures


def _answer(answered: Answered) -> None:
    make = tuple.__new__  # half the price of the name
    futures = cast("Sequence[asyncio.Future[Answer] | None]", answered.tickets)
    for position, (future, result) in enumerate(zip(futures, answered.results, strict=True), answered.first):
        if future is not None and not future.done():
            future.set_result(make(Answer, (position, result)))


def _fail(tickets: Iterable[Ticket], error: BaseException, *, is_seen: bool = False) -> None:
    """`is_seen`: a caller that has gone away is not to be complained of."""
    for ticket in tickets:
        future = cast("asyncio.Future[object]", ticket)
        if not future.done():
            future.set_exception(error)
        if is_seen and not future.cancelled():
            future.exception()
