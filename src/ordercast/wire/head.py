"""The clear head of every packet between daemons, whatever engine sends it. Engines never import each other's bytes: a
layer below them knows this head, and asks the engine for what lies behind (`order.engine.Traffic`).

    0   magic 2, version 1
    3   key 1          with which all behind the head is sealed; 0: it is clear
    4   length 2       of the whole packet: several packets may come in one read
    6   cluster 8      keeps strangers on one multicast group apart
    14  transmitter 8  the process that sent this packet
    22  kind 1         the first byte of what is the engine's own; each engine numbers its kinds

A sealed packet will have 17 bytes in the place of the head and a tag of 16 behind: `SEAL_ROOM` bytes more. Every packet
size leaves that room, so that sealing costs no message a second packet.
"""

from __future__ import annotations

import hashlib
import struct
from typing import Final

from ordercast.model.errors import WireError
from ordercast.model.ids import ProcessId

MAGIC: Final = b"oC"
VERSION: Final = 3
CLEAR: Final = 0  # the key of packets that are not sealed
CLUSTER_SIZE: Final = 8
FIRST_ENGINE: Final = "ring"  # its name is not part of the id: it was there before there were others
LENGTH_AT: Final = 4
TRANSMITTER_AT: Final = 14
KIND_AT: Final = 22
PACKET_SIZE_MAX: Final = 65507  # what one UDP datagram can carry

HEAD: Final = struct.Struct(">4sH8sQ")  # opening, length, cluster, transmitter
HEAD_SIZE: Final = HEAD.size
OPENING: Final = MAGIC + bytes((VERSION, CLEAR))  # the first bytes of every clear packet
CLUSTER: Final = slice(6, 14)
TRANSMITTER: Final = slice(14, 22)
SEAL_ROOM: Final = 17 + 16 - HEAD_SIZE
LAYER_KIND: Final = 255  # of packets of the layer with several networks; no engine uses it
assert HEAD_SIZE == KIND_AT == 22

SEALED: Final = "sealed with key"  # how a packet is refused that a process without keys cannot open

_TRANSMITTER = struct.Struct(">14xQ")
_OLD_CLUSTER, _OLD_TRANSMITTER = slice(4, 12), slice(32, 40)  # where versions before 3 had them


class OtherVersion(WireError):
    """A packet of this cluster in a wire version that this process does not speak."""

    def __init__(self, version: int, transmitter: ProcessId | None) -> None:
        super().__init__(f"wire version {version}, we speak {VERSION}")
        self.version = version
        self.transmitter = transmitter  # None: the packet is too short to say


def cluster_id_from(name: str, engine: str = FIRST_ENGINE, domain: str | None = None) -> bytes:
    """Eight bytes that keep strangers on one multicast group apart, and nodes of a cluster that run another engine, or
    are in another broadcast domain of a network of rings."""
    text = name if engine == FIRST_ENGINE else f"{name}\0{engine}"
    text = text if domain is None else f"{text}\0{domain}"
    return hashlib.blake2b(text.encode(), digest_size=CLUSTER_SIZE).digest()


def with_head(cluster: bytes, transmitter: ProcessId, rest: bytes) -> bytes:
    """The packet that says this, kind first."""
    return HEAD.pack(OPENING, HEAD_SIZE + len(rest), cluster, transmitter) + rest


def transmitter_of(data: bytes, at: int = 0) -> ProcessId:
    """Who sent the packet that begins there."""
    return ProcessId(_TRANSMITTER.unpack_from(data, at)[0])


def kind_of(packet: bytes, cluster: bytes) -> int:
    """Check the head of a whole packet and return its kind. Raises WireError for strangers and garbage, OtherVersion
    for packets of this cluster in another version."""
    if len(packet) > HEAD_SIZE:
        opening, length, its_cluster, transmitter = HEAD.unpack_from(packet)
        if opening == OPENING and its_cluster == cluster and length == len(packet) and transmitter:
            return packet[KIND_AT]
    raise _fault(packet, cluster)


def is_of_another_cluster(packet: bytes, cluster: bytes) -> bool:
    """Whether a packet is sound as far as its clear head goes, and of another cluster, or of another engine."""
    if len(packet) <= HEAD_SIZE:
        return False
    opening, length, its_cluster, transmitter = HEAD.unpack_from(packet)
    return bool(opening == OPENING and length == len(packet) and its_cluster != cluster and transmitter)


def _fault(packet: bytes, cluster: bytes) -> WireError:
    """Return what is wrong with a packet's head, the first thing first."""
    if packet[:2] != MAGIC:
        return WireError("not an Ordercast packet")
    if len(packet) <= HEAD_SIZE:
        return WireError("shorter than a head")
    if packet[2] != VERSION:
        return _other_version(packet, cluster)
    if packet[3] != CLEAR:  # where the cluster stands in the clear there is a seal
        return WireError(f"{SEALED} {packet[3]}, and this process has no keys")
    if packet[CLUSTER] != cluster:
        return WireError("another cluster's packet")
    _, length, _, _ = HEAD.unpack_from(packet)
    if length != len(packet):
        return WireError(f"the head says {length} bytes, {len(packet)} came")
    return WireError("a packet that nobody sent")


def _other_version(packet: bytes, cluster: bytes) -> WireError:
    version = packet[2]
    is_old = version < VERSION
    if packet[_OLD_CLUSTER if is_old else CLUSTER] != cluster:
        return WireError("another cluster's packet, in another wire version")
    transmitter = packet[_OLD_TRANSMITTER if is_old else TRANSMITTER]
    return OtherVersion(version, ProcessId(int.from_bytes(transmitter, "big")) if len(transmitter) == 8 else None)
