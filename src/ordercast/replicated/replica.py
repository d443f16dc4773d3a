"""Replica: a structure that is the same at all members of a group.

    async with Replica(me, "accounts", Dictionary(), quorum=Majority({"a@n1": 1, "b@n2": 1, "c@n3": 1})) as accounts:
        await accounts.ready()
        await accounts.set("alice", b"100")    # returns when it is confirmed

It carries out what the core (`core.py`) decides: sends, serves and fetches states, and answers those who wait. `me` is
any `Member`, a client or an embedded node; it may carry replicas of several groups. When it was out of the group for a
while, what waits is sent again, and applied once.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Generic, TypeVar

from ordercast.api.member import Member
from ordercast.groups.names import meeting_of
from ordercast.model.errors import Error, UsageError, WireError
from ordercast.model.events import Batch, Transition, View
from ordercast.replicated.arrival import Arrival, Arrivals, Served, address_of, key_of
from ordercast.replicated.batching import Answer, Batches, Waiting, encode_batch
from ordercast.replicated.core import Core
from ordercast.replicated.departures import Departures
from ordercast.replicated.dispatcher import Dispatcher
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
    Spoilt,
    StopFetching,
    Why,
)
from ordercast.replicated.facts import Round
from ordercast.replicated.outbox import Outbox
from ordercast.replicated.quorum import EverySide, Rule
from ordercast.replicated.silence import Silence
from ordercast.replicated.spill import Spill
from ordercast.replicated.structures.base import Age, Applied, Owner, Reloaded, Structure
from ordercast.replicated.told import Told
from ordercast.replicated.transfer import Donor, Patience, Progress
from ordercast.replicated.watching import Watch, Watchers

FrontT = TypeVar("FrontT")
T = TypeVar("T")
SUBMITTED_MAX = 4096  # by the application and not answered; more wait
OUTSTANDING_MAX = 2 * SUBMITTED_MAX  # batches, with those that nobody waits for any more
COMMAND_SIZE_MAX = 15 << 20
LEAVE_S = 5.0
_OUTCOMES = {
    (True, True): "; the command may yet take effect",
    (True, False): "; the command was not sent, and has no effect",
    (False, False): "",
}  # of a call that took too long, by whether it is a command, and whether that was sent


class NotPrimary(Error):
    """The command was refused: the members that can be reached are no primary component. `is_uncertain`: it had been
    sent before the component changed, so it may have been applied, or may be later."""

    def __init__(self, sentence: str, is_uncertain: bool) -> None:
        super().__init__(sentence)
        self.is_uncertain = is_uncertain


class ReplicaEnded(Error):
    """The replica was closed, or its member has failed. `is_uncertain`: the command had been sent, and may have been
    applied, or may be yet."""

    def __init__(self, sentence: str, is_uncertain: bool = False) -> None:
        super().__init__(sentence)
        self.is_uncertain = is_uncertain


class TimedOut(Error, TimeoutError):
    """It took longer than the caller wanted to wait. `is_uncertain`: the command was sent, and may yet take effect."""

    def __init__(self, sentence: str, is_uncertain: bool) -> None:
        super().__init__(sentence)
        self.is_uncertain = is_uncertain


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
    ) -> None:
        """`quorum`: `Majority`, `LastMajority` or `EverySide`, the same at all members. `founding`: this is the first
        life of this replica ever (asked by `LastMajority` alone). `host` and `port`: where others fetch the state from;
        they must be able to reach it. `folder`: for commands that come while a state is on its way; the system's folder
        for temporary files unless told."""
        self.group = group
        self.status: Changed | None = None  # what is known of the component
        self._member = member
        self._structure = structure
        self._watchers = Watchers()
        self._machine = Told(structure, self._watchers, quorum.on_merge if isinstance(quorum, EverySide) else None)
        self._patience = patience or Patience()
        self._donor = Donor(host, port, self._patience)
        self._settings = (quorum, founding, folder)
        self._core: Core
        self._has_begun = False  # there is a core
        self._meeting = meeting_of(group)
        self._outbox = Outbox(member, self._meeting, self._cannot_send)
        self._silence = Silence(self._patience.silence_s, self._round, self._lose_patience)
        self._arrivals = Arrivals(self._arrival, self._load, self._loaded)
        self._departures = Departures(structure)
        self._left = asyncio.Event()
        self._batches = Batches(SUBMITTED_MAX)
        self._syncs: dict[int, asyncio.Future[None]] = {}
        self._again: list[bytes] = []  # that nobody waits for and that were refused
        self._ended: BaseException | None = None
        self._leaving: asyncio.Task[None] | None = None  # after a failure

    # Beginning and end

    async def __aenter__(self) -> FrontT:
        await self._donor.__aenter__()
        try:
            await self._begin()
        except BaseException:
            await self._stop(ReplicaEnded(f"the replica of {self.group} could not begin"))
            raise
        return self._structure.front(self)

    async def _begin(self) -> None:
        rule, founding, folder = self._settings
        self._core = Core(
            self._member.name,
            secrets.randbits(64),
            self._machine,
            rule,
            address=address_of(self._donor.place),
            founding=founding,
            outstanding_max=OUTSTANDING_MAX,
            tails=partial(Spill, folder),
        )
        self._has_begun = True
        self._say_back()
        Dispatcher.of(self._member).add(self._meeting, self)
        self._outbox.start()
        await self._member.meet(self._meeting)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
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
        await self._arrivals.stop()
        await self._outbox.stop()
        await self._donor.__aexit__(None, None, None)

    def _end(self, error: BaseException) -> None:
        if self._ended is not None:
            return
        self._ended = error
        self._silence.stop()
        self._let_go(str(error))
        sentence = f"{error}; the command had no answer yet, and may have been applied"
        self._batches.fail(ReplicaEnded(sentence, is_uncertain=True), error)
        for future in self._syncs.values():
            if not future.done():
                future.set_exception(error)
        self._watchers.end(error)

    def _let_go(self, why: str) -> None:
        """What is here is of no membership any more: it is neither current nor held, and whoever waits for that to end
        is told first."""
        if self._has_begun and self._core.is_in_group:
            for effect in self._core.cut_off(self._core.me.name, Reason.LOST):
                self._carry_out([replace(effect, note=why) if isinstance(effect, Changed) else effect])
        self._watchers.look()

    # What a front asks for (see `structures/base.py`)

    @property
    def me(self) -> Owner:
        return Owner(self._core.me.name, self._core.me.life)

    @property
    def stint(self) -> int:
        return self._core.me.stint

    @property
    def is_in_group(self) -> bool:
        return self._core.is_in_group

    @property
    def age(self) -> Age:
        term = self.status.term if self.status is not None else None
        return Age(term, self._machine.count, self._core.is_current)

    async def ready(self) -> None:
        await self.until(lambda: self._core.is_current or None)

    async def within(self, waiting: Awaitable[T], timeout: float | None, *, is_command: bool = False) -> T:
        try:
            async with asyncio.timeout(timeout) as limit:
                return await waiting
        except TimeoutError:
            if not limit.expired():
                raise
            known = "nothing is known of the others yet" if self.status is None else self.status.sentence
            is_uncertain = is_command and not self._batches.is_queued(waiting)
            outcome = _OUTCOMES[is_command, is_uncertain]
            raise TimedOut(f"{self.group}: no answer within {timeout:g} s{outcome} ({known})", is_uncertain) from None

    def submit(self, command: bytes) -> Awaitable[Answer]:
        """A future and no coroutine: this is the hot path."""
        if len(command) > COMMAND_SIZE_MAX:
            raise UsageError(f"a command of {len(command):,} bytes is too large, at most {COMMAND_SIZE_MAX:,}")
        if self._ended is not None:
            self._check_running()
        future: asyncio.Future[Answer] = asyncio.Future()
        self._add(command, future)
        return future

    def post(self, command: bytes) -> None:
        if self._ended is None:
            self._add(command, None)

    def _add(self, command: bytes, future: Waiting) -> None:
        if self._batches.add(command, future):
            asyncio.get_running_loop().call_soon(self._flush)

    def _flush(self) -> None:
        """Submit what this turn of the event loop has brought."""
        for batch in self._batches.take():
            number, effects = self._core.submit(encode_batch(batch.commands))
            self._batches.underway[number] = batch
            self._carry_out(effects)

    async def synced(self) -> int:
        self._check_running()
        self._flush()
        number, effects = self._core.synchronise()
        future = self._syncs[number] = asyncio.get_running_loop().create_future()
        try:
            self._carry_out(effects)
            await future
        finally:
            self._syncs.pop(number, None)
        return self._machine.count

    async def until(self, ready: Callable[[], T | None]) -> T:
        self._check_running()
        return await self._watchers.until(ready)

    async def force(self, *, timeout: float | None = None) -> None:
        """Make the members that can be reached the primary component, with the best state that one of them has, or the
        empty one if nobody has any, though they are no quorum. What only others had is given up: use it when those will
        never come back. Returns when there is a primary component."""
        self._check_running()
        self._carry_out(self._core.force())
        await self.within(self.until(lambda: self._core.is_primary or None), timeout)

    def watch(self, *kinds: type) -> Watch[Any]:
        return self._watchers.watch(*(kinds or (Applied, Reloaded, Changed, Progress)))

    def _check_running(self) -> None:
        if self._ended is not None:
            raise ReplicaEnded(str(self._ended)) from self._ended

    # What the dispatcher hands over

    def on_view(self, view: View) -> None:
        if self._ended is None:
            self._carry_out(self._core.on_view(view))
            self._look()

    def on_transition(self, transition: Transition) -> None:
        if self._ended is None:
            self._carry_out(self._core.on_transition(transition))
            self._look()

    def on_messages(self, batch: Batch) -> None:
        if self._ended is not None:
            return
        before = (self._machine.count, self._machine.loads, self.status)
        self._carry_out(self._core.on_messages(batch.sender, batch.data))
        if before != (self._machine.count, self._machine.loads, self.status):
            self._look()

    def on_lost(self, why: str) -> None:
        if self._ended is None:
            self._outbox.clear()
            self._let_go(why)

    def on_cut_off(self, name: str | None) -> None:
        """Left or reconnected, perhaps under another name: nothing that was not sent yet is of use."""
        self._left.set()
        if self._ended is not None:
            return
        self._outbox.clear()
        self._carry_out(self._core.cut_off(name or self._core.me.name))
        if name is not None:
            self._say_back()
        self._look()

    def on_ended(self, error: BaseException) -> None:
        self._end(ReplicaEnded(f"the replica of {self.group} has ended: {error}"))

    def on_failed(self, error: Exception) -> None:
        """Of the application's code, or its disk: the copy here may not be what the others have. It leaves the group,
        so that nobody waits for it."""
        if self._ended is None:
            self._end(ReplicaEnded(f"the replica of {self.group} has failed: {error!r}"))
            self._leaving = asyncio.get_running_loop().create_task(self._leave())

    def _cannot_send(self, error: Exception) -> None:
        self._end(ReplicaEnded(f"the replica of {self.group} cannot send: {error}"))

    def _look(self) -> None:
        """After everything that may have changed the copy, or what is known of the component."""
        self._watchers.look()
        if self._core.is_primary:
            again, self._again = self._again, []
            for command in again:
                self.post(command)
            self._tell_gone()

    # Departures

    def _say_back(self) -> None:
        command = self._departures.back()
        if command is not None:
            self.post(command)

    def _tell_gone(self) -> None:
        command = self._departures.gone(self._core.me.name, self.status)
        if command is not None and not self._batches.has_posted(command):
            self.post(command)

    # What the core decides

    def _carry_out(self, effects: list[Effect]) -> None:
        for effect in effects:
            match effect:
                case Send():
                    self._outbox.put(effect.payloads)
                case Confirm():
                    self._confirmed(effect)
                case Refuse():
                    self._refused(effect)
                case Fetch():
                    self._arrivals.fetch(effect)
                case StopFetching():
                    self._arrivals.stop_fetching()
                case Freeze():
                    picture = Served(effect.preface, effect.frozen)
                    self._donor.offer(self.group.encode(), key_of(effect.point), picture)
                case Release():
                    self._donor.withdraw(self.group.encode(), key_of(effect.point))
                case Changed():
                    self.status = effect
                    self._silence.look()
                    self._watchers.tell(effect)
                case GoOn():
                    asyncio.get_running_loop().call_soon(self._go_on)
                case Spoilt():
                    self.on_failed(effect.error)

    def _round(self) -> Round | None:
        return None if self._ended is not None else self._core.round

    def _lose_patience(self) -> None:
        self._carry_out(self._core.lose_patience())

    def _go_on(self) -> None:
        """The network has had its turn."""
        if self._ended is None:
            try:
                self._carry_out(self._core.go_on())
                self._look()
            except Exception as error:
                self.on_failed(error)

    def _confirmed(self, confirm: Confirm) -> None:
        future = self._syncs.get(confirm.request)
        if future is None:
            if self._batches.confirm(confirm.request, confirm.result):
                asyncio.get_running_loop().call_soon(self._flush)
        elif not future.done():
            future.set_result(None)

    def _refused(self, refuse: Refuse) -> None:
        error = self._refusal(refuse.why)
        posted, has_more = self._batches.refuse(refuse.request, error)
        self._again += posted
        if has_more:
            asyncio.get_running_loop().call_soon(self._flush)
        future = self._syncs.get(refuse.request)
        if future is not None and not future.done():
            future.set_exception(error)

    def _refusal(self, why: Why) -> Exception:
        if why is Why.BUSY:
            return UsageError(f"{OUTSTANDING_MAX:,} batches of commands have no answer yet: this one was not sent")
        known = self.status.sentence if self.status is not None else "nothing is known of the others yet"
        return NotPrimary(f"{self.group} has no primary component here: {known}", why is Why.UNCERTAIN)

    # The state that is fetched

    def _arrival(self, point: Point) -> Arrival:
        return Arrival(self.group, point, self._structure, self._watchers.tell, self._patience)

    def _load(self, arrival: Arrival) -> list[Effect]:
        assert arrival.preface is not None
        try:
            return self._core.loaded(arrival.point, arrival.preface, arrival.filling)
        except WireError:
            raise  # another picture: it is fetched again
        except Exception as error:
            self.on_failed(error)
            return []

    def _loaded(self, effects: list[Effect]) -> None:
        try:
            self._carry_out(effects)
            self._look()
        except Exception as error:
            self.on_failed(error)
