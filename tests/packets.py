"""What tests read from data packets, field by field."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ordercast.model.effects import Parcel
from ordercast.model.ids import ConfigurationId, ProcessId, Seq, node_of
from ordercast.order.gateways.bodies import BODY_HEAD, AlikeBodies
from ordercast.order.gateways.packets import bodies_of, body_of, is_in_parts, parts_in
from ordercast.trace.records import Event, Installed
from ordercast.wire.header import (
    DESCRIPTOR_SIZE,
    DESCRIPTORS,
    HEADER,
    HEADER_SIZE,
    ORIGIN,
    RECOVERED,
    digest_of,
)
from ordercast.wire.run import PacketRun


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


def messages_of(run: PacketRun) -> tuple[Parcel, bytes]:
    """The messages of packets with a block, which are in their bytes alone, and which parts they are."""
    if is_in_parts(run):
        body = body_of(run, run.seq)
        (sender,), service = DESCRIPTORS[1].unpack_from(body, BODY_HEAD)[:1], body[BODY_HEAD + DESCRIPTOR_SIZE - 1]
        parts, payloads = parts_in(run)
        texts = [bytes(payload) for payload in payloads]
        return (run.seq, run.originator, (sender,) * run.count, bytes((service,)) * run.count, texts, 1, 0), parts
    bodies = bodies_of([run])
    assert isinstance(bodies, AlikeBodies)
    return bodies.parcel(run.seq, run.originator), b""
