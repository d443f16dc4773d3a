"""Scenes for the simulator: exact losses at exact moments, set by watching the history as it is made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from ordercast.model.configuration import ConfigurationKind
from ordercast.model.ids import MILLISECOND, node_of
from ordercast.model.inputs import Lane
from ordercast.model.notes import Moved
from ordercast.model.service import Service
from ordercast.sim.faults import Fault, FaultKind
from ordercast.sim.options import SimOptions
from ordercast.sim.run import Result, simulate
from ordercast.sim.world import World
from ordercast.trace.records import DeliveredBatch, Event, Installed, Noted
from ordercast.wire.head import KIND_AT
from ordercast.wire.header import MessageKind
from tests.packets import originator_of, seq_of

SIZE = 40
QUIET = SimOptions(nodes=4, messages=0, fault_time_ns=600 * MILLISECOND, delay_max_ns=100_000)


def is_data(packet: bytes) -> bool:
    return packet[KIND_AT] == MessageKind.DATA


@dataclass
class Scene:
    """A run whose network obeys `rule`, and which looks at every event."""

    options: SimOptions = QUIET
    seed: int = 1
    cut: set[int] = field(default_factory=set)  # nodes that nobody hears and that hear nobody
    world: World | None = None
    events: list[Event] = field(default_factory=list)

    def rule(self, source: int, target: int, packet: bytes) -> bool:
        return True

    def watch(self, event: Event) -> None:
        """Called with every event, as it happens."""

    def set_up(self) -> None:
        """Schedule what shall happen."""

    def at(self, milliseconds: float, action: Callable[[], None]) -> None:
        assert self.world is not None
        self.world.schedule(int(milliseconds * MILLISECOND), action)

    def submit(self, node: int, service: Service = Service.AGREED) -> None:
        assert self.world is not None
        assert self.world.hosts[node].submit(0, service, SIZE, bytes(SIZE - 20))

    def run(self) -> Result:
        return simulate(self.options, self.seed, observer=self._observe, script=self._script)

    def _script(self, world: World) -> None:
        self.world = world
        world.rule = self._rule
        self.set_up()

    def _rule(self, source: int, target: int, packet: bytes) -> bool:
        return source not in self.cut and target not in self.cut and self.rule(source, target, packet)

    def _observe(self, event: Event) -> None:
        self.events.append(event)
        self.watch(event)

    # Questions about what happened

    def views(self, node: int) -> list[tuple[ConfigurationKind, list[int]]]:
        return [
            (event.configuration.kind, [node_of(member) for member in event.configuration.members])
            for event in self.events
            if isinstance(event, Installed) and node_of(event.process) == node
        ]

    def story(self, node: int) -> list[str]:
        """Views and deliveries of one node, in order: `[0 1 2]` a regular view, `(1)` a transitional one, `n3` a
        message of node 3."""
        lines: list[str] = []
        for event in self.events:
            if isinstance(event, Installed) and node_of(event.process) == node:
                members = " ".join(str(node_of(member)) for member in event.configuration.members)
                lines.append(
                    f"[{members}]" if event.configuration.kind is ConfigurationKind.REGULAR else f"({members})"
                )
            elif isinstance(event, DeliveredBatch) and node_of(event.process) == node:
                lines += [f"n{node_of(m.message.process)}" for m in event.messages if m.message is not None]
        return lines


def has_installed(event: Event, members: list[int]) -> bool:
    return (
        isinstance(event, Installed)
        and event.configuration.kind is ConfigurationKind.REGULAR
        and [node_of(member) for member in event.configuration.members] == members
    )


def has_entered(event: Event, node: int, state: str) -> bool:
    return (
        isinstance(event, Noted)
        and node_of(event.process) == node
        and isinstance(event.note, Moved)
        and event.note.target == state
    )


@dataclass
class Promised(Scene):
    """n3's message is lost to all but itself; n0's safe one behind it is received. n3 is isolated, the others recover.
    All promise, one installs, and the next on the ring is cut off just then. (Paper, Figure 4.16)"""

    first: int = -1  # who installs first
    lost: bytes = b""  # n3's packet

    @property
    def next(self) -> int:
        return (self.first + 1) % 3

    def set_up(self) -> None:
        self.at(100, lambda: self.submit(3))
        self.at(104, lambda: self.submit(0, Service.SAFE))
        self.at(110, lambda: self.cut.add(3))
        self.at(590, self.cut.clear)

    def rule(self, source: int, target: int, packet: bytes) -> bool:
        if is_data(packet) and originator_of(packet, self.events) == 3:
            self.lost = packet
            return False
        return True

    def watch(self, event: Event) -> None:
        if self.first < 0 and isinstance(event, Installed) and has_installed(event, [0, 1, 2]):
            self.first = node_of(event.process)
            self.cut_off()

    def cut_off(self) -> None:
        self.cut.add(self.next)


@dataclass
class LatePacket(Promised):
    """The same, but it is the one that installed who is cut off; then n3's lost packet reaches the next one alone."""

    def cut_off(self) -> None:
        self.cut.add(self.first)

    def watch(self, event: Event) -> None:
        super().watch(event)
        if self.first >= 0 and self.first in self.cut and has_entered(event, self.next, "Gather"):
            assert self.world is not None
            self.world.hosts[self.next].arrive(Lane.DATA, [self.lost])


@dataclass
class Gap(Scene):
    """n3's first message is lost to all but itself, its second one is received by all; then n3 is isolated."""

    lost: int = 0  # the seq of the first one

    def set_up(self) -> None:
        self.at(100, lambda: self.submit(3))
        self.at(104, lambda: self.submit(3))
        self.at(110, lambda: self.cut.add(3))
        self.at(590, self.cut.clear)

    def rule(self, source: int, target: int, packet: bytes) -> bool:
        if not (is_data(packet) and originator_of(packet, self.events) == 3):
            return True
        seq = seq_of(packet)
        self.lost = self.lost or seq
        return seq != self.lost


_BACK_FAULTS = (
    (100, FaultKind.FAIL_DISK, 1),
    (120, FaultKind.CRASH, 3),
    (300, FaultKind.CRASH, 2),
    (450, FaultKind.MEND_DISK, 1),
    (460, FaultKind.CRASH, 1),
    (500, FaultKind.RESTART, 1),
)

_BACK = replace(QUIET, faults=tuple(Fault(at * MILLISECOND, kind, node=node) for at, kind, node in _BACK_FAULTS))


@dataclass
class DiskBack(Scene):
    """n1's disk fails, n3 and n2 crash one after the other: n1 installs two rings that are not stored. The disk works
    again, and n1 crashes and comes back."""

    options: SimOptions = _BACK
