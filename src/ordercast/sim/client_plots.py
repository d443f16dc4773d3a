"""Plots that aim at groups, at sessions and at replicas."""

from __future__ import annotations

from functools import partial
from random import Random
from typing import TYPE_CHECKING

from ordercast.model.configuration import ChangeReason, ConfigurationKind
from ordercast.model.ids import MILLISECOND, node_of
from ordercast.model.notes import Moved
from ordercast.model.service import Service
from ordercast.order.membership.states.moves import GATHER
from ordercast.session.frames import SlowPolicy
from ordercast.sim.client import Pace
from ordercast.sim.plot import APART_NS, PATIENCE_NS, SIZE, Plot
from ordercast.trace.records import Event, Installed, Noted
from ordercast.trace.replica_records import ComponentChanged, ReplicaEvent, Stage
from ordercast.wire.head import KIND_AT, transmitter_of
from ordercast.wire.header import MessageKind

if TYPE_CHECKING:
    from ordercast.sim.world import World


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
                self.soon((0, 3 * self.turns_ns), self._part_somehow)

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


class SlowReaderPlot(Plot):
    """A client for which all shall wait joins every group, and begins to read slowly when others send much."""

    FIRST_NS = (100 * MILLISECOND, 200 * MILLISECOND)
    AGAIN_NS = (150 * MILLISECOND, 300 * MILLISECOND)
    MESSAGES = 25  # of each host

    def __init__(self, world: World, rng: Random) -> None:
        super().__init__(world, rng)
        self._number = 0
        self.soon(self.FIRST_NS, self._begin)

    def _begin(self) -> None:
        self.soon(self.AGAIN_NS, self._begin)
        station = self.world.station_at(self.rng.choice(self.everybody))
        if station is None:
            return
        self._number += 1
        reader = station.connect(f"slow{self._number}", SlowPolicy.HOLD)
        reader.join(tuple(f"g{number}" for number in range(self.world.options.groups)))
        reader.read(Pace.SLOWLY)
        for node in self.everybody:
            for _ in range(self.MESSAGES):
                self.soon((20 * MILLISECOND, 60 * MILLISECOND), partial(self._send, node))

    def _send(self, node: int) -> None:
        self.send(node, self.rng.choice((Service.AGREED, Service.FIFO)), SIZE)


class BeginningPlot(Plot):
    """At the first view of replicas on all hosts, nobody hears what one of them says, which hears all; what is no
    message passes, so that everybody says it. Then that host is cut off: it alone has attempted a beginning, of which
    the others, when they meet it again, do not know."""

    ROUND_NS = (5 * MILLISECOND, 8 * MILLISECOND)  # in which all have spoken

    def __init__(self, world: World, rng: Random) -> None:
        super().__init__(world, rng)
        self._mute: int | None = None
        self._is_muted = False
        world.replica_observers.append(self._hear)

    def _hear(self, event: ReplicaEvent) -> None:
        if self._mute is not None or not isinstance(event, ComponentChanged):
            return
        if event.stage is Stage.VIEW and len(event.members) >= len(self.everybody):
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
