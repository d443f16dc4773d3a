"""Queue: each job is taken by one consumer, who acknowledges it when it is done. What a consumer had taken and not
acknowledged when it went goes back to its old place, and the next one gets it: every job is done at least once.

Consumers that find nothing wait in the order in which they came: who puts something gives it to the first of them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection
from typing import NamedTuple, Self

from ordercast.model.errors import WireError
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
from ordercast.replicated.structures.fields import U8, U64, Reader, Value, value_bytes

PUT, TAKE, ACKNOWLEDGE, GIVE_BACK = 1, 2, 3, 4
_TAKER, _WAITING, _TAKEN = 1, 2, 3  # kinds of items in a picture


class Queue(Owned["QueueFront"]):
    def __init__(self) -> None:
        self.waiting: deque[tuple[int, Value]] = deque()  # by number: the position of its put
        self.taken: dict[Claim, tuple[int, Value]] = {}
        self.takers: deque[Claim] = deque()  # nothing there for them yet

    def front(self, caller: Caller) -> QueueFront:
        return QueueFront(self, caller)

    def act(self, kind: int, fields: Reader, origin: Origin) -> bytes:
        if kind == PUT:
            value = fields.value()
            fields.end()
            self.waiting.append((origin.position, value))
            self._hand_out()
            return YES
        take = claim_in(fields, origin)
        fields.end()
        if kind == TAKE:
            if take in self.taken or take in self.takers:
                return NO  # a ticket is for one job
            self.takers.append(take)
            self._hand_out()
            return YES
        if kind == ACKNOWLEDGE:
            return NO if self.taken.pop(take, None) is None else YES
        if kind == GIVE_BACK:
            had = take in self.taken or take in self.takers
            self._remove(lambda each: each == take)
            return YES if had else NO
        raise WireError(f"a queue has no command {kind}")

    def _hand_out(self) -> None:
        while self.waiting and self.takers:
            self.taken[self.takers.popleft()] = self.waiting.popleft()

    def _remove(self, is_gone: Callable[[Claim], bool]) -> None:
        self.takers = deque(take for take in self.takers if not is_gone(take))
        back = [self.taken.pop(take) for take in [take for take in self.taken if is_gone(take)]]
        if back:
            self.waiting = deque(sorted([*back, *self.waiting], key=lambda job: job[0]))
            self._hand_out()

    def owners(self) -> Collection[Owner]:
        return {take.owner for take in (*self.taken, *self.takers)}

    def drop(self, is_gone: Callable[[Owner], bool], position: int) -> None:
        self._remove(lambda take: is_gone(take.owner))

    def freeze(self) -> Frozen:
        waiting, taken, takers = list(self.waiting), list(self.taken.items()), list(self.takers)

        def items() -> list[bytes]:
            return [
                *(U8.pack(_TAKER) + claim_bytes(take) for take in takers),
                *(U8.pack(_TAKEN) + claim_bytes(take) + _job_bytes(job) for take, job in taken),
                *(U8.pack(_WAITING) + _job_bytes(job) for job in waiting),
            ]

        return Cut(items)

    def blank(self) -> Self:
        return type(self)()

    def fill(self, fields: Reader) -> None:
        while not fields.is_at_end:
            kind = fields.number(U8)
            if kind == _TAKER:
                self.takers.append(read_claim(fields))
            elif kind == _TAKEN:
                take = read_claim(fields)
                self.taken[take] = _read_job(fields)
            elif kind == _WAITING:
                self.waiting.append(_read_job(fields))
            else:
                raise WireError(f"a queue has no item {kind}")

    def adopt(self, other: Self) -> None:
        self.waiting, self.taken, self.takers = other.waiting, other.taken, other.takers


def _job_bytes(job: tuple[int, Value]) -> bytes:
    return U64.pack(job[0]) + value_bytes(job[1])


def _read_job(fields: Reader) -> tuple[int, Value]:
    return fields.number(U64), fields.value()


class Job(NamedTuple):
    """Taken, and not acknowledged yet."""

    number: int  # the same for whoever takes it: later jobs have greater ones
    value: Value
    take: Claim


class QueueFront(ClaimingFront[Queue]):
    def __len__(self) -> int:
        """How many wait for a consumer, as the copy that is here has it."""
        return len(self.machine.waiting)

    @property
    def taken(self) -> int:
        """How many were taken and not acknowledged, as the copy that is here has it."""
        return len(self.machine.taken)

    async def put(self, value: Value, *, timeout: float | None = None) -> int:
        """The number of the job."""
        return (await self._ask(PUT, value_bytes(value), timeout)).position

    async def take(self, *, timeout: float | None = None) -> Job:
        """Waits for one. Cancelled, or after its time, it wants none any more."""
        return await self._caller.within(self._take(), timeout)

    async def _take(self) -> Job:
        while True:
            take = self._new_claim()
            found = await self._given(take, (TAKE, GIVE_BACK), self._found)
            if found is not _DROPPED:
                return Job(*found, take)

    def _found(self, take: Claim, result: bytes) -> tuple[int, Value] | None:
        job = self.machine.taken.get(take)
        return job if job is not None or take in self.machine.takers else _DROPPED

    async def acknowledge(self, job: Job, *, timeout: float | None = None) -> bool:
        """It is done, and gone. False when it was not ours any more: somebody else has it, or had it."""
        return (await self._ask(ACKNOWLEDGE, U64.pack(job.take.ticket), timeout)).result == YES

    async def give_back(self, job: Job, *, timeout: float | None = None) -> bool:
        """Somebody else shall do it. False when it was not ours any more."""
        return (await self._ask(GIVE_BACK, U64.pack(job.take.ticket), timeout)).result == YES


_DROPPED: tuple[int, Value] = (0, b"")  # no job has this number: the take was forgotten, one was out of the group
