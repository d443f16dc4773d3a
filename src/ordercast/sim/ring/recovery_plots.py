"""Plots that aim at recovery: messages beyond a gap, promises of a recovery that fails, packets that come late."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from random import Random
from typing import TYPE_CHECKING

from ordercast.model.configuration import Configuration, ConfigurationKind
from ordercast.model.ids import MILLISECOND, node_of
from ordercast.model.inputs import Lane
from ordercast.model.notes import Occurred, Occurrence
from ordercast.model.service import Service
from ordercast.order.catalogue import entry_of
from ordercast.sim.faults import Fault, FaultKind
from ordercast.sim.plot import APART_NS, PATIENCE_NS, Plot
from ordercast.trace.records import Event, Installed, Noted
from ordercast.wire.head import KIND_AT, transmitter_of
from ordercast.wire.header import ARRIVAL, FLAGS_AT, RECOVERED, RETRANSMITTED, MessageKind

if TYPE_CHECKING:
    from ordercast.sim.world import World

CALM_NS = (2 * MILLISECOND, 25 * MILLISECOND)  # between a configuration of all and the next attempt
MEETING = 0.4  # chance that those who have promised meet others at once


class GapPlot(Plot):
    """One host's packets are lost to some others, who send more, numbered behind; then that host is cut off, with
    those who have its packets. What lies behind the gap is owed among those who are left, if one of them sent it."""

    def __init__(self, world: World, rng: Random) -> None:
        super().__init__(world, rng)
        self._data_kinds = entry_of(world.options.engine).traffic.data
        self._at: dict[int, Configuration] = {}  # the regular configuration of each host
        self._source: int | None = None  # whose packets are lost; None: nothing is under way
        self._left: tuple[int, ...] = ()  # who shall miss them, and go on without that host
        self._lost: dict[tuple[bytes, int], bytes] = {}  # its packets, by kind and ring, and seq
        self._lost_max = 0
        self._attempts = 0

    def observe(self, event: Event) -> None:
        if not isinstance(event, Installed) or event.configuration.kind is not ConfigurationKind.REGULAR:
            return
        self._at[node_of(event.process)] = event.configuration
        are_together = len({one.id for one in self._at.values()}) == 1 and len(self._at) == len(self.everybody)
        if are_together and len(event.configuration.members) == len(self.everybody) and self._source is None:
            self.soon(CALM_NS, self._begin)

    def _begin(self) -> None:
        if self._source is not None:
            return
        rng = self.rng
        others = list(self.everybody)
        rng.shuffle(others)
        self._source = others.pop()
        self._left = tuple(others[: rng.randrange(2, len(others) + 1)])
        self._lost, self._lost_max = {}, rng.choice((1, 1, 2, 100))
        self._attempts += 1
        for _ in range(rng.randrange(1, 4)):
            self.soon((0, self.turns_ns), self._send_first)
        attempt = self._attempts
        self.soon((PATIENCE_NS, PATIENCE_NS + 1), lambda: self._give_up(attempt))

    def _send_first(self) -> None:
        if self._source is not None:
            self.submit(self._source, self.rng.choice((Service.AGREED, Service.SAFE)))

    def _give_up(self, attempt: int) -> None:
        if attempt == self._attempts and not self._lost:
            self._source = None

    def lets(self, target: int, packet: bytes) -> bool:
        if self._source is None or packet[KIND_AT] not in self._data_kinds:
            return True
        *_, flags, _, _, seq = ARRIVAL.unpack_from(packet)
        key = packet[KIND_AT:FLAGS_AT], seq
        is_first = node_of(transmitter_of(packet)) == self._source and not flags & RETRANSMITTED
        if is_first and not self._sides and key not in self._lost and len(self._lost) < self._lost_max:
            self._lost[key] = packet
            if len(self._lost) == 1:
                self._answer()
        return key not in self._lost or target not in self._missing

    @property
    def _missing(self) -> tuple[int, ...]:
        """Who does not get the packets."""
        return self._left

    def _answer(self) -> None:
        """The others send behind the gap, and what was lost is asked for; then they are cut off."""
        for node in self._left:
            for _ in range(self.rng.randrange(1, 3)):
                service = self.rng.choice((Service.SAFE, Service.SAFE, Service.AGREED))
                self.soon((0, self.turns_ns), partial(self.submit, node, service))
        self.soon((2 * self.turns_ns, 4 * self.turns_ns), self._cut_off)

    def _cut_off(self) -> None:
        assert self._source is not None
        self.part(self._left)
        if self.rng.random() < 0.2:
            self._crash(self._source)
        self.soon(APART_NS, self._mend)

    def _crash(self, node: int) -> None:
        now = self.world.now
        self.world.strike_at(now, Fault(now, FaultKind.CRASH, node=node))
        again = now + self.rng.randrange(*APART_NS)
        self.world.strike_at(again, Fault(again, FaultKind.RESTART, node=node))

    def _mend(self) -> None:
        self._sides, self._source = {}, None


class PromisePlot(GapPlot):
    """Adds a failed recovery to the gap: when some have promised, or the first has installed what is left, some are
    cut off again. Whoever meets again has promised to deliver what others sent."""

    def __init__(self, world: World, rng: Random) -> None:
        super().__init__(world, rng)
        self._promised: set[int] = set()
        self._wanted = 0  # so many promises are waited for; 0: for an installation

    def _cut_off(self) -> None:
        super()._cut_off()
        self._promised, self._wanted = set(), self.rng.choice((0, 0, 0, self.rng.randrange(1, len(self._left) + 1)))

    def observe(self, event: Event) -> None:
        super().observe(event)
        if not self._sides or not isinstance(event, Installed | Noted) or node_of(event.process) not in self._left:
            return
        if len(self._left) == 1:
            return  # there is nobody to meet again
        node = node_of(event.process)
        if isinstance(event, Noted):
            if self._wanted and isinstance(event.note, Occurred) and event.note.what is Occurrence.PROMISE_MADE:
                self._promised.add(node)
                if len(self._promised) >= self._wanted:
                    self._cut_again(node)
        elif not self._wanted and _is_of_several(event.configuration):
            self._cut_again(node)

    def _cut_again(self, node: int) -> None:
        """Cut off the one who was first, sometimes with others; sometimes the rest meet those who went before."""
        others = [other for other in self._left if other != node]
        self.rng.shuffle(others)
        count = self.rng.choice((0, 0, 1)) if len(others) > 2 else 0
        leaving, staying = [node, *others[:count]], others[count:]
        if self.rng.random() < MEETING:
            self.part(leaving)
        else:
            self.part(leaving, staying)
        self._left, self._promised, self._wanted = tuple(staying), set(), 0
        self.was_cut_again(staying)

    def was_cut_again(self, staying: Sequence[int]) -> None:
        """These have promised, and meet again."""


class LatePlot(PromisePlot):
    """Adds, to gap and promise, that the packets which all of them lacked reach one of them while they gather."""

    def was_cut_again(self, staying: Sequence[int]) -> None:
        node, packets = self.rng.choice(staying), list(self._lost.values())
        span = (self.world.options.ring.token_loss_ns // 2, 2 * self.world.options.ring.token_loss_ns)
        self.soon(span, lambda: self.world.hosts[node].arrive(Lane.DATA, packets))


class ExchangePlot(GapPlot):
    """Loses the packets to some of those who are left alone, and loses them again, for some rotations, when the others
    send them on the new ring: the exchange is over for these, and not for those."""

    def __init__(self, world: World, rng: Random) -> None:
        super().__init__(world, rng)
        self._until = 0  # the exchange is lost; 0: it has not begun

    @property
    def _missing(self) -> tuple[int, ...]:
        return self._left[1:]

    def _cut_off(self) -> None:
        super()._cut_off()
        self._until = 0

    def lets(self, target: int, packet: bytes) -> bool:
        is_exchange = packet[KIND_AT] == MessageKind.DATA and packet[FLAGS_AT] & RECOVERED
        if is_exchange and self._sides and target in self._missing:
            self._until = self._until or self.world.now + self.rng.randrange(3, 8) * self.turns_ns
            return self.world.now > self._until
        return super().lets(target, packet)


def _is_of_several(configuration: Configuration) -> bool:
    return configuration.kind is ConfigurationKind.REGULAR and len(configuration.members) > 1
