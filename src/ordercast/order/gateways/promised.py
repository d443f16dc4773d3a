"""What a network of rings promises and serves, and everything that can happen to it: its part of the catalogue."""

from __future__ import annotations

from ordercast.model.configuration import ChangeReason
from ordercast.model.effects import AlarmKind
from ordercast.model.notes import Occurrence
from ordercast.model.promises import Promise
from ordercast.order.ring import promised as ring

ENGINE = "gateways"

# The transitional set of a merge may be too small, never too large; who may send how much is a matter of each ring.
PROMISED = ring.PROMISED - {Promise.TRANSITIONAL_SETS, Promise.FAIRNESS}
SERVICES = ring.SERVICES

# Why a view of the network ends.
VIEW_REASONS = (
    ChangeReason.RING_REFORMED,
    ChangeReason.RING_SPLIT,
    ChangeReason.RING_CUT_OFF,
    ChangeReason.RINGS_MERGED,
    ChangeReason.LEFT,
    ChangeReason.REMOVED,
    ChangeReason.GIVEN_UP,
)
REASONS = ring.REASONS
OCCURRENCES = (
    *ring.OCCURRENCES,
    *(what for what in Occurrence if what.name.startswith("NETWORK_")),
)
ALARMS = ring.ALARMS | {
    AlarmKind.GATEWAY_LOST,
    AlarmKind.GATEWAY_BACK,
    AlarmKind.NETWORK_IN_TWO,
    AlarmKind.NETWORK_ONE_AGAIN,
    AlarmKind.RING_SILENT,
    AlarmKind.RING_HEARD,
}
