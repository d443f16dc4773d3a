"""The lowest place of a ring's members in the order of a network, as the ring's token carries it.

It is held down like the aru: a member that is behind lowers it and holds it, and only who holds it raises it again, to
its own place. So what was on the token at two visits of a member in a row, all members have passed: each other member
came between, and had it lowered, or had nothing to lower; whoever raised it behind that member had held it before.
"""

from __future__ import annotations

import struct

from ordercast.model.ids import NO_CONFIGURATION, ConfigurationId, ProcessId
from ordercast.order.stamped.lanes import NO_STAMP, Stamp

_LOWEST = struct.Struct(">QQqQ")  # stamp, who holds it


class LowestPlace:
    """What one member knows of it."""

    __slots__ = ("_before", "_ring", "known", "mine")

    def __init__(self) -> None:
        self.mine: Stamp = NO_STAMP  # my own place; whoever orders the network raises it
        self.known: Stamp = NO_STAMP  # all members of the ring are past it
        self._ring = NO_CONFIGURATION
        self._before: Stamp = NO_STAMP  # as last forwarded

    def visit(self, ring: ConfigurationId, me: ProcessId, extension: bytes) -> bytes:
        """Return what the token carries on, given what it has brought."""
        if ring != self._ring:
            self._ring, self.known, self._before = ring, NO_STAMP, NO_STAMP
        lowest, holder = _read(extension)
        if holder in (me, None) or self.mine < lowest:
            lowest, holder = self.mine, me
        self.known = max(self.known, min(self._before, lowest))
        self._before = lowest
        return _LOWEST.pack(*lowest, holder)


def _read(extension: bytes) -> tuple[Stamp, ProcessId | None]:
    if len(extension) != _LOWEST.size:
        return NO_STAMP, None
    tick, tag, seq, holder = _LOWEST.unpack(extension)
    return (tick, tag, seq), ProcessId(holder)
