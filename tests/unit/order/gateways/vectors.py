"""The items whose bytes are pinned in `tests/vectors/gateways`. As in `tests/unit/wire/vectors.py` each is written by
hand twice: as a value, and as a list of field groups with their sizes."""

from __future__ import annotations

from dataclasses import dataclass, field

from ordercast.model.ids import ConfigurationId, Incarnation, NodeId, ProcessId, process_id_from
from ordercast.order.gateways.codec import ReadItem
from ordercast.order.gateways.items import (
    CAP,
    Base,
    BegunMessage,
    Column,
    EndItem,
    Half,
    HelloItem,
    HoldItem,
    InterestItem,
    LogicalRing,
    MarkItem,
    NoticeItem,
    OwnWord,
    Statement,
    Stretch,
    TopologyItem,
    TopologyPart,
)
from ordercast.order.gateways.packets import Block, PacketOrigin
from ordercast.order.stamped.lanes import NO_STAMP

Group = tuple[int, str]  # how many bytes, and what they are


def process(node: int) -> ProcessId:
    return process_id_from(NodeId(node), Incarnation(1))


ONE, TWO, GATE = process(1), process(2), process(9)
OFFICE = ConfigurationId(5 * 1024 + 4, ONE)  # of domain 1
LAB = ConfigurationId(7 * 1024 + 8, TWO)  # of domain 2
NEXT = ConfigurationId(8 * 1024 + 8, TWO)
MERGED = ConfigurationId(8 * 1024 + 9, TWO)
ALL, PAIR = frozenset({ONE, TWO, GATE}), frozenset({TWO, GATE})
MERGE = (300, 77, 0)

BARE = LogicalRing(NEXT, PAIR, frozenset({GATE}), 120)
HOLD = HoldItem(GATE, 4, "queue of lab")
TOPOLOGY = TopologyItem(
    NEXT,
    LAB,
    GATE,
    ConfigurationId(90, ProcessId(1 << 47 | 12345)),
    ALL,
    (TopologyPart(BARE, frozenset({GATE}), frozenset({TWO})),),
    (Base(GATE, 2, LAB),),
    (EndItem(LAB, PAIR, BARE, frozenset({GATE})),),
    (OwnWord(GATE, LAB, NEXT),),
    ((TWO, 5),),
    (HOLD,),
    (BegunMessage(TWO, 3, (110, 77, 9), b"half"),),
)


@dataclass(frozen=True, slots=True)
class ItemVector:
    name: str
    title: str
    read: ReadItem
    groups: tuple[Group, ...] = field(repr=False)


def _groups(*groups: Group) -> tuple[Group, ...]:
    return ((1, "kind"), (1, "flags"), *groups)


def _set(count: int, what: str) -> tuple[Group, ...]:
    return ((2, f"how many: {what}"), (8 * count, what)) if count else ((2, f"how many: {what}"),)


RING: Group = (16, "ring: seq, representative")
STAMP = (8, "tick"), (8, "tag of the logical ring"), (8, "seq")
BARE_GROUPS = (
    (16, "id of the ring"),
    (8, "tick of its birth"),
    *_set(2, "members"),
    *_set(1, "gateways"),
    (2, "how many: halves"),
)
END_GROUPS = (RING, *_set(2, "half"), *_set(1, "sure"), (1, "reason"), *BARE_GROUPS)
HOLD_GROUPS = ((8, "process"), (8, "number"), (1, "size of the reason"), (12, "reason"))
TOPOLOGY_GROUPS = (
    (16, "physical ring"),
    (16, "logical ring of the half"),
    (8, "by"),
    (16, "id of its view"),
    *_set(3, "reachable"),
    (2, "how many: parts"),
    *BARE_GROUPS,
    *_set(1, "members that count"),
    *_set(1, "lost"),
    (2, "how many: bases"),
    (8, "process"),
    (1, "domain"),
    RING,
    (2, "how many: ENDs"),
    *END_GROUPS,
    (2, "how many: words"),
    (8, "gateway"),
    RING,
    (16, "successor"),
    (2, "how many: masks"),
    (8, "process"),
    (8, "mask"),
    (2, "how many: holds"),
    *HOLD_GROUPS,
    (2, "how many: messages in parts"),
    (8, "originator"),
    (4, "sender"),
    *STAMP,
    (4, "size of its parts so far"),
    (4, "its parts so far"),
)

