"""Messages accepted and not yet numbered; packs them into the bodies of packets.

Small messages share a packet as long as they ask for the same delivery class (safe or not), so that a whole packet is
deliverable or not, and have the same block before them, if an enclosing engine wants blocks. A message that does not
fit is sent in parts, and packets of other senders go in between. Order is kept per sender: whatever a sender submits
after a large message waits until its last part has been numbered, so that at most one message of each sender is in
parts at any time, and (originator, sender) names it.

Messages wait in lots: those in a row that are alike. Whole packets are cut from a lot at once, so that many small
messages cost hardly more than their bytes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from ordercast.model.service import Service
from ordercast.wire.header import COUNT_MAX, DESCRIPTOR_SIZE, SAFE, parts_in_a_row
from ordercast.wire.run import Load

OVERHEAD = 64  # what a queued message costs beside its bytes, so that empty ones are bounded too
GONE_MAX = 1024  # messages of a lot that are gone and still held
_SAFE_SERVICE = int(Service.SAFE)


@dataclass(slots=True)
class Lot:
    """Messages of one sender, one length, one service and one block, in order."""

    sender: int
    length: int
    service: int
    payloads: list[bytes]
    block: bytes = b""  # goes before the descriptors
    at: int = 0  # those before it are gone

    @property
    def left(self) -> int:
        return len(self.payloads) - self.at

    def is_like(self, other: Lot) -> bool:
        mine, theirs = (self.length, self.sender, self.service), (other.length, other.sender, other.service)
        return mine == theirs and self.block == other.block


def lots_from(payloads: Iterable[bytes], service: int, sender: int, block: bytes = b"") -> list[Lot]:
    """Return the lots of messages that were submitted together."""
    payloads = list(payloads)
    lengths = list(map(len, payloads))
    if payloads and lengths.count(lengths[0]) == len(lengths):
        return [Lot(sender, lengths[0], service, payloads, block)]
    return [Lot(sender, length, service, list(group), block) for length, group in groupby(payloads, len)]


@dataclass(slots=True)
class _Large:
    """A message that is being sent in parts. They have no block of their own, and go everywhere: whoever begins to
    want such messages between two of its parts has to have all of them."""

    data: bytes
    service: int
    sent: int = 0
    waiting: deque[Lot] = field(default_factory=deque)  # later ones of the same sender


class Outbox:
    __slots__ = (
        "_body_max",
        "_each_max",
        "_large",
        "_lone_max",
        "_part_max",
        "_queue",
        "_sole",
        "_turn_of_large",
        "size",
    )

    def __init__(
        self, body_size_max: int, *, lone_size_max: int = 0, part_size_max: int = 0, each_max: int = COUNT_MAX
    ) -> None:
        """`lone_size_max` is the body of a packet with a single message, less what its block has beside one byte, if it
        may be larger than that of others; `part_size_max` that of one with a part of a message; `each_max` messages may
        share a packet."""
        self._body_max = body_size_max
        self._each_max = each_max
        self._lone_max = min(max(body_size_max, lone_size_max) - DESCRIPTOR_SIZE, 0xFFFF)
        self._part_max = min(max(body_size_max, part_size_max) - DESCRIPTOR_SIZE, 0xFFFF)
        self._queue: deque[Lot] = deque()
        self._sole: int | None = None  # the sender of all that is in the queue; None: there may be several
        self._large: dict[int, _Large] = {}  # by sender, in turn
        self._turn_of_large = True
        self.size = 0  # bytes held, overhead included

    def __bool__(self) -> bool:
        return bool(self._queue or self._large)

    @property
    def is_waiting(self) -> bool:
        """Something is to be sent as soon as possible."""
        return bool(self)

    @property
    def is_ready(self) -> bool:
        """Something may be sent now."""
        return bool(self)

    def add(self, lots: Sequence[Lot], size: int) -> None:
        """Take messages whose `cost` is `size`."""
        queue = self._queue
        for lot in lots:
            if not queue:
                self._sole = lot.sender
            elif queue[-1].is_like(lot):
                queue[-1].payloads += lot.payloads
                continue
            elif lot.sender != self._sole:
                self._sole = None
            queue.append(lot)
        self.size += size

    def packets(self) -> int:
        """How many packets it would take to send all, more or less."""
        return -(-self.size // self._body_max)

    def has_at_most(self, packets: int) -> bool:
        """Tell whether what waits takes at most so many packets, and is not the rest of a large message."""
        return self.packets() <= packets and not any(large.sent for large in self._large.values())

    def take(self, limit: int) -> list[Load]:
        """Up to `limit` packets. What is taken is gone, except that a large message stays until its last part."""
        if limit > 0 and len(self._queue) == 1 and not self._large and (lone := self._only()) is not None:
            return [lone]
        loads: list[Load] = []
        while limit > 0 and (self._queue or self._large):
            if self._large and (self._turn_of_large or not self._queue):
                load = self._next_parts(limit if len(self._large) == 1 and not self._queue else 1)
                self._turn_of_large = False
            else:
                self._turn_of_large = True
                self._set_aside()
                if not self._queue:
                    continue
                load = self._next_small(1 if self._large else limit)
            loads.append(load)
            limit -= len(load[4]) // len(load[1])
        return loads

    def _only(self) -> Load | None:
        """Return the one packet that holds all there is, as after a pause; None when there is more. It is the packet
        that `_next_small` would bring."""
        lot = self._queue[0]
        length, block = lot.length, lot.block
        count = lot.left
        fits = count * (length + DESCRIPTOR_SIZE) <= self._body_max and count <= self._each_max
        if not fits or length + len(block[1:]) > self._lone_max:
            return None
        payloads = lot.payloads[lot.at :] if lot.at else lot.payloads
        self._queue.clear()
        self._turn_of_large = True
        self.size -= count * (length + OVERHEAD)
        flags = SAFE if lot.service == _SAFE_SERVICE else 0
        return flags, (lot.sender,) * count, (length,) * count, (lot.service,) * count, payloads, b"", block

    def start_over(self) -> int:
        """The configuration ended: messages whose last part was not numbered start over. Return how many."""
        begun = [large for large in self._large.values() if large.sent]
        for large in begun:
            large.sent = 0
        return len(begun)

    def _set_aside(self) -> None:
        """Begin a large message at the head of the queue; move what must wait for a large one behind it. What is all of
        one sender is moved as a whole: otherwise many messages just larger than a packet would cost each other."""
        while self._queue:
            lot = self._queue[0]
            large = self._large.get(lot.sender)
            if large is not None and lot.sender == self._sole:
                large.waiting, self._queue = _joined(large.waiting, self._queue), deque()
            elif large is not None:
                large.waiting.append(self._queue.popleft())
            elif lot.length + len(lot.block[1:]) > self._lone_max:
                self._large[lot.sender] = _Large(lot.payloads[lot.at], lot.service)
                self._pass(lot, 1)
            else:
                return

    def _pass(self, lot: Lot, count: int) -> None:
        """These messages of the first lot are gone."""
        lot.at += count
        if lot.at == len(lot.payloads):
            self._queue.popleft()
        elif lot.at > GONE_MAX:
            del lot.payloads[: lot.at]
            lot.at = 0

    def _next_small(self, limit: int) -> Load:
        """Packets of whole messages; the first lot has some."""
        lot = self._queue[0]
        each = max(1, min(self._each_max, self._body_max // (lot.length + DESCRIPTOR_SIZE)))
        count = min(limit, lot.left // each)
        if not count:
            return self._mixed()
        payloads = lot.payloads[lot.at : lot.at + count * each]
        self.size -= count * each * (lot.length + OVERHEAD)
        flags = SAFE if lot.service == _SAFE_SERVICE else 0
        load = flags, (lot.sender,) * each, (lot.length,) * each, (lot.service,) * each, payloads, b"", lot.block
        self._pass(lot, count * each)
        return load

    def _mixed(self) -> Load:
        """One packet, filled from several lots."""
        queue, room = self._queue, self._body_max
        safe, block = queue[0].service == _SAFE_SERVICE, queue[0].block
        senders: list[int] = []
        lengths: list[int] = []
        services: list[int] = []
        payloads: list[bytes] = []
        while queue and len(payloads) < self._each_max:
            lot = queue[0]
            count = min(lot.left, room // (lot.length + DESCRIPTOR_SIZE), self._each_max - len(payloads))
            if not count or (lot.service == _SAFE_SERVICE) is not safe or lot.sender in self._large:
                break
            if lot.block != block:
                break
            room -= count * (lot.length + DESCRIPTOR_SIZE)
            senders += (lot.sender,) * count
            lengths += (lot.length,) * count
            services += (lot.service,) * count
            payloads += lot.payloads[lot.at : lot.at + count]
            self._pass(lot, count)
        self.size -= sum(lengths) + OVERHEAD * len(payloads)
        return SAFE if safe else 0, tuple(senders), tuple(lengths), tuple(services), payloads, b"", block

    def _next_parts(self, limit: int) -> Load:
        """The next parts of the large message whose turn it is. All are equally long but the last, which is a little
        shorter and will be padded: so they travel well together."""
        sender, large = next(iter(self._large.items()))
        del self._large[sender]
        length = len(large.data)
        total = -(-length // self._part_max)
        size = -(-length // total)
        first = large.sent // size
        end = min(first + limit, total)
        chunks = [large.data[at * size : (at + 1) * size] for at in range(first, end)]
        parts = parts_in_a_row(total)[first:end]
        large.sent = min(end * size, length)
        if end == total:
            self.size -= length + OVERHEAD
            if not self._queue or self._sole == sender:
                self._queue, self._sole = _joined(large.waiting, self._queue), sender
            elif large.waiting:
                self._queue.extendleft(reversed(large.waiting))
                self._sole = None
        else:
            self._large[sender] = large  # behind the others: they take turns
        return SAFE if large.service == _SAFE_SERVICE else 0, (sender,), (size,), (large.service,), chunks, parts, b""


def _joined(first: deque[Lot], others: deque[Lot]) -> deque[Lot]:
    """Return all lots in one; nothing is done for each of the first."""
    if not first:
        return others
    first += others
    return first


def cost(lots: Iterable[Lot]) -> int:
    """Return how much room these messages take."""
    size = 0
    for lot in lots:
        size += (lot.length + OVERHEAD) * (len(lot.payloads) - lot.at)
    return size
