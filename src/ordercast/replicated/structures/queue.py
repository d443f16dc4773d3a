"""Queue: each job is taken by one consumer, who acknowledges it when it is done. What a consumer had taken and not
acknowledged when it went goes back to its old place, and the next one gets it: every job is done at least once.

Consumers that find nothing wait in the order in which they came: who puts something gives it to the first of them. A
job may be put for later; who takes one for some time loses it when that is over; a job that may be tried some times
only is a dead letter after that. Time is counted in ordered ticks (`ticking.py`)."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterator
from typing import NamedTuple, Self

from ordercast.model.arguments import given
from ordercast.model.errors import UsageError, WireError
from ordercast.replicated.machine import Frozen, Origin
from ordercast.replicated.structures.base import (
    NO,
    YES,
    Caller,
    Claim,
    ClaimingFront,
    Cut,
    Owned,
    Owner,
    claim_bytes,
    claim_in,
    read_claim,
)
from ordercast.replicated.structures.fields import U8, U32, U64, Reader, Value, value_bytes
from ordercast.replicated.structures.ticking import Timed, span_in, ticks_of

PUT, TAKE, ACKNOWLEDGE, GIVE_BACK, PUT_LATER, TAKE_FOR, EXTEND, REVIVE, DISCARD = 1, 2, 3, 4, 5, 6, 7, 8, 9
_TAKER, _WAITING, _TAKEN, _LATER, _DEAD, _TRIES, _SPAN, _END, _CLOCK = 1, 2, 3, 4, 5, 6, 7, 8, 9  # items of a picture


class Tries(NamedTuple):
    """How often a job was taken, and how often it may be."""

    made: int
    most: int


class Queue(Owned["QueueFront"], Timed):
    NAME = "Queue"

    def __init__(self) -> None:
        self.waiting: deque[tuple[int, Value]] = deque()  # by number: the position of its put
        self.taken: dict[Claim, tuple[int, Value]] = {}
        self.takers: deque[Claim] = deque()  # nothing there for them yet
        self.later: dict[int, tuple[int, Value]] = {}  # by number: the tick from which on it may be taken
        self.dead: dict[int, Value] = {}  # by number: those that were taken in vain as often as they may be
        self.tries: dict[int, Tries] = {}  # of jobs that may not be taken without end
        self.spans: dict[Claim, int] = {}  # how many ticks these may have a job
        self.ends: dict[Claim, int] = {}  # the tick with which they lose it

    def front(self, caller: Caller) -> QueueFront:
        return QueueFront(self, caller)

    def act(self, kind: int, fields: Reader, origin: Origin) -> bytes:
        match kind:
            case 1 | 5:
                return self._put(kind, fields, origin.position)
            case 8 | 9:
                return self._bury(kind, fields)
            case 0xF2:
                return self.tick(fields, origin)
        take = claim_in(fields, origin)
        span = span_in(fields) if kind == TAKE_FOR else 0
        fields.end()
        if kind in (TAKE, TAKE_FOR):
            if take in self.taken or take in self.takers:
                return NO  # a ticket is for one job
            self.takers.append(take)
            if span:
                self.spans[take] = span
            self._hand_out()
            return YES
        if kind == ACKNOWLEDGE:
            return self._acknowledge(take)
        if kind == GIVE_BACK:
            had = take in self.taken or take in self.takers
            self._remove(lambda each: each == take)
            return YES if had else NO
        if kind == EXTEND:
            if take not in self.ends:
                return YES if take in self.taken else NO
            self.ends[take] = self.ticks + self.spans[take]
            return YES
        raise WireError(f"a queue has no command {kind}")

    def _put(self, kind: int, fields: Reader, number: int) -> bytes:
        value = fields.value()
        delay, most = (span_in(fields), fields.number(U32)) if kind == PUT_LATER else (0, 0)
        fields.end()
        if most:
            self.tries[number] = Tries(0, most)
        if delay:
            self.later[number] = self.ticks + delay, value
            return YES
        self.waiting.append((number, value))
        self._hand_out()
        return YES

    def _acknowledge(self, take: Claim) -> bytes:
        job = self.taken.pop(take, None)
        if job is None:
            return NO
        self.tries.pop(job[0], None)
        self.spans.pop(take, None)
        self.ends.pop(take, None)
        return YES

    def _bury(self, kind: int, fields: Reader) -> bytes:
        """A dead letter is tried again from the beginning, or thrown away."""
        number = fields.number(U64)
        fields.end()
        if number not in self.dead:
            return NO
        value = self.dead.pop(number)
        if kind == REVIVE:
            self.tries[number] = Tries(0, self.tries[number].most)
            self._put_back([(number, value)])
        else:
            del self.tries[number]
        return YES

    def _hand_out(self) -> None:
        while self.waiting and self.takers:
            take, job = self.takers.popleft(), self.waiting.popleft()
            self.taken[take] = job
            if (tries := self.tries.get(job[0])) is not None:
                self.tries[job[0]] = Tries(tries.made + 1, tries.most)
            if take in self.spans:
                self.ends[take] = self.ticks + self.spans[take]

    def _remove(self, is_gone: Callable[[Claim], bool]) -> None:
        self.takers = deque(take for take in self.takers if not is_gone(take))
        back = [self.taken.pop(take) for take in [take for take in self.taken if is_gone(take)]]
        for known in (self.spans, self.ends):
            for take in [take for take in known if is_gone(take)]:
                del known[take]
        if back:
            self._put_back(back)

    def _put_back(self, jobs: list[tuple[int, Value]]) -> None:
        """To their old places; what was tried often enough is dead."""
        alive = []
        for number, value in jobs:
            tries = self.tries.get(number)
            if tries is not None and tries.made >= tries.most:
                self.dead[number] = value
            else:
                alive.append((number, value))
        if alive:
            self.waiting = deque(sorted([*alive, *self.waiting], key=lambda job: job[0]))
            self._hand_out()

    # Time

    @property
    def awaits_tick(self) -> bool:
        return bool(self.later or self.ends)

    def expire(self, position: int) -> bytes:
        over = {take for take, end in self.ends.items() if end <= self.ticks}
        due = [number for number, (tick, _) in self.later.items() if tick <= self.ticks]
        if due:
            self._put_back([(number, self.later.pop(number)[1]) for number in due])
        if over:
            self._remove(lambda take: take in over)
        return b""

    def owners(self) -> Collection[Owner]:
        return {take.owner for take in (*self.taken, *self.takers)}

    def drop(self, is_gone: Callable[[Owner], bool], position: int) -> None:
        self._remove(lambda take: is_gone(take.owner))

    # Pictures

    def freeze(self) -> Frozen:
        waiting, taken, takers = list(self.waiting), list(self.taken.items()), list(self.takers)
        timed = list(self._timed_items())

        def items() -> list[bytes]:
            return [
                *timed,
                *(U8.pack(_TAKER) + claim_bytes(take) for take in takers),
                *(U8.pack(_TAKEN) + claim_bytes(take) + _job_bytes(job) for take, job in taken),
                *(U8.pack(_WAITING) + _job_bytes(job) for job in waiting),
            ]

        return Cut(items)

    def _timed_items(self) -> Iterator[bytes]:
        if self.ticks:
            yield U8.pack(_CLOCK) + U64.pack(self.ticks)
        for number, (tick, value) in self.later.items():
            yield U8.pack(_LATER) + U64.pack(tick) + _job_bytes((number, value))
        for job in self.dead.items():
            yield U8.pack(_DEAD) + _job_bytes(job)
        for number, tries in self.tries.items():
            yield U8.pack(_TRIES) + U64.pack(number) + U32.pack(tries.made) + U32.pack(tries.most)
        for kind, known in ((_SPAN, self.spans), (_END, self.ends)):
            for take, tick in known.items():
                yield U8.pack(kind) + claim_bytes(take) + U64.pack(tick)

    def blank(self) -> Self:
        return type(self)()

    def fill(self, fields: Reader) -> None:
        while not fields.is_at_end:
            kind = fields.number(U8)
            match kind:
                case 1:
                    self.takers.append(read_claim(fields))
                case 2:
                    self.waiting.append(_read_job(fields))
                case 3:
                    take = read_claim(fields)
                    self.taken[take] = _read_job(fields)
                case 4:
                    tick = fields.number(U64)
                    number, value = _read_job(fields)
                    self.later[number] = tick, value
                case 5:
                    number, value = _read_job(fields)
                    self.dead[number] = value
                case 6:
                    number = fields.number(U64)
                    self.tries[number] = Tries(fields.number(U32), fields.number(U32))
                case 7 | 8:
                    take = read_claim(fields)
                    (self.spans if kind == _SPAN else self.ends)[take] = fields.number(U64)
                case 9:
                    self.ticks = fields.number(U64)
                case _:
                    raise WireError(f"a queue has no item {kind}")

    def adopt(self, other: Self) -> None:
        self.waiting, self.taken, self.takers = other.waiting, other.taken, other.takers
        self.later, self.dead, self.tries = other.later, other.dead, other.tries
        self.spans, self.ends, self.ticks = other.spans, other.ends, other.ticks


def _job_bytes(job: tuple[int, Value]) -> bytes:
    return U64.pack(job[0]) + value_bytes(job[1])


def _read_job(fields: Reader) -> tuple[int, Value]:
    return fields.number(U64), fields.value()


class Job(NamedTuple):
    """Taken, and not acknowledged yet."""

    number: int  # the same for whoever takes it: later jobs have greater ones
    value: Value
    take: Claim
    attempt: int = 0  # which one it is, of a job that may not be tried without end


class QueueFront(ClaimingFront[Queue]):
    def __len__(self) -> int:
        """How many wait for a consumer, as the copy that is here has it."""
        return len(self.machine.waiting)

    @property
    def taken(self) -> int:
        """How many were taken and not acknowledged, as the copy that is here has it."""
        return len(self.machine.taken)

    @property
    def later(self) -> int:
        """How many were put for later and cannot be taken yet, as the copy that is here has it."""
        return len(self.machine.later)

    @property
    def dead(self) -> list[tuple[int, Value]]:
        """Jobs that were tried as often as they may be, with their numbers, as the copy that is here has them."""
        return list(self.machine.dead.items())

    async def put(
        self, value: Value, *, delay: float = 0.0, attempts: int | None = None, timeout: float | None = None
    ) -> int:
        """The number of the job. `delay`: nobody gets it before so many seconds have passed. `attempts`: when it was
        taken so often, and never acknowledged, it is dead."""
        if attempts is not None and not 0 < given(attempts, int, "number of attempts", "1 or more") < 1 << 32:
            raise UsageError(f"a job cannot be tried {attempts} times: give attempts=1 or more, or None")
        fields = value_bytes(value)
        if not delay and attempts is None:
            return (await self._ask(PUT, fields, timeout)).position
        fields += U64.pack(ticks_of(delay) if delay else 0) + U32.pack(attempts or 0)
        return (await self._ask(PUT_LATER, fields, timeout)).position

    async def take(self, *, visibility: float | None = None, timeout: float | None = None) -> Job:
        """Waits for one. Cancelled, or after its time, it wants none any more. `visibility`: who has it for at least so
        many seconds without acknowledging or extending it loses it to somebody else."""
        span = 0 if visibility is None else ticks_of(visibility)
        return await self._caller.within(self._take(span), timeout, awaited=lambda: "no job was due")

    async def _take(self, span: int) -> Job:
        kind, more = (TAKE_FOR, U64.pack(span)) if span else (TAKE, b"")
        while True:
            take = self._new_claim()
            found = await self._given(take, (kind, GIVE_BACK), self._found, more, is_bare=True)
            if found is not _DROPPED:
                tries = self.machine.tries.get(found[0])
                return Job(*found, take, 0 if tries is None else tries.made)

    async def extend(self, job: Job, *, timeout: float | None = None) -> bool:
        """The time of a job that was taken for some begins anew. False when it was not ours any more."""
        return (await self._ask(EXTEND, _ticket_bytes(job), timeout)).result == YES

    async def revive(self, number: int, *, timeout: float | None = None) -> bool:
        """A dead job is to be done after all, with all its attempts. False when it was not dead."""
        return (await self._ask(REVIVE, _number_bytes(number), timeout)).result == YES

    async def discard(self, number: int, *, timeout: float | None = None) -> bool:
        """A dead job is thrown away. False when it was not dead."""
        return (await self._ask(DISCARD, _number_bytes(number), timeout)).result == YES

    def _found(self, take: Claim, result: bytes) -> tuple[int, Value] | None:
        job = self.machine.taken.get(take)
        return job if job is not None or take in self.machine.takers else _DROPPED

    async def acknowledge(self, job: Job, *, timeout: float | None = None) -> bool:
        """It is done, and gone. False when it was not ours any more: somebody else has it, or had it."""
        return (await self._ask(ACKNOWLEDGE, _ticket_bytes(job), timeout)).result == YES

    async def give_back(self, job: Job, *, timeout: float | None = None) -> bool:
        """Somebody else shall do it. False when it was not ours any more."""
        return (await self._ask(GIVE_BACK, _ticket_bytes(job), timeout)).result == YES


def _ticket_bytes(job: Job) -> bytes:
    return U64.pack(given(job, Job, "job", "what take() returned").take.ticket)


def _number_bytes(number: int) -> bytes:
    """Return the number of a dead job; a number that no job can have is sent as one that no job has."""
    found = given(number, int, "number of a job", "one of `dead`")
    return U64.pack(found if 0 < found < 1 << 64 else 0)


_DROPPED: tuple[int, Value] = (0, b"")  # no job has this number: the take was forgotten, one was out of the group
