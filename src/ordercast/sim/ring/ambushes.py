"""Plots that aim at a network of rings: each strikes at one kind of moment, heals what it broke, and strikes again."""

from __future__ import annotations

from abc import ABC, abstractmethod
from random import Random
from typing import TYPE_CHECKING

from ordercast.model.ids import node_of
from ordercast.model.notes import Moved, Occurred, Occurrence
from ordercast.model.service import Service
from ordercast.order.membership.states.moves import OPERATIONAL
from ordercast.sim.faults import Fault, FaultKind, ambush
from ordercast.sim.plot import APART_NS, Plot
from ordercast.trace.records import DeliveredBatch, Event, MessageId, Noted, Submitted

if TYPE_CHECKING:
    from ordercast.sim.world import World

STRIKES = 0.4  # chance that a moment is used
ROTATIONS = 8  # of a token, in which a safe message is covered by all rings, before any was seen


class RingAmbush(Plot, ABC):
    """What all of these plots have in common; each knows its own moment."""

    def __init__(self, world: World, rng: Random) -> None:
        super().__init__(world, rng)
        self._is_struck = False  # what was broken is not healed yet

    def observe(self, event: Event) -> None:
        node = self.moment(event)
        if node is not None and not self._is_struck and self.rng.random() < STRIKES:
            self._is_struck = True
            self._strike(node)
            self.soon(APART_NS, self._heal)

    @abstractmethod
    def moment(self, event: Event) -> int | None:
        """Return who acts, if this is the moment."""

    def within_ns(self) -> int:
        """Return the time after the moment in which the fault strikes."""
        return 2 * self.world.options.delay_max_ns

    def _strike(self, node: int) -> None:
        options, at = self.world.options, self.world.now + self.rng.randrange(self.within_ns())
        self.world.strike_at(at, ambush(at, node, options.nodes, self.rng, options.attachments))

    def _heal(self) -> None:
        self._is_struck = False
        self.world.strike_at(self.world.now, Fault(self.world.now, FaultKind.HEAL))
        for node in self.everybody:
            self.world.strike_at(self.world.now, Fault(self.world.now, FaultKind.RESTART, node=node))


class OccurrenceAmbush(RingAmbush):
    """Strikes when an engine says that something has happened to it."""

    what: Occurrence

    def moment(self, event: Event) -> int | None:
        if isinstance(event, Noted) and isinstance(event.note, Occurred) and event.note.what is self.what:
            return node_of(event.process)
        return None


class MarkAmbush(OccurrenceAmbush):
    """Strikes when a member of a ring that is to merge has marked."""

    what = Occurrence.NETWORK_MARKED


class TopologyAmbush(OccurrenceAmbush):
    """Strikes when the speaker of one half of a merge has told its topology, and the others perhaps not yet."""

    what = Occurrence.NETWORK_SPOKEN


class InstallationAmbush(RingAmbush):
    """Strikes when a member has installed a ring, and others perhaps not yet."""

    def moment(self, event: Event) -> int | None:
        if isinstance(event, Noted) and isinstance(event.note, Moved) and event.note.target == OPERATIONAL:
            return node_of(event.process)
        return None


class CoverageAmbush(RingAmbush):
    """Strikes when a safe message is on its way over the rings: some have stated that they have it, and others not. How
    long that takes is known from the last such message that somebody has delivered."""

    def __init__(self, world: World, rng: Random) -> None:
        super().__init__(world, rng)
        self._sent: dict[MessageId, int] = {}  # when, of safe messages that nobody has delivered
        self._took_ns = ROTATIONS * self.turns_ns

    def moment(self, event: Event) -> int | None:
        if isinstance(event, DeliveredBatch):
            for delivered in event.messages:
                if delivered.message is not None and (at := self._sent.pop(delivered.message, None)) is not None:
                    self._took_ns = max(1, event.at - at)
        if not isinstance(event, Submitted):
            return None
        safe = [each.message for each in event.messages if each.service == Service.SAFE]
        self._sent |= dict.fromkeys(safe, int(event.at))
        return node_of(event.process) if safe else None

    def within_ns(self) -> int:
        return self._took_ns
