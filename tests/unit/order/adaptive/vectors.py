"""The packets whose bytes are pinned in `tests/vectors/adaptive`, each written by hand twice: as a value, and as a list
of field groups with their sizes."""

from __future__ import annotations

from typing import NamedTuple

from ordercast.order.adaptive.codec import (
    AdaptiveKind,
    Echo,
    Mark,
    Wish,
    build_distribution,
    encode_ask,
    encode_mark,
)
from ordercast.order.adaptive.slots import Distribution

from ..rings import THREE, TWO, make_ring
from .test_merge import packet

Group = tuple[int, str]  # how many bytes, and what they are

RING = make_ring().heading
MARKS, ASKS, DIRECTS = (
    RING.of_kind(AdaptiveKind.MARK),
    RING.of_kind(AdaptiveKind.ASK),
    RING.of_kind(AdaptiveKind.DIRECT),
)
MARK = Mark(2, 41, 7, 300, 288, 250, 3, True, Echo(0, 39, 1_500_000, 87))
WISHES = (Wish(0, 12, 15), Wish(2, 41, 0))
DISTRIBUTION = Distribution(1, 16_400, 32, 256, (61, 2, 1), 2)


def _header(kind: str, first: str, second: str, third: str) -> list[Group]:
    return [
        (4, "magic, version, key"),
        (2, "length"),
        (8, "cluster"),
        (8, "transmitter"),
        (9, f"kind {kind}, ring"),
        (4, "flags, count, place of the originator"),
        (8, first),
        (8, second),
        (8, third),
    ]


class Vector(NamedTuple):
    name: str
    title: str
    data: bytes
    groups: list[Group]


VECTORS = [
    Vector(
        "direct",
        "A direct packet with one message, whose sender rests",
        packet(5, 3, THREE, rests=True).data,
        [
            *_header("direct", "place", "aru, and how far below it is safe", "number"),
            (4, "sender"),
            (2, "length"),
            (1, "service"),
            (4, "payload"),
        ],
    ),
    Vector(
        "distribution",
        "A direct packet that announces a distribution",
        build_distribution(DIRECTS, RING.members[0], DISTRIBUTION, 9, (4, 0), 6).data,
        [
            *_header("direct", "place", "aru, and how far below it is safe", "number"),
            (4, "number of the distribution"),
            (8, "base"),
            (2, "block"),
            (2, "ahead"),
            (2, "next book-keeper"),
            (2, "how many"),
            (6, "weights"),
        ],
    ),
    Vector(
        "mark",
        "A mark that another member passes on",
        encode_mark(MARKS, TWO, MARK),
        [
            *_header("mark", "next", "aru", "last"),
            (8, "tick"),
            (8, "stable"),
            (4, "waiting"),
            (1, "bits: behind, echoes"),
            (22, "echo: member, tick, delay, spread"),
        ],
    ),
    Vector(
        "ask",
        "An Ask for four packets and a mark",
        encode_ask(ASKS, TWO, 288, WISHES),
        [
            *_header("ask", "zero", "aru", "zero"),
            (1, "how many"),
            (18, "originator, first, last"),
            (18, "originator, tick, zero"),
        ],
    ),
]
