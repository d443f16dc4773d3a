"""Barrier: so many have to arrive before any goes on; then it is there for the next time. Who leaves did not arrive."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial
from itertools import count
from typing import Self

from ordercast.model.errors import UsageError, WireError
from ordercast.replicated.machine import Frozen, Origin
from ordercast.replicated.structures.base import (
    NO,
    YES,
    Caller,
    Cut,
    Front,
    Owned,
    Owner,
    owner_bytes,
    owner_of,
    read_owner,
)
from ordercast.replicated.structures.fields import U32, U64, Reader

ARRIVE, WITHDRAW = 1, 2
PARTIES_MAX = 100_000


class Barrier(Owned["BarrierFront"]):
    def __init__(self, parties: int) -> None:
        """`parties`: how many must arrive. All who use it must say the same."""
        if not 1 <= parties <= PARTIES_MAX:
            raise UsageError(f"a barrier is for 1 to {PARTIES_MAX:,} parties, not {parties}")
        self.parties = parties
        self.opened = 0  # how often
        self.arrived: dict[tuple[Owner, int], None] = {}  # with their tickets, in order
        self._is_filled = False

    def front(self, caller: Caller) -> BarrierFront:
        return BarrierFront(self, caller)

    def act(self, kind: int, fields: Reader, origin: Origin) -> bytes:
        ticket, parties = fields.number(U64), fields.number(U32)
        fields.end()
        arrival = (owner_of(origin), ticket)
        if parties != self.parties:
            raise WireError(f"this barrier is for {self.parties} parties, not {parties}")
        if kind == WITHDRAW:
            return YES if self.arrived.pop(arrival, ...) is None else NO
        if kind != ARRIVE:
            raise WireError(f"a barrier has no command {kind}")
        time = self.opened
        self.arrived[arrival] = None
        if len(self.arrived) == self.parties:
            self.arrived.clear()
            self.opened += 1
        return YES + U64.pack(time)

    def owners(self) -> Collection[Owner]:
        return {life for life, _ in self.arrived}

    def drop(self, is_gone: Callable[[Owner], bool], position: int) -> None:
        self.arrived = {arrival: None for arrival in self.arrived if not is_gone(arrival[0])}

    def freeze(self) -> Frozen:
        head, arrived = U32.pack(self.parties) + U64.pack(self.opened), list(self.arrived)
        return Cut(lambda: [head, *(owner_bytes(life) + U64.pack(ticket) for life, ticket in arrived)])

    def blank(self) -> Self:
        return type(self)(self.parties)

    def fill(self, fields: Reader) -> None:
        if not self._is_filled:
            if (parties := fields.number(U32)) != self.parties:
                raise WireError(f"this barrier is for {parties} parties, and here it was made for {self.parties}")
            self.opened = fields.number(U64)
        self._is_filled = True
        while not fields.is_at_end:
            life = read_owner(fields)
            self.arrived[life, fields.number(U64)] = None

    def adopt(self, other: Self) -> None:
        self.opened, self.arrived = other.opened, other.arrived


class BarrierFront(Front[Barrier]):
    def __init__(self, machine: Barrier, caller: Caller) -> None:
        super().__init__(machine, caller)
        self._tickets = count(1)

    @property
    def waiting(self) -> int:
        """How many have arrived, as the copy that is here has it."""
        return len(self.machine.arrived)

    async def wait(self, *, timeout: float | None = None) -> int:
        """Returns when all have arrived: how often the barrier has opened now. Cancelled, or after its time, it has not
        arrived."""
        return await self._caller.within(self._wait(), timeout)

    async def _wait(self) -> int:
        """An arrival that was dropped, because one was out of the group, is made again."""
        while True:
            arrival = (self._caller.me, next(self._tickets))
            fields = U64.pack(arrival[1]) + U32.pack(self.machine.parties)
            try:
                time = Reader((await self._ask(ARRIVE, fields)).result, 1).number(U64)
                opened = await self._caller.until(partial(self._opened, arrival, time))
            except BaseException:
                self._caller.post(bytes([WITHDRAW]) + fields)
                raise
            if opened:
                return time + 1

    def _opened(self, arrival: tuple[Owner, int], time: int) -> bool | None:
        if self.machine.opened > time:
            return True
        return None if arrival in self.machine.arrived else False
