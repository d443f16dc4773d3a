"""What a daemon tells the others after a merge: which of its clients are in which groups, in pieces of bounded size.

    configuration: seq (8), representative (8) | last (1) | groups: length (1), name, members (4), each so

Members have their full names (alice@n1), and are clients of the daemon that tells. A large group may be cut over
several pieces. A highest bit in the number of members, which is no part of it, says that their view of the group was
made behind the end of the configuration.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from struct import Struct
from typing import NamedTuple

from ordercast.groups.names import checked_group, checked_member, clients_of
from ordercast.model.errors import UsageError, WireError
from ordercast.model.ids import ConfigurationId, ProcessId
from ordercast.wire.reader import ByteReader

PIECE_SIZE_MAX = 32_000
_FIXED = Struct(">QQB")
_COUNT = Struct(">I")
_BEHIND = 1 << 31


class Snapshot(NamedTuple):
    """One piece."""

    configuration: ConfigurationId
    is_last: bool
    groups: dict[str, list[str]]  # members, by group
    behind: set[str]  # groups whose present view was made behind the end of the configuration


def encode_snapshot(
    configuration: ConfigurationId, groups: Mapping[str, Sequence[str]], behind: Collection[str] = ()
) -> list[bytes]:
    """At least one piece; the last one says that it is."""
    bodies = [b"".join(entries) for entries in _pieces(groups, behind)] or [b""]
    last = len(bodies) - 1
    return [_FIXED.pack(*configuration, at == last) + body for at, body in enumerate(bodies)]


def _pieces(groups: Mapping[str, Sequence[str]], behind: Collection[str]) -> Iterator[list[bytes]]:
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
                count = at - start | _BEHIND * (group in behind)
                entries.append(name + _COUNT.pack(count) + b"".join(members[start:at]))
                size += length
            if at < len(members):  # the piece is full; an empty one has room for any name
                yield entries
                entries, size = [], _FIXED.size
    if entries:
        yield entries


def decode_snapshot(data: bytes, daemon: str) -> Snapshot:
    """Read a piece. WireError for what cannot be read, and for members that are no clients of this daemon."""
    groups: dict[str, list[str]] = {}
    behind: set[str] = set()
    is_client = clients_of(daemon).fullmatch
    reader = ByteReader(data, what="a snapshot")
    seq, representative, last = reader.unpack(_FIXED)
    try:
        while reader.left:
            group = checked_group(reader.name())
            (count,) = reader.unpack(_COUNT)
            members = reader.names(count & ~_BEHIND)
            if not all(map(is_client, members)):
                wrong = next(member for member in members if not is_client(member))
                raise UsageError(f"{checked_member(wrong)} is no client of {daemon}")
            if not members:
                raise UsageError("a group of nobody")
            groups.setdefault(group, []).extend(members)
            if count & _BEHIND:
                behind.add(group)
    except UsageError as error:
        raise WireError(f"a snapshot that cannot be read: {error}") from None
    return Snapshot(ConfigurationId(seq, ProcessId(representative)), bool(last), groups, behind)


def _named(name: str) -> bytes:
    encoded = name.encode()
    return bytes((len(encoded),)) + encoded
