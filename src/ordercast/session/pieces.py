"""What frames are made of. Length (4), kind (1), body; numbers are big-endian."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from struct import Struct
from struct import error as StructError

from ordercast.model.errors import WireError
from ordercast.wire.reader import ByteReader

HEADER = Struct(">IB")
NUMBER = Struct(">I")


class FrameKind(IntEnum):
    """Numbers travel on the wire: append only."""

    HELLO = 1
    WELCOME = 2
    CLOSING = 3
    SEND = 4
    MESSAGES = 5
    JOIN = 6
    LEAVE = 7
    VIEW = 8
    CHANGE = 9
    TRANSITION = 10
    LEFT = 11
    CREDIT = 12
    PING = 13
    PONG = 14
    CONFIRM = 15
    DROPPED = 16
    BYE = 17
    LIST = 18
    LISTING = 19
    MEMBERS_OF = 20
    MEMBERS = 21
    WANT = 22
    REFUSED = 23
    MANAGE = 24  # an operator's question, and its answer
    MANAGED = 25
    ENTER = 26
    TOKEN = 27  # ahead of a HELLO: what a client shows that has no certificate
    DENIED = 28


def frame(kind: FrameKind, *parts: bytes) -> bytes:
    return b"".join((HEADER.pack(sum(map(len, parts)) + 1, kind), *parts))


_FAULTS = (StructError, ValueError, IndexError)


class reading:
    """Whatever goes wrong inside is the other side's fault."""

    __slots__ = ("_what",)

    def __init__(self, what: str) -> None:
        self._what = what

    def __enter__(self) -> None: ...

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if isinstance(error, _FAULTS):
            raise WireError(f"{self._what} that cannot be read: {error}") from None


def write_names(names: Sequence[str]) -> bytes:
    """Count (4), then length (1) and name each."""
    encoded = [name.encode() for name in names]
    pieces = [NUMBER.pack(len(encoded))]
    for name in encoded:
        pieces += (bytes((len(name),)), name)
    return b"".join(pieces)


def read_names(reader: ByteReader) -> tuple[str, ...]:
    return tuple(reader.names(reader.unpack(NUMBER)[0]))


def expect_end(body: bytes, at: int) -> None:
    if at != len(body):
        raise WireError(f"a frame of {len(body)} bytes ends after {at}")
