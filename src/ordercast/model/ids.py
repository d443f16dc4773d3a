"""Identities and numbers that must not be mixed.

A daemon is (node, incarnation). The driver supplies an incarnation that never repeats, so a restarted node is a new
process: nothing that was said to or by its former life can be taken for the new one's. Both fit in one 64-bit
`ProcessId`, which is what travels, what is compared and by what members are sorted.
"""

from __future__ import annotations

from typing import NamedTuple, NewType

NodeId = NewType("NodeId", int)  # which host of the cluster: 0 to NODE_MAX, from the configuration
Incarnation = NewType("Incarnation", int)  # which life of that host: 1 to INCARNATION_MAX, never the same again
ProcessId = NewType("ProcessId", int)  # both in one number, ordered by node first
Seq = NewType("Seq", int)  # place of a packet in the order of its configuration, from 1
TokenSeq = NewType("TokenSeq", int)  # how often this ring's token was forwarded
Instant = NewType("Instant", int)  # nanoseconds on the driver's monotonic clock
Duration = NewType("Duration", int)  # nanoseconds
Attachment = NewType("Attachment", int)  # which broadcast domain of this process a packet belongs to

NODE_MAX = 0x7FFF
INCARNATION_BITS = 48
INCARNATION_MAX = (1 << INCARNATION_BITS) - 1
NOBODY = ProcessId(0)  # on the wire: no process; a real one has an incarnation of at least 1

MICROSECOND = 1_000
MILLISECOND = 1_000_000
SECOND = 1_000_000_000


def process_id_from(node: NodeId, incarnation: Incarnation) -> ProcessId:
    if not 0 <= node <= NODE_MAX:
        raise ValueError(f"node id {node} is outside 0..{NODE_MAX}")
    if not 1 <= incarnation <= INCARNATION_MAX:
        raise ValueError(f"incarnation {incarnation} is outside 1..{INCARNATION_MAX}")
    return ProcessId(node << INCARNATION_BITS | incarnation)


def node_of(process: ProcessId) -> NodeId:
    return NodeId(process >> INCARNATION_BITS)


def incarnation_of(process: ProcessId) -> Incarnation:
    return Incarnation(process & INCARNATION_MAX)


def process_text(process: ProcessId) -> str:
    """`n3` for node 3; from its second life on `n3'2`."""
    incarnation = incarnation_of(process)
    return f"n{node_of(process)}" if incarnation == 1 else f"n{node_of(process)}'{incarnation}"


class ConfigurationId(NamedTuple):
    """Names a regular or a transitional configuration. Sorted by seq, then representative: that order is the order of
    configurations at every process that passes through several."""

    seq: int
    representative: ProcessId

    def __str__(self) -> str:
        return f"{self.seq}.{process_text(self.representative)}"


NO_CONFIGURATION = ConfigurationId(0, NOBODY)
NO_SEQ = Seq(0)  # before the first packet
MAIN = Attachment(0)  # the only attachment of an engine that has one


class Position(NamedTuple):
    """Names the place of a message in the order: the same at every process that delivers it, unique across partitions.

    Each engine fills the four numbers in its own way; numbers may leave gaps. Above the engine a position is compared,
    stored and shown, never computed with, and says nothing of the configuration in which the message is delivered. A
    configuration has a position too. Whether a later message has a greater position is a promise of the engine. One
    thing a position does say: whether its message `is_again` in the order.

    A ring: its own id, the seq of the packet that completes the message, the message's place in that packet. A regular
    configuration is at (ring, 0, 0), a transitional one at (ring that ends, last seq delivered in it, SLOT_MAX).
    """

    origin: ConfigurationId
    number: int  # 0 to POSITION_NUMBER_MAX
    slot: int  # 0 to SLOT_MAX

    def __str__(self) -> str:
        """Return the place as people read and write it, with the node of the process alone: `12.n1:4.0`."""
        seq, representative = self.origin
        return f"{seq}.n{node_of(representative)}:{self.number}.{self.slot}"


POSITION_NUMBER_MAX = (1 << 63) - 1  # what a signed column holds
SLOT_MAX = 0xFFFF
AGAIN_SLOT = 0x4000  # in the slots of what is in the order again
NO_POSITION = Position(NO_CONFIGURATION, 0, 0)


class Places(NamedTuple):
    """The positions of messages in a row that fill packets of `each` messages: the packets are numbered from `number`
    on, the slots in each from `base` on, and the first message of the row is number `first` of these packets."""

    origin: ConfigurationId
    number: int
    base: int
    each: int
    first: int

    def at(self, index: int) -> Position:
        """Return the position of the message at this index of the row, from 0."""
        origin, number, base, each, first = self
        index += first
        return Position(origin, number + index // each, base + index % each)

    @property
    def is_again(self) -> bool:
        """Whether the source has sent these messages again, because it could not know whether they had a place in a
        configuration that has ended: others, who were cut off, may have delivered them there."""
        return bool(self.base & AGAIN_SLOT)

    def after(self, count: int) -> Places:
        """Return the places of the same row without so many messages at its beginning."""
        return Places(self.origin, self.number, self.base, self.each, self.first + count)

    def last(self, count: int) -> Position:
        """Return the position of the last message of a row of so many."""
        return self.at(count - 1)
