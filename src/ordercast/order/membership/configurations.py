"""The configurations that a ring begins and ends with, as the layer above is told of them."""

from __future__ import annotations

from ordercast.model.configuration import ChangeReason, Configuration, ConfigurationKind
from ordercast.model.ids import NO_CONFIGURATION, NO_SEQ, SLOT_MAX, ConfigurationId, Position, ProcessId, Seq
from ordercast.order.membership.recovery_plan import RecoveryPlan
from ordercast.order.membership.ring import Ring


def first_configuration(ring: Ring) -> Configuration:
    """The singleton in which every life begins."""
    return regular_configuration(ring, NO_CONFIGURATION, ring.members, ChangeReason.STARTED)


def regular_configuration(
    ring: Ring, previous: ConfigurationId, transitional: tuple[ProcessId, ...], reason: ChangeReason
) -> Configuration:
    return Configuration(
        ConfigurationKind.REGULAR, ring.id, ring.members, previous, transitional, reason, Position(ring.id, NO_SEQ, 0)
    )


def transitional_configuration(
    old: ConfigurationId, delivered: Seq, plan: RecoveryPlan, ring: Ring, reason: ChangeReason
) -> Configuration:
    """Return the configuration of those who come along from the old ring to the new one; the old regular one ends
    behind `delivered`."""
    return Configuration(
        ConfigurationKind.TRANSITIONAL,
        ConfigurationId(ring.id.seq - 2, min(plan.transitional)),
        plan.transitional,
        old,
        plan.transitional,
        reason,
        Position(old, delivered, SLOT_MAX),
    )
