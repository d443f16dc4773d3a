"""What the sites engine promises and serves, and everything that can happen to it: its part of the catalogue."""

from __future__ import annotations

from ordercast.model.configuration import ChangeReason
from ordercast.model.effects import AlarmKind
from ordercast.model.ids import Attachment
from ordercast.model.notes import Occurrence
from ordercast.model.promises import Promise
from ordercast.model.service import Service
from ordercast.order.membership.states import moves
from ordercast.order.ring import promised as ring
from ordercast.order.sites.states import MOVES as WIDE_MOVES

ENGINE = "sites"
WIDE = Attachment(1)  # the attachment of links; the ring of the site has the first
SITE = "site"  # begins the keys in stable storage that are the ring's

# Who may send how much is a matter of each site's ring.
PROMISED = ring.PROMISED - {Promise.FAIRNESS}
SERVICES = ring.SERVICES
EARLY = frozenset({Service.RELIABLE, Service.FIFO})
MOVES = moves.MOVES | WIDE_MOVES
ALARMS = ring.ALARMS | {AlarmKind.WRONG_SITE, AlarmKind.SITE_STUCK}

# Why a view ends.
VIEW_REASONS = (
    ChangeReason.LEFT,
    ChangeReason.SITE_HEARD,
    ChangeReason.SITE_LOST,
    ChangeReason.SITE_RING_CHANGED,
    ChangeReason.SITE_STUCK,
    ChangeReason.ATTEMPT_LOST,
)
REASONS = ring.REASONS
OCCURRENCES = (*ring.OCCURRENCES, *(what for what in Occurrence if what.name.startswith("SITES_")))
