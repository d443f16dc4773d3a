"""What this replica has submitted and has no answer to yet."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from ordercast.replicated.wire import Command, encode_command


@dataclass(slots=True)
class Request:
    data: bytes
    is_noop: bool
    copies: int = 0  # how often it was sent
    is_underway: bool = False  # sent since this view's STATE: it is still to come


@dataclass(slots=True)
class Requests:
    life: int
    waiting_max: int
    waiting: dict[int, Request] = field(default_factory=dict)  # by number, rising
    last: int = 0

    @property
    def is_full(self) -> bool:
        return len(self.waiting) >= self.waiting_max

    def add(self, data: bytes, *, is_noop: bool) -> int:
        self.last += 1
        self.waiting[self.last] = Request(data, is_noop)
        return self.last

    def skip(self) -> int:
        """A number for a request that is refused at once."""
        self.last += 1
        return self.last

    def payload(self, number: int) -> bytes:
        """To be sent now."""
        request = self.waiting[number]
        request.copies += 1
        request.is_underway = True
        settled = next(iter(self.waiting)) - 1
        return encode_command(Command(self.life, number, settled, request.is_noop, request.data))

    def state_is_sent(self) -> None:
        """Whatever was sent before comes before the STATE."""
        for request in self.waiting.values():
            request.is_underway = False

    def settle(self, number: int) -> Request | None:
        return self.waiting.pop(number, None)

    def unheard(self) -> Iterator[int]:
        """Those of which no copy is still to come in this view."""
        return (number for number, request in self.waiting.items() if not request.is_underway)
