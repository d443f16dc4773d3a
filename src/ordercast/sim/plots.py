"""Plots: schedules that aim at what random ones meet too seldom.

A plot watches the history as it is made, and loses packets, parts hosts and lets applications send at the one moment
that matters. It draws who, what and when from a generator of its own, and is over when the network heals. Which seeds
have one, and in what cluster, says `aimed_swarm.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from functools import partial
from random import Random
from typing import TYPE_CHECKING

from ordercast.model.configuration import ChangeReason, Configuration, ConfigurationKind
from ordercast.model.ids import MILLISECOND, node_of
from ordercast.model.inputs import Lane
from ordercast.model.notes import Moved, Occurred, Occurrence
from ordercast.model.service import Service
from ordercast.order.membership.states.moves import GATHER
from ordercast.sim.faults import Fault, FaultKind
from ordercast.trace.records import STAMP_SIZE, Event, Installed, Noted
from ordercast.trace.replica_records import ComponentChanged, ReplicaEvent, Stage
from ordercast.wire.head import KIND_AT, transmitter_of
from ordercast.wire.header import ARRIVAL, RETRANSMITTED, RING, MessageKind

if TYPE_CHECKING:
    from ordercast.sim.world import World

SIZE = 40  # of the messages that a plot sends
APART_NS = (150 * MILLISECOND, 320 * MILLISECOND)  # that hosts stay parted
CALM_NS = (2 * MILLISECOND, 25 * MILLISECOND)  # between a configuration of all and the next attempt
MEETING = 0.4  # chance that those who have promised meet others at once
PATIENCE_NS = 60 * MILLISECOND  # with an attempt that leads to nothing


class Aim(Enum):
    """What a run's plot is aimed at."""

    GAP = "gap"  # messages beyond a gap are owed to and by several companions
    PROMISE = "promise"  # a recovery fails after all have promised, and fewer of them meet again
    LATE = "late packet"  # the same, and what was missing reaches one of them after its promise
    GATHERING = "gathering"  # snapshots of groups are under way when daemons are lost, and lost again
    BEGINNING = "beginning"  # one replica alone knows what all have said at their first view


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
        """Send a message; where there are clients, whatever one of them does."""
        if self.world.options.clients:
            self.act(node)
            return
        self.world.hosts[node].submit(0, service, SIZE, self.rng.randbytes(SIZE - STAMP_SIZE))

    def act(self, node: int) -> None:
        """Let a client of this host do something."""
        station = self.world.station_at(node)
        if station is not None:
            self.world.crowd.act(station)

    @property
    def rotation_ns(self) -> int:
        """Roughly what the token needs to go round."""
        options = self.world.options
        return options.nodes * (options.delay_min_ns + options.delay_max_ns) // 2

    @property
    def everybody(self) -> range:
        return range(self.world.options.nodes)


class GapPlot(Plot):
    """One host's packets are lost to some others, who send more, numbered behind; then that host is cut off, with
    those who have its packets. What lies behind the gap is owed among those who are left, if one of them sent it."""

    def __init__(self, world: World, rng: Random) -> None:
        super().__init__(world, rng)
        self._at: dict[int, Configuration] = {}  # the regular configuration of each host
        self._source: int | None = None  # whose packets are lost; None: nothing is under way
        self._left: tuple[int, ...] = ()  # who shall miss them, and go on without that host
        self._lost: dict[tuple[bytes, int], bytes] = {}  # its packets, by ring and seq
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
            self.soon((0, self.rotation_ns), self._send_first)
        attempt = self._attempts
        self.soon((PATIENCE_NS, PATIENCE_NS + 1), lambda: self._give_up(attempt))

    def _send_first(self) -> None:
        if self._source is not None:
            self.submit(self._source, self.rng.choice((Service.AGREED, Service.SAFE)))

    def _give_up(self, attempt: int) -> None:
        if attempt == self._attempts and not self._lost:
            self._source = None

    def lets(self, target: int, packet: bytes) -> bool:
        if self._source is None or packet[KIND_AT] != MessageKind.DATA:
            return True
        *_, flags, _, _, seq = ARRIVAL.unpack_from(packet)
        key = packet[RING], seq
        is_first = node_of(transmitter_of(packet)) == self._source and not flags & RETRANSMITTED
        if is_first and not self._sides and key not in self._lost and len(self._lost) < self._lost_max:
            self._lost[key] = packet
            if len(self._lost) == 1:
                self._answer()
        return key not in self._lost or target not in self._left

    def _answer(self) -> None:
        """The others send behind the gap, and what was lost is asked for; then they are cut off."""
        for node in self._left:
            for _ in range(self.rng.randrange(1, 3)):
                service = self.rng.choice((Service.SAFE, Service.SAFE, Service.AGREED))
                self.soon((0, self.rotation_ns), partial(self.submit, node, service))
        self.soon((2 * self.rotation_ns, 4 * self.rotation_ns), self._cut_off)

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


