"""Somebody on the network without a key who forges anything: beside packets that travel, others arrive that are made of
pieces of them.

No protocol keeps its promises then, so nobody judges such a run. What must hold all the same: no engine raises.
"""

from __future__ import annotations

import struct
from collections import defaultdict
from dataclasses import replace
from random import Random
from typing import cast

from ordercast.model.inputs import Lane
from ordercast.sim.options import SimOptions
from ordercast.sim.run import Result, simulate
from ordercast.sim.sealed.adversary import Adversary
from ordercast.sim.world import World
from ordercast.wire.head import HEAD_SIZE, KIND_AT, TRANSMITTER_AT

NEAR = (1, 2, 3, -1, -2, 100, -100, 1 << 12, 1 << 16, 1 << 20, 1 << 24, 1 << 31, 1 << 32)
FIELDS = (23, 31, 32, 35, 39, 40, 43, 47, 51, 55, 59, 63, 71, 79)  # where numbers of many kinds of packets begin
KEPT_MAX = 60  # packets of each kind
SHORTEST = 60  # of what is cut off: those who watch the simulation read heads
CHANCE = 0.02  # that something forged arrives before a packet


class Forger:
    """Stands where the adversary of sealed runs would."""

    def __init__(self, world: World, rng: Random) -> None:
        self._world = world
        self._rng = rng
        self._seen: defaultdict[tuple[Lane, int], list[bytes]] = defaultdict(list)
        self.count = 0

    def arriving(self, target: int, lane: Lane, packets: list[bytes], network: int, segment: int) -> list[bytes]:
        arriving: list[bytes] = []
        for packet in packets:
            known = self._seen[lane, packet[KIND_AT]]
            known.append(packet)
            del known[:-KEPT_MAX]
            if self._rng.random() < CHANCE:
                self.count += 1
                forged = self._forged(packet, lane)
                if self._rng.random() < 0.3:
                    self._send(forged, lane, network, segment)
                else:
                    arriving.append(forged)
            arriving.append(packet)
        return arriving

    def _send(self, packet: bytes, lane: Lane, network: int, segment: int) -> None:
        """Anybody may get it, on any lane."""
        attachments = self._world.segments[segment].attachments
        who = self._rng.choice(sorted(attachments))
        lane = self._rng.choice(list(Lane)) if self._rng.random() < 0.2 else lane
        self._world.hosts[who].arrive(lane, [packet], network, attachments[who])

    def _forged(self, packet: bytes, lane: Lane) -> bytes:
        rng, alike = self._rng, self._seen[lane, packet[KIND_AT]]
        chance = rng.random()
        if chance < 0.15:
            return rng.choice(alike)
        if chance < 0.25:
            others = self._seen[rng.choice(sorted(self._seen))]
            return _with_length(packet[:HEAD_SIZE] + rng.choice(others)[HEAD_SIZE:])
        data = bytearray(packet)
        for _ in range(rng.choice((1, 1, 1, 2, 3))):
            self._change(data, rng.choice(alike))
        if rng.random() < 0.08 and len(data) > SHORTEST:
            del data[rng.randrange(SHORTEST, len(data)) :]
        if rng.random() < 0.05:
            data += rng.randbytes(rng.randrange(1, 40))
        if rng.random() < 0.05:
            data[TRANSMITTER_AT:HEAD_SIZE] = rng.choice(alike)[TRANSMITTER_AT:HEAD_SIZE]
        return _with_length(bytes(data))

    def _change(self, data: bytearray, other: bytes) -> None:
        """Change one number, or what may be one: by a little, to an end, or to that of another packet."""
        rng, size = self._rng, self._rng.choice((1, 1, 2, 2, 4, 8, 8))
        places = [at for at in FIELDS if at + size <= len(data)]
        at = rng.choice(places) if places and rng.random() < 0.4 else rng.randrange(KIND_AT, len(data))
        size = min(size, len(data) - at)
        limit, old = 1 << 8 * size, int.from_bytes(data[at : at + size], "big")
        borrowed = int.from_bytes(other[at : at + size], "big")
        ends = (0, 1, limit - 1, (limit >> 1) - 1, (limit >> 2) - 1)
        new = rng.choice(
            (old + rng.choice(NEAR), old + rng.choice(NEAR), rng.choice(ends), rng.randrange(limit), borrowed)
        )
        data[at : at + size] = (new % limit).to_bytes(size, "big")


def _with_length(packet: bytes) -> bytes:
    return packet[:4] + struct.pack("!H", len(packet)) + packet[6:]


def simulate_forged(options: SimOptions, seed: int) -> tuple[Result, int]:
    """A run that nobody judges, and how many packets were forged in it."""
    forgers: list[Forger] = []

    def script(world: World) -> None:
        world.observers.clear()
        world.rings_witness = None
        forgers.append(Forger(world, Random(f"forger {seed}")))
        world.adversary = cast(Adversary, forgers[0])

    options = replace(options, poison=0.0, aim=None, ambushes=0)
    return simulate(options, seed, script=script, verbose=False), forgers[0].count
