"""Exclusive: one holder at a time, waiters in the order in which they asked. A lock and an election are made of it.

The fencing token of a grant is the position of the command by which it was granted: a later grant has a greater one.
Several tasks of one member may want it, each with a claim of its own.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection
from typing import Any, NamedTuple, Protocol, Self

from ordercast.model.arguments import given
from ordercast.model.errors import WireError
from ordercast.replicated.machine import Frozen, Origin
from ordercast.replicated.structures.base import (
    NO,
    YES,
    Caller,
    Claim,
    ClaimingFront,
    Cut,
    FrontT,
    Owned,
    Owner,
    claim_bytes,
    claim_in,
    read_claim,
)
from ordercast.replicated.structures.fields import U32, U64, Reader
from ordercast.replicated.structures.ticking import TICK, Timed, span_in, ticks_of

ACQUIRE, RELEASE, ACQUIRE_FOR, RENEW = 1, 2, 3, 4
_TIMED = (1 << 64) - 1  # in the place of a token: what is known of time comes first


class Grant(NamedTuple):
    """Who has it, since when in the order."""

    claim: Claim
    token: int  # the position of the command by which it was granted

    @property
    def name(self) -> str:
        """Return the full name of whoever has it."""
        return self.claim.owner.name


class Exclusive(Owned[FrontT], Timed):
    def __init__(self) -> None:
        self.grant: Grant | None = None
        self.waiters: deque[Claim] = deque()
        self.spans: dict[Claim, int] = {}  # how many ticks it may be held by these
        self.end = 0  # the tick with which the present holder loses it; 0: it need not
        self._is_filled = False

    def act(self, kind: int, fields: Reader, origin: Origin) -> bytes:
        if kind == TICK:
            return self.tick(fields, origin)
        claim = claim_in(fields, origin)
        span = span_in(fields) if kind == ACQUIRE_FOR else 0
        fields.end()
        if kind == RENEW:
            return self._renew(claim)
        if kind in (ACQUIRE, ACQUIRE_FOR):
            if self.has(claim):
                return NO
            self.waiters.append(claim)
            if span:
                self.spans[claim] = span
        elif kind == RELEASE:
            if not self.has(claim):
                return NO
            self._remove(lambda each: each == claim)
        else:
            raise WireError(f"there is no command {kind}")
        self._grant_next(origin.position)
        return YES

    def owners(self) -> Collection[Owner]:
        lives = {claim.owner for claim in self.waiters}
        if self.grant is not None:
            lives.add(self.grant.claim.owner)
        return lives

    def drop(self, is_gone: Callable[[Owner], bool], position: int) -> None:
        self._remove(lambda claim: is_gone(claim.owner))
        self._grant_next(position)

    def has(self, claim: Claim) -> bool:
        return self.token_of(claim) is not None or claim in self.waiters

    def token_of(self, claim: Claim) -> int | None:
        """If it is the one that holds."""
        return self.grant.token if self.grant is not None and self.grant.claim == claim else None

    def _remove(self, is_gone: Callable[[Claim], bool]) -> None:
        if self.grant is not None and is_gone(self.grant.claim):
            self.grant, self.end = None, 0
        self.waiters = deque(claim for claim in self.waiters if not is_gone(claim))
        self.spans = {claim: span for claim, span in self.spans.items() if not is_gone(claim)}

    def _grant_next(self, position: int) -> None:
        if self.grant is None and self.waiters:
            self.grant = Grant(self.waiters.popleft(), position)
            self._renew(self.grant.claim)

    # Time

    @property
    def awaits_tick(self) -> bool:
        return self.end > 0

    def expire(self, position: int) -> bytes:
        if self.grant is not None and 0 < self.end <= self.ticks:
            over = self.grant.claim
            self._remove(lambda each: each == over)
            self._grant_next(position)
        return b""

    def _renew(self, claim: Claim) -> bytes:
        if self.token_of(claim) is None:
            return NO
        span = self.spans.get(claim, 0)
        self.end = self.ticks + span if span else 0
        return YES

    # Pictures

    def freeze(self) -> Frozen:
        grant, waiters = self.grant, list(self.waiters)
        head = U64.pack(0) if grant is None else U64.pack(grant.token) + claim_bytes(grant.claim)
        if self.ticks or self.spans:
            spans = [claim_bytes(claim) + U64.pack(span) for claim, span in self.spans.items()]
            numbers = U64.pack(_TIMED) + U64.pack(self.ticks) + U64.pack(self.end) + U32.pack(len(spans))
            head = numbers + b"".join(spans) + head
        return Cut(lambda: [head, *map(claim_bytes, waiters)])

    def blank(self) -> Self:
        return type(self)()

    def fill(self, fields: Reader) -> None:
        if not self._is_filled:
            token = fields.number(U64)
            if token == _TIMED:
                self.ticks, self.end = fields.number(U64), fields.number(U64)
                for _ in range(fields.count()):
                    claim = read_claim(fields)
                    self.spans[claim] = fields.number(U64)
                token = fields.number(U64)
            if token:
                self.grant = Grant(read_claim(fields), token)
        self._is_filled = True
        while not fields.is_at_end:
            self.waiters.append(read_claim(fields))

    def adopt(self, other: Self) -> None:
        self.grant, self.waiters = other.grant, other.waiters
        self.spans, self.end, self.ticks = other.spans, other.end, other.ticks


class InTouch(Protocol):
    """Who is in the group, or was."""

    @property
    def stint(self) -> int:
        """How often it has lost the group's stream."""


