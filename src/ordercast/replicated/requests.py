"""Requests: what this replica has submitted and has no answer to yet, and the answers to it. Pure.

Every request gets one answer, whatever comes twice. The core (`core.py`) knows when. Requests are applied in the order
in which they were submitted: while one waits to be sent, again or for the first time, later ones wait behind it; and
each names the one before it that has no answer yet, without which it does not count, wherever a view may have cut.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from ordercast.replicated.effects import Confirm, Effect, Refuse, Why
from ordercast.replicated.sessions import Outcome
from ordercast.replicated.wire import Command, encode_command


@dataclass(slots=True)
class Request:
    data: bytes
    is_noop: bool
    copies: int = 0  # how often it was sent, by this replica or on its way
    is_underway: bool = False  # sent since this view's STATE: it is still to come
    is_held: bool = False  # submitted while in the group, and kept back: it is behind others that are not sent yet


@dataclass(slots=True)
class Requests:
    life: int
    waiting_max: int
    waiting: dict[int, Request] = field(default_factory=dict)  # by number, rising
    last: int = 0
    is_behind: bool = False  # some of them are not sent in this view: they come first
    again: int = 0  # those up to this one were sent once more in this view, since one came without the one before it

    @property
    def is_full(self) -> bool:
        return len(self.waiting) >= self.waiting_max

    def add(self, data: bytes, *, is_noop: bool) -> int:
        self.is_behind = self.is_behind and bool(self.waiting)
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
        request.is_held = False
        settled = next(iter(self.waiting)) - 1
        previous = next((each for each in reversed(self.waiting) if each < number), 0)
        return encode_command(Command(self.life, number, settled, previous, request.is_noop, request.data))

    def came_again(self, number: int) -> None:
        """It was sent once more on its way: others may have the first copy of it."""
        if number in self.waiting:
            self.waiting[number].copies += 1

    def came_ahead(self, number: int) -> list[bytes]:
        """It came without the one before it: that was refused while this one was under way, before a replica was loaded
        with which there is a quorum. Neither it counts nor do those behind it; return them, to be sent once more."""
        request = self.waiting.get(number)
        if request is None or not request.is_underway or number <= self.again:
            return []
        self.again = self.last
        return [self.payload(each) for each, later in self.waiting.items() if each >= number and later.is_underway]

    def state_is_sent(self) -> None:
        """Whatever was sent before comes before the STATE."""
        self.is_behind, self.again = bool(self.waiting), 0
        for request in self.waiting.values():
            request.is_underway = False

    def settle(self, number: int) -> Request | None:
        return self.waiting.pop(number, None)

    def confirm(self, number: int, outcome: Outcome, effects: list[Effect]) -> None:
        if self.settle(number) is not None:
            effects.append(Confirm(number, outcome.position, outcome.result))

    def refuse(self, number: int, effects: list[Effect], *, is_certain: bool = True) -> None:
        """Refuse a request of which one copy was found to come to nothing; `is_certain`: at everybody."""
        request = self.settle(number)
        if request is not None:
            is_certain &= request.copies == 1
            effects.append(Refuse(number, Why.NOT_PRIMARY if is_certain else Why.UNCERTAIN))

    def refuse_held(self, effects: list[Effect]) -> None:
        """Nothing of these was sent."""
        for number in [number for number, request in self.waiting.items() if request.is_held]:
            del self.waiting[number]
            effects.append(Refuse(number, Why.NOT_PRIMARY))

    def unheard(self) -> Iterator[int]:
        """Return the requests of which no copy is still to come in this view."""
        return (number for number, request in self.waiting.items() if not request.is_underway)
