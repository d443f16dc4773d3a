"""What came to an entry and has not entered: a queue for each source, in its order.

An entry takes a channel's next cargo while little of the channel, and of all its channels, is unstable, nobody who
receives it has said that its application is behind, and its source knows the places of most that it has sent. Whoever
waits keeps only its own source waiting.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from ordercast.model.ids import ProcessId
from ordercast.order.tree.blocks import EARLIER_MAX, Cargo
from ordercast.order.tree.stream import TreeStream


@dataclass(slots=True)
class Offers:
    channel_window: int
    entry_window: int
    queues: dict[ProcessId, deque[Cargo]] = field(default_factory=dict)
    held_back: int = 0  # how often a window was full
    held_by_application: int = 0

    def __bool__(self) -> bool:
        return any(self.queues.values())

    def add(self, cargo: Cargo) -> None:
        self.queues.setdefault(cargo.originator, deque()).append(cargo)

    def takeable(self, stream: TreeStream, is_behind: Callable[[frozenset[ProcessId]], bool]) -> Iterator[Cargo]:
        """Take what may enter now, one of each source in turn."""
        is_moving = True
        while is_moving:
            is_moving = False
            for source in sorted(self.queues):
                queue = self.queues[source]
                if queue and self._may_enter(queue[0], stream, is_behind):
                    is_moving = True
                    yield queue.popleft()

    def _may_enter(self, cargo: Cargo, stream: TreeStream, is_behind: Callable[[frozenset[ProcessId]], bool]) -> bool:
        if is_behind(stream.tree.receivers(cargo.groups) if cargo.groups else frozenset()):
            self.held_by_application += 1
            return False
        channel = stream.me, cargo.groups
        if stream.unknown(cargo.originator) == EARLIER_MAX:
            return False
        if stream.unstable[channel] >= self.channel_window or stream.unstable_size >= self.entry_window:
            self.held_back += 1
            return False
        return True

    def refused(self) -> dict[ProcessId, list[int]]:
        """Take everything out: it came too late. Return the source numbers, by source."""
        refused = {source: [cargo.source for cargo in queue] for source, queue in self.queues.items() if queue}
        self.queues.clear()
        return refused
