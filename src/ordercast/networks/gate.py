"""The token that waits: its copies, its timer, and which of its copies still count.

A token is named by its configuration and a number that rises, which its engine reads from its bytes. One token waits at
a time: a newer one cannot come before this one has gone round, unless there is a new configuration. A copy that comes
after its token went up is dropped. Tokens of configurations that this process has not agreed to are let through: the
engine knows better, and they must not push out a token that waits.
"""

from __future__ import annotations

from enum import Enum

from ordercast.model.ids import NO_CONFIGURATION, ConfigurationId, Instant, Seq
from ordercast.model.inputs import Packet
from ordercast.order.traffic import TokenName


class Arrival(Enum):
    NEW = "new"
    COPY = "copy"  # of the one that waits
    LATE = "late"  # of one that went up, or older
    FOREIGN = "foreign"  # of another configuration


class Gate:
    __slots__ = ("before", "brought", "deadline", "packet", "ring", "seq", "token_seq")

    def __init__(self) -> None:
        self.token_seq = -1  # the number of the newest token of the configuration
        self.packet: Packet | None = None  # the newest token, while it waits
        self.brought = 0  # the networks that brought it, as bits
        self.deadline: Instant | None = None
        self.ring = NO_CONFIGURATION  # the newest to which this process has agreed
        self.seq = Seq(0)  # the highest seq that the waiting token speaks of
        self.before = Seq(0)  # the highest seq of the token before it: what is missing up to there is asked for

    def take(self, packet: Packet, name: TokenName, deadline: Instant) -> Arrival:
        """A token has come."""
        ring, number, seq = name
        if ring != self.ring:
            return Arrival.FOREIGN
        if number == self.token_seq and self.packet is not None:
            self.brought |= 1 << packet.network
            return Arrival.COPY
        if number <= self.token_seq:
            return Arrival.LATE
        self.token_seq = number
        self.packet = packet
        self.brought = 1 << packet.network
        self.deadline = deadline
        self.seq = seq
        return Arrival.NEW

    def release(self) -> Packet:
        """It goes up; later copies are dropped."""
        packet, self.packet, self.deadline = self.packet, None, None
        assert packet is not None
        self.before = self.seq
        return packet

    def expect(self, ring: ConfigurationId) -> None:
        """This process has agreed to a configuration, or installed it: a token of an earlier one waits for nothing."""
        if ring > self.ring:
            self.ring = ring
            self.token_seq = -1
            self.before = Seq(0)
            self.packet = self.deadline = None
