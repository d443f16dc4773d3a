"""What a daemon tells the others after a merge: which of its clients are in which groups, in pieces of bounded size.

    ring: seq (8), representative (8) | last (1) | groups: length (1), name, members (4), each: length (1), name

Members have their full names (alice@n1), and are clients of the daemon that tells. A large group may be cut over
several pieces.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from struct import Struct

from ordercast.groups.names import checked_group, checked_member, clients_of
from ordercast.model.errors import UsageError, WireError
from ordercast.model.ids import ConfigurationId, ProcessId

PIECE_SIZE_MAX = 32_000
_FIXED = Struct(">QQB")
_COUNT = Struct(">I")


def encode_snapshot(ring: ConfigurationId, groups: Mapping[str, Sequence[str]]) -> list[bytes]:
    """At least one piece; the last one says that it is."""
    bodies = [b"".join(entries) for entries in _pieces(groups)] or [b""]
    last = len(bodies) - 1
    return [_FIXED.pack(ring.seq, ring.representative, at == last) + body for at, body in enumerate(bodies)]


def _pieces(groups: Mapping[str, Sequence[str]]) -> Iterator[list[bytes]]:
    entries: list[bytes] = []
    size = _FIXED.size
    for group in sorted(groups):
        name = _named(group)
        members = [_named(member) for member in groups[group]]
        at = 0
        while at < len(members):
            start, length = at, len(name) + _COUNT.size
            while at < len(members) and size + length + len(members[at]) <= PIECE_SIZE_MAX:
                length += len(members[at])
                at += 1
            if at > start:
                entries.append(name + _COUNT.pack(at - start) + b"".join(members[start:at]))
                size += length
            if at < len(members):  # the piece is full; an empty one has room for any name
                yield entries
                entries, size = [], _FIXED.size
    if entries:
        yield entries


def decode_snapshot(data: bytes, daemon: str) -> tuple[ConfigurationId, bool, dict[str, list[str]]]:
    """The ring, whether this is the last piece, and the members by group. WireError for what cannot be read, and for
    members that are no clients of this daemon."""
    groups: dict[str, list[str]] = {}
    is_client = clients_of(daemon).fullmatch
    try:
        if len(data) < _FIXED.size:
            raise ValueError("too short")
        seq, representative, last = _FIXED.unpack_from(data)
        at = _FIXED.size
        while at < len(data):
            group, members, at = _read_group(data, at)
            if not all(map(is_client, members)):
                wrong = next(member for member in members if not is_client(member))
                raise ValueError(f"{checked_member(wrong)} is no client of {daemon}")
            groups.setdefault(group, []).extend(members)
    except (ValueError, UsageError) as error:
        raise WireError(f"a snapshot that cannot be read: {error}") from None
    return ConfigurationId(seq, ProcessId(representative)), bool(last), groups


def _named(name: str) -> bytes:
    encoded = name.encode()
    return bytes((len(encoded),)) + encoded


def _read_group(data: bytes, at: int) -> tuple[str, list[str], int]:
    """Its name, its members, and where the next one is."""
    size = len(data)
    name, at = _name(data, at)
    group = checked_group(name)
    if at + _COUNT.size > size:
        raise ValueError("a count is cut off")
    (count,) = _COUNT.unpack_from(data, at)
    at += _COUNT.size
    if not count:
        raise ValueError("a group of nobody")
    members = []
    for _ in range(count):  # as `_name`, which would be called too often
        start = at + 1
        at = start + (data[at] if at < size else 0)
        if not start < at <= size:
            raise ValueError(f"a name that is empty or cut off, at {start - 1}")
        members.append(str(data[start:at], "ascii"))
    return group, members, at


def _name(data: bytes, at: int) -> tuple[str, int]:
    end = at + 1 + (data[at] if at < len(data) else 0)
    if end > len(data) or end == at + 1:
        raise ValueError(f"a name that is empty or cut off, at {at}")
    return str(data[at + 1 : end], "ascii"), end
