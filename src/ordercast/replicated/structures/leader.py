"""Leader: one member leads, the next candidate follows when it goes. The token is the leader's term: it only rises."""

from __future__ import annotations

from typing import NamedTuple

from ordercast.replicated.structures.base import Caller
from ordercast.replicated.structures.claims import Exclusive, ExclusiveFront, Held


class Leader(Exclusive["LeaderFront"]):
    def front(self, caller: Caller) -> LeaderFront:
        return LeaderFront(self, caller)


class Leadership(NamedTuple):
    name: str
    token: int


class LeaderFront(ExclusiveFront):
    async def campaign(self) -> Held:
        """Stand, and return when elected: at once if nobody leads, else when all who stood before are gone."""
        return await self._acquire()

    async def resign(self, held: Held) -> bool:
        """Whether one still led."""
        return await self._release(held)

    async def lost(self, held: Held) -> None:
        """Returns when one leads no longer."""
        await self._caller.until(lambda: None if held.is_held else True)

    @property
    def leader(self) -> Leadership | None:
        """As the copy that is here has it."""
        grant = self.machine.grant
        return None if grant is None else Leadership(grant.claim.owner.name, grant.token)

    async def changed(self, known: Leadership | None) -> Leadership | None:
        """The leader, as soon as it is another one than `known`."""
        (found,) = await self._caller.until(lambda: None if self.leader == known else (self.leader,))
        return found
