"""Leader: one member leads, the next candidate follows when it goes. The token is the leader's term: it only rises."""

from __future__ import annotations

from typing import NamedTuple

from ordercast.replicated.structures.base import Caller
from ordercast.replicated.structures.claims import Exclusive, ExclusiveFront, Held


class Leader(Exclusive["LeaderFront"]):
    NAME = "Leader"

    def front(self, caller: Caller) -> LeaderFront:
        return LeaderFront(self, caller)


class Leadership(NamedTuple):
    name: str
    token: int


class LeaderFront(ExclusiveFront):
    async def campaign(self, *, timeout: float | None = None) -> Held:
        """Stand, and return when elected: at once if nobody leads, else when all who stood before are gone."""
        return await self._acquire(timeout)

    async def resign(self, held: Held, *, timeout: float | None = None) -> bool:
        """Whether one still led."""
        return await self._release(held, timeout)

    @property
    def leader(self) -> Leadership | None:
        """As the copy that is here has it. None while this replica is not in the group: nobody knows then."""
        grant = self.holder
        return None if grant is None else Leadership(grant.name, grant.token)

    async def changed(self, known: Leadership | None, *, timeout: float | None = None) -> Leadership | None:
        """The leader, as soon as it is another one than `known`."""
        waiting = self._caller.until(lambda: None if self.leader == known else (self.leader,))
        (found,) = await self._caller.within(waiting, timeout)
        return found
