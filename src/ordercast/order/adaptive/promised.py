"""What the adaptive engine promises and serves, and everything that can happen to it: its part of the catalogue."""

from __future__ import annotations

from ordercast.model.configuration import ChangeReason
from ordercast.model.notes import Occurrence
from ordercast.order.ring import promised as ring

PROMISED = ring.PROMISED
SERVICES = ring.SERVICES
ALARMS = ring.ALARMS

# Why a membership is given up: as on a ring, but that there is no token to be lost, and nobody forges in its swarms.
REASONS = (
    *(reason for reason in ring.REASONS if reason not in (ChangeReason.TOKEN_LOST, ChangeReason.FOREIGN_PACKET)),
    ChangeReason.SILENT,
)

_OF_TOKENS = (Occurrence.TOKEN_RESTED, Occurrence.RING_WOKEN)
_OF_FORGERS = (Occurrence.IMPLAUSIBLE, Occurrence.FOREIGN_PACKET, Occurrence.IMPOSTOR)
OCCURRENCES = (
    *(one for one in ring.OCCURRENCES if one not in (*_OF_TOKENS, *_OF_FORGERS)),
    Occurrence.PLACES_URGENT,
    Occurrence.PLACES_AHEAD,
    Occurrence.PLACES_RESTS,
    Occurrence.DISTRIBUTION_ADOPTED,
    Occurrence.DISTRIBUTION_RECOVERED,
    Occurrence.DISTRIBUTION_ABANDONED,
    Occurrence.PACKET_ASKED,
    Occurrence.MARK_ASKED,
    Occurrence.THIRD_ANSWERED,
    Occurrence.MARK_RELAYED,
    Occurrence.VOUCHED,
    Occurrence.VOID_UNKNOWN,
    Occurrence.EARLY_KEPT,
    Occurrence.HELD_BY_REACH,
    Occurrence.HELD_BY_WINDOW,
    Occurrence.HELD_BY_APPLICATION,
    Occurrence.HELD_BY_BUSY_HOSTS,
    Occurrence.ACKS_GATHERED,
    Occurrence.OFFICE_HANDED_OVER,
)
