"""Items: what travels on the rings of a network, as values. Their bytes are another module's business.

`Stretch` is data, everything else is control. Each is said by one process and never changes; whoever hears it takes it
or drops it. An item that a gateway puts on a ring is wrapped in `Carried`, which says under which conditions it counts.

The words are those of `docs/internals/gateways.md`. A process stands for itself on all its attachments with one id. A
*stamp* is a place in the order of the network, without the slot of a message: (tick, tag of the logical ring, seq).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import NamedTuple

from ordercast.model.configuration import ChangeReason
from ordercast.model.ids import ConfigurationId, ProcessId
from ordercast.order.attached import SEQ_STEP, SEQS_PER_DOMAIN
from ordercast.order.stamped.lanes import NO_STAMP, Stamp

CAP = -1  # in the place of the seq: just below a pending merge

EVERYTHING = (1 << 64) - 1  # the mask of a packet that all rings must have

Processes = frozenset[ProcessId]
NOBODY_ELSE: Processes = frozenset()


def domain_of(ring: ConfigurationId) -> int:
    """Return the number of the broadcast domain on which a physical or logical ring lies."""
    return ring.seq % SEQ_STEP // SEQS_PER_DOMAIN


def merged_id(physical: ConfigurationId) -> ConfigurationId:
    """Return the id of the logical ring that all members of a physical ring form, once their pasts are one."""
    return ConfigurationId(physical.seq + 1, physical.representative)


def tag_of(ring: ConfigurationId) -> int:
    """Return the number that stands for a logical ring in stamps: 63 bits, so that a signed column holds it."""
    seq, representative = ring
    digest = blake2b(seq.to_bytes(8, "big") + representative.to_bytes(8, "big"), digest_size=8)
    return int.from_bytes(digest.digest(), "big") >> 1


class Half(NamedTuple):
    """Members of a logical ring who went on together: which ring, and who."""

    ring: ConfigurationId
    members: Processes


@dataclass(frozen=True, slots=True)
class LogicalRing:
    """Members of a physical ring who share one past. Its birth is an event in the order of the network."""

    id: ConfigurationId
    members: Processes
    gateways: Processes  # members with more than one attachment
    tick: int  # of its birth
    halves: tuple[Half, ...] = ()  # of a merge: the logical rings that became this one, sorted by id
    topologies: tuple[TopologyItem, ...] = field(default=(), compare=False)  # of a merge: what each half said of itself
    tag: int = field(init=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "tag", tag_of(self.id))

    def __hash__(self) -> int:
        return hash(self.id)

    @property
    def birth(self) -> Stamp:
        return (self.tick, self.tag, 0)

    @property
    def is_merge(self) -> bool:
        return bool(self.topologies)

    def bare(self) -> LogicalRing:
        """Return the ring without what was said at its birth: enough for whoever knows it to be born."""
        return LogicalRing(self.id, self.members, self.gateways, self.tick, self.halves) if self.topologies else self


@dataclass(frozen=True, slots=True)
class Stretch:
    """Packets of users in a row: of one token visit, so of one originator and one tick, and of one class."""

    ring: ConfigurationId  # the logical ring on which they were numbered
    tick: int
    originator: ProcessId
    seqs: Sequence[int]  # rising; between them the ring carried other things; a range, as read from a ring in a row
    bodies: Sequence[bytes]
    is_safe: bool = False  # a message in them asks for safe delivery in the network
    mask: int = EVERYTHING  # buckets of the groups that want one of them
    interest: InterestItem | None = None  # a packet of its own in which its originator speaks of itself

    @property
    def is_hollow(self) -> bool:
        """Whether only seqs were carried here, because nobody here wants the packets."""
        return not self.bodies

    def hollow(self) -> Stretch:
        """Return what tells that there were packets: each safe one, for members may have to leave just before it; of
        others the last, for all before it is below."""
        return replace(self, seqs=self.seqs if self.is_safe else self.seqs[-1:], bodies=())

    def between(self, start: int, stop: int) -> Stretch:
        """Return some of the packets, by their place in the stretch."""
        if start == 0 and stop >= len(self.seqs):
            return self
        return replace(self, seqs=self.seqs[start:stop], bodies=self.bodies[start:stop])


@dataclass(frozen=True, slots=True)
class HelloItem:
    """A member's first packet on a new physical ring: its delivery proves that all have installed the ring."""

    ring: ConfigurationId  # physical


