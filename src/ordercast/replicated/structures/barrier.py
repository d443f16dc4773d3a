"""Barrier: so many have to arrive before any goes on; then it is there for the next time. Who leaves did not arrive."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Self

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
from ordercast.replicated.structures.fields import U32, U64, Reader

ARRIVE, WITHDRAW = 1, 2
PARTIES_MAX = 100_000


class Barrier(Owned["BarrierFront"]):
    NAME = "Barrier"

    def __init__(self, parties: int) -> None:
        """`parties`: how many must arrive. All who use it must say the same."""
        if not 1 <= given(parties, int, "number of parties", "how many must arrive") <= PARTIES_MAX:
            raise UsageError(f"a barrier is for 1 to {PARTIES_MAX:,} parties, not {parties}")
        self.parties = parties
        self.opened = 0  # how often
        self.arrived: dict[Claim, None] = {}  # in order
        self._is_filled = False

    def front(self, caller: Caller) -> BarrierFront:
        return BarrierFront(self, caller)

    def act(self, kind: int, fields: Reader, origin: Origin) -> bytes:
        arrival, parties = claim_in(fields, origin), fields.number(U32)
        fields.end()
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
        return {claim.owner for claim in self.arrived}

    def drop(self, is_gone: Callable[[Owner], bool], position: int) -> None:
        self.arrived = {arrival: None for arrival in self.arrived if not is_gone(arrival.owner)}

    def freeze(self) -> Frozen:
        head, arrived = U32.pack(self.parties) + U64.pack(self.opened), list(self.arrived)
        return Cut(lambda: [head, *map(claim_bytes, arrived)])

    def blank(self) -> Self:
        return type(self)(self.parties)

    def fill(self, fields: Reader) -> None:
        if not self._is_filled:
            if (parties := fields.number(U32)) != self.parties:
                raise WireError(f"this barrier is for {parties} parties, and here it was made for {self.parties}")
            self.opened = fields.number(U64)
        self._is_filled = True
        while not fields.is_at_end:
            self.arrived[read_claim(fields)] = None

    def adopt(self, other: Self) -> None:
        self.opened, self.arrived = other.opened, other.arrived


class BarrierFront(ClaimingFront[Barrier]):
    @property
    def waiting(self) -> int:
        """How many have arrived, as the copy that is here has it."""
        return len(self.machine.arrived)

    async def wait(self, *, timeout: float | None = None) -> int:
        """Returns when all have arrived: how often the barrier has opened now. Cancelled, or after its time, it has not
        arrived."""
        return await self._caller.within(self._wait(), timeout, awaited=self._waiting_text)

    def _waiting_text(self) -> str:
        return f"{self.waiting} of {self.machine.parties} had come"

    async def _wait(self) -> int:
        """An arrival that was dropped, because one was out of the group, is made again."""
        while True:
            parties = U32.pack(self.machine.parties)
            if opened := await self._given(self._new_claim(), (ARRIVE, WITHDRAW), self._opened, parties):
                return opened

    def _opened(self, arrival: Claim, result: bytes) -> int | None:
        """How often it has opened then; 0 when the arrival was dropped; None while others are awaited."""
        time = Reader(result, 1).number(U64)
        if self.machine.opened > time:
            return time + 1
        return None if arrival in self.machine.arrived else 0
