"""Short names in the blocks of carried packets: a logical ring by its tag, a process by its place among the ring's
members. Whoever knows a ring knows both; who does not has no use for its packets."""

from __future__ import annotations

from collections.abc import Container
from typing import NamedTuple

from ordercast.model.ids import ConfigurationId, ProcessId
from ordercast.order.gateways.items import LogicalRing


class ShortName(NamedTuple):
    """A process on a logical ring."""

    tag: int  # of the ring
    place: int  # of the process among its members, sorted


class RingNames:
    """The logical rings that one process knows, by tag."""

    __slots__ = ("_members", "_rings")

    def __init__(self) -> None:
        self._rings: dict[int, ConfigurationId] = {}
        self._members: dict[ConfigurationId, tuple[int, tuple[ProcessId, ...]]] = {}  # with the tag

    def learn(self, ring: LogicalRing) -> None:
        self._rings[ring.tag] = ring.id
        self._members[ring.id] = ring.tag, tuple(sorted(ring.members))

    def forget(self, kept: Container[ConfigurationId]) -> None:
        """Forget all rings but these."""
        self._rings = {tag: ring for tag, ring in self._rings.items() if ring in kept}
        self._members = {ring: value for ring, value in self._members.items() if ring in kept}

    def short(self, ring: ConfigurationId, process: ProcessId) -> ShortName | None:
        """Return the name of a member of a ring; None if it has none."""
        tag, members = self._members.get(ring, (0, ()))
        return ShortName(tag, members.index(process)) if process in members else None

    def full(self, name: ShortName) -> tuple[ConfigurationId, ProcessId] | None:
        """Return who is meant, and on which ring; None if that is not known."""
        ring = self._rings.get(name.tag)
        if ring is None or name.place >= len(self._members[ring][1]):
            return None
        return ring, self._members[ring][1][name.place]
