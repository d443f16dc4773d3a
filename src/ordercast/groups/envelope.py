"""What the groups write around a message before an engine orders it, so that all daemons know whom it is for.

    head size (2) | kind (1) | flags (1) | sender: length (1), name | groups: count (1), each: length (1), name | data

The head says its own length first. Messages of one sender to the same groups have the same head, byte by byte, so that
a reader takes it apart once and then only compares. A head that came is held to the rules for names that an
application is held to (`names.py`): whether it is one is a question of its bytes alone, so all daemons answer alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from functools import lru_cache
from struct import Struct
from typing import NamedTuple

from ordercast.groups.names import (
    AT,
    checked_daemon,
    checked_destinations,
    checked_groups,
    checked_member,
    daemon_of,
)
from ordercast.model.errors import UsageError, WireError
from ordercast.model.inputs import EVERYWHERE
from ordercast.wire.reader import ByteReader

FIXED_SIZE = 4
SELF_DISCARD = 1  # the sender does not want its own message back
CONFIRM = 2  # the sender wants to know the message's place in the order
HEADED = 4  # the data begins with headers (`model/headers.py`)
KIND_AT = 2
FLAGS_AT = 3


class Kind(IntEnum):
    """Numbers travel on the wire: append only."""

    DATA = 0
    JOIN = 1
    LEAVE = 2
    DISCONNECT = 3  # the client is gone, from all its groups
    GROUPS = 4  # what a daemon's clients are in, after a merge
    ROSTER = 5  # a new node list for all


_FIXED = Struct(">HBB")
_KINDS = {int(kind): kind for kind in Kind}


class Head(NamedTuple):
    kind: Kind
    sender: str
    groups: tuple[str, ...]
    flags: int = 0

    @property
    def is_headed(self) -> bool:
        return bool(self.flags & HEADED)


def encode_head(head: Head) -> bytes:
    sender = head.sender.encode()
    body = bytearray((head.kind, head.flags, len(sender)))
    body += sender
    body.append(len(head.groups))
    for group in head.groups:
        name = group.encode()
        body.append(len(name))
        body += name
    return (len(body) + 2).to_bytes(2, "big") + body


def head_bytes_of(payload: bytes) -> bytes:
    """The head of a payload, still to be decoded."""
    size = int.from_bytes(payload[:2], "big")
    if not FIXED_SIZE < size <= len(payload):
        raise WireError(f"a head of {size} bytes in a payload of {len(payload)}")
    return payload[:size]


def daemon_destination(daemon: str) -> str:
    """Return the destination that stands for a daemon: no group is called so."""
    return AT + daemon


def destinations_of(payload: bytes) -> tuple[str, ...]:
    """Return where a payload that was made here has to go: the groups that it is sent to, and of members that it is
    sent to by name the daemons. What changes the groups themselves goes everywhere."""
    return _destinations(head_bytes_of(payload))


@lru_cache(maxsize=1024)
def _destinations(head: bytes) -> tuple[str, ...]:
    read = _read(head)
    if read.kind is not Kind.DATA:
        return EVERYWHERE
    return tuple(dict.fromkeys(daemon_destination(daemon_of(name)) if AT in name else name for name in read.groups))


def joins_of(payload: bytes) -> tuple[str, ...]:
    """Return the groups that a payload joins; none, if it is no join."""
    head = _read(head_bytes_of(payload)) if payload[KIND_AT] == Kind.JOIN else None
    return () if head is None else head.groups


def sender_of(head: bytes) -> str:
    """Return the sender in a head that was decoded before: nothing is checked again."""
    return str(head[5 : 5 + head[4]], "ascii")


def decode_head(data: bytes) -> Head:
    """From exactly its bytes; WireError for anything else, and for names that are none."""
    head = _read(data)
    try:
        _check(head)
    except UsageError as error:
        raise WireError(f"a head with a wrong name: {error}") from None
    return head


def _read(data: bytes) -> Head:
    reader = ByteReader(data, what="a head")
    size, kind, flags = reader.unpack(_FIXED)
    if kind not in _KINDS or size != len(data):
        raise WireError(f"a head of kind {kind} and {size} bytes, in {len(data)}")
    sender, groups = reader.name(), reader.names(reader.byte())
    reader.end()
    return Head(_KINDS[kind], sender, tuple(groups), flags)


def _check(head: Head) -> None:
    if head.kind in (Kind.GROUPS, Kind.ROSTER):
        checked_daemon(head.sender)
    else:
        checked_member(head.sender)
    if head.kind is Kind.DATA:
        checked_destinations(head.groups)
    elif head.kind in (Kind.JOIN, Kind.LEAVE):
        checked_groups(head.groups)
    elif head.groups:
        raise UsageError("groups are named where none belong")


def join_payload(full: str, groups: Sequence[str]) -> bytes:
    return encode_head(Head(Kind.JOIN, full, tuple(groups)))


def leave_payload(full: str, groups: Sequence[str]) -> bytes:
    return encode_head(Head(Kind.LEAVE, full, tuple(groups)))


def data_head(
    full: str, groups: tuple[str, ...], *, self_discard: bool = False, confirm: bool = False, headed: bool = False
) -> bytes:
    """What the messages of this client to these groups begin with."""
    flags = SELF_DISCARD * self_discard | CONFIRM * confirm | HEADED * headed
    return encode_head(Head(Kind.DATA, full, groups, flags))
