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
from typing import NamedTuple

from ordercast.model.ids import ProcessId, Seq
from ordercast.model.inputs import Submission
from ordercast.model.service import Service
from ordercast.wire.header import COUNT_MAX, DESCRIPTOR_SIZE, PARTS, SAFE, Parsed, Part, build_data

OVERHEAD = 64  # what a queued message costs beside its bytes, so that empty ones are bounded too


class Load(NamedTuple):
    """The body of a packet that has no number yet."""

    flags: int
    fields: list[int]  # descriptors, flat: sender, length, service, part
    payloads: list[bytes]

    def numbered(self, prefix: bytes, me: ProcessId, seq: Seq, token_round: int, timestamp: int) -> Parsed:
        flags, fields, payloads = self
        packet = build_data(prefix, flags, fields, payloads, me, seq, token_round, timestamp)
        messages = [
            (seq, slot, me, sender, service, payload)
            for slot, sender, service, payload in zip(
                range(len(payloads)), fields[0::4], fields[2::4], payloads, strict=True
            )
        ]
        return packet, flags, messages, tuple(fields[3::4]) if flags & PARTS else None


@dataclass(slots=True)
class _Large:
    """A message that is being sent in parts."""

    submission: Submission
    sent: int = 0
    waiting: deque[Submission] = field(default_factory=deque)  # later ones of the same sender


class Outbox:
    __slots__ = ("_body_max", "_large", "_queue", "_turn_of_large", "_whole_max", "size")

    def __init__(self, body_size_max: int) -> None:
        self._body_max = body_size_max
        self._whole_max = min(body_size_max - DESCRIPTOR_SIZE, 0xFFFF)
        self._queue: deque[Submission] = deque()
        self._large: dict[int, _Large] = {}  # by sender, in turn
        self._turn_of_large = True
        self.size = 0  # bytes held, overhead included

    def __bool__(self) -> bool:
        return bool(self._queue or self._large)

    def add(self, submissions: Sequence[Submission]) -> None:
        self._queue.extend(submissions)
        self.size += cost(submissions)

    def take(self, limit: int) -> list[Load]:
        """Up to `limit` packets. What is taken is gone, except that a large message stays until its last part."""
        loads: list[Load] = []
        while len(loads) < limit and self:
            if self._large and (self._turn_of_large or not self._queue):
                loads.append(self._next_part())
                self._turn_of_large = False
                continue
            self._turn_of_large = True
            load = self._next_small()
            if load.payloads:
                loads.append(load)
        return loads

    def start_over(self) -> int:
        """The ring ended: messages whose last part was not numbered are sent again from the start. How many."""
        begun = [large for large in self._large.values() if large.sent]
        for large in begun:
            large.sent = 0
        return len(begun)

    def _next_small(self) -> Load:
        """One packet of whole messages; empty when only messages that must wait or be cut were found."""
        queue, whole_max = self._queue, self._whole_max
        fields: list[int] = []
        payloads: list[bytes] = []
        room = self._body_max
        safe: bool | None = None
        while queue and len(payloads) < COUNT_MAX:
            submission = queue[0]
            if self._large and submission.sender in self._large:
                self._large[submission.sender].waiting.append(queue.popleft())
                continue
            data = submission.data
            length = len(data)
            if length > whole_max:
                if not payloads:
                    self._large[submission.sender] = _Large(queue.popleft())
                break
            service = submission.service
            room -= length + DESCRIPTOR_SIZE
            if room < 0 or (safe is not (service == Service.SAFE) and safe is not None):
                break
            safe = service == Service.SAFE
            queue.popleft()
            fields += (submission.sender, length, service, 0)
            payloads.append(data)
            self.size -= length + OVERHEAD
        return Load(SAFE if safe else 0, fields, payloads)

    def _next_part(self) -> Load:
        sender, large = next(iter(self._large.items()))
        del self._large[sender]
        submission = large.submission
        chunk = submission.data[large.sent : large.sent + self._whole_max]
        first = large.sent == 0
        large.sent += len(chunk)
        last = large.sent == len(submission.data)
        if last:
            self.size -= len(submission.data) + OVERHEAD
            self._queue.extendleft(reversed(large.waiting))
        else:
            self._large[sender] = large  # behind the others: they take turns
        part = Part.LAST if last else Part.FIRST if first else Part.MIDDLE
        flags = PARTS | (SAFE if submission.service == Service.SAFE else 0)
        return Load(flags, [sender, len(chunk), submission.service, part], [chunk])


def cost(submissions: Sequence[Submission]) -> int:
    return sum(len(submission.data) for submission in submissions) + OVERHEAD * len(submissions)
