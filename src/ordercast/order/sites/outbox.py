"""Messages that wait to be sent in a view, and those that are under way to the own ring's tape.

The ring gets them in small helpings, each marked with the view that it is for. One that the ring numbers when that
view is over is *void* at everybody: its originator, who sees it on the tape, sends its messages again in the next view,
before all later ones.

Messages that fill no packet go together, as many as one has room for. Larger ones go together in units of several
packets, which the ring takes apart: a unit goes from link to link as a whole. A *large* message goes in parts of that
size; if its last part is void it starts over.

Messages wait in lots, as in the ring's own outbox, with their destinations as the block; entries that are alike are
laid many at a time (`runs.py`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from operator import is_not

from ordercast.model.errors import UsageError
from ordercast.model.inputs import Submission, Submissions
from ordercast.model.service import Service
from ordercast.order.membership.frame import SENDER_MAX
from ordercast.order.outbox import GONE_MAX, OVERHEAD, Lot, lots_from
from ordercast.order.sites.codec import encode
from ordercast.order.sites.frames import DataEntry
from ordercast.order.sites.interest import DESTINATIONS_MAX, Digests, digests_of, packed, unpacked
from ordercast.order.sites.promised import SERVICES
from ordercast.order.sites.runs import EntryRun, build_entries
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

GONE_SIZE_MAX = 1 << 20  # bytes of messages of a lot that are gone and still held
UNIT_PACKETS = 8  # that one unit takes at most
PARTS_MAX = 0xFFFF  # of a large message
UNIT_MAX = 60_000  # bytes of a message in it, likewise: its length has two bytes


def queued_from(one: Submission | Submissions, size_max: int) -> list[Lot]:
    """Return messages as they wait; UsageError for what cannot be served."""
    if one.service not in SERVICES:
        raise UsageError(f"the engine 'sites' does not serve {Service(one.service).name} messages")
    if not 0 <= one.sender <= SENDER_MAX:
        raise UsageError(f"sender {one.sender} is not a 32-bit number")
    payloads = [one.data] if isinstance(one, Submission) else one.payloads
    lots = lots_from(payloads, int(one.service), one.sender, packed(digests_of(one.destinations)))
    if (largest := max((lot.length for lot in lots), default=0)) > size_max:
        raise UsageError(f"a message of {largest} bytes exceeds message_size_max = {size_max}")
    return lots


def everybody(destinations: Digests) -> int:
    """Everything is for everybody."""
    return EVERYBODY


@dataclass(slots=True)
class _UnderWay:
    """Helpings that were given to the ring, in a row."""

    entries: int
    each: int  # messages that one completes, if there are several
    packets: int  # of the ring that one takes
    lots: list[Lot]  # the messages that they complete
    said: EntryRun | None = None  # what they say, if they are alike
    laid: Sequence[bytes] = ()  # as the ring got them, likewise

    def seen(self, count: int) -> list[Lot]:
        """Return what the first of the entries complete, which are under way no more."""
        self.entries -= count
        if not self.entries:
            return self.lots
        (lot,) = self.lots
        before = lot.at
        lot.at += count * self.each
        return [Lot(lot.sender, lot.length, lot.service, lot.payloads[before : lot.at], lot.block)]


class WideOutbox:
    def __init__(self, body_max: int) -> None:
        """`body_max` bytes of a body fit in a packet, on its own ring and carried on others."""
        self._room = body_max - BODY_HEAD_SIZE
        self._whole_max = self._room - RUN_SIZE - LENGTH_SIZE
        self._unit_max = max(self._whole_max, min(UNIT_PACKETS * self._whole_max, UNIT_MAX))
        self.message_max = PARTS_MAX * max(0, self._unit_max)  # bytes of a message, at most
        self._queue: deque[Lot] = deque()
        self._under_way: deque[_UnderWay] = deque()
        self._void: list[Lot] = []  # to be sent again
        self._view = b""  # that the helpings under way are for
        self._numbers: dict[int, int] = {}  # of sessions in that view
        self._sent = 0  # parts of the large message at the head of the queue
        self.under_way = 0  # packets of helpings
        self.size = 0  # bytes of all, overhead included
        self.voids = 0  # helpings that were void; whoever takes the number resets it

    def __bool__(self) -> bool:
        return bool(self._queue or self._under_way or self._void)

    @property
    def is_waiting(self) -> bool:
        """Whether something is here that was not given to the ring."""
        return bool(self._queue)

    def add(self, lots: Iterable[Lot]) -> None:
        for lot in lots:
            self.size += (lot.length + OVERHEAD) * lot.left
            if self._queue and self._queue[-1].is_like(lot):
                self._queue[-1].payloads += lot.payloads
            else:
                self._queue.append(lot)

    def next(self, view: bytes, limit: int = 1, needs: Callable[[Digests], int] = everybody) -> list[bytes]:
        """Return helpings for this view, as many as take up to `limit` packets, or one; none: there are none, or those
        for the former are still under way. `needs` tells whom destinations stand for: messages for different fragments
        go apart."""
        if view != self._view:
            if self._under_way:
                return []
            self._view, self._sent = view, 0
            self._numbers.clear()
            self._queue.extendleft(reversed(self._void))
            self._void.clear()
        if not self._queue:
            return []
        lot = self._queue[0]
        if lot.length > self._unit_max:  # for everybody: parts before a join would be lacking after it
            return [encode(DataEntry(view, (), self._part(lot)))]
        if lot.length > self._whole_max:
            room = min(self._unit_max, limit * self._whole_max)
            each = max(1, min(lot.left, room // (lot.length + LENGTH_SIZE)))
            count = min(lot.left // each, limit // self._packets(lot.length, each))
            return self._alike(lot, each, count or 1, needs)
        each = min(MESSAGES_MAX, (self._room - RUN_SIZE) // (lot.length + LENGTH_SIZE))
        count = min(limit, lot.left // each)
        return self._alike(lot, each, count, needs) if count else [encode(DataEntry(view, *self._whole(needs)))]

    def _alike(self, lot: Lot, each: int, count: int, needs: Callable[[Digests], int]) -> list[bytes]:
        """Return full entries of the first lot."""
        destinations = _narrow(unpacked(lot.block), needs)
        number = self._number(lot.sender, count * each)
        payloads = lot.payloads[lot.at : lot.at + count * each]
        run = SessionRun(lot.sender, number, count * each, lot.service)
        said = EntryRun(self._view, destinations, run, each, payloads)
        laid = build_entries(said)
        lots = [Lot(lot.sender, lot.length, lot.service, payloads, lot.block)]
        self._leave(_UnderWay(count, each, self._packets(lot.length, each), lots, said, laid))
        self._pass(lot, count * each)
        return laid

    def given(self, entries: Sequence[bytes]) -> EntryRun | None:
        """Return what the first of these entries say, as far as they are the very ones that were given to the ring and
        come next: whoever has laid them need not read them. None: they have to be read."""
        oldest = self._under_way[0] if self._under_way else None
        if oldest is None or oldest.said is None:
            return None
        said, laid = oldest.said, oldest.laid
        begin = len(laid) - oldest.entries  # those before were seen
        count = min(oldest.entries, len(entries))
        if any(map(is_not, entries[:count], laid[begin : begin + count])):
            return None
        return said if count == len(laid) else said.between(begin, begin + count)

    def _whole(self, needs: Callable[[Digests], int]) -> tuple[Digests, UnitBody]:
        """Return messages of one class and with equal needs, as many as fit, and what they are for together."""
        queue, room = self._queue, self._room
        delivery_class = class_of(queue[0].service)
        needed = needs(unpacked(queue[0].block))
        destinations = _narrow(unpacked(queue[0].block), needs)
        runs: list[SessionRun] = []
        lots: list[Lot] = []
        left = MESSAGES_MAX
        while queue and left:
            lot = queue[0]
            is_run = bool(runs) and (runs[-1].sender, runs[-1].service) == (lot.sender, lot.service)
            head = 0 if is_run else RUN_SIZE
            count = min(lot.left, left, (room - head) // (lot.length + LENGTH_SIZE))
            if count < 1 or class_of(lot.service) is not delivery_class:
                break
            own = unpacked(lot.block)
            merged = tuple(sorted({*own, *destinations})) if destinations else ()
            if needs(own) != needed or len(merged) > DESTINATIONS_MAX:
                break
            destinations = merged
            room -= head + count * (lot.length + LENGTH_SIZE)
            left -= count
            number = self._number(lot.sender, count)
            if is_run:
                runs[-1] = runs[-1]._replace(messages=runs[-1].messages + count)
            else:
                runs.append(SessionRun(lot.sender, number, count, lot.service))
            lots.append(replace(lot, payloads=lot.payloads[lot.at : lot.at + count], at=0))
            self._pass(lot, count)
        self._leave(_UnderWay(1, 0, 1, lots))
        return destinations, UnitBody(tuple(runs), tuple(data for lot in lots for data in lot.payloads))

    def _part(self, lot: Lot) -> UnitBody:
        """Return the next part of the large message at the head of the queue."""
        data, sender = lot.payloads[lot.at], lot.sender
        parts = -(-len(data) // self._unit_max)
        part = self._sent
        number = self._number(sender, 1) if part == 0 else self._numbers[sender]
        self._sent += 1
        lots: list[Lot] = []
        if self._sent == parts:
            lots, self._sent = [replace(lot, payloads=[data], at=0)], 0
            self._pass(lot, 1)
        chunk = data[part * self._unit_max : (part + 1) * self._unit_max]
        self._leave(_UnderWay(1, 0, self._packets(len(chunk)), lots))
        return UnitBody((SessionRun(sender, number, 1, lot.service),), (chunk,), part, parts)

    def _pass(self, lot: Lot, count: int) -> None:
        """These messages of the first lot are under way."""
        lot.at += count
        if not lot.left:
            self._queue.popleft()
        elif lot.at > GONE_MAX or lot.at * lot.length > GONE_SIZE_MAX:
            del lot.payloads[: lot.at]
            lot.at = 0

    def _packets(self, size: int, each: int = 1) -> int:
        """Return how many packets of the ring a unit of so many messages of this size takes."""
        room = self._room - RUN_SIZE
        return max(1, -(-each * (size + LENGTH_SIZE) // room))

    def _leave(self, given: _UnderWay) -> None:
        self._under_way.append(given)
        self.under_way += given.entries * given.packets

    def _number(self, sender: int, count: int) -> int:
        """Return the number of the first of so many messages."""
        before = self._numbers.get(sender, 0)
        self._numbers[sender] = before + count
        return before + 1

    def seen(self, count: int = 1, *, is_void: bool) -> None:
        """So many of the helpings that were under way, the oldest, are on the tape. What comes there in this process's
        name when none is under way was forged."""
        while count and self._under_way:
            oldest = self._under_way[0]
            entries = min(count, oldest.entries)
            count -= entries
            self.under_way -= entries * oldest.packets
            lots = oldest.seen(entries)
            if not oldest.entries:
                self._under_way.popleft()
            if is_void:
                self._void += lots
                self.voids += entries
            else:
                self.size -= sum((lot.length + OVERHEAD) * lot.left for lot in lots)


def _narrow(destinations: Digests, needs: Callable[[Digests], int]) -> Digests:
    """Return destinations, or none if everybody is meant anyway."""
    return destinations if needs(destinations) != EVERYBODY else ()
