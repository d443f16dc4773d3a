"""Scenes for rules whose absence costs a configuration, and breaks no promise: the checkers cannot miss them.

Each scene says which configurations there must be. Without the rule that it is for there are others.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from ordercast.model.configuration import ConfigurationKind
from ordercast.model.ids import MILLISECOND, ProcessId, node_of
from ordercast.model.inputs import Lane
from ordercast.model.notes import Moved
from ordercast.sim.faults import Fault, FaultKind
from ordercast.sim.options import SIM_RING, SimOptions
from ordercast.trace.records import Event, Noted
from ordercast.wire.codec import decode
from ordercast.wire.head import KIND_AT, cluster_id_from
from ordercast.wire.header import MessageKind
from ordercast.wire.messages import Join

from .scenes import QUIET, Scene, has_entered

CLUSTER = cluster_id_from(SIM_RING.cluster)
ALL = [0, 1, 2, 3]
APART, TOGETHER = 100, 300  # milliseconds
_PAUSES = tuple(Fault(APART * MILLISECOND, FaultKind.PAUSE, node=n, duration_ns=200 * MILLISECOND) for n in ALL)
STANDING_STILL = replace(QUIET, faults=_PAUSES)
TALKATIVE = replace(QUIET, ring=replace(SIM_RING, join_ns=3 * MILLISECOND))


def join_in(packet: bytes) -> Join | None:
    if packet[KIND_AT] != MessageKind.JOIN:
        return None
    join = decode(packet, CLUSTER)
    assert isinstance(join, Join)
    return join


def nodes_of(processes: Iterable[ProcessId]) -> list[int]:
    return [node_of(process) for process in processes]


class RuleScene(Scene):
    def memberships(self, node: int) -> list[list[int]]:
        """The regular configurations of one node, from the first of all nodes on."""
        regular = [members for kind, members in self.views(node) if kind is ConfigurationKind.REGULAR]
        return regular[regular.index(ALL) :]

    def is_as_it_should_be(self) -> bool:
        raise NotImplementedError


@dataclass
class AllPaused(RuleScene):
    """Every host stands still for longer than a token may be away, as when a rack of virtual machines is suspended.
    Nobody has failed, and nothing changes."""

    options: SimOptions = STANDING_STILL

    def is_as_it_should_be(self) -> bool:
        return all(self.memberships(node) == [ALL] for node in ALL)


@dataclass
class Merge(RuleScene):
    """n3 is cut off for a while. `is_merging` when they have begun to come together again."""

    is_merging: bool = False

    def set_up(self) -> None:
        self.at(APART, lambda: self.cut.add(3))
        self.at(TOGETHER, self.cut.clear)

    def watch(self, event: Event) -> None:
        is_gather = isinstance(event, Noted) and isinstance(event.note, Moved) and event.note.target == "Gather"
        self.is_merging = self.is_merging or (is_gather and event.at > TOGETHER * MILLISECOND)

    def rule(self, source: int, target: int, packet: bytes) -> bool:
        join = join_in(packet) if self.is_merging else None
        return join is None or self.lets(source, target, join)

    def lets(self, source: int, target: int, join: Join) -> bool:
        """Whether a Join arrives that is sent while they come together."""
        raise NotImplementedError


@dataclass
class LateJoin(Merge):
    """n0 waits for n1's opinion, and has n3's; then a Join of n3 arrives that it sent in its solitude, and that counts
    n0 as failed."""

    late: bytes = b""
    is_here: bool = False

    def _rule(self, source: int, target: int, packet: bytes) -> bool:
        join = join_in(packet) if source in self.cut else None
        if join is not None and 0 in nodes_of(join.failed):
            self.late = packet
        return super()._rule(source, target, packet)

    def lets(self, source: int, target: int, join: Join) -> bool:
        if (source, target) == (3, 0) and not self.is_here:
            assert self.world is not None
            self.world.schedule(self.world.now + MILLISECOND, self._arrive)
        return self.is_here or (source, target) != (1, 0)

    def _arrive(self) -> None:
        assert self.world is not None and self.late
        self.is_here = True
        self.world.hosts[0].arrive(Lane.DATA, [self.late])

    def is_as_it_should_be(self) -> bool:
        return self.is_here and self.memberships(0) == [ALL, [0, 1, 2], ALL]


@dataclass
class Outsider(Merge):
    """n3 begins to come together with the others before they do, hears nothing of n2, and gives it up. n0 and n1 have
    not heard n2 either when n3 tells them so, and do then. They stay with n2, who has been with them all the time."""

    options: SimOptions = TALKATIVE
    said: bytes = b""  # n3's last announcement, which n0 does not get before n3 has begun
    begun: int = 0
    is_told: bool = False  # n3 has given up n2

    def set_up(self) -> None:
        super().set_up()
        self.at(TOGETHER + 1, lambda: self.submit(3))  # so that n0 hears it

    def watch(self, event: Event) -> None:
        super().watch(event)
        if self.is_merging and not self.begun:
            assert self.world is not None and has_entered(event, 3, "Gather") and self.said
            self.begun = self.world.now
            self.world.hosts[0].arrive(Lane.DATA, [self.said])

    def rule(self, source: int, target: int, packet: bytes) -> bool:
        if (source, target) == (3, 0) and packet[KIND_AT] == MessageKind.ANNOUNCEMENT and not self.begun:
            self.said = packet
            return False
        return super().rule(source, target, packet)

    def lets(self, source: int, target: int, join: Join) -> bool:
        assert self.world is not None
        if source == 3:
            self.is_told = self.is_told or 2 in nodes_of(join.failed)
            return self.world.now > self.begun + 5 * MILLISECOND
        return source != 2 or (target != 3 and self.is_told)

    def is_as_it_should_be(self) -> bool:
        return self.is_told and all(members[:3] == [0, 1, 2] for node in range(3) for members in self.memberships(node))