class GatheringPlot(Plot):
    """Daemons come together, with clients that have just asked for much; some are lost on the way, and more of them
    when the configuration is there, so that some snapshots never come. Then all begins again."""

    DEEDS = 4  # of clients of each host, at most

    def __init__(self, world: World, rng: Random) -> None:
        super().__init__(world, rng)
        self._is_merging = False

    def observe(self, event: Event) -> None:
        if isinstance(event, Noted):
            note = event.note
            is_merge = isinstance(note, Moved) and note.target == GATHER and note.reason is ChangeReason.MERGE
            if is_merge and not self._is_merging:
                self._merging()
        elif isinstance(event, Installed) and self._is_merging:
            configuration = event.configuration
            came = set(configuration.members) - set(configuration.transitional)
            if configuration.kind is ConfigurationKind.REGULAR and came:
                self._is_merging = False
                self.soon((0, 3 * self.rotation_ns), self._part_somehow)

    def _merging(self) -> None:
        self._is_merging = True
        for node in self.everybody:
            for _ in range(self.rng.randrange(self.DEEDS + 1)):
                self.world.later(self.rng.randrange(3 * MILLISECOND), self.act, node)
        if self.rng.random() < 0.5:
            self.soon((0, 2 * MILLISECOND), self._lose_one)
        self.soon((2 * PATIENCE_NS, 3 * PATIENCE_NS), self._stop_waiting)

    def _lose_one(self) -> None:
        self.part([self.rng.choice(self.everybody)])

    def _stop_waiting(self) -> None:
        if self._is_merging:
            self._is_merging, self._sides = False, {}

    def _part_somehow(self) -> None:
        names = list(self.everybody)
        self.rng.shuffle(names)
        cut = self.rng.randrange(1, len(names))
        self.part(names[:cut], names[cut:])
        self.soon((100 * MILLISECOND, 250 * MILLISECOND), self._mend)

    def _mend(self) -> None:
        self._sides = {}


class BeginningPlot(Plot):
    """At the first view of replicas on all hosts, nobody hears what one of them says, which hears all; tokens pass, so
    that everybody says it. Then that host is cut off: it alone has attempted a beginning, of which the others, when
    they meet it again, do not know."""

    ROUND_NS = (5 * MILLISECOND, 8 * MILLISECOND)  # in which all have spoken

    def __init__(self, world: World, rng: Random) -> None:
        super().__init__(world, rng)
        self._mute: int | None = None
        self._is_muted = False
        world.replica_observers.append(self._hear)

    def _hear(self, event: ReplicaEvent) -> None:
        is_view = isinstance(event, ComponentChanged) and event.stage is Stage.VIEW
        if is_view and self._mute is None and len(event.members) >= len(self.everybody):
            self._mute, self._is_muted = self.rng.choice(self.everybody), True
            self.soon(self.ROUND_NS, self._cut_off)
            self.soon(APART_NS, self._mend)

    def lets(self, target: int, packet: bytes) -> bool:
        is_its = packet[KIND_AT] == MessageKind.DATA and node_of(transmitter_of(packet)) == self._mute
        return not (self._is_muted and is_its)

    def _cut_off(self) -> None:
        assert self._mute is not None
        self.part([self._mute])

    def _mend(self) -> None:
        self._sides, self._is_muted = {}, False


def _is_of_several(configuration: Configuration) -> bool:
    return configuration.kind is ConfigurationKind.REGULAR and len(configuration.members) > 1


PLOTS: dict[Aim, type[Plot]] = {
    Aim.GAP: GapPlot,
    Aim.PROMISE: PromisePlot,
    Aim.LATE: LatePlot,
    Aim.GATHERING: GatheringPlot,
    Aim.BEGINNING: BeginningPlot,
}


def lay(world: World, aim: Aim, rng: Random) -> Plot:
    """Have a plot watch a run and rule its network; return it."""
    plot = PLOTS[aim](world, rng)
    world.rule = plot.passes
    world.observers.append(lambda event: None if world.is_healed else plot.observe(event))
    return plot