ITEMS = (
    ItemVector("hello", "A member's first packet on a ring", ReadItem(HelloItem(NEXT), NO_STAMP, None), _groups(RING)),
    ItemVector(
        "end",
        "A ring ended, in the words of one gateway",
        ReadItem(EndItem(LAB, PAIR, BARE, frozenset({GATE})), NO_STAMP, None),
        _groups(*END_GROUPS, (2, "how many: topologies")),
    ),
    ItemVector(
        "end-merge",
        "Two rings became one",
        ReadItem(
            EndItem(
                NEXT,
                PAIR,
                LogicalRing(MERGED, ALL, frozenset({GATE}), 300, (Half(NEXT, PAIR),), (TOPOLOGY,)),
                ALL,
            ),
            MERGE,
            None,
        ),
        _groups(
            *STAMP,
            RING,
            *_set(2, "half"),
            *_set(3, "sure"),
            (1, "reason"),
            (16, "id of the ring"),
            (8, "tick of its birth"),
            *_set(3, "members"),
            *_set(1, "gateways"),
            (2, "how many: halves"),
            RING,
            *_set(2, "members of the half"),
            (2, "how many: topologies"),
            *TOPOLOGY_GROUPS,
        ),
    ),
    ItemVector(
        "notice",
        "How far a ring is known, and what all of it have",
        ReadItem(
            NoticeItem(
                LAB,
                GATE,
                (299, 77, CAP),
                (Statement(Column(OFFICE, None), (250, 66, 31)), Statement(Column(OFFICE, PAIR), (260, 66, 33))),
                None,
                (200, 66, 20),
            ),
            NO_STAMP,
            None,
        ),
        _groups(
            (1, "a half is named"),
            RING,
            (8, "by"),
            *STAMP,
            (24, "stable: tick, tag, seq"),
            (2, "how many: statements"),
            (16, "source"),
            (1, "a half is named"),
            *STAMP,
            (16, "source"),
            (1, "a half is named"),
            *_set(2, "half"),
            *STAMP,
        ),
    ),
    ItemVector(
        "mark",
        "A member's last word before a merge",
        ReadItem(MarkItem(NEXT, LAB, GATE, 290, (1, 2)), NO_STAMP, None),
        _groups(
            RING,
            (16, "logical ring"),
            (8, "by"),
            (8, "clock"),
            (2, "how many: domains"),
            (1, "domain"),
            (1, "domain"),
        ),
    ),
    ItemVector("topology", "A half before it merges", ReadItem(TOPOLOGY, NO_STAMP, None), _groups(*TOPOLOGY_GROUPS)),
    ItemVector("hold", "Users should stop", ReadItem(HOLD, NO_STAMP, None), _groups(*HOLD_GROUPS)),
    ItemVector(
        "interest",
        "What a process wants",
        ReadItem(InterestItem(TWO, 5), NO_STAMP, None),
        _groups((8, "process"), (8, "mask"), (1, "it takes over the view of the others here: no")),
    ),
    ItemVector(
        "stretch",
        "Residual packets of one half, since a merge",
        ReadItem(Stretch(OFFICE, 250, ONE, (31, 33), (b"body", b"another"), True, 5), MERGE, PAIR),
        _groups(
            *STAMP,
            *_set(2, "half"),
            RING,
            (8, "tick"),
            (8, "originator"),
            (8, "mask"),
            (1, "safe, hollow, interest"),
            (2, "how many: packets"),
            (8, "seq"),
            (2, "size of the body"),
            (4, "body"),
            (8, "seq"),
            (2, "size of the body"),
            (7, "body"),
        ),
    ),
)

ORIGIN = PacketOrigin(77, 250, 2, 31)  # type: ignore[arg-type]
EVERYTHING = (1 << 64) - 1
BLOCKS: tuple[tuple[str, str, Block, tuple[Group, ...]], ...] = (
    ("block-native", "The block of a native packet", Block(None, EVERYTHING), ((1, "size"),)),
    ("block-bucket", "The block of a native packet to one group", Block(None, 1 << 5), ((1, "0x80 and the bucket"),)),
    ("block-masked", "The block of a native packet that few want", Block(None, 5), ((1, "size"), (8, "mask"))),
    (
        "block-carried",
        "The block of a packet that a gateway carries",
        Block(ORIGIN, 5),
        (
            (1, "size"),
            (8, "mask"),
            (8, "tag of the logical ring"),
            (8, "tick"),
            (2, "place of the originator"),
            (8, "seq"),
        ),
    ),
)
