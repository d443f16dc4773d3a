"""The number of the newest configuration in stable storage: one for all engines, so that ids go on rising when a
cluster is restarted with another one.

In this engine the stored clock sees to it that ids of views rise, so nobody waits for the write. Another engine that
begins where this one ended has nothing but the number: it is written a little ahead of each view, and no more than a
little, for rings believe only what is near their own.
"""

from __future__ import annotations

from ordercast.model.effects import Effect, Persist
from ordercast.model.ids import ConfigurationId
from ordercast.model.inputs import Stored
from ordercast.order.engine import CONFIGURATION_SEQ_KEY, stored_configuration_seq
from ordercast.order.gateways.views import COUNT_BITS

AHEAD_BITS = COUNT_BITS + 7  # 128 ticks


class ViewNumber:
    __slots__ = ("_stored",)

    def __init__(self) -> None:
        self._stored = 0  # no view of this node is above it

    def start(self, stored: Stored) -> int:
        """Return the tick from which on all views are above those of earlier lives, whatever their engine."""
        self._stored = int.from_bytes(stored_configuration_seq(stored), "big")
        return (self._stored >> COUNT_BITS) + bool(self._stored)

    def writes(self, view: ConfigurationId) -> list[Effect]:
        """Return the write of a number above a view, if the stored one is not."""
        if view.seq < self._stored:
            return []
        self._stored = ((view.seq >> AHEAD_BITS) + 1) << AHEAD_BITS
        return [Persist(CONFIGURATION_SEQ_KEY, self._stored.to_bytes(8, "big"))]
