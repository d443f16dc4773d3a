"""The frames whose bytes are pinned in `tests/vectors/session`, and the text in which they are pinned.

As with the packets of daemons (`tests/unit/wire/vectors.py`), each is written by hand twice: once as what it says, once
as a list of field groups with their sizes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from typing import Any

from ordercast.groups.layer import MessageRun, data_head
from ordercast.model.events import Dropped, Left, Reason, Transition, View, ViewId
from ordercast.model.ids import ConfigurationId, Places, Position
from ordercast.model.service import Service
from ordercast.session.batches import (
    Confirm,
    Messages,
    Send,
    decode_confirm,
    decode_dropped,
    decode_messages,
    decode_send,
    encode_confirm,
    encode_dropped,
    encode_messages,
    encode_send,
)
from ordercast.session.client_half import BYE, PING, PONG
from ordercast.session.frames import (
    DeniedSend,
    Hello,
    Listing,
    Members,
    Refused,
    SlowPolicy,
    Welcome,
    decode_closing,
    decode_denied,
    decode_document,
    decode_hello,
    decode_list,
    decode_listing,
    decode_members,
    decode_names,
    decode_number,
    decode_refused,
    decode_welcome,
    encode_closing,
    encode_denied,
    encode_document,
    encode_hello,
    encode_list,
    encode_listing,
    encode_members,
    encode_names,
    encode_number,
    encode_refused,
    encode_welcome,
)
from ordercast.session.news import (
    Change,
    decode_change,
    decode_left,
    decode_transition,
    decode_view,
    encode_news,
)
from ordercast.session.pieces import HEADER, FrameKind, frame

from ..wire.vectors import LINE, RING, Group

PINNED_BY = "tests/unit/session/test_vectors.py"
HEADER_GROUPS: tuple[Group, ...] = ((4, "length of what follows"), (1, "kind"))
VIEW_ID_GROUPS: tuple[Group, ...] = (
    (16, "configuration: seq, representative"),
    (16, "origin of its position"),
    (8, "number"),
    (2, "slot"),
    (1, "reason"),
)
RUN_GROUPS: tuple[Group, ...] = ((16, "origin of the positions"), (8, "number"), (2, "base"), (4, "each"), (4, "first"))


@dataclass(frozen=True, slots=True)
class Vector:
    name: str
    title: str
    kind: FrameKind
    said: object  # what the receiver reads; None for a frame without a body
    groups: tuple[Group, ...]  # behind the header
    encode: Callable[[], bytes]
    decode: Callable[[bytes], object]


def render(vector: Vector) -> str:
    """The whole text of a vector's file."""
    lines = [
        f"# {vector.title}.",
        f"# Pinned by {PINNED_BY}; ORDERCAST_REWRITE=1 renews it, and the difference is reviewed.",
        "",
        f"frame = {vector.kind.name}",
        *_described(vector.said),
        "",
        "bytes",
        "",
    ]
    encoded, at = vector.encode(), 0
    for size, what in HEADER_GROUPS + vector.groups:
        for start in range(at, at + size, LINE):
            piece = encoded[start : min(start + LINE, at + size)].hex(" ")
            comment = what if start == at else "..."
            lines.append(f"{start:04x}  {piece:<{3 * LINE}} # {comment}")
        at += size
    return "\n".join(lines) + "\n"


def _described(said: object) -> list[str]:
    if said is None:
        return []
    if is_dataclass(said):
        named = [(field.name, getattr(said, field.name)) for field in fields(said)]
    elif isinstance(said, tuple) and hasattr(said, "_fields"):
        named = list(zip(said._fields, said, strict=True))
    elif isinstance(said, dict):
        named = list(said.items())
    else:
        named = [("says", said)]
    return [line for name, value in named for line in _lines(name, value)]


def _lines(name: str, value: object) -> list[str]:
    if isinstance(value, list):
        return [f"{name} =", *(f"  {item!r}" for item in value)]
    return [f"{name} = {_text(value)}"]


def _text(value: object) -> str:
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, ConfigurationId):
        return str(value)
    if isinstance(value, ViewId):
        return f"{value.configuration}, position {_text(value.position)}"
    if isinstance(value, Position):
        return f"{value.origin}, number {value.number}, slot {value.slot}"
    if isinstance(value, Places):
        return f"{value.origin}, number {value.number}, base {value.base}, each {value.each}, first {value.first}"
    if isinstance(value, tuple):
        return " ".join(map(str, value)) or "none"
    return repr(value) if isinstance(value, bytes) else str(value)


def names_groups(*names: str, what: str = "names") -> tuple[Group, ...]:
    """Count, then length and name each."""
    return (4, f"{what}: count"), *((1 + len(name), f"{what}: {name}") for name in names)


