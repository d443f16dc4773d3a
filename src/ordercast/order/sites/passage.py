"""From one view to the next, as it goes up: what is delivered in which configuration, and the configurations.

The transitional configuration lies behind the signal, the highest place that a companion had delivered. An orphan ends
the old view with nobody else and goes through a view alone: its former companions have delivered what follows something
that it is owed and that nobody has any more, so it cannot be said to come along with them.
"""

from __future__ import annotations

from ordercast.model.configuration import ChangeReason, Configuration, ConfigurationKind
from ordercast.model.effects import Deliver, Effect, Install, Parcel
from ordercast.model.ids import NO_CONFIGURATION, ConfigurationId, Position, ProcessId
from ordercast.order.sites.order import WideOrder
from ordercast.order.sites.plan import WidePlan
from ordercast.order.sites.views import RANK_SLOTS, SEQ_STEP, TRANSITIONAL

ViewMembers = tuple[ProcessId, ...]


class Passage:
    def __init__(self, effects: list[Effect]) -> None:
        self._effects = effects
        self._last: ConfigurationId = NO_CONFIGURATION  # the configuration in which messages are delivered

    def deliver(self, order: WideOrder) -> None:
        """Pass up what the order has passed, early units apart from the others."""
        out, order.out = order.out, []
        parcels: list[Parcel] = []
        for index, passed in enumerate(out):
            parcels += passed.unit.parcels(order.base, passed.payloads)
            if index + 1 == len(out) or out[index + 1].is_early != passed.is_early:
                self._effects.append(Deliver(self._last, order.view.id, parcels, ordered=not passed.is_early))
                parcels = []

    def begin(self, id: ConfigurationId, members: ViewMembers, companions: ViewMembers, reason: ChangeReason) -> None:
        """Install a regular configuration behind the last one."""
        kind, position = ConfigurationKind.REGULAR, Position(id, 0, 0)
        self._effects.append(Install(Configuration(kind, id, members, self._last, companions, reason, position)))
        self._last = id

    def end(self, order: WideOrder, plan: WidePlan, reason: ChangeReason) -> tuple[int, int]:
        """Deliver what is still owed of a view, around the transitional configuration. Return how many units beyond the
        line were delivered, and how many were dropped."""
        seq = plan.view.id.seq
        if not plan.is_orphan:
            return self._end(order, plan, seq - TRANSITIONAL, reason)
        (me,) = plan.companions
        alone = ConfigurationId(seq - SEQ_STEP, me)
        rest = self._end(order, plan, alone.seq - TRANSITIONAL, ChangeReason.SITE_LOST)
        self.begin(alone, (me,), (me,), ChangeReason.SITE_LOST)
        self._turn(seq - TRANSITIONAL, (me,), reason, Position(alone, 0, RANK_SLOTS - 1))
        return rest

    def _end(self, order: WideOrder, plan: WidePlan, seq: int, reason: ChangeReason) -> tuple[int, int]:
        order.up_to(plan.signal)
        self.deliver(order)
        stamp, rank, _ = order.place
        position = Position(order.view.id, max(0, stamp - order.base), rank * RANK_SLOTS + RANK_SLOTS - 1)
        self._turn(seq, plan.companions, reason, position)
        rest = order.rest(plan.lowest_line, plan.commits)
        self.deliver(order)
        return rest

    def _turn(self, seq: int, members: ViewMembers, reason: ChangeReason, position: Position) -> None:
        """Install a transitional configuration."""
        id, kind = ConfigurationId(seq, members[0]), ConfigurationKind.TRANSITIONAL
        self._effects.append(Install(Configuration(kind, id, members, self._last, members, reason, position)))
        self._last = id
