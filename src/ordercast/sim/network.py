"""A hostile network of one segment: per directed link loss, duplication, delay, order, rate; per host bandwidth; cuts.

Packets of one burst that share a link and a fate travel as one event.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field, replace
from random import Random

from ordercast.model.inputs import Lane
from ordercast.order.catalogue import entry_of
from ordercast.sealing.packet import KEY_AT, SEALED_AT
from ordercast.sim.channel import Channel
from ordercast.sim.options import Delays, SimOptions
from ordercast.sim.topology import Line, Link
from ordercast.wire.head import CLEAR, KIND_AT

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
    line: Line = field(default_factory=Line)  # what this one of several networks has of its own
    segment: int = 0  # whose network it is
    is_calm: bool = False  # healed for good: no loss, no duplicates, no stragglers
    witness: Witness | None = None  # told of every packet that will arrive

    # Faults
    sides: dict[int, int] = field(default_factory=dict)  # of a partition, by host; hosts without one share a side
    cuts: set[tuple[int, int]] = field(default_factory=set)  # directed links that are dead
    blocked: set[tuple[int, int]] = field(default_factory=set)  # that carry nothing on the lane of links
    detached: set[int] = field(default_factory=set)  # hosts that have lost their attachment
    deaf: set[int] = field(default_factory=set)  # hosts that receive no data
    tokens_lost_until: int = -1  # while set, tokens vanish
    is_down: bool = False  # it carries nothing
    loss: float = 0.0  # more than the links have by themselves
    delay_ns: int = 0  # likewise
    link_loss: dict[tuple[int, int], float] = field(default_factory=dict)  # likewise, by directed link
    link_delay_ns: dict[tuple[int, int], int] = field(default_factory=dict)  # likewise

    _common: Quality = field(init=False)
    _data_kinds: frozenset[int] = field(init=False)
    _bandwidth: int = field(init=False)
    _exceptions: dict[tuple[int, int], Quality] = field(init=False)
    _channels: dict[tuple[int, int], Channel] = field(init=False)  # of links with a rate
    _free_at: dict[int, int] = field(default_factory=dict)  # when a host's line is free
    _arrived: dict[tuple[int, int, Lane], int] = field(default_factory=dict)  # last arrival on a FIFO link

    def __post_init__(self) -> None:
        self._common = quality_of(self.options, line=self.line)
        self._data_kinds = entry_of(self.options.engine).traffic.data
        links = {
            (link.source, link.target): link
            for link in self.options.links
            if link.segment is None or link.segment == self.segment
        }
        self._exceptions = {pair: quality_of(self.options, link, self.line) for pair, link in links.items()}
        self._channels = {pair: Channel(link.rate, link.queue) for pair, link in links.items() if link.rate}
        self._bandwidth = self.options.bandwidth if self.line.bandwidth is None else self.line.bandwidth

    # Faults

    def partition(self, groups: Iterable[Iterable[int]]) -> None:
        """Hosts hear those of their own group alone, hosts of no group each other. Cuts before this are forgotten."""
        self.sides = {node: index for index, group in enumerate(groups) for node in group}
        self.cuts.clear()

    def is_cut(self, source: int, target: int) -> bool:
        """Whether nothing passes from one host to the other."""
        sides = self.sides
        return (
            self.is_down
            or (source, target) in self.cuts
            or (bool(sides) and sides.get(source, -1) != sides.get(target, -1))
            or (bool(self.detached) and (source in self.detached or target in self.detached))
        )

    def mend(self, links: Iterable[tuple[int, int]]) -> None:
        """These links work again, unless a partition is between their hosts."""
        for link in links:
            self.cuts.discard(link)
            self.blocked.discard(link)
            self.link_loss.pop(link, None)
            self.link_delay_ns.pop(link, None)

    def heal(self) -> None:
        for faults in (
            self.sides,
            self.cuts,
            self.blocked,
            self.detached,
            self.deaf,
            self.link_loss,
            self.link_delay_ns,
        ):
            faults.clear()
        self.is_down = False
        self.loss = 0.0
        self.delay_ns = 0

    # Packets

    def unicast(self, source: int, target: int, packet: bytes, now: int) -> None:
        """One packet on the token lane."""
        if now >= self.tokens_lost_until:
            self.carry(source, target, Lane.TOKEN, [packet], now)

    def carry(self, source: int, target: int, lane: Lane, packets: list[bytes], now: int) -> None:
        """A burst for one host, over the link to it."""
        if not self._bandwidth:
            self._send(source, target, lane, packets, now)
            return
        for packet in packets:
            self._send(source, target, lane, [packet], self._transmitted(source, packet, now))

    def broadcast(self, source: int, targets: Iterable[int], packets: list[bytes], now: int) -> None:
        if not self.line.multicast:
            return
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
        if self.is_down or (source, target) in self.cuts:
            return
        if (self.sides or self.detached) and self.is_cut(source, target):
            return
        if lane is Lane.LINK and (source, target) in self.blocked:
            return
        if lane is Lane.DATA and target in self.deaf:
            # Control messages still arrive.
            packets = [packet for packet in packets if _kind_of(packet) not in self._data_kinds]
        channel = self._channels.get((source, target)) if self._channels else None
        if channel is None:
            self._travel(source, target, lane, packets, now)
            return
        for packet in packets:
            departure = channel.departure(len(packet), now)
            if departure is not None:
                self._travel(source, target, lane, [packet], departure)

    def _travel(self, source: int, target: int, lane: Lane, packets: list[bytes], now: int) -> None:
        """Their last bit has left; what becomes of them on the way is drawn."""
        link = source, target
        quality = self._exceptions.get(link, self._common) if self._exceptions else self._common
        if not (self.is_calm or quality.is_clean):
            packets = self._fates(source, target, lane, packets, now, quality)
        if self.loss:
            packets = [packet for packet in packets if self.rng.random() >= self.loss]
        if self.link_loss and (loss := self.link_loss.get(link, 0.0)):
            packets = [packet for packet in packets if self.rng.random() >= loss]
        if packets:
            if self.witness is not None:
                self.witness(target, packets)
            arrival = now + self._delay(quality) + self.delay_ns
            arrival += self.link_delay_ns.get(link, 0) if self.link_delay_ns else 0
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
        """Return the packets that travel normally; lost ones are gone, copies and stragglers are scheduled by
        themselves."""
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


def _kind_of(packet: bytes) -> int:
    """Return the kind of a packet; sealed ones hide nothing in a simulation."""
    return packet[KIND_AT if packet[KEY_AT] == CLEAR else SEALED_AT]
