"""Messages accepted and not yet numbered; packs them into the bodies of packets.

Small messages share a packet as long as they ask for the same delivery class (safe or not), so that a whole packet is
deliverable or not. A message that does not fit is sent in parts, and packets of other senders go in between. Order
is kept per sender: whatever a sender submits after a large message waits until its last part has been numbered, so
that at most one message of each sender is in parts at any time, and (originator, sender) names it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice

from ordercast.model.service import Service
from ordercast.wire.header import COUNT_MAX, DESCRIPTOR_SIZE, PART_SHIFT, SAFE, Entry, Part

OVERHEAD = 64  # what a queued message costs beside its bytes, so that empty ones are bounded too
_SAFE_SERVICE = int(Service.SAFE)


# The body of a packet that has no number yet: its flags and its messages.
Load = tuple[int, Sequence[Entry]]


@dataclass(slots=True)
class _Large:
    """A message that is being sent in parts."""

    entry: Entry
    sent: int = 0
    waiting: list[Entry] = field(default_factory=list)  # later ones of the same sender


class Outbox:
    __slots__ = ("_body_max", "_large", "_queue", "_turn_of_large", "_whole_max", "size")

    def __init__(self, body_size_max: int) -> None:
        self._body_max = body_size_max
        self._whole_max = min(body_size_max - DESCRIPTOR_SIZE, 0xFFFF)
        self._queue: deque[Entry] = deque()
        self._large: dict[int, _Large] = {}  # by sender, in turn
        self._turn_of_large = True
        self.size = 0  # bytes held, overhead included

    def __bool__(self) -> bool:
        return bool(self._queue or self._large)

    def add(self, entries: Sequence[Entry], size: int) -> None:
        """Take messages whose `cost` is `size`."""
        self._queue.extend(entries)
        self.size += size

    def packets(self) -> int:
        """How many packets it would take to send all, more or less."""
        return -(-self.size // self._body_max)

    def take(self, limit: int) -> list[Load]:
        """Up to `limit` packets. What is taken is gone, except that a large message stays until its last part."""
        loads: list[Load] = []
        while len(loads) < limit and self:
            if self._large and (self._turn_of_large or not self._queue):
                loads.append(self._next_part())
                self._turn_of_large = False
                continue
            self._turn_of_large = True
            self._set_aside()
            if self._queue and self._queue[0][1] <= self._whole_max:
                loads.append(self._next_small())
        return loads

    def start_over(self) -> int:
        """The ring ended: messages whose last part was not numbered are sent again from the start. How many."""
        begun = [large for large in self._large.values() if large.sent]
        for large in begun:
            large.sent = 0
        return len(begun)

    def _set_aside(self) -> None:
        """Begin a large message at the head of the queue; move what must wait for a large one behind it."""
        queue = self._queue
        while queue:
            entry = queue[0]
            if self._large and entry[0] in self._large:
                self._large[entry[0]].waiting.append(queue.popleft())
            elif entry[1] > self._whole_max:
                self._large[entry[0]] = _Large(queue.popleft())
            else:
                return

    def _next_small(self) -> Load:
        """One packet of whole messages; the first in the queue is one."""
        queue, large = self._queue, self._large
        room = self._body_max
        safe = queue[0][2] == _SAFE_SERVICE
        if 2 * queue[0][1] > room:  # hardly anything fits beside it
            entry = queue.popleft()
            self.size -= entry[1] + OVERHEAD
            return SAFE if safe else 0, (entry,)
        count = 0
        for sender, length, service, _ in islice(queue, COUNT_MAX):
            room -= length + DESCRIPTOR_SIZE
            if room < 0 or (service == _SAFE_SERVICE) is not safe or (large and sender in large):
                break
            count += 1
        entries = list(islice(queue, count))
        if count == len(queue):
            queue.clear()
        else:
            for _ in range(count):
                queue.popleft()
        self.size -= cost(entries)
        return SAFE if safe else 0, entries

    def _next_part(self) -> Load:
        sender, large = next(iter(self._large.items()))
        del self._large[sender]
        _, length, service, data = large.entry
        chunk = data[large.sent : large.sent + self._whole_max]
        first = large.sent == 0
        large.sent += len(chunk)
        last = large.sent == length
        if last:
            self.size -= length + OVERHEAD
            self._queue.extendleft(reversed(large.waiting))
        else:
            self._large[sender] = large  # behind the others: they take turns
        part = Part.LAST if last else Part.FIRST if first else Part.MIDDLE
        flags = part << PART_SHIFT | (SAFE if service == _SAFE_SERVICE else 0)
        return flags, [(sender, len(chunk), service, chunk)]


def cost(entries: Sequence[Entry]) -> int:
    return sum([entry[1] for entry in entries]) + OVERHEAD * len(entries)
