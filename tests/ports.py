"""Ports for the clusters of tests.

They lie below those that the kernel hands out, which any connection on the machine may get in the meantime; and each
process that runs tests has a region of its own, which it claims by holding its last port open.
"""

from __future__ import annotations

import random
import socket
from functools import cache
from itertools import count

ROOM = 256  # ports for one cluster: more than nodes of one machine, and their status, take up
REGION = 8 * ROOM
REGIONS = range(10_240, 30_720, REGION)

_calls = count()
_claims: list[socket.socket] = []


def free_ports() -> int:
    """The first of ROOM ports in a row. After some calls their turn comes again."""
    return _region() + next(_calls) % (REGION // ROOM) * ROOM


@cache
def own_ports() -> int:
    """The same at every call: for nodes in this process, whose clusters have names to be told apart by."""
    return free_ports()


@cache
def _region() -> int:
    for first in random.sample(REGIONS, len(REGIONS)):
        claim = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            claim.bind(("127.0.0.1", first + REGION - 1))
        except OSError:
            claim.close()
            continue
        _claims.append(claim)
        return first
    raise AssertionError(f"{len(REGIONS)} processes run tests already")
