"""The hostile network: per directed link loss, duplication, delay, order; per host bandwidth; cuts.

Packets of one broadcast that share a link and a fate travel as one event.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from random import Random

from ordercast.model.inputs import Lane
from ordercast.sim.options import SimOptions

STRAGGLER_FACTOR = 10
_STRAGGLE_NS = 5_000_000

# Called as schedule(time, source, target, lane, packets).
Schedule = Callable[[int, int, int, Lane, list[bytes]], None]


@dataclass(slots=True)
class Network:
    options: SimOptions
    rng: Random
    schedule: Schedule
    blocked: set[tuple[int, int]] = field(default_factory=set)  # directed links that are cut
    deaf: set[int] = field(default_factory=set)  # hosts that receive no data
    tokens_lost_until: int = -1  # while set, tokens vanish
    is_calm: bool = False  # healed for good: no loss, no duplicates, no stragglers
    _free_at: dict[int, int] = field(default_factory=dict)  # when a host's line is free
    _arrived: dict[tuple[int, int, Lane], int] = field(default_factory=dict)  # last arrival on a FIFO link

    def partition(self, groups: Iterable[Iterable[int]]) -> None:
        side = {node: index for index, group in enumerate(groups) for node in group}
        nodes = range(self.options.nodes)
        self.blocked = {(a, b) for a in nodes for b in nodes if side.get(a, -1) != side.get(b, -1)}

    def heal(self) -> None:
        self.blocked.clear()
        self.deaf.clear()

    def unicast(self, source: int, target: int, packet: bytes, now: int) -> None:
        if now < self.tokens_lost_until:
            return
        departure = self._transmitted(source, packet, now) if self.options.bandwidth else now
        self._send(source, target, Lane.TOKEN, [packet], departure)

    def broadcast(self, source: int, targets: Iterable[int], packets: list[bytes], now: int) -> None:
        if self.options.bandwidth:
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
        departure = max(now, self._free_at.get(source, 0)) + len(packet) * 8 * 1_000_000_000 // self.options.bandwidth
        self._free_at[source] = departure
        return departure

    def _send(self, source: int, target: int, lane: Lane, packets: list[bytes], now: int) -> None:
        if (source, target) in self.blocked:
            return
        if lane is Lane.DATA and target in self.deaf:
            packets = [packet for packet in packets if packet[3] != 1]  # control messages still arrive
        options, rng = self.options, self.rng
        if not self.is_calm and (options.loss or options.duplication or options.straggler or options.ghost):
            packets = self._fates(source, target, lane, packets, now)
        if packets:
            delay = rng.randrange(options.delay_min_ns, options.delay_max_ns + 1)
            arrival = now + delay
            if options.is_fifo:
                key = (source, target, lane)
                arrival = max(arrival, self._arrived.get(key, 0))
                self._arrived[key] = arrival
            self.schedule(arrival, source, target, lane, packets)

    def _fates(self, source: int, target: int, lane: Lane, packets: list[bytes], now: int) -> list[bytes]:
        """Those that travel normally; lost ones are gone, copies and stragglers are scheduled by themselves."""
        options, rng = self.options, self.rng
        normal: list[bytes] = []
        for packet in packets:
            if rng.random() < options.loss:
                continue
            if rng.random() < options.duplication:
                self.schedule(now + self._straggle(), source, target, lane, [packet])
            if rng.random() < options.ghost:
                self.schedule(now + rng.randrange(1, options.ghost_ns), source, target, lane, [packet])
            elif rng.random() < options.straggler:
                self.schedule(now + self._straggle(), source, target, lane, [packet])
            else:
                normal.append(packet)
        return normal

    def _straggle(self) -> int:
        options = self.options
        slowest = options.delay_max_ns * STRAGGLER_FACTOR
        return self.rng.randrange(options.delay_max_ns, max(slowest, _STRAGGLE_NS))
