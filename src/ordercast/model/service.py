"""The strength of delivery that a sender asks for, message by message."""

from __future__ import annotations

from enum import IntEnum


class Service(IntEnum):
    """Weakest first. Numbers travel on the wire: append only."""

    UNRELIABLE = 0  # may be lost, in no order
    RELIABLE = 1  # delivered, in no order
    FIFO = 2  # in the order of its sender
    CAUSAL = 3  # after everything that its sender had delivered or sent before
    AGREED = 4  # in one order at all
    SAFE = 5  # in that order, and not before every member of the view is known to have it


SERVICE_MAX = max(Service)
SERVED = frozenset(Service) - {Service.UNRELIABLE}  # to clients
