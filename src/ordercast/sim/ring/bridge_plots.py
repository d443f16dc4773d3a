"""Plots that aim at a segment which falls apart between its gateways, while other rings keep both sides in one network.

Each waits for one network of everybody, chooses a segment and two sides of it, and does its worst there; then all is
whole again. Nothing is lost but between the sides, and on that segment, unless a plot says otherwise.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import partial
from random import Random
from typing import TYPE_CHECKING

from ordercast.model.configuration import Configuration, ConfigurationKind
from ordercast.model.ids import MILLISECOND, node_of
from ordercast.model.notes import Moved, Occurred, Occurrence
from ordercast.model.service import Service
from ordercast.order.catalogue import entry_of
from ordercast.order.membership.states.moves import COMMIT, OPERATIONAL
from ordercast.sim.plot import APART_NS, Plot
from ordercast.sim.ring_topologies import Sides, clusters_of, is_gateway, sides_between_gateways
from ordercast.trace.records import Event, Installed, Noted
from ordercast.wire.head import CLUSTER, KIND_AT, transmitter_of
from ordercast.wire.header import FLAGS_AT, RETRANSMITTED, MessageKind

if TYPE_CHECKING:
    from ordercast.sim.world import World

CALM_NS = (2 * MILLISECOND, 40 * MILLISECOND)  # between one network of everybody and the next attempt
GONE_ON_NS = (130 * MILLISECOND, 280 * MILLISECOND)  # after which those who are parted have a ring of their own
ATTEMPT_NS = (420 * MILLISECOND, 560 * MILLISECOND)  # that an attempt takes
TOGETHER_NS = (400 * MILLISECOND, 600 * MILLISECOND)  # in which two sides that are whole again merge


class BridgePlot(Plot, ABC):
    """What these plots have in common: one segment, its sides, and attempts one after the other."""

    def __init__(self, world: World, rng: Random) -> None:
        super().__init__(world, rng)
        options = world.options
        self._at: dict[int, Configuration] = {}  # the regular configuration of each host
        self._is_waiting = True  # for one network of everybody
        self._bridged = [segment for segment in range(options.segments) if len(self._gateways(segment)) > 1]
        traffic = entry_of(options.engine).traffic
        self.data, self.tokens = traffic.data, traffic.tokens
        self.cluster = b""  # of the segment's packets; empty: no attempt is under way
        self.segment = 0
        self.sides: Sides = ((), ())
        self.is_apart = False

    def hosts(self, segment: int) -> list[int]:
        return [node for node in self.everybody if segment in self.world.options.attachments[node]]

    def _gateways(self, segment: int) -> list[int]:
        return [node for node in self.hosts(segment) if is_gateway(self.world.options.attachments, node)]

    def observe(self, event: Event) -> None:
        if isinstance(event, Installed) and event.configuration.kind is ConfigurationKind.REGULAR:
            self._at[node_of(event.process)] = event.configuration
            self._look()
        elif self.cluster and isinstance(event, Noted):
            self.see(event)

    def _look(self) -> None:
        """Begin an attempt, if there is one network of everybody."""
        configurations = self._at.values()
        is_whole = len(self._at) == len(self.everybody) and len({one.id for one in configurations}) == 1
        if is_whole and self._is_waiting and len(next(iter(configurations)).members) == len(self.everybody):
            self._is_waiting = False
            self.soon(CALM_NS, self._begin)

    def _begin(self) -> None:
        self.segment, self.is_apart = self.rng.choice(self._bridged), False
        self.sides = self.choose_sides()
        self.begin()
        self.cluster = clusters_of(self.world.options)[self.segment]
        self.soon(ATTEMPT_NS, self._end)

    def _end(self) -> None:
        self.cluster = b""
        self.soon(TOGETHER_NS, self._again)

    def _again(self) -> None:
        self._is_waiting = True
        self._look()

    def cut(self) -> None:
        """Part the sides."""
        self.is_apart = True

    def side_of(self, node: int) -> int | None:
        """Return the side of a host on the segment."""
        return next((number for number, side in enumerate(self.sides) if node in side), None)

    def passes(self, source: int, target: int, packet: bytes) -> bool:
        if self.world.is_healed or not self.cluster:
            return True
        if packet[CLUSTER] != self.cluster:
            return self.lets_elsewhere(source, target)
        return self.lets_here(source, target, packet) and (
            self.side_of(source) == self.side_of(target) or (not self.is_apart and self.lets_across(source, packet))
        )

    # What each does in its own way

    def choose_sides(self) -> Sides:
        return sides_between_gateways(self.hosts(self.segment), self.world.options.attachments, self.rng)

    @abstractmethod
    def begin(self) -> None:
        """Begin an attempt; segment and sides are chosen."""

    def see(self, event: Noted) -> None:
        """Hear what an engine notes while an attempt is under way."""

    def lets_across(self, source: int, packet: bytes) -> bool:
        """Whether a packet passes from one side to the other while they are not apart."""
        return True

    def lets_here(self, source: int, target: int, packet: bytes) -> bool:
        """Whether a packet passes on the segment, were it not for the sides."""
        return True

    def lets_elsewhere(self, source: int, target: int) -> bool:
        """Whether a packet passes on other segments."""
        return True

    def installer(self, event: Noted) -> int | None:
        """Return who has installed a ring."""
        is_installed = isinstance(event.note, Moved) and event.note.target == OPERATIONAL
        return node_of(event.process) if is_installed else None


class ClaimPlot(BridgePlot):
    """All members of a ring agree on the next one. When a gateway has installed it, and another has not, those who have
    are parted from those who have not, who go on otherwise, and send: they are claimed by two rings."""

    def begin(self) -> None:
        self._installed: list[int] = []
        self._is_silent = True  # no token passes, until all gather

    def lets_here(self, source: int, target: int, packet: bytes) -> bool:
        return not self._is_silent or packet[KIND_AT] not in self.tokens

    def see(self, event: Noted) -> None:
        if isinstance(event.note, Moved) and event.note.target == COMMIT:
            self._is_silent = False
        node = self.installer(event)
        if node is None or self.is_apart or node not in self.hosts(self.segment):
            return
        self._installed.append(node)
        rest = [other for other in self.hosts(self.segment) if other not in self._installed]
        sides = (tuple(self._installed), tuple(rest))
        if all(set(side) & set(self._gateways(self.segment)) for side in sides):
            self.sides = sides
            self.cut()
            for other in sides[1] * 2:
                self.soon(GONE_ON_NS, partial(self.submit, other, Service.SAFE))


class MindsPlot(BridgePlot):
    """Two sides that were parted merge. One hears what both have to say of themselves, the other does not hear the
    first: when they are parted again, one has merged and the other gives up."""

    def begin(self) -> None:
        self._spoken: list[int] = []  # sides, in the order in which they spoke
        self.cut()
        self.soon(APART_NS, self._join)

    def _join(self) -> None:
        self.is_apart = False

    def see(self, event: Noted) -> None:
        has_spoken = isinstance(event.note, Occurred) and event.note.what is Occurrence.NETWORK_SPOKEN
        side = self.side_of(node_of(event.process))
        if has_spoken and not self.is_apart and side is not None and side not in self._spoken:
            self._spoken.append(side)
            if len(self._spoken) == len(self.sides):
                self.soon((2 * self.turns_ns, 4 * self.turns_ns), self.cut)

    def lets_across(self, source: int, packet: bytes) -> bool:
        return packet[KIND_AT] not in self.data or self.side_of(source) not in self._spoken[:1]


class HolePlot(BridgePlot):
    """Each side of a segment sends packets that the other lacks. The first side says what it has, and is lost before it
    hears of the second's: that its highest packet lies above them says nothing."""

    def choose_sides(self) -> Sides:
        """Return sides with somebody on each who sends on the segment."""
        gateways = self._gateways(self.segment)
        others = [node for node in self.hosts(self.segment) if node not in gateways]
        self.rng.shuffle(gateways)
        self.rng.shuffle(others)
        return (gateways[0], others[0]), (*gateways[1:], *others[1:])

    def begin(self) -> None:
        self._is_slow = True  # the second side: its rings are not formed
        self._is_lost = False  # the first side
        for side, service in ((1, Service.SAFE), (0, Service.AGREED), (0, Service.SAFE)):
            for node in self.sides[side]:
                self.soon((0, 2 * self.turns_ns), partial(self.submit, node, service))
        self.soon((3 * self.turns_ns, 6 * self.turns_ns), self.cut)

    def see(self, event: Noted) -> None:
        if self.is_apart and self.installer(event) == self.sides[0][0]:
            self.soon((3 * self.turns_ns, 8 * self.turns_ns), self._lose)

    def _lose(self) -> None:
        self._is_slow, self._is_lost = False, True

    def lets_across(self, source: int, packet: bytes) -> bool:
        return not self._is_slow or packet[KIND_AT] not in self.data

    def lets_here(self, source: int, target: int, packet: bytes) -> bool:
        return not (self._is_slow and self.side_of(source) == 1 and packet[KIND_AT] == MessageKind.COMMIT)

    def lets_elsewhere(self, source: int, target: int) -> bool:
        return not self._is_lost or (source in self.sides[0]) == (target in self.sides[0])


