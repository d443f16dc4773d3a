"""What layers beneath an engine, and simulators, may know of its packets. The clear head is the same in all
(`wire.head`); what lies behind, kind first, is the engine's own, and it answers here for it.
"""

from __future__ import annotations

from typing import NamedTuple

from ordercast.model.ids import ConfigurationId, Seq
from ordercast.wire.head import KIND_AT


class TokenName(NamedTuple):
    """Names a token, and tells how far the messages before it go."""

    configuration: ConfigurationId
    number: int  # rises with every token of the configuration
    seq: Seq  # the highest number that a message has


class Traffic:
    """An engine without tokens and announcements. Kinds are the byte behind the head; what is none of these is sent on
    every network, and not counted."""

    data: frozenset[int] = frozenset()  # kinds that are spread over networks, and counted by transmitter
    tokens: frozenset[int] = frozenset()  # kinds that wait below until they may go up
    announcements: frozenset[int] = frozenset()  # kinds that everybody sends now and then, and that are counted

    def counted_kind(self, packet: bytes) -> int:
        """The kind by which a packet is counted: of a message that travels in pieces the first one counts for all."""
        return packet[KIND_AT]

    def token(self, packet: bytes) -> TokenName | None:
        """The name of a token; None when the packet is too short to have one."""
        return None

    def agreed(self, packet: bytes) -> ConfigurationId | None:
        """The configuration to which this process agrees with a packet that it sends to another: its tokens may come
        before it is installed."""
        return None

    def name(self, packet: bytes) -> bytes | None:
        """Bytes that the copies of one packet share, and no other packet has; None for what has no number."""
        return None
