"""Messages that wait to be sent in a view, and those that are under way to the own ring's tape.

The ring gets them in small helpings, each marked with the view that it is for. One that the ring numbers when that
view is over is *void* at everybody: its originator, who sees it on the tape, sends its messages again in the next view,
before all later ones. A large message goes in parts; if its last part is void it starts over.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from ordercast.model.errors import UsageError
from ordercast.model.inputs import Submission, Submissions
from ordercast.model.service import Service
from ordercast.order.membership.frame import SENDER_MAX
from ordercast.order.outbox import OVERHEAD
from ordercast.order.sites.frames import DataEntry
from ordercast.order.sites.interest import DESTINATIONS_MAX, Digests, digests_of
from ordercast.order.sites.promised import SERVICES
from ordercast.order.sites.units import (
    BODY_HEAD_SIZE,
    LENGTH_SIZE,
    MESSAGES_MAX,
    RUN_SIZE,
    SessionRun,
    UnitBody,
    class_of,
)
from ordercast.order.sites.views import EVERYBODY

Queued = tuple[int, int, bytes, Digests]  # sender, service, data, destinations


def queued_from(one: Submission | Submissions, size_max: int) -> list[Queued]:
    """Return messages as they wait; UsageError for what cannot be served."""
    if one.service not in SERVICES:
        raise UsageError(f"the engine 'sites' does not serve {Service(one.service).name} messages")
    if not 0 <= one.sender <= SENDER_MAX:
        raise UsageError(f"sender {one.sender} is not a 32-bit number")
    payloads = [one.data] if isinstance(one, Submission) else one.payloads
    if (largest := max(map(len, payloads), default=0)) > size_max:
        raise UsageError(f"a message of {largest} bytes exceeds message_size_max = {size_max}")
    destinations = digests_of(one.destinations)
    return [(one.sender, int(one.service), data, destinations) for data in payloads]


def everybody(destinations: Digests) -> int:
    """Everything is for everybody."""
    return EVERYBODY


@dataclass(slots=True)
class _UnderWay:
    """A helping that was given to the ring."""

    size: int
    messages: list[Queued]  # that it completes


class WideOutbox:
    def __init__(self, body_max: int) -> None:
        """`body_max` bytes of a body fit in a packet, on its own ring and carried on others."""
        self._room = body_max - BODY_HEAD_SIZE
        self._whole_max = self._room - RUN_SIZE - LENGTH_SIZE
        self._queue: deque[Queued] = deque()
        self._under_way: deque[_UnderWay] = deque()
        self._void: list[Queued] = []  # to be sent again
        self._view = b""  # that the helpings under way are for
        self._numbers: dict[int, int] = {}  # of sessions in that view
        self._sent = 0  # parts of the large message at the head of the queue
        self.size = 0  # bytes of all, overhead included
        self.voids = 0  # helpings that were void; whoever takes the number resets it

    def __bool__(self) -> bool:
        return bool(self._queue or self._under_way or self._void)

    @property
    def under_way(self) -> int:
        return len(self._under_way)

    def add(self, messages: Iterable[Queued]) -> None:
        for message in messages:
            self._queue.append(message)
            self.size += len(message[2]) + OVERHEAD

    def next(self, view: bytes, needs: Callable[[Digests], int] = everybody) -> DataEntry | None:
        """Return the next helping for this view; None: there is none, or those for the former are still under way.
        `needs` tells whom destinations stand for: messages for different fragments go apart."""
        if view != self._view:
            if self._under_way:
                return None
            self._view, self._sent = view, 0
            self._numbers.clear()
            self._queue.extendleft(reversed(self._void))
            self._void.clear()
        if not self._queue:
            return None
        if len(self._queue[0][2]) > self._whole_max:
            return DataEntry(view, (), self._part())  # for everybody: parts before a join would be lacking after it
        return DataEntry(view, *self._whole(needs))

    def _whole(self, needs: Callable[[Digests], int]) -> tuple[Digests, UnitBody]:
        """Return messages of one class and with equal needs, as many as fit, and what they are for together."""
        queue, room = self._queue, self._room
        delivery_class = class_of(queue[0][1])
        needed = needs(queue[0][3])
        destinations = queue[0][3] if needed != EVERYBODY else ()
        taken: list[Queued] = []
        runs: list[SessionRun] = []
        while queue and len(taken) < MESSAGES_MAX:
            sender, service, data, own = queue[0]
            is_run = bool(runs) and (runs[-1].sender, runs[-1].service) == (sender, service)
            cost = len(data) + LENGTH_SIZE + (0 if is_run else RUN_SIZE)
            if cost > room or class_of(service) is not delivery_class:
                break
            if own != destinations and needs(own) != needed:
                break
            if own != destinations and destinations:
                merged = tuple(sorted({*own, *destinations}))
                if len(merged) > DESTINATIONS_MAX:
                    break
                destinations = merged
            taken.append(queue.popleft())
            room -= cost
            number = self._number(sender)
            if is_run:
                runs[-1] = runs[-1]._replace(messages=runs[-1].messages + 1)
            else:
                runs.append(SessionRun(sender, number, 1, service))
        self._under_way.append(_UnderWay(sum(len(one[2]) + OVERHEAD for one in taken), taken))
        return destinations, UnitBody(tuple(runs), tuple(one[2] for one in taken))

    def _part(self) -> UnitBody:
        """Return the next part of the large message at the head of the queue."""
        sender, service, data, _ = self._queue[0]
        parts = -(-len(data) // self._whole_max)
        part = self._sent
        number = self._number(sender) if part == 0 else self._numbers[sender]
        self._sent += 1
        messages: list[Queued] = []
        if self._sent == parts:
            messages, self._sent = [self._queue.popleft()], 0
        size = sum(len(one[2]) + OVERHEAD for one in messages)
        self._under_way.append(_UnderWay(size, messages))
        chunk = data[part * self._whole_max : (part + 1) * self._whole_max]
        return UnitBody((SessionRun(sender, number, 1, service),), (chunk,), part, parts)

    def _number(self, sender: int) -> int:
        number = self._numbers[sender] = self._numbers.get(sender, 0) + 1
        return number

    def seen(self, *, is_void: bool) -> None:
        """The oldest helping that was under way is on the tape."""
        helping = self._under_way.popleft()
        if is_void:
            self._void += helping.messages
            self.voids += 1
        else:
            self.size -= helping.size
