"""Plots: schedules that aim at what random ones meet too seldom.

A plot watches the history as it is made, and loses packets, parts hosts and lets applications send at the one moment
that matters. It draws who, what and when from a generator of its own, and is over when the network heals. Which seeds
have one, and in what cluster, says `aimed_swarm.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import Enum
from random import Random
from typing import TYPE_CHECKING

from ordercast.model.ids import MILLISECOND
from ordercast.model.service import Service
from ordercast.trace.records import STAMP_SIZE, Event

if TYPE_CHECKING:
    from ordercast.sim.world import World

SIZE = 40  # of the messages that a plot sends
LARGE, LARGE_SIZE = 0.2, 5_000  # chance that a client sends several packets, and how many bytes
APART_NS = (150 * MILLISECOND, 320 * MILLISECOND)  # that hosts stay parted
PATIENCE_NS = 60 * MILLISECOND  # with an attempt that leads to nothing


class Aim(Enum):
    """What a run's plot is aimed at."""

    GAP = "gap"  # messages beyond a gap are owed to and by several companions
    PROMISE = "promise"  # a recovery fails after all have promised, and fewer of them meet again
    LATE = "late packet"  # the same, and what was missing reaches one of them after its promise
    EXCHANGE = "exchange"  # what the exchange of a recovery sends is lost to some, again and again
    GATHERING = "gathering"  # snapshots of groups are under way when daemons are lost, and lost again
    SLOW_READER = "slow reader"  # all wait for a client that reads, and too little
    BEGINNING = "beginning"  # one replica alone knows what all have said at their first view
    MARK = "mark"  # somebody has marked for a merge of two networks
    TOPOLOGY = "topology"  # one side of such a merge has told its topology
    INSTALLATION = "installation"  # somebody has installed what is being formed, and others have not
    COVERAGE = "coverage"  # some have stated that they have a safe message, and others have not
    CLAIM = "claim"  # some install what all have agreed on, and others, who stay connected, do not
    MINDS = "two minds"  # some have merged and others give up, and all stay connected
    HOLE = "hole"  # a side has later packets than those that it lacks, says so, and is lost
    STAMP = "stamp"  # packets are held of a time that nobody was told besides


class Plot:
    def __init__(self, world: World, rng: Random) -> None:
        self.world = world
        self.rng = rng
        self._sides: dict[int, int] = {}  # hosts of different sides hear nothing of each other; none: all on one

    def passes(self, source: int, target: int, packet: bytes) -> bool:
        """Whether a packet arrives; asked just then."""
        return self.world.is_healed or (
            self._sides.get(source, -1) == self._sides.get(target, -1) and self.lets(target, packet)
        )

    def lets(self, target: int, packet: bytes) -> bool:
        """Whether a packet within one side arrives."""
        return True

    def observe(self, event: Event) -> None:
        """Called with every event, as it happens, until the network heals."""

    # What plots do

    def soon(self, within: tuple[int, int], action: Callable[[], None]) -> None:
        """Have something done at some time of this span from now."""
        self.world.schedule(self.world.now + self.rng.randrange(*within), self._unless_healed, action)

    def _unless_healed(self, action: Callable[[], None]) -> None:
        if not self.world.is_healed:
            action()

    def part(self, *sides: Iterable[int]) -> None:
        """Keep these hosts apart, and all others together on a side of their own."""
        self._sides = {host: number for number, hosts in enumerate(sides) for host in hosts}

    def submit(self, node: int, service: Service) -> None:
        """Send a message; where there are clients, one of them does something, or sends a large message. Replicas send
        enough by themselves."""
        if self.world.options.replicas:
            return
        if self.world.options.clients:
            if self.rng.random() < LARGE:
                self.send(node, service, LARGE_SIZE)
            else:
                self.act(node)
            return
        self.world.hosts[node].submit(0, service, SIZE, self.rng.randbytes(SIZE - STAMP_SIZE))

    def act(self, node: int) -> None:
        """Let a client of this host do something."""
        station = self.world.station_at(node)
        if station is not None:
            self.world.crowd.act(station)

    def send(self, node: int, service: Service, size: int) -> None:
        """Let a client of this host send a message to a group."""
        station = self.world.station_at(node)
        clients = [] if station is None else list(station.clients.values())
        if station is not None and clients:
            group = f"g{self.rng.randrange(self.world.options.groups)}"
            self.world.crowd.say(self.rng.choice(clients), group, service, self.rng.randbytes(size))

    @property
    def turns_ns(self) -> int:
        """Roughly the time in which every host has its turn to send."""
        options = self.world.options
        return options.nodes * (options.delay_min_ns + options.delay_max_ns) // 2

    @property
    def everybody(self) -> range:
        return range(self.world.options.nodes)