@dataclass(frozen=True, slots=True)
class EndItem:
    """A logical ring ended for one half, which goes on as the successor."""

    ring: ConfigurationId
    half: Processes
    successor: LogicalRing
    sure: Processes  # who went on, by their own word or by what all of them are known to have
    reason: ChangeReason = ChangeReason.RING_REFORMED  # why, as the ring itself says it: equal at all of the half

    @property
    def stamp(self) -> Stamp:
        return self.successor.birth


class Column(NamedTuple):
    """Names a column of the guarantee array: regular content of a source, or the residual content of one half of it."""

    source: ConfigurationId
    half: Processes | None


class Statement(NamedTuple):
    """All of a ring have a source up to here."""

    column: Column
    stamp: Stamp


@dataclass(frozen=True, slots=True)
class NoticeItem:
    """What a gateway says of a ring it is on: how far all of the ring is known, and what all of its members have."""

    ring: ConfigurationId
    by: ProcessId
    front: Stamp
    entries: tuple[Statement, ...]  # those that rose, sorted
    half: Processes | None = None  # the entries speak of these members only, of a ring that has ended
    stable: Stamp = NO_STAMP  # all members of the ring are past this place

    @property
    def is_cap(self) -> bool:
        """Whether the front is just below a pending merge: whoever hears it wants fronts up to there."""
        return self.front[2] == CAP

    @property
    def stamp(self) -> Stamp:
        """The age of a notice is that of its newest entry."""
        return max((self.front, *(entry.stamp for entry in self.entries)))


@dataclass(frozen=True, slots=True)
class MarkItem:
    """A member's last word on a physical ring before its logical rings merge: from here on it sends no natives."""

    ring: ConfigurationId  # physical
    logical: ConfigurationId
    by: ProcessId
    clock: int
    domains: tuple[int, ...]  # of its attachments: two or more make a gateway

    @property
    def is_gateway(self) -> bool:
        return len(self.domains) > 1


class OwnWord(NamedTuple):
    """A gateway has left a ring for a successor, as it said itself."""

    gateway: ProcessId
    ring: ConfigurationId
    successor: ConfigurationId


class Base(NamedTuple):
    """Where an attachment was last listed in the logical past of the speaker."""

    process: ProcessId
    domain: int
    ring: ConfigurationId


class TopologyPart(NamedTuple):
    """A part of the topology: a logical ring, and those of its members that still count."""

    ring: LogicalRing  # bare
    members: Processes
    lost: Processes = NOBODY_ELSE  # of an ended ring: nothing more is known of them, so they left where it ended


class BegunMessage(NamedTuple):
    """A message in parts that lies on both sides of a merge: its parts up to there. Who comes to the merge from
    elsewhere will have the others, and must deliver the message like everybody."""

    originator: ProcessId
    sender: int
    stamp: Stamp  # of its first part
    data: bytes


@dataclass(frozen=True, slots=True)
class TopologyItem:
    """The logical state of one half just before it merges with the others on its physical ring."""

    physical: ConfigurationId
    ring: ConfigurationId  # the half's own logical ring
    by: ProcessId
    view: ConfigurationId
    reachable: Processes  # members of the view that the speaker can still hear
    parts: tuple[TopologyPart, ...]  # sorted by ring
    bases: tuple[Base, ...]  # sorted
    ends: tuple[EndItem, ...]  # of the parts, up to the merge; successors are bare
    words: tuple[OwnWord, ...]  # up to the merge, sorted
    masks: tuple[tuple[ProcessId, int], ...] = ()  # interest, sorted
    holds: tuple[HoldItem, ...] = ()  # of members of the view, sorted by process
    begun: tuple[BegunMessage, ...] = ()  # sorted


@dataclass(frozen=True, slots=True)
class HoldItem:
    """A process asks all users to stop sending, or takes it back."""

    process: ProcessId
    number: int  # rises with each; the highest counts
    reason: str  # empty: it holds no more

    @property
    def is_on(self) -> bool:
        return bool(self.reason)


@dataclass(frozen=True, slots=True)
class InterestItem:
    """A process tells the buckets of all groups that it wants. It travels as a native, safe packet."""

    process: ProcessId
    mask: int
    is_return: bool = False  # it came alone to a merge, and is from here on in the view that the others are in


# What gateways flood through the network, and what stays on the ring where it was said.
Flooded = Stretch | EndItem | NoticeItem | HoldItem
Local = HelloItem | MarkItem | TopologyItem


class Carried(NamedTuple):
    """An item as a process puts it on a ring that is not its source, or control of its own."""

    item: Flooded | Local
    since: Stamp = NO_STAMP  # the merge that brought the youngest link of its way; nothing at or below it is taken
    half: Processes | None = (
        None  # residual packets: delivered by this half of their ring in its transitional configuration
    )
