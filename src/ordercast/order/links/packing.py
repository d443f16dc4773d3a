"""What travels in the numbered packets of a link: several payloads, each behind its length, or one part of a large one.

    body without PART   length 2, payload; and so on to the end; a body may be empty
    body with PART      index 2, parts 2, then bytes. Parts of one payload have numbers in a row

Payloads on links that pass up at once are put together in whatever order their parts come.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from ordercast.model.errors import UsageError, WireError

LENGTH: Final = struct.Struct(">H")
LENGTH_SIZE: Final = 4  # the larger of the two: what is before a payload, and before a part
PARTS_MAX: Final = 0xFFFF  # of one payload
_PART: Final = struct.Struct(">HH")
PART_HEAD_SIZE: Final = _PART.size
assert max(LENGTH.size, _PART.size) == LENGTH_SIZE

Body = tuple[bytes, bool]  # and whether it is a part
NumberedBody = tuple[int, Body]


@dataclass(slots=True)
class Packer:
    """Payloads that wait for their first transmission: urgent ones before the others, each kind in its order. A payload
    whose first part went out goes on before all of them."""

    body_max: int
    payload_max: int
    waiting: int = 0  # bytes of payloads that were not sent at all or not to their end
    _urgent: deque[bytes] = field(default_factory=deque)
    _usual: deque[bytes] = field(default_factory=deque)
    _parts: deque[bytes] = field(default_factory=deque)

    def __bool__(self) -> bool:
        return bool(self._parts or self._urgent or self._usual)

    def put(self, payloads: Iterable[bytes], is_urgent: bool = False) -> None:
        queue = self._urgent if is_urgent else self._usual
        for payload in payloads:
            if not 0 < len(payload) <= self.payload_max:
                raise UsageError(f"a link carries payloads of 1 to {self.payload_max} bytes, not {len(payload)}")
            queue.append(payload)
            self.waiting += len(payload)

    def withdraw(self) -> list[bytes]:
        """Take back all payloads that are not urgent and of which nothing was sent."""
        payloads = list(self._usual)
        self._usual.clear()
        self.waiting -= sum(map(len, payloads))
        return payloads

    def take(self) -> Body:
        """Return the next body: as many payloads as it has room for."""
        if self._parts:
            return self._next_part()
        first = self._urgent or self._usual
        if len(first[0]) + LENGTH.size > self.body_max:
            self._divide(first.popleft())
            return self._next_part()
        pieces: list[bytes] = []
        room = self.body_max
        for queue in (self._urgent, self._usual):
            while queue and (size := len(queue[0]) + LENGTH.size) <= room:
                payload = queue.popleft()
                pieces += (LENGTH.pack(len(payload)), payload)
                room -= size
                self.waiting -= len(payload)
        return b"".join(pieces), False

    def take_many(self, limit: int) -> list[Body]:
        """Return the next bodies, so many at most."""
        bodies: list[Body] = []
        parts = self._parts
        while self and len(bodies) < limit:
            bodies.append(self.take())
            if count := min(len(parts), limit - len(bodies)):  # the other parts of the same payload
                rest = [(parts.popleft(), True) for _ in range(count)]
                self.waiting -= sum([len(part) for part, _ in rest]) - count * _PART.size
                bodies += rest
        return bodies

    def _divide(self, payload: bytes) -> None:
        size = self.body_max - _PART.size
        pieces = [payload[at : at + size] for at in range(0, len(payload), size)]
        pack, count = _PART.pack, len(pieces)
        self._parts.extend([pack(index, count) + piece for index, piece in enumerate(pieces)])

    def _next_part(self) -> Body:
        part = self._parts.popleft()
        self.waiting -= len(part) - _PART.size
        return part, True


def payloads_of(body: bytes) -> list[bytes]:
    """Return the payloads of a body that is not a part."""
    payloads, at, end = [], 0, len(body)
    while at < end:
        if at + LENGTH.size > end:
            raise WireError("a body ends within a length")
        (size,) = LENGTH.unpack_from(body, at)
        at += LENGTH.size
        if not size or at + size > end:
            raise WireError("a payload is empty or longer than its packet")
        payloads.append(body[at : at + size])
        at += size
    return payloads


@dataclass(slots=True)
class PartStore:
    """Payloads of which some parts have come, by the number of the first."""

    payload_max: int
    size: int = 0  # bytes of all parts
    _begun: dict[int, tuple[int, dict[int, bytes]]] = field(default_factory=dict)  # how many there are, and those here

    def __len__(self) -> int:
        return len(self._begun)

    def check(self, number: int, body: bytes) -> None:
        """Raise a WireError for a part that cannot be one."""
        if len(body) <= _PART.size:
            raise WireError("a part without bytes")
        index, count = _PART.unpack_from(body)
        if not index < count <= PARTS_MAX or index >= number:
            raise WireError(f"part {index} of {count}")
        if (count - 1) * (len(body) - _PART.size) > self.payload_max and index < count - 1:
            raise WireError(f"{count} parts, more than a payload has")
        if self._begun.get(number - index, (count,))[0] != count:
            raise WireError("parts of one payload that contradict each other")

    def add(self, number: int, body: bytes) -> bytes | None:
        """Keep a part that was checked and never came before; return the payload that it completes."""
        index, count = _PART.unpack_from(body)
        parts = self._begun.setdefault(number - index, (count, {}))[1]
        parts[index] = body[_PART.size :]
        self.size += len(body) - _PART.size
        if len(parts) < count:
            return None
        del self._begun[number - index]
        payload = b"".join(parts[place] for place in sorted(parts))
        self.size -= len(payload)
        return payload


def is_whole(heads: bytes) -> bool:
    """Whether these are what is before each part of one payload, from the first to the last, in order."""
    count = len(heads) // _PART.size
    return heads == struct.pack(f">{count}L", *range(count, count + (count << 16), 1 << 16))
