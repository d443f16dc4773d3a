"""A roster as bytes: on the wire, in ordered messages and in stable storage.

    version 4 | flags 1 | entries 2, each: node 2, name: length 1, bytes | places 1, each: address: length 1, bytes |
    token port 2, data port 2

`decode_roster` raises WireError and nothing else. What it returns has passed the checks that a file passes.
"""

from __future__ import annotations

import re
import struct
from ipaddress import ip_address

from ordercast.model.errors import UsageError, WireError
from ordercast.model.ids import NODE_MAX, NodeId
from ordercast.model.roster import Entry, Place, Roster
from ordercast.wire.reader import ByteReader

NAME_SIZE_MAX = 64
NODES_MAX = 1000
PLACES_MAX = 16
ORDERED = 1  # flag

_FIXED = struct.Struct(">IBH")
_NODE = struct.Struct(">HB")
_PORTS = struct.Struct(">HH")
_PLAIN = re.compile(r"[$-.0-?A-~]+")  # as `groups.names` has it, and no slash: names become file names


def encode_roster(roster: Roster) -> bytes:
    pieces = [_FIXED.pack(roster.version, ORDERED * roster.is_ordered, len(roster.entries))]
    for entry in roster.entries:
        name = entry.name.encode()
        pieces += (_NODE.pack(entry.node, len(name)), name, bytes((len(entry.places),)))
        for place in entry.places:
            address = ip_address(place.address).packed
            pieces += (bytes((len(address),)), address, _PORTS.pack(place.token_port, place.data_port))
    return b"".join(pieces)


def decode_roster(data: bytes) -> Roster:
    reader = ByteReader(data, what="a node list")
    roster = read_roster(reader)
    reader.end()
    return roster


def read_roster(reader: ByteReader) -> Roster:
    """The roster that begins where the reader is."""
    version, flags, count = reader.unpack(_FIXED)
    if flags > ORDERED or count > NODES_MAX:
        raise WireError("a node list with impossible flags or too many nodes")
    try:
        return Roster(version, tuple(_read_entry(reader) for _ in range(count)), bool(flags & ORDERED))
    except (ValueError, UsageError) as error:
        raise WireError(f"a node list that cannot be read: {error}") from None


def _read_entry(reader: ByteReader) -> Entry:
    node, size = reader.unpack(_NODE)
    name = str(reader.take(size), "ascii")
    if size > NAME_SIZE_MAX or not _PLAIN.fullmatch(name) or node > NODE_MAX:
        raise ValueError("a node whose name or id cannot be")
    count = reader.byte()
    if not 1 <= count <= PLACES_MAX:
        raise ValueError(f"a node with {count} addresses")
    return Entry(NodeId(node), name, tuple(_read_place(reader) for _ in range(count)))


def _read_place(reader: ByteReader) -> Place:
    size = reader.byte()
    if size not in (4, 16):
        raise ValueError("an address that is neither IPv4 nor IPv6")
    address = str(ip_address(reader.take(size)))
    token_port, data_port = reader.unpack(_PORTS)
    if not token_port or not data_port:
        raise ValueError("a port of zero")
    return Place(address, token_port, data_port)
