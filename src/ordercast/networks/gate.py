"""The token that waits: its copies, its timer, and which of its copies still count.

A token is named by its ring and the number of its hop; both are in its bytes, and bytes compare as they do. One token
waits at a time: a newer one cannot come before this one has gone round, unless there is a new ring. A copy that comes
after its token went up is dropped. Tokens of rings that this process has not agreed to are let through: the engine
knows better, and they must not push out a token that waits.
"""

from __future__ import annotations

import struct
from enum import Enum

from ordercast.model.ids import ConfigurationId, Instant, ProcessId, Seq
from ordercast.model.inputs import Packet
from ordercast.wire.header import HEADER_SIZE, PREFIX, MessageKind, prefix_of

PREFIX_SIZE = PREFIX.size
NUMBER_AT, NUMBER_END = HEADER_SIZE, HEADER_SIZE + 8  # where a token has the number of its hop
RING = struct.Struct(">12xQQ")  # where a packet has its ring
_SEQ = struct.Struct(">48xQ")


class Arrival(Enum):
    NEW = "new"
    COPY = "copy"  # of the one that waits
    LATE = "late"  # of one that went up, or older
    FOREIGN = "foreign"  # of another ring


class Gate:
    __slots__ = ("_cluster", "_key", "_newest", "before", "brought", "deadline", "packet", "ring", "seq")

    def __init__(self, cluster: bytes) -> None:
        self._cluster = cluster
        self._key = b""  # of the newest ring that this process has agreed to: the prefix of its tokens
        self._newest = b""  # the number of the newest token of that ring
        self.packet: Packet | None = None  # the newest token, while it waits
        self.brought = 0  # the networks that brought it, as bits
        self.deadline: Instant | None = None
        self.ring = ConfigurationId(0, ProcessId(0))
        self.seq = Seq(0)  # the highest seq that the waiting token speaks of
        self.before = Seq(0)  # the highest seq of the token before it: what is missing up to there is asked for

    def take(self, packet: Packet, data: bytes, deadline: Instant) -> Arrival:
        """A token has come, whole at least up to its number."""
        if data[:PREFIX_SIZE] != self._key:
            return Arrival.FOREIGN
        number = data[NUMBER_AT:NUMBER_END]
        if number == self._newest and self.packet is not None:
            self.brought |= 1 << packet.network
            return Arrival.COPY
        if number <= self._newest:
            return Arrival.LATE
        self._newest = number
        self.packet = packet
        self.brought = 1 << packet.network
        self.deadline = deadline
        self.seq = Seq(_SEQ.unpack_from(data)[0])
        return Arrival.NEW

    @property
    def token_seq(self) -> int:
        return int.from_bytes(self._newest, "big")

    def release(self) -> Packet:
        """It goes up; later copies are dropped."""
        packet, self.packet, self.deadline = self.packet, None, None
        assert packet is not None
        self.before = self.seq
        return packet

    def expect(self, ring: ConfigurationId) -> None:
        """This process has agreed to a ring, or installed it: a token of an earlier one waits for nothing."""
        if ring > self.ring:
            self.ring = ring
            self._key = prefix_of(MessageKind.TOKEN, self._cluster, ring)
            self._newest = b""
            self.before = Seq(0)
            self.packet = self.deadline = None
