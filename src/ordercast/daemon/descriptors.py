"""Descriptors: how many connections a daemon may have, so that it never lacks a descriptor for itself.

The limit of open files is one for everything: sockets of the engine, stable storage, traces, status, clients. Strangers
must not be able to take what the rest needs, so a reserve is kept, and connections share what is left of the limit.
"""

from __future__ import annotations

import resource
from dataclasses import dataclass

RESERVE = 96  # some 32 that a daemon uses, as many requests of status at a time, and as many again to spare
STRANGERS_MAX = 1000  # connections that have not said who they are, or that are being closed
STRANGERS_PART = 4  # one in so many may be a connection that has not said who it is


@dataclass(frozen=True, slots=True)
class DescriptorRoom:
    """What the limit leaves for connections."""

    limit: int
    sessions_max: int
    strangers_max: int


def room_from(limit: int, sessions_max: int, strangers_max: int = STRANGERS_MAX) -> DescriptorRoom:
    """Gives both what they ask for, or less where the limit does not suffice; never none."""
    left = max(STRANGERS_PART, limit - RESERVE)
    strangers = min(strangers_max, left // STRANGERS_PART)
    return DescriptorRoom(limit, min(sessions_max, left - strangers), strangers)


def room_text(room: DescriptorRoom) -> str:
    return (
        f"room for {room.sessions_max:,} clients, and for {room.strangers_max:,} connections that have not said who "
        f"they are, in a limit of {room.limit:,} open files"
    )


def room_remark(room: DescriptorRoom, sessions_max: int) -> str | None:
    """What the operator should know, if the limit does not suffice."""
    if room.sessions_max >= sessions_max:
        return None
    return (
        f"a limit of {room.limit:,} open files leaves room for {room.sessions_max:,} clients instead of "
        f"sessions_max = {sessions_max}: raise it (LimitNOFILE= in the unit, ulimit -n), or lower sessions_max"
    )


def limit_possible() -> int:
    """What `raise_limit` would reach."""
    return _counted(resource.getrlimit(resource.RLIMIT_NOFILE)[1])


def raise_limit() -> int:
    """The soft limit is raised as far as this user may. The limit that holds then."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == hard:
        return _counted(hard)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    except (OSError, ValueError):  # a sandbox forbids it
        return _counted(soft)
    return _counted(hard)


def _counted(limit: int) -> int:
    return (1 << 31) - 1 if limit == resource.RLIM_INFINITY else limit
