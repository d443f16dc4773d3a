"""The hostile network: per directed link loss, duplication, delay, order; per host bandwidth; cuts.

Packets of one broadcast that share a link and a fate travel as one event.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field, replace
from random import Random

from ordercast.model.inputs import Lane
from ordercast.order.ring.traffic import RING_TRAFFIC
from ordercast.sim.options import Delays, Line, Link, SimOptions
from ordercast.wire.head import KIND_AT

STRAGGLER_FACTOR = 10
_STRAGGLE_NS = 5_000_000
_EXCEPTED = frozenset({"loss", "duplication", "straggler", "delay_min_ns", "delay_max_ns"})

# Called as schedule(time, source, target, lane, packets).
Schedule = Callable[[int, int, int, Lane, list[bytes]], None]

# Called as witness(target, packets) with what is on its way and will not be lost any more but at the receiver.
Witness = Callable[[int, list[bytes]], None]


@dataclass(frozen=True, slots=True)
class Quality:
    """What a packet has to expect on one link."""

    loss: float
    duplication: float
    straggler: float
    ghost: float
    delay_min_ns: int
    delay_max_ns: int

    @property
    def is_clean(self) -> bool:
        """Nothing but delay."""
        return not (self.loss or self.duplication or self.straggler or self.ghost)


def quality_of(options: SimOptions, link: Link | None = None, line: Line | None = None) -> Quality:
    """The common one, or that of one of several networks, or of a link with exceptions."""
    line = line or Line()
    common = Quality(
        options.loss if line.loss is None else line.loss,
        options.duplication,
        options.straggler,
        options.ghost,
        options.delay_min_ns if line.delay_min_ns is None else line.delay_min_ns,
        options.delay_max_ns if line.delay_max_ns is None else line.delay_max_ns,
    )
    if link is None:
        return common
    stated = {key: value for key, value in asdict(link).items() if value is not None and key in _EXCEPTED}
    return replace(common, **stated)


@dataclass(slots=True)
class Network:
    options: SimOptions
    rng: Random
    schedule: Schedule
    blocked: set[tuple[int, int]] = field(default_factory=set)  # directed links that are cut
    deaf: set[int] = field(default_factory=set)  # hosts that receive no data
    tokens_lost_until: int = -1  # while set, tokens vanish
    is_calm: bool = False  # healed for good: no loss, no duplicates, no stragglers
    line: Line = field(default_factory=Line)  # what this one of several networks has of its own
    is_down: bool = False  # it carries nothing
    loss: float = 0.0  # more than the links have by themselves
    delay_ns: int = 0  # likewise
    witness: Witness | None = None  # told of every packet that will arrive
    _common: Quality = field(init=False)
    _bandwidth: int = field(init=False)
    _exceptions: dict[tuple[int, int], Quality] = field(init=False)
    _free_at: dict[int, int] = field(default_factory=dict)  # when a host's line is free
    _arrived: dict[tuple[int, int, Lane], int] = field(default_factory=dict)  # last arrival on a FIFO link

    def __post_init__(self) -> None:
        self._common = quality_of(self.options, line=self.line)
        self._exceptions = {
            (link.source, link.target): quality_of(self.options, link, self.line) for link in self.options.links
        }
        self._bandwidth = self.options.bandwidth if self.line.bandwidth is None else self.line.bandwidth

    def partition(self, groups: Iterable[Iterable[int]]) -> None:
        side = {node: index for index, group in enumerate(groups) for node in group}
        nodes = range(self.options.nodes)
        self.blocked = {(a, b) for a in nodes for b in nodes if side.get(a, -1) != side.get(b, -1)}

    def heal(self) -> None:
        self.blocked.clear()
        self.deaf.clear()
        self.is_down = False
        self.loss = 0.0
        self.delay_ns = 0

    def unicast(self, source: int, target: int, packet: bytes, now: int) -> None:
        if now < self.tokens_lost_until:
            return
        departure = self._transmitted(source, packet, now) if self._bandwidth else now
        self._send(source, target, Lane.TOKEN, [packet], departure)

    def broadcast(self, source: int, targets: Iterable[int], packets: list[bytes], now: int) -> None:
        if self._bandwidth:
            targets = list(targets)
            for packet in packets:
                departure = self._transmitted(source, packet, now)
                for target in targets:
                    self._send(source, target, Lane.DATA, [packet], departure)
            return
        for target in targets:
            self._send(source, target, Lane.DATA, packets, now)

    def _transmitted(self, source: int, packet: bytes, now: int) -> int:
        """When the last bit has left the host."""
        departure = max(now, self._free_at.get(source, 0)) + len(packet) * 8 * 1_000_000_000 // self._bandwidth
        self._free_at[source] = departure
        return departure

    def _send(self, source: int, target: int, lane: Lane, packets: list[bytes], now: int) -> None:
        link = source, target
        if link in self.blocked or self.is_down:
            return
        if lane is Lane.DATA and target in self.deaf:
            # Control messages still arrive.
            packets = [packet for packet in packets if packet[KIND_AT] not in RING_TRAFFIC.data]
        quality = self._exceptions.get(link, self._common) if self._exceptions else self._common
        if not (self.is_calm or quality.is_clean):
            packets = self._fates(source, target, lane, packets, now, quality)
        if self.loss:
            packets = [packet for packet in packets if self.rng.random() >= self.loss]
        if packets:
            if self.witness is not None:
                self.witness(target, packets)
            arrival = now + self._delay(quality) + self.delay_ns
            if self.options.is_fifo:
                key = (source, target, lane)
                arrival = max(arrival, self._arrived.get(key, 0))
                self._arrived[key] = arrival
            self.schedule(arrival, source, target, lane, packets)

    def _delay(self, quality: Quality) -> int:
        smallest, largest = quality.delay_min_ns, quality.delay_max_ns
        if self.options.delays is Delays.UNIFORM:
            return self.rng.randrange(smallest, largest + 1)
        mean = max(1, (largest - smallest) // 2)
        return min(smallest + int(self.rng.expovariate(1 / mean)), STRAGGLER_FACTOR * largest)

    def _fates(
        self, source: int, target: int, lane: Lane, packets: list[bytes], now: int, quality: Quality
    ) -> list[bytes]:
        """Those that travel normally; lost ones are gone, copies and stragglers are scheduled by themselves."""
        rng = self.rng
        normal: list[bytes] = []
        for packet in packets:
            if rng.random() < quality.loss:
                continue
            if rng.random() < quality.duplication:
                self.schedule(now + self._straggle(quality), source, target, lane, [packet])
            if rng.random() < quality.ghost:
                self.schedule(now + rng.randrange(1, self.options.ghost_ns), source, target, lane, [packet])
            elif rng.random() < quality.straggler:
                self.schedule(now + self._straggle(quality), source, target, lane, [packet])
            else:
                normal.append(packet)
        return normal

    def _straggle(self, quality: Quality) -> int:
        slowest = quality.delay_max_ns * STRAGGLER_FACTOR
        return self.rng.randrange(quality.delay_max_ns, max(slowest, _STRAGGLE_NS))
