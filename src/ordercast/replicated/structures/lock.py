"""Lock: one holder at a time in the ordered stream, waiters in order, a fencing token for each grant.

    async with lock.hold() as held:
        store.write(data, held.token)    # refused there, if it has seen a greater token

Who leaves the group or disconnects loses the lock, at a place in the order that is the same for everybody. A holder
that was cut off learns it late: hence the token. See `docs/concepts/replicated-state.md`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from ordercast.replicated.structures.base import YES, Caller, Lost
from ordercast.replicated.structures.claims import RENEW, Exclusive, ExclusiveFront, Held, ticket_bytes


class Lock(Exclusive["LockFront"]):
    NAME = "Lock"

    def front(self, caller: Caller) -> LockFront:
        return LockFront(self, caller)


class LockFront(ExclusiveFront):
    async def acquire(self, *, timeout: float | None = None, ttl: float | None = None) -> Held:
        """Waits for its turn. Cancelled, or after its time, it does not wait any more. `ttl`: who has it for at least
        so many seconds, and does not renew it, loses it, though it is still in the group."""
        return await self._acquire(timeout, ttl)

    async def renew(self, held: Held, *, timeout: float | None = None) -> bool:
        """The time of a lock that is held for some time begins anew. Whether it was still held."""
        return (await self._ask(RENEW, ticket_bytes(held), timeout)).result == YES

    async def release(self, held: Held, *, timeout: float | None = None) -> bool:
        """Whether it was still held."""
        return await self._release(held, timeout)

    @asynccontextmanager
    async def hold(self, *, timeout: float | None = None, ttl: float | None = None) -> AsyncIterator[Held]:
        """Lost at the end when somebody else had it before the block was over; whatever else is raised there, the lock
        is given back as soon as that can be done. `timeout`: for its turn. `ttl`: as in `acquire`."""
        held = await self._acquire(timeout, ttl)
        try:
            yield held
            was_held = await self._release(held, None)
        except BaseException:
            self._withdraw(held.claim)
            raise
        if not was_held:
            raise Lost("the lock was lost before it was released: its time was over, or this member out of the group")
