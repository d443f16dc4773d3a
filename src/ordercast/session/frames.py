"""Frames of the conversation between client and daemon: greeting, farewell, credit, requests.

A decoder raises `WireError` and nothing else: it checks counts before it believes them.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from itertools import islice
from struct import Struct, pack, unpack_from
from typing import NamedTuple

from ordercast.model.errors import WireError
from ordercast.session.pieces import NUMBER, FrameKind, expect_end, frame, read_names, reading, write_names

VERSION = 2
MAGIC = b"OCST"
LISTING_MAX = 100_000  # groups that a client is told of when it asks


class SlowPolicy(IntEnum):
    """What the daemon does when a client reads more slowly than messages come. Numbers travel on the wire."""

    WAIT = 0  # keep much for it; when that is full, disconnect it
    DROP = 1  # keep less; when that is full, drop the oldest messages and say so in their place
    DISCONNECT = 2  # keep less; when that is full, disconnect it
    HOLD = 3  # as WAIT; and while much waits for it, and it takes some of that, nobody on the ring sends


class Hello(NamedTuple):
    name: str  # empty: the daemon finds one
    policy: SlowPolicy
    credit: int  # bytes that the daemon may send before it hears of credit
    version: int = VERSION


class Welcome(NamedTuple):
    name: str  # in full: alice@n1
    message_size_max: int
    credit: int  # bytes that the client may send before it hears of credit
    version: int = VERSION


_HELLO = Struct(">4sHBI")
_HELLO_VERSION = Struct(">4sH")  # these bytes mean the same in all versions
_WELCOME = Struct(">HII")
_WELCOME_VERSION = Struct(">H")  # likewise


def encode_hello(hello: Hello) -> bytes:
    fixed = _HELLO.pack(MAGIC, hello.version, hello.policy, hello.credit)
    return frame(FrameKind.HELLO, fixed, hello.name.encode())


def decode_hello(body: bytes) -> Hello:
    with reading("a greeting"):
        magic, version = _HELLO_VERSION.unpack_from(body)
        if magic != MAGIC:
            raise WireError("this is not a client of Ordercast")
        if version != VERSION:
            return Hello("", SlowPolicy.WAIT, 0, version)
        _, _, policy, credit = _HELLO.unpack_from(body)
        return Hello(str(body[_HELLO.size :], "ascii"), SlowPolicy(policy), credit, version)


def encode_welcome(welcome: Welcome) -> bytes:
    fixed = _WELCOME.pack(welcome.version, welcome.message_size_max, welcome.credit)
    return frame(FrameKind.WELCOME, fixed, welcome.name.encode())


def decode_welcome(body: bytes) -> Welcome:
    with reading("a welcome"):
        (version,) = _WELCOME_VERSION.unpack_from(body)
        if version != VERSION:
            return Welcome("", 0, 0, version)
        _, message_size_max, credit = _WELCOME.unpack_from(body)
        return Welcome(str(body[_WELCOME.size :], "ascii"), message_size_max, credit, version)


def encode_closing(why: str) -> bytes:
    return frame(FrameKind.CLOSING, why.encode())


def decode_closing(body: bytes) -> str:
    return str(body, "utf-8", "replace")


def encode_number(kind: FrameKind, number: int) -> bytes:
    return frame(kind, NUMBER.pack(number))


def decode_number(body: bytes) -> int:
    with reading("a number"):
        (number,) = NUMBER.unpack(body)
        return int(number)


def encode_names(kind: FrameKind, names: Sequence[str]) -> bytes:
    return frame(kind, write_names(names))


def decode_names(body: bytes) -> tuple[str, ...]:
    with reading("names"):
        names, at = read_names(body, 0)
        expect_end(body, at)
        return names


def encode_listing(groups: dict[str, int]) -> bytes:
    """Not all when they are very many: a frame has an end."""
    if len(groups) > LISTING_MAX:
        groups = dict(islice(groups.items(), LISTING_MAX))
    return frame(FrameKind.LISTING, write_names(tuple(groups)), pack(f">{len(groups)}I", *groups.values()))


def decode_listing(body: bytes) -> dict[str, int]:
    with reading("a list of groups"):
        names, at = read_names(body, 0)
        counts = unpack_from(f">{len(names)}I", body, at)
        expect_end(body, at + 4 * len(counts))
        return dict(zip(names, counts, strict=True))
