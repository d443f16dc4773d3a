"""Takes off the stamps of nodes that record every message. Nodes that do not record do it too, and have no Arrow."""

from __future__ import annotations

from dataclasses import replace

from ordercast.model.effects import Deliver, Parcel, Placed
from ordercast.trace import kernel
from ordercast.trace.live_stamp import LIVE_STAMP_SIZE
from ordercast.trace.records import STAMPED


def without_stamps(deliver: Deliver) -> Deliver:
    """What the application submitted. A process stamps all of its messages or none."""
    if not any(parcel[2][0] & STAMPED for parcel in deliver.parcels):
        return deliver
    return replace(deliver, parcels=[_without_stamp(parcel) for parcel in deliver.parcels])


def placed_without_stamps(placed: Placed) -> Placed:
    """The same of messages that only their places are told of."""
    return replace(placed, parcels=[_without_stamp(parcel) for parcel in placed.parcels])


def _without_stamp(parcel: Parcel) -> Parcel:
    number, originator, senders, services, payloads, each, base = parcel
    if not senders[0] & STAMPED:
        return parcel
    cut = kernel.cut(payloads, LIVE_STAMP_SIZE)
    first, count = senders[0], len(senders)
    is_one = senders.count(first) == count
    clients = (first & ~STAMPED,) * count if is_one else [sender & ~STAMPED for sender in senders]
    return number, originator, clients, services, cut, each, base
