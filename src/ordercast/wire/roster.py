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
    roster, at = read_roster(data)
    if at != len(data):
        raise WireError(f"{len(data) - at} bytes too many behind a node list")
    return roster


def read_roster(data: bytes, at: int = 0) -> tuple[Roster, int]:
    """The roster that begins here, and where it ends."""
    try:
        version, flags, count = _FIXED.unpack_from(data, at)
        if flags > ORDERED or count > NODES_MAX:
            raise WireError("a node list with impossible flags or too many nodes")
        at += _FIXED.size
        entries: list[Entry] = []
        for _ in range(count):
            entry, at = _read_entry(data, at)
            entries.append(entry)
        return Roster(version, tuple(entries), bool(flags & ORDERED)), at
    except (struct.error, IndexError, ValueError, UsageError) as error:
        raise WireError(f"a node list that cannot be read: {error}") from None


def _read_entry(data: bytes, at: int) -> tuple[Entry, int]:
    node, size = _NODE.unpack_from(data, at)
    at += _NODE.size
    name = str(data[at : at + size], "ascii")
    at += size
    if len(name) != size or size > NAME_SIZE_MAX or not _PLAIN.fullmatch(name) or node > NODE_MAX:
        raise ValueError("a node whose name or id cannot be")
    count = data[at]
    at += 1
    if not 1 <= count <= PLACES_MAX:
        raise ValueError(f"a node with {count} addresses")
    places = []
    for _ in range(count):
        place, at = _read_place(data, at)
        places.append(place)
    return Entry(NodeId(node), name, tuple(places)), at


def _read_place(data: bytes, at: int) -> tuple[Place, int]:
    size = data[at]
    packed = data[at + 1 : at + 1 + size]
    if size not in (4, 16) or len(packed) != size:
        raise ValueError("an address that is neither IPv4 nor IPv6")
    token_port, data_port = _PORTS.unpack_from(data, at + 1 + size)
    if not token_port or not data_port:
        raise ValueError("a port of zero")
    return Place(str(ip_address(packed)), token_port, data_port), at + 1 + size + _PORTS.size
