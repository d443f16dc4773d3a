"""A test engine that only speaks: on every attachment and lane it sends at a beat, and notes what it hears.

It orders nothing and promises nothing. Its one configuration has all hosts from the start, so runs with it settle as
long as nobody crashes.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from ordercast.model.configuration import ChangeReason, Configuration, ConfigurationKind
from ordercast.model.effects import Broadcast, Effect, Install, LeaveDone, SendTo, Unicast
from ordercast.model.ids import (
    MAIN,
    MILLISECOND,
    NO_CONFIGURATION,
    NODE_MAX,
    Attachment,
    ConfigurationId,
    Incarnation,
    Instant,
    NodeId,
    Position,
    ProcessId,
    Seq,
    process_id_from,
)
from ordercast.model.inputs import Lane, Packet
from ordercast.model.promises import Promises
from ordercast.model.service import Service
from ordercast.order.catalogue import ENGINES
from ordercast.order.traffic import Traffic
from ordercast.sim.options import SimOptions
from ordercast.sim.run import Result, simulate
from ordercast.sim.topology import SEGMENTS_MAX

ENGINE = "speaker"
BEAT_NS = 2 * MILLISECOND
_WORD = struct.Struct("!HBI")
SIZE = 64  # of a packet: more than a head, behind which a packet says its kind
TRAFFIC = Traffic()  # nothing that a network treats apart


class Heard(NamedTuple):
    """One packet as it came: where, and what its sender said of itself."""

    at: int
    node: int
    attachment: int
    lane: Lane
    source: int
    spoken_on: int  # the sender's attachment
    number: int


def process_of(node: int) -> ProcessId:
    return process_id_from(NodeId(node), Incarnation(1))


@dataclass
class Speaker:
    node: int
    options: SimOptions
    log: list[Heard]
    size: int = SIZE
    _next: int = 0
    _number: int = 0
    _is_leaving: bool = False
    traffic: Traffic = TRAFFIC
    promises: Promises = field(
        default_factory=lambda: Promises(ENGINE, frozenset(), frozenset({Service.UNRELIABLE}), 1 << 16)
    )

    def start(self, stored: Mapping[str, bytes], incarnation: Incarnation, now: Instant) -> list[Effect]:
        members = tuple(process_of(node) for node in range(self.options.nodes))
        id = ConfigurationId(4, members[0])
        position = Position(id, Seq(0), 0)
        kind, reason = ConfigurationKind.REGULAR, ChangeReason.STARTED
        self._next = now + BEAT_NS
        return [Install(Configuration(kind, id, members, NO_CONFIGURATION, (process_of(self.node),), reason, position))]

    def wake(self, now: Instant) -> list[Effect]:
        if self._is_leaving:
            return [LeaveDone()]
        self._next = now + BEAT_NS
        self._number += 1
        effects: list[Effect] = []
        for attachment in range(len(self.options.segments_of(self.node))):
            word = _WORD.pack(self.node, attachment, self._number).ljust(self.size, b"\0")
            effects.append(Broadcast([(word, len(word))], Attachment(attachment)))
            others = [other for other in range(self.options.nodes) if other != self.node]
            effects += [SendTo(process_of(other), word, Attachment(attachment)) for other in others]
            burst = [(word * 2, len(word))]
            effects += [Unicast(process_of(other), burst, Attachment(attachment)) for other in others]
        return effects

    def receive(self, packets: Sequence[Packet], now: Instant) -> list[Effect]:
        for packet in packets:
            source, spoken_on, number = _WORD.unpack_from(packet.data)
            self.log.append(Heard(now, self.node, packet.attachment, packet.lane, source, spoken_on, number))
        return []

    def next_deadline(self) -> Instant | None:
        return Instant(self._next) if self._is_leaving or self._next < self.options.fault_time_ns else None

    def leave(self, now: Instant) -> list[Effect]:
        """A beat later."""
        self._is_leaving, self._next = True, now + BEAT_NS
        return []

    def room(self) -> int:
        return 0

    def is_idle(self) -> bool:
        return True

    def first_lane(self, attachment: Attachment = MAIN) -> Lane:
        return Lane.DATA

    def check_invariants(self, *, thorough: bool = True) -> None:
        pass


def speak(options: SimOptions, seed: int = 1, size: int = SIZE, **more: Any) -> tuple[Result, list[Heard]]:
    """Run speakers on every host, `more` being for `simulate`; what all of them heard, in the order of hearing."""
    log: list[Heard] = []

    def make(node: NodeId) -> Any:
        return Speaker(node, options, log, size)

    ENGINES[ENGINE] = replace(
        ENGINES["ring"], name=ENGINE, traffic=TRAFFIC, nodes_max=NODE_MAX, attachments_max=SEGMENTS_MAX
    )
    try:
        return simulate(options, seed, make_engine=make, **more), log
    finally:
        del ENGINES[ENGINE]
