"""What waits to be sent on a ring in a network of rings: what is carried from other rings and control first, and what
the users of this process send.

Carried packets and control never stop, or rings would hold each other up in a circle; users do, while somebody asks for
it (`is_held`). Both are numbered by ticks that a bound in stable storage covers, so both wait for that.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from ordercast.model.ids import ProcessId, Seq
from ordercast.order.clock import Clock
from ordercast.order.outbox import Outbox
from ordercast.wire.header import EXTENDED, SAFE, SHORT_BLOCK, Heading
from ordercast.wire.run import Load, PacketRun, RawRun, build_raw, build_runs

BLOCK_SIZE_MAX = 35  # what a gateway writes before the descriptors of a packet that it carries
CONTROL_SENDER = 0xFFFFFFFF  # no client has this number: what it sends is the network's own
NATIVE_BLOCK = b"\x01"  # of packets that say nothing but what is in every header: its own size


@dataclass(frozen=True, slots=True)
class Freight:
    """Something that takes packets of its own on a ring, one or, if it is large, several."""

    runs: Sequence[RawRun]
    is_local: bool = False  # it means nothing on another ring: it is thrown away with the one that it was meant for
    is_divisible: bool = False  # each packet stands for itself; otherwise a ring has nothing of it before the last

    @property
    def count(self) -> int:
        """How many packets."""
        return sum(len(run.payloads) for run in self.runs)

    @property
    def size(self) -> int:
        return sum(run.size for run in self.runs)

    def between(self, start: int, stop: int) -> list[RawRun]:
        """Return some of the packets."""
        found: list[RawRun] = []
        for run in self.runs:
            count = len(run.payloads)
            if start < count and stop > 0:
                found.append(run if start <= 0 and stop >= count else run.between(max(start, 0), stop))
            start, stop = start - count, stop - count
        return found


class TwoQueues(Outbox):
    """The natives of an `Outbox`, and freight before them."""

    __slots__ = ("_clock", "_freight", "_freight_packets", "_sent", "freight_size", "is_held")

    def __init__(self, body_size_max: int, clock: Clock) -> None:
        """`body_size_max` is a ring's that stands alone. Packets leave room for what a gateway writes before the
        descriptors; one with a single large message need not, since gateways can carry it as an item of control."""
        super().__init__(
            body_size_max - BLOCK_SIZE_MAX,
            lone_size_max=body_size_max - len(NATIVE_BLOCK),
            part_size_max=body_size_max - SHORT_BLOCK,
        )
        self._clock = clock
        self._freight: deque[Freight] = deque()
        self._freight_packets = 0  # that wait
        self._sent = 0  # packets of the first that cannot be divided
        self.freight_size = 0  # bytes of it that wait
        self.is_held = False  # users wait

    def __bool__(self) -> bool:
        return bool(self._freight) or super().__bool__()

    @property
    def is_waiting(self) -> bool:
        return bool(self._freight) or (not self.is_held and super().__bool__())

    @property
    def is_ready(self) -> bool:
        return self.is_waiting and self._clock.covers(self._clock.tick + 1)

    def carry(self, freight: Sequence[Freight], *, is_first: bool = False) -> None:
        """Take what goes before everything of users; `is_first`: and before all that waits."""
        begun = [self._freight.popleft()] if is_first and self._sent else []
        self._freight.extendleft(reversed([*begun, *freight])) if is_first else self._freight.extend(freight)
        self._freight_packets += sum(one.count for one in freight)
        self.freight_size += sum(one.size for one in freight)

    @property
    def freight_packets(self) -> int:
        """Packets of freight that wait."""
        return self._freight_packets

    def packets(self) -> int:
        if not self._clock.covers(self._clock.tick + 1):
            return 0
        return self._freight_packets + (0 if self.is_held else super().packets())

    def runs(
        self,
        heading: Heading,
        me: ProcessId,
        first: Seq,
        token_round: int,
        tick: int,
        limit: int,
        natives_max: int | None = None,
    ) -> list[PacketRun]:
        """Return up to `limit` packets, all with one tick, and up to `natives_max` natives. While freight waits, at
        most half of the lower of the two are natives."""
        if not self._clock.covers(tick):
            return []
        natives = 0 if self.is_held else super().packets()
        most = limit if natives_max is None else min(limit, natives_max)
        carried = self._take_freight(limit - min(natives, most // 2))
        runs = build_raw(heading, carried, me, first, token_round, tick) if carried else []
        sent = sum(run.count for run in runs)
        loads = [] if self.is_held else [_as_native(load) for load in self.take(min(limit - sent, most))]
        return runs + build_runs(heading, loads, me, Seq(first + sent), token_round, tick)

    def _take_freight(self, limit: int) -> list[RawRun]:
        taken: list[RawRun] = []
        while self._freight and limit > 0:
            freight, sent = self._freight[0], self._sent
            more, count = freight.between(sent, sent + limit), min(limit, freight.count - sent)
            taken += more
            limit -= count
            self._freight_packets -= count
            self.freight_size -= sum(run.size for run in more)
            self._sent += count
            if self._sent == freight.count:
                self._freight.popleft()
                self._sent = 0
            elif freight.is_divisible:
                self._freight[0] = Freight(freight.between(self._sent, freight.count), is_divisible=True)
                self._sent = 0
        return taken

    def start_over(self) -> int:
        begun = self._sent > 0 and not self._freight[0].is_local
        self._sent = 0
        self._freight = deque(one for one in self._freight if not one.is_local)
        self._freight_packets = sum(one.count for one in self._freight)
        self.freight_size = sum(one.size for one in self._freight)
        return begun + super().start_over()


def _as_native(load: Load) -> Load:
    flags, *rest, block = load
    return (flags | SAFE | EXTENDED, *rest, block or NATIVE_BLOCK)  # type: ignore[return-value]