def kind_and_body(encoded: bytes) -> tuple[int, bytes]:
    """As a reader cuts it out of the stream."""
    length, kind = HEADER.unpack_from(encoded)
    assert length == len(encoded) - HEADER.size + 1
    return kind, encoded[HEADER.size :]


HEAD = data_head("alice@n1", ("chat", "bob@n2"), confirm=True)
DATA = [b"to be", b"", b"or not to be"]
PAYLOADS = [HEAD + one for one in DATA]
SERVICES = bytes((Service.AGREED, Service.SAFE, Service.FIFO))
NEXT = ConfigurationId(10, RING.representative)
RUN = MessageRun((7,), HEAD, Places(RING, 41, 512, 2, 1), SERVICES, PAYLOADS)
AT = ViewId(NEXT, Position(RING, 42, 3))
CHANGED = View("chat", ("alice@n1", "bob@n2"), ("alice@n1",), Reason.JOIN, ("bob@n2",), AT)
VIEWED = View(
    "chat", ("alice@n1", "bob@n2", "carol@n3"), ("alice@n1", "bob@n2"), Reason.NETWORK, (), AT, "another ring was heard"
)


def _vector(
    kind: FrameKind,
    title: str,
    said: object,
    encode: Callable[[], bytes],
    decode: Callable[[bytes], object],
    *groups: Group,
) -> Vector:
    return Vector(kind.name.lower(), title, kind, said, groups, encode, decode)


def _empty(kind: FrameKind, title: str, encoded: bytes) -> Vector:
    return _vector(kind, title, None, lambda: encoded, lambda body: body or None)


def _named(kind: FrameKind, title: str, names: Sequence[str]) -> Vector:
    return _vector(
        kind, title, {"groups": tuple(names)}, lambda: encode_names(kind, names), _read_names, *names_groups(*names)
    )


def _read_names(body: bytes) -> dict[str, object]:
    return {"groups": decode_names(body)}


def _document(kind: FrameKind, title: str, document: dict[str, Any]) -> Vector:
    size = len(encode_document(kind, document)) - HEADER.size
    return _vector(kind, title, document, lambda: encode_document(kind, document), decode_document, (size, "JSON"))


