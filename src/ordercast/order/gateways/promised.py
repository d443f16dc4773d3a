"""What a network of rings promises and serves: its part of the catalogue of engines."""

from __future__ import annotations

from ordercast.model.promises import Promise
from ordercast.order.ring import promised as ring

# The transitional set of a merge may be too small; who may send how much is a matter of each ring.
PROMISED = ring.PROMISED - {Promise.TRANSITIONAL_SETS, Promise.FAIRNESS}
SERVICES = ring.SERVICES
