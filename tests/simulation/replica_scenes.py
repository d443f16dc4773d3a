"""Scenes with replicas: the one moment that a rule of the core is for, set by watching what replicas do.

In most of them a safe message reaches one daemon as safe, and just then that one is cut off from the others, who get it
after the signal. Who it is depends on where the token was, so a scene is played with several seeds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial

from ordercast.model.ids import MILLISECOND
from ordercast.sim.options import SimOptions
from ordercast.sim.replica import Replica
from ordercast.sim.world import World
from ordercast.trace.replica_records import ComponentChanged, ReplicaEvent, ReplicaStarted, Returned, Stage

from .scenes import Scene, is_data

THREE = SimOptions(
    nodes=3,
    messages=0,
    replicas=1,
    replica_weights=(1, 1, 1),
    fault_time_ns=1500 * MILLISECOND,
    delay_max_ns=100_000,
    prompt_clients=True,
)
BY_TURNS = replace(THREE, replica_weights=(), founders=3)


@dataclass
class ReplicaScene(Scene):
    options: SimOptions = THREE
    told: list[ReplicaEvent] = field(default_factory=list)
    nodes: dict[int, int] = field(default_factory=dict)  # by life
    links: set[tuple[int, int]] = field(default_factory=set)  # that lose everything
    steps: list[str] = field(default_factory=list)  # what has happened of the plot

    def rule(self, source: int, target: int, packet: bytes) -> bool:
        return (source, target) not in self.links

    def set_up(self) -> None:
        self.at(1490, self.mend)

    def mend(self) -> None:
        self.links = set()

    def part(self, *sides: tuple[int, ...]) -> None:
        side = {node: number for number, nodes in enumerate(sides) for node in nodes}
        self.links = {(one, other) for one in side for other in side if side[one] != side[other]}

    def replica(self, node: int) -> Replica:
        assert self.world is not None and self.world.replicas is not None
        replica = self.world.replicas.at(node)
        assert replica is not None
        return replica

    def submit(self, node: int, *_: object) -> None:
        """A command that nobody else sends."""
        replica = self.replica(node)
        replica.submit(replica.user.operation(replica.replicas.rng))
        replica.hurry()

    def submit_all(self) -> None:
        for node in range(3):
            self.submit(node)

    def soon(self, action: Callable[[], None], milliseconds: float = 0) -> None:
        """When what is happening now is over."""
        assert self.world is not None
        self.world.schedule(self.world.now + int(milliseconds * MILLISECOND), action)

    def happens(self, step: str) -> bool:
        """True the first time."""
        is_new = step not in self.steps
        if is_new:
            self.steps.append(step)
        return is_new

    def on_replica(self, event: ReplicaEvent, node: int) -> None:
        """Told of every event."""

    def _script(self, world: World) -> None:
        super()._script(world)
        world.replica_observers.append(self._hear)

    def _hear(self, event: ReplicaEvent) -> None:
        self.told.append(event)
        if isinstance(event, ReplicaStarted):
            self.nodes[event.life] = int(event.name.rpartition("@n")[2])
        life = getattr(event, "life", None)
        if life is not None:
            self.on_replica(event, self.nodes[life])


def is_view(event: ReplicaEvent, size: int) -> bool:
    return isinstance(event, ComponentChanged) and event.stage is Stage.VIEW and len(event.members) == size


@dataclass
class FailedBeginning(ReplicaScene):
    """n0 gets what all say at the first view of all, but nobody gets what n0 says: it alone attempts a beginning, of
    which the others, when they meet it again, do not know."""

    def on_replica(self, event: ReplicaEvent, node: int) -> None:
        if is_view(event, 3) and self.happens("view of all"):
            self.links = {(0, 1), (0, 2)}
            self.soon(lambda: self.part((0,), (1, 2)), 6)
            self.soon(self.mend, 300)

    def rule(self, source: int, target: int, packet: bytes) -> bool:
        """Tokens are passed on, for some time: so everybody says what it has to say."""
        is_muted = "view of all" in self.steps and self.links == {(0, 1), (0, 2)}
        return super().rule(source, target, packet) or (is_muted and not is_data(packet))


@dataclass
class DecidedByOne(ReplicaScene):
    """Two of three, in a view of their own, are about to decide, with a command of each in the round. The first who
    confirms one is cut off just then: it has decided before the signal, the other one after it. `after` says whom the
    other one meets then."""

    first: int = -1
    other: int = -1
    pair: tuple[int, int] = (0, 1)

    @property
    def third(self) -> int:
        return 3 - sum(self.pair)

    def set_up(self) -> None:
        super().set_up()
        self.at(300, lambda: self.submit(0))
        self.at(400, self.begin)

    def begin(self) -> None:
        self.happens("begun")
        self.part(self.pair, (self.third,))

    def on_replica(self, event: ReplicaEvent, node: int) -> None:
        if "begun" in self.steps and is_view(event, 2) and node in self.pair and self.first < 0:
            if self.happens(f"view at {node}"):
                self.soon(lambda: self.submit(node))
        elif isinstance(event, Returned) and self.first < 0 and f"view at {node}" in self.steps:
            self.first, self.other = node, sum(self.pair) - node
            self.part((0,), (1,), (2,))
        elif isinstance(event, ComponentChanged) and event.stage is Stage.DECISION and node == self.other:
            self._other_decides(event)

    def _other_decides(self, event: ComponentChanged) -> None:
        if event.elects and not event.is_primary and len(event.members) == 2:
            self.happens("attempted")
        elif len(event.members) == 1 and "attempted" in self.steps and self.happens("alone"):
            self.soon(self.meet)

    def meet(self) -> None:
        self.part((self.first,), (self.other, self.third))


@dataclass
class LongerMinority(DecidedByOne):
    """The third one has commands that nobody else has, of the view before. What the two decided is newer, though
    shorter."""

    def begin(self) -> None:
        """It hears, and is not heard."""
        self.links = {(self.third, node) for node in self.pair}
        for _ in range(5):
            self.submit(self.third)
        self.soon(lambda: DecidedByOne.begin(self), 20)


@dataclass
class BoundByAttempt(DecidedByOne):
    """No weights: those count who held the state last. The first goes on alone, being half of the two with the lower
    name; the other one meets the third, with which it was most of three before."""

    options: SimOptions = BY_TURNS
    pair: tuple[int, int] = (1, 2)

    def meet(self) -> None:
        super().meet()
        for milliseconds in (300, 320, 340):
            self.soon(self.submit_all, milliseconds)


@dataclass
class StoodOnBeginning(DecidedByOne):
    """The third gets nothing of what is said at the first view of all, so the two others only attempt a beginning. On
    this they decide, one of them before the signal; the other one meets the third, who knows of no beginning."""

    def set_up(self) -> None:
        ReplicaScene.set_up(self)

    @property
    def muted(self) -> set[tuple[int, int]]:
        return {(node, self.third) for node in self.pair}

    def on_replica(self, event: ReplicaEvent, node: int) -> None:
        if is_view(event, 3) and self.happens("view of all"):
            self.links = self.muted
            self.soon(self.begin, 6)
        elif is_view(event, 3) and "begun" in self.steps and self.first < 0:
            self.happens("missed")  # with another seed it will
        if "missed" not in self.steps:
            super().on_replica(event, node)

    def rule(self, source: int, target: int, packet: bytes) -> bool:
        """Tokens are passed on, for some time: so everybody says what it has to say."""
        return super().rule(source, target, packet) or (self.links == self.muted and not is_data(packet))


@dataclass
class CutOffOfConfirmed(ReplicaScene):
    """A command is confirmed at the first; just then the connections of the two others to their daemons break, before
    they have got it. They come back, and are two of three."""

    first: int = -1

    def set_up(self) -> None:
        super().set_up()
        self.at(300, lambda: self.submit(0))
        self.at(400, self.begin)

    def begin(self) -> None:
        self.happens("ready")
        self.submit_all()

    def on_replica(self, event: ReplicaEvent, node: int) -> None:
        if "ready" in self.steps and isinstance(event, Returned) and self.first < 0:
            self.first = node
            others = tuple(other for other in range(3) if other != node)
            self.part((node,), others)
            for other in others:
                self.soon(partial(self.break_connection, other))

    def break_connection(self, node: int) -> None:
        replica = self.replica(node)
        assert replica.client is not None
        replica.client.crash()
        self.soon(partial(replica.replicas.daemon_started, node), 150)  # it connects and joins again


@dataclass
class AbandonedByItsCaller(ReplicaScene):
    """All meet again, and n0 has a command in the round. It gets nothing that the others say, and abandons the round;
    they get everything, after the signal, hold the command, and apply it when they are a quorum by themselves."""

    def set_up(self) -> None:
        super().set_up()
        self.at(300, lambda: self.submit(0))
        self.at(400, lambda: self.part((0,), (1, 2)))
        self.at(600, self.meet)

    def meet(self) -> None:
        self.happens("parted")
        self.mend()

    def on_replica(self, event: ReplicaEvent, node: int) -> None:
        if is_view(event, 3) and node == 0 and "parted" in self.steps and self.happens("view of all"):
            self.links = {(1, 0), (2, 0)}
            self.soon(lambda: self.submit(0))
            self.soon(lambda: self.part((0,), (1, 2)), 8)
            self.soon(self.mend, 300)

    def rule(self, source: int, target: int, packet: bytes) -> bool:
        """Tokens are passed on, for some time."""
        is_deaf = self.links == {(1, 0), (2, 0)}
        return super().rule(source, target, packet) or (is_deaf and not is_data(packet))
