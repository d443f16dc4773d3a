"""Frames of the conversation between client and daemon: greeting, farewell, credit, requests.

A decoder raises `WireError` and nothing else: it checks counts before it believes them.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from enum import IntEnum
from struct import Struct, pack
from typing import Any, NamedTuple

from ordercast.model.errors import WireError
from ordercast.session.pieces import NUMBER, FrameKind, frame, read_names, reading, write_names
from ordercast.wire.reader import ByteReader

VERSION = 3
MAGIC = b"OCST"
DOCUMENT_SIZE_MAX = 1 << 20  # of an operator's question, or its answer
PAGE_MAX = 1000  # names in one answer: a daemon that answers everybody must not keep its event loop for long


class SlowPolicy(IntEnum):
    """What the daemon does when a client reads more slowly than messages come. Numbers travel on the wire."""

    WAIT = 0  # keep much for it; when that is full, disconnect it
    DROP = 1  # keep less; when that is full, drop the oldest messages and say so in their place
    DISCONNECT = 2  # keep less; when that is full, disconnect it
    HOLD = 3  # as WAIT; and while much waits for it, and it makes progress, nobody in the cluster sends


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


class Listing(NamedTuple):
    """A page of the groups that there are."""

    groups: dict[str, int]  # sorted, and how many members each has
    is_last: bool


class Members(NamedTuple):
    """A page of the members of a group."""

    names: tuple[str, ...]  # sorted; of a group in which nobody is, none
    is_last: bool


class Refused(NamedTuple):
    """A JOIN or LEAVE that changes nothing."""

    groups: tuple[str, ...]
    joins: bool
    why: str


class DeniedSend(NamedTuple):
    """Messages that are not sent, as the client lacks a right."""

    number: int  # of the SEND frame, the first being 1; 0: the client was taken out of these groups
    groups: tuple[str, ...]
    why: str


_FLAG = Struct(">?")
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
    reader = ByteReader(body, what="a list of names")
    names = read_names(reader)
    reader.end()
    return names


def encode_document(kind: FrameKind, document: dict[str, Any]) -> bytes:
    return frame(kind, json.dumps(document, separators=(",", ":")).encode())


def decode_document(body: bytes) -> dict[str, Any]:
    """What an operator asks, or is told."""
    if len(body) > DOCUMENT_SIZE_MAX:
        raise WireError(f"a document of {len(body)} bytes, more than {DOCUMENT_SIZE_MAX}")
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        raise WireError("a document that cannot be read") from None
    if not isinstance(document, dict):
        raise WireError("a document that is not a JSON object")
    return document


def encode_list(after: str) -> bytes:
    return frame(FrameKind.LIST, after.encode())


def decode_list(body: bytes) -> str:
    with reading("a question"):
        return str(body, "ascii")


def encode_listing(page: Listing) -> bytes:
    groups = page.groups
    counts = pack(f">{len(groups)}I", *groups.values())
    return frame(FrameKind.LISTING, _FLAG.pack(page.is_last), write_names(tuple(groups)), counts)


def decode_listing(body: bytes) -> Listing:
    reader = ByteReader(body, what="a list of groups")
    is_last, names = _page(reader)
    counts = reader.numbers(len(names), "I")
    reader.end()
    return Listing(dict(zip(names, counts, strict=True)), is_last)


def encode_members(page: Members) -> bytes:
    return frame(FrameKind.MEMBERS, _FLAG.pack(page.is_last), write_names(page.names))


def decode_members(body: bytes) -> Members:
    reader = ByteReader(body, what="a list of members")
    is_last, names = _page(reader)
    reader.end()
    return Members(names, is_last)


def _page(reader: ByteReader) -> tuple[bool, tuple[str, ...]]:
    (is_last,) = reader.unpack(_FLAG)
    names = read_names(reader)
    if not names and not is_last:
        raise WireError("an empty page that is not the last one")
    return is_last, names


def encode_refused(refused: Refused) -> bytes:
    return frame(FrameKind.REFUSED, _FLAG.pack(refused.joins), write_names(refused.groups), refused.why.encode())


def decode_refused(body: bytes) -> Refused:
    reader = ByteReader(body, what="a refusal")
    (joins,) = reader.unpack(_FLAG)
    return Refused(read_names(reader), joins, str(reader.rest(), "utf-8", "replace"))


def encode_denied(denied: DeniedSend) -> bytes:
    return frame(FrameKind.DENIED, NUMBER.pack(denied.number), write_names(denied.groups), denied.why.encode())


def decode_denied(body: bytes) -> DeniedSend:
    reader = ByteReader(body, what="a denial")
    (number,) = reader.unpack(NUMBER)
    return DeniedSend(number, read_names(reader), str(reader.rest(), "utf-8", "replace"))
