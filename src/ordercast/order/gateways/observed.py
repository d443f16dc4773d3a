"""What a person sees of a network: its rings, who is attached where, what is next in the order and what that waits for.

`snapshot_of` reads the state of one process and changes nothing; it is made when somebody asks, and costs nothing in
between. Every process keeps the whole graph, so the snapshot of any process tells of all rings; what waits to be
carried, and merges under way, are told by those who are there.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import Enum

from ordercast.model.ids import ConfigurationId, ProcessId
from ordercast.order.gateways.items import NOBODY_ELSE, HoldItem, Processes, Stretch, domain_of
from ordercast.order.gateways.known import Known
from ordercast.order.gateways.merging import Flush
from ordercast.order.gateways.network import RingNetwork
from ordercast.order.gateways.streams import RingStream
from ordercast.order.gateways.timeline import ChangeKind, NextChange
from ordercast.order.stamped.lanes import Stamp, StampedRun

Names = tuple[ProcessId, ...]  # sorted


@dataclass(frozen=True, slots=True)
class SeenRing:
    """A part of the topology."""

    id: ConfigurationId
    domain: int
    members: Names  # those that still count
    gateways: Names
    front: Stamp
    undelivered: int  # packets of it that are here and wait
    is_own: bool  # this process is on it
    awaited: Names  # it has ended, and these gateways have not said so themselves


@dataclass(frozen=True, slots=True)
class SeenMerge:
    """A merge of logical rings on one of the own physical rings."""

    domain: int
    members: Names
    unmarked: Names  # who has not said where its past ends
    unspoken: Names  # who has not told the topology of its half, once all have marked


class WaitKind(Enum):
    """What is next in the order of the network."""

    MESSAGE = "a message"
    SAFE_MESSAGE = "a safe message"
    BIRTH = "the birth of a ring"
    MERGE = "a merge of rings"
    REMOVAL = "the end of a ring"


@dataclass(frozen=True, slots=True)
class Awaiting:
    """What is next in the order and cannot be done yet, and what it waits for."""

    kind: WaitKind
    stamp: Stamp
    ring: ConfigurationId  # whose packet or change it is
    originator: ProcessId | None  # of a message
    fronts: tuple[ConfigurationId, ...]  # rings that may still bring something below it
    processes: Names  # whose word is missing: that they have the message, or went along with the change
    for_disk: bool = False  # it waits for nothing else than that the clock's bound is stored here


@dataclass(frozen=True, slots=True)
class NetworkSnapshot:
    me: ProcessId
    view: ConfigurationId
    place: Stamp  # everything at or below it is done
    rings: tuple[SeenRing, ...]  # by domain
    attachments: tuple[tuple[ProcessId, tuple[int, ...]], ...]  # the domains of every member, by process
    silent: Names  # members that cannot be heard any more
    merges: tuple[SeenMerge, ...]
    holds: tuple[HoldItem, ...]  # of members who ask all users to stop sending
    waiting: Awaiting | None
    departed: Processes = NOBODY_ELSE  # who left in order, as far as is remembered

    @property
    def undelivered(self) -> int:
        return sum(ring.undelivered for ring in self.rings)

    @property
    def gateways(self) -> dict[ProcessId, tuple[int, ...]]:
        """Members that join domains, with the domains."""
        return {process: domains for process, domains in self.attachments if len(domains) > 1}


def snapshot_of(network: RingNetwork) -> NetworkSnapshot:
    known = network.known
    members = known.members
    return NetworkSnapshot(
        known.me,
        network.view.id,
        known.place,
        tuple(sorted((_ring(known, ring) for ring in known.parts), key=lambda ring: (ring.domain, ring.id))),
        _attachments(known),
        _names(members - known.heard),
        tuple(_merge(domain, flush) for domain, flush in sorted(network.merging.flushes.items())),
        tuple(network.holds.in_force(members)),
        _waiting(network),
        frozenset(known.departed),
    )


def _names(processes: Iterable[ProcessId]) -> Names:
    return tuple(sorted(processes))


def _attachments(known: Known) -> tuple[tuple[ProcessId, tuple[int, ...]], ...]:
    """Members are on the domains of the parts that list them."""
    domains: dict[ProcessId, set[int]] = {}
    for ring, members in known.parts.items():
        for process in members:
            domains.setdefault(process, set()).add(domain_of(ring))
    return tuple((process, tuple(sorted(of))) for process, of in sorted(domains.items()))


def _ring(known: Known, ring: ConfigurationId) -> SeenRing:
    stream, members, value = known.streams[ring], known.parts[ring], known.rings[ring]
    return SeenRing(
        ring,
        domain_of(ring),
        _names(members),
        _names(value.gateways & members),
        stream.front,
        sum(len(run.content.seqs) for run in stream.runs),
        ring in known.own.values(),
        _names(
            gateway
            for gateway in value.gateways & known.heard
            if gateway != known.me and known.ends.of(ring) and not known.ends.is_past(gateway, ring)
        ),
    )


def _merge(domain: int, flush: Flush) -> SeenMerge:
    members = flush.physical.members
    unmarked = members - flush.marks.keys()
    return SeenMerge(domain, _names(members), _names(unmarked), () if unmarked else _unspoken(flush))


def _unspoken(flush: Flush) -> Names:
    """Return who has to tell a topology and has not."""
    return _names(flush.speaker(half) for half in flush.halves if half.ring not in flush.topologies)


# What is next


def _waiting(network: RingNetwork) -> Awaiting | None:
    found = _next(network)
    if found is None or found.fronts or found.processes:
        return found
    return replace(found, for_disk=found.stamp > network.timeline.limit)


def _next(network: RingNetwork) -> Awaiting | None:
    known, change = network.known, network.timeline.next_change()
    lanes = [known.streams[ring] for ring in known.parts]
    packets = min((lane for lane in lanes if lane.runs), key=lambda lane: lane.runs[0].first, default=None)
    if packets is not None and (change is None or packets.runs[0].first < change.stamp):
        return _of_packets(network, packets.runs[0], lanes)
    return None if change is None else _of_change(network, change, lanes)


def _below(lanes: Iterable[RingStream], stamp: Stamp, numbers: int = 3) -> tuple[ConfigurationId, ...]:
    """Return the rings that may still bring something below a stamp."""
    return tuple(sorted(lane.ring for lane in lanes if lane.is_open and lane.front[:numbers] < stamp[:numbers]))


def _of_packets(network: RingNetwork, run: StampedRun[Stretch], lanes: Iterable[RingStream]) -> Awaiting | None:
    stretch, fronts = run.content, _below(lanes, run.first)
    lacking: Processes = frozenset()
    if stretch.is_safe and not fronts:
        last = stretch.between(len(stretch.seqs) - 1, len(stretch.seqs))
        lacking = network.coverage.lacking(last) or network.coverage.uncovered(run)
    kind = WaitKind.SAFE_MESSAGE if stretch.is_safe else WaitKind.MESSAGE
    return Awaiting(kind, run.first, stretch.ring, stretch.originator, fronts, _names(lacking))


# What is not here ends a ring, or what some of its members had to do with it.
_KINDS = {
    ChangeKind.BIRTH: WaitKind.BIRTH,
    ChangeKind.MERGE: WaitKind.MERGE,
    ChangeKind.RESIDUAL: WaitKind.MESSAGE,
}


def _of_change(network: RingNetwork, change: NextChange, lanes: Iterable[RingStream]) -> Awaiting:
    known = network.known
    fronts = _below(lanes, change.stamp, 2 if change.kind <= ChangeKind.MERGE else 3)
    originator, missing = None, _names(())
    if change.kind is ChangeKind.BIRTH and not fronts:
        missing = _names(network.timeline.disputing(known.rings[change.ring]))
    elif change.kind is ChangeKind.MERGE and not fronts:
        missing = _unspoken(next(each for each in network.merging.flushes.values() if each.merged == change.ring))
    elif change.kind is ChangeKind.RESIDUAL:
        packet = known.streams[change.ring].residual()
        assert packet is not None
        originator = packet.originator
        missing = _names(network.coverage.lacking(packet) & known.heard) if packet.is_safe and not fronts else missing
    return Awaiting(_KINDS.get(change.kind, WaitKind.REMOVAL), change.stamp, change.ring, originator, fronts, missing)
