"""The number of the newest configuration in stable storage: one for all engines, so that ids and places go on rising
when a cluster is restarted with another one. A view has its tick for a number, and ticks come first in places: so a
ring that goes on has a higher seq, and a network that goes on after a ring has higher ticks.

In this engine the stored clock sees to it that ids of views rise: the order does not go on above its bound
(`RingNetwork.limit`). So nobody waits for this write. It is a little ahead of each view, and no more than a little, for
rings believe only what is near their own.
"""

from __future__ import annotations

from ordercast.model.effects import Effect, Persist
from ordercast.model.ids import ConfigurationId
from ordercast.model.inputs import Stored
from ordercast.order.engine import CONFIGURATION_SEQ_KEY, stored_configuration_seq
from ordercast.order.membership.bounds import stored_ring_seq

AHEAD = 128  # ticks


class ViewNumber:
    __slots__ = ("_stored",)

    def __init__(self) -> None:
        self._stored = 0  # no view of this node is above it

    def start(self, stored: Stored) -> int:
        """Return the tick from which on all views are above those of earlier lives, whatever their engine."""
        self._stored = stored_ring_seq(stored_configuration_seq(stored)) or 0
        return self._stored + bool(self._stored)

    def writes(self, view: ConfigurationId) -> list[Effect]:
        """Return the write of a number above a view, if the stored one is not."""
        if view.seq < self._stored:
            return []
        self._stored = (view.seq // AHEAD + 1) * AHEAD
        return [Persist(CONFIGURATION_SEQ_KEY, self._stored.to_bytes(8, "big"))]
