"""What tests read from data packets, field by field."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ordercast.model.ids import ConfigurationId, ProcessId, Seq, node_of
from ordercast.trace.records import Event, Installed
from ordercast.wire.header import HEADER, HEADER_SIZE, ORIGIN, RECOVERED, digest_of


class DataHeader(NamedTuple):
    """The header of a data packet, with the clear head, as it stands in the bytes."""

    opening: bytes
    length: int
    cluster: bytes
    transmitter: ProcessId
    ring: bytes  # the kind, and the digest of the ring
    flags: int
    messages: int
    place: int
    seq: Seq
    round: int
    timestamp: int

    @property
    def digest(self) -> bytes:
        return self.ring[1:]


def header_of(packet: bytes) -> DataHeader:
    return DataHeader(*HEADER.unpack_from(packet))


def seq_of(packet: bytes) -> int:
    return header_of(packet).seq


def is_of_ring(packet: bytes, ring: ConfigurationId) -> bool:
    return header_of(packet).digest == digest_of(ring)


def originator_of(packet: bytes, events: Iterable[Event]) -> int:
    """The node that numbered a data packet, which somebody has installed the ring of."""
    header = header_of(packet)
    digest, place = header.digest, header.place
    if header.flags & RECOVERED:
        digest, _, place = ORIGIN.unpack_from(packet, HEADER_SIZE)
    for event in events:
        if isinstance(event, Installed) and digest_of(event.configuration.id) == digest:
            return node_of(event.configuration.members[place])
    raise AssertionError("a data packet of a ring that nobody has installed")