VECTORS = (
    _vector(
        FrameKind.HELLO,
        "The first frame of a client",
        Hello("alice", SlowPolicy.DROP, 4 << 20),
        lambda: encode_hello(Hello("alice", SlowPolicy.DROP, 4 << 20)),
        decode_hello,
        (4, "magic"),
        (2, "version"),
        (1, "policy"),
        (4, "credit"),
        (5, "name"),
    ),
    _vector(
        FrameKind.WELCOME,
        "The first frame of a daemon",
        Welcome("alice@n1", 16 << 20, 1 << 20),
        lambda: encode_welcome(Welcome("alice@n1", 16 << 20, 1 << 20)),
        decode_welcome,
        (2, "version"),
        (4, "message_size_max"),
        (4, "credit"),
        (8, "name"),
    ),
    _vector(
        FrameKind.CLOSING,
        "The last frame of a daemon",
        "the client was too slow",
        lambda: encode_closing("the client was too slow"),
        decode_closing,
        (23, "why"),
    ),
    _vector(
        FrameKind.SEND,
        "Three messages to a group and to a client",
        Send(Service.SAFE, HEAD, PAYLOADS),
        lambda: encode_send(Service.SAFE, HEAD, DATA),
        decode_send,
        (1, "service"),
        (2, "head size"),
        (4, "count"),
        (12, "lengths"),
        *((len(payload), f"payload {slot}") for slot, payload in enumerate(PAYLOADS)),
    ),
    _vector(
        FrameKind.MESSAGES,
        "Three messages in a row, as they were delivered",
        Messages(RUN.places, SERVICES, HEAD, DATA),
        lambda: encode_messages(RUN),
        decode_messages,
        *RUN_GROUPS,
        (2, "head size"),
        (4, "count"),
        (3, "services"),
        (12, "lengths"),
        *((len(payload), f"payload {slot}") for slot, payload in enumerate(PAYLOADS)),
    ),
    _named(FrameKind.JOIN, "Two groups are joined", ("chat", "news")),
    _named(FrameKind.LEAVE, "A group is left", ("chat",)),
    _vector(
        FrameKind.VIEW,
        "A view in full",
        VIEWED,
        lambda: encode_news(VIEWED),
        decode_view,
        *VIEW_ID_GROUPS,
        *names_groups("chat", what="group"),
        *names_groups(*VIEWED.members, what="members"),
        *names_groups(*VIEWED.transitional, what="transitional"),
        *names_groups(what="who"),
        (22, "why"),
    ),
    _vector(
        FrameKind.CHANGE,
        "A view that differs by one member",
        Change("chat", AT, Reason.JOIN, "bob@n2"),
        lambda: encode_news(CHANGED),
        decode_change,
        *VIEW_ID_GROUPS,
        *names_groups("chat", "bob@n2", what="group, who"),
    ),
    _vector(
        FrameKind.TRANSITION,
        "Members may be out of reach",
        Transition("chat", ("alice@n1", "bob@n2"), AT),
        lambda: encode_news(Transition("chat", ("alice@n1", "bob@n2"), AT)),
        decode_transition,
        *VIEW_ID_GROUPS[:-1],
        (1, "reason: always network"),
        *names_groups("chat", "alice@n1", "bob@n2", what="group, remaining"),
    ),
    _vector(
        FrameKind.LEFT,
        "The client is no longer in a group",
        Left("chat"),
        lambda: encode_news(Left("chat")),
        decode_left,
        (4, "group"),
    ),
    _vector(
        FrameKind.CREDIT,
        "More may be sent",
        {"bytes": 1 << 20},
        lambda: encode_number(FrameKind.CREDIT, 1 << 20),
        lambda body: {"bytes": decode_number(body)},
        (4, "bytes"),
    ),
    _empty(FrameKind.PING, "A question whether the other side is there", PING),
    _empty(FrameKind.PONG, "The answer to a PING", PONG),
    _vector(
        FrameKind.CONFIRM,
        "Three messages of the client have their places in the order",
        Confirm(RUN.places, 3),
        lambda: encode_confirm(RUN),
        decode_confirm,
        *RUN_GROUPS,
        (4, "messages"),
    ),
    _vector(
        FrameKind.DROPPED,
        "Messages are missing here",
        Dropped(12, 34567),
        lambda: encode_dropped(Dropped(12, 34567)),
        decode_dropped,
        (8, "messages"),
        (8, "size"),
    ),
    _empty(FrameKind.BYE, "The last frame of a client", BYE),
    _vector(
        FrameKind.LIST,
        "A question which groups there are, from some name on",
        {"after": "board"},
        lambda: encode_list("board"),
        lambda body: {"after": decode_list(body)},
        (5, "after"),
    ),
    _vector(
        FrameKind.LISTING,
        "The answer to a LIST",
        Listing({"chat": 3, "news": 1}, True),
        lambda: encode_listing(Listing({"chat": 3, "news": 1}, True)),
        decode_listing,
        (1, "last"),
        *names_groups("chat", "news"),
        (8, "members"),
    ),
    _named(FrameKind.MEMBERS_OF, "A question who is in a group, from some name on", ("chat", "alice@n1")),
    _vector(
        FrameKind.MEMBERS,
        "The answer to a MEMBERS_OF",
        Members(("bob@n2", "carol@n3"), False),
        lambda: encode_members(Members(("bob@n2", "carol@n3"), False)),
        decode_members,
        (1, "last"),
        *names_groups("bob@n2", "carol@n3"),
    ),
    _vector(
        FrameKind.WANT,
        "A frame that is larger than the window is to be sent",
        {"bytes": 5 << 20},
        lambda: encode_number(FrameKind.WANT, 5 << 20),
        lambda body: {"bytes": decode_number(body)},
        (4, "bytes"),
    ),
    _vector(
        FrameKind.REFUSED,
        "A JOIN that changes nothing",
        Refused(("chat", "news"), True, "too many groups"),
        lambda: encode_refused(Refused(("chat", "news"), True, "too many groups")),
        decode_refused,
        (1, "joins"),
        *names_groups("chat", "news"),
        (15, "why"),
    ),
    _document(FrameKind.MANAGE, "A question of an operator", {"do": "remove", "name": "delta"}),
    _document(FrameKind.MANAGED, "The answer to a MANAGE that is refused", {"error": "delta is not on the node list"}),
    _named(FrameKind.ENTER, "A replica joins the others", ("$replica/accounts",)),
    _vector(
        FrameKind.TOKEN,
        "What a client without a certificate shows, ahead of its HELLO",
        {"token": bytes(range(32)).hex()},
        lambda: frame(FrameKind.TOKEN, bytes(range(32))),
        lambda body: {"token": body.hex()},
        (32, "token"),
    ),
    _vector(
        FrameKind.DENIED,
        "A SEND that goes nowhere, as the client lacks a right",
        DeniedSend(7, ("chat", "news"), "no right"),
        lambda: encode_denied(DeniedSend(7, ("chat", "news"), "no right")),
        decode_denied,
        (4, "number"),
        *names_groups("chat", "news"),
        (8, "why"),
    ),
)