class Held:
    """What one has while one holds it."""

    def __init__(self, machine: Exclusive[Any], claim: Claim, token: int, member: InTouch) -> None:
        self.token = token  # send it along with everything that is done under it
        self.claim = claim
        self._machine = machine
        self._member = member
        self._stint = member.stint

    def __repr__(self) -> str:
        return f"<Held, token {self.token}: {'held' if self.is_held else 'lost'}>"

    @property
    def is_held(self) -> bool:
        """As far as is known here. Not after the stream was lost: the others give it to somebody else then. Who is
        paused, or cut off with its daemon, learns it late, which is what the token is for."""
        return self._member.stint == self._stint and self._machine.token_of(self.claim) == self.token


def ticket_bytes(held: Held) -> bytes:
    return U64.pack(given(held, Held, "claim", "what acquire() or campaign() returned").claim.ticket)


class ExclusiveFront(ClaimingFront[Exclusive[object]]):
    def __init__(self, machine: Exclusive[object], caller: Caller) -> None:
        super().__init__(machine, caller)
        self._drawn = (0, 1)  # a stint, and the first ticket that was drawn in it

    @property
    def holder(self) -> Grant | None:
        """As the copy that is here has it. None while this replica is not in the group: nobody knows then. Nor is what
        this replica itself had before its stream was lost."""
        grant = self.machine.grant
        if grant is None or not self._caller.is_in_group:
            return None
        stint, first = self._drawn
        is_old = stint != self._caller.stint or grant.claim.ticket < first
        return None if grant.claim.owner == self._caller.me and is_old else grant

    async def _acquire(self, timeout: float | None, ttl: float | None = None) -> Held:
        """Waits for its turn. Who does not wait any more gives back what may be granted yet."""
        turn = self._take_turn(0 if ttl is None else ticks_of(ttl))
        return await self._caller.within(turn, timeout, awaited=self._holder_text)

    def _holder_text(self) -> str:
        return "nobody has it now" if self.holder is None else f"{self.holder.name} has it"

    async def _take_turn(self, span: int = 0) -> Held:
        """A claim that was dropped, because one was out of the group, is made again. So is one from before that which
        was ordered behind the word that one is back: nobody drops that, so it is withdrawn."""
        while True:
            stint = self._caller.stint
            claim = self._new_claim()
            if stint != self._drawn[0]:
                self._drawn = stint, claim.ticket
            kinds = (ACQUIRE_FOR if span else ACQUIRE, RELEASE)
            token = await self._given(claim, kinds, self._turn_of, U64.pack(span) if span else b"", is_bare=True)
            if token and stint == self._caller.stint:
                return Held(self.machine, claim, token, self._caller)
            if token:
                self._withdraw(claim)

    def _turn_of(self, claim: Claim, result: bytes) -> int | None:
        """Its token; 0 when it is not even waiting; None while it waits."""
        return self.machine.token_of(claim) or (None if self.machine.has(claim) else 0)

    async def _release(self, held: Held, timeout: float | None) -> bool:
        """Whether it was still held."""
        return (await self._ask(RELEASE, ticket_bytes(held), timeout)).result == YES

    async def lost(self, held: Held, *, timeout: float | None = None) -> None:
        """Returns when it is held no longer: as soon as the connection to the daemon is lost, too."""
        if given(held, Held, "claim", "what acquire() or campaign() returned").is_held:
            await self._caller.within(self._caller.until(lambda: None if held.is_held else True), timeout)

    def _withdraw(self, claim: Claim) -> None:
        self._caller.post(bytes([RELEASE]) + U64.pack(claim.ticket))
