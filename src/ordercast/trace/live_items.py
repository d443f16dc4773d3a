"""What a live node gathers on its event loop: messages in runs, and any other event as it is.

Digests and stamps are read from the very bytes that are submitted and delivered, many messages at once and soon
(`look`): while the processor has them in its cache, and before memory is needed for others. Whatever else a row needs
is found by the writer's thread (`live_columns.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple

from ordercast.model.effects import Deliver
from ordercast.model.ids import ConfigurationId, Instant, ProcessId
from ordercast.trace.digests import Bytes, Ints, looked_at
from ordercast.trace.live_stamp import LIVE_STAMP_SIZE
from ordercast.trace.records import Event

# A parcel that has let go of its messages: their number instead of their bytes.
Outline = tuple[int, ProcessId, Sequence[int], Sequence[int], int, int, int]


class SubmittedRun(NamedTuple):
    """Messages of one sender that the engine was given; their counters follow each other."""

    at: Instant
    sender: int
    first: int  # counter of the first
    service: int
    sizes: Ints
    digests: Ints
    destinations: tuple[str, ...]


class DeliveredRun:
    """What the engine delivered at once. The bytes of its messages stay until they are looked at, and no longer."""

    __slots__ = ("at", "configuration", "count", "digests", "heads", "origin", "outlines", "payloads", "sizes")

    sizes: Ints  # of each message
    digests: Ints
    heads: Bytes  # where the stamps are

    def __init__(self, at: Instant, deliver: Deliver) -> None:
        self.at = at
        self.configuration: ConfigurationId = deliver.configuration
        self.origin: ConfigurationId = deliver.origin
        self.payloads: list[Sequence[bytes]] = []
        self.outlines: list[Outline] = []
        self.count = 0
        for number, originator, senders, services, payloads, each, base in deliver.parcels:
            if count := len(payloads):
                self.payloads.append(payloads)
                self.outlines.append((number, originator, senders, services, count, each, base))
                self.count += count

    @property
    def is_seen(self) -> bool:
        """Its messages were looked at."""
        return not self.payloads


Item = Event | SubmittedRun | DeliveredRun


def look(runs: Sequence[DeliveredRun]) -> None:
    """Look at all messages of these together."""
    payloads = list(chain.from_iterable(chain.from_iterable(run.payloads for run in runs)))
    sizes, digests, heads = looked_at(payloads, LIVE_STAMP_SIZE)
    first = 0
    for run in runs:
        last = first + run.count
        run.sizes, run.digests, run.heads = sizes[first:last], digests[first:last], heads[first:last]
        run.payloads = []
        first = last