class StampPlot(BridgePlot):
    """A host sends, and its token is lost with it: others hold packets of a tick that no token has told them."""

    def choose_sides(self) -> Sides:
        """Return the one who sends, sometimes with others, and the rest: mostly without a gateway, whose clock other
        rings raise."""
        senders = [node for node in self.hosts(self.segment) if self._sends_on(node, self.segment)]
        self._sender = self.rng.choice(senders)
        rest = [node for node in self.hosts(self.segment) if node != self._sender]
        with_it = [node for node in rest if node in self._gateways(self.segment) and self.rng.random() < 0.8]
        return (self._sender, *with_it), tuple(node for node in rest if node not in with_it)

    def _sends_on(self, node: int, segment: int) -> bool:
        return self.world.options.attachments[node][0] == segment

    def begin(self) -> None:
        self._is_heard = False
        self.submit(self._sender, self.rng.choice((Service.AGREED, Service.SAFE)))

    def lets_here(self, source: int, target: int, packet: bytes) -> bool:
        if node_of(transmitter_of(packet)) != self._sender:
            return True
        if packet[KIND_AT] in self.data and not packet[FLAGS_AT] & RETRANSMITTED and self.side_of(target) == 1:
            if not self._is_heard:
                delay_max = self.world.options.delay_max_ns
                self.soon((delay_max, 2 * delay_max), self.cut)
            self._is_heard = True
        return not (self._is_heard and packet[KIND_AT] in self.tokens)
