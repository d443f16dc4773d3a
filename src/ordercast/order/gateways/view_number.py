"""The number of the newest configuration in stable storage: one for all engines, so that ids go on rising when a
cluster is restarted with another one.

In this engine the stored clock sees to it that ids of views rise, so nobody waits for the write. Another engine that
begins where this one ended has nothing but the number: it is written a little ahead of each view, and no more than a
little, for rings believe only what is near their own. What this engine has written it remembers under a key of its own:
where the number is another one, a ring was here meanwhile, and places in the order must lie above those of the ring
too, whose first number is its seq.
"""

from __future__ import annotations

from ordercast.model.effects import Effect, Persist
from ordercast.model.ids import ConfigurationId
from ordercast.model.inputs import Stored
from ordercast.order.engine import CONFIGURATION_SEQ_KEY, stored_configuration_seq
from ordercast.order.gateways.views import COUNT_BITS
from ordercast.order.membership.bounds import stored_ring_seq

VIEWS_KEY = "views"
AHEAD_BITS = COUNT_BITS + 7  # 128 ticks


class ViewNumber:
    __slots__ = ("_stored",)

    def __init__(self) -> None:
        self._stored = 0  # no view of this node is above it

    def start(self, stored: Stored) -> int:
        """Return the tick from which on all views are above those of earlier lives, whatever their engine."""
        number = stored_configuration_seq(stored)
        self._stored = int.from_bytes(number, "big")
        if stored.get(VIEWS_KEY, b"") == number:
            return (self._stored >> COUNT_BITS) + bool(self._stored)
        return stored_ring_seq(number) or 0

    def writes(self, view: ConfigurationId) -> list[Effect]:
        """Return the write of a number above a view, if the stored one is not."""
        if view.seq < self._stored:
            return []
        self._stored = ((view.seq >> AHEAD_BITS) + 1) << AHEAD_BITS
        number = self._stored.to_bytes(8, "big")
        return [Persist(CONFIGURATION_SEQ_KEY, number), Persist(VIEWS_KEY, number)]
