"""Items that say what cannot be: refused by a bound, before anything is made of them."""

from __future__ import annotations

import struct
from dataclasses import replace

import pytest

from ordercast.model.errors import WireError
from ordercast.model.ids import ConfigurationId
from ordercast.order.gateways.codec import ENTRIES_MAX, RINGS_MAX, Item, ItemKind, decode_item, encode_item
from ordercast.order.gateways.items import EndItem, HoldItem, LogicalRing, MarkItem, Stretch, TopologyItem, TopologyPart
from ordercast.order.gateways.packets import block_from

from .vectors import ALL, BARE, GATE, LAB, NEXT, ONE, PAIR, TOPOLOGY


def _refused(item: Item, match: str) -> None:
    with pytest.raises(WireError, match=match):
        decode_item(encode_item(item))


def _topology(rings: int) -> TopologyItem:
    return replace(TOPOLOGY, parts=tuple(TopologyPart(BARE, PAIR) for _ in range(rings)))


def test_a_topology_of_ten_thousand_rings_is_refused() -> None:
    _refused(_topology(10_000), f"10000 rings, more than the limit of {RINGS_MAX}")
    assert isinstance(decode_item(encode_item(_topology(300))).item, TopologyItem)
    end = EndItem(LAB, PAIR, replace(BARE, topologies=(_topology(10_000),)), PAIR)
    _refused(end, "10000 rings")


def test_counts_that_the_bytes_do_not_hold_cost_nothing() -> None:
    head = bytes((ItemKind.TOPOLOGY, 0)) + encode_item(TOPOLOGY)[2 : 2 + 56]
    for count, match in ((65535, "65535 processes"), (1000, "cut short")):
        with pytest.raises(WireError, match=match):
            decode_item(head + struct.pack(">H", count))
    notice = bytes((ItemKind.NOTICE, 0, 0)) + bytes(16 + 8 + 24 + 24)
    for count, match in ((ENTRIES_MAX + 1, "statements"), (ENTRIES_MAX, "cut short")):
        with pytest.raises(WireError, match=match):
            decode_item(notice + struct.pack(">H", count))


def test_what_contradicts_itself_is_refused() -> None:
    stranger = frozenset({ONE})
    _refused(EndItem(LAB, stranger, BARE, PAIR), "sets contradict")
    _refused(EndItem(LAB, frozenset(), BARE, PAIR), "sets contradict")
    _refused(EndItem(LAB, PAIR, BARE, ALL), "sets contradict")
    _refused(EndItem(LAB, PAIR, LogicalRing(NEXT, PAIR, ALL, 1), PAIR), "members contradict")
    _refused(replace(TOPOLOGY, parts=(TopologyPart(BARE, ALL),)), "others than the members")
    _refused(replace(TOPOLOGY, parts=(TopologyPart(BARE, PAIR, ALL),)), "others than the members")
    _refused(MarkItem(NEXT, LAB, GATE, 1, (2, 1)), "do not ascend")
    _refused(MarkItem(NEXT, LAB, GATE, 1, ()), "do not ascend")
    _refused(MarkItem(NEXT, LAB, GATE, 1 << 63, (1, 2)), "beyond all bounds")
    _refused(MarkItem(ConfigurationId(1 << 63, ONE), LAB, GATE, 1, (1,)), "beyond all bounds")
    _refused(Stretch(LAB, 1, ONE, (2, 2), (b"", b"")), "do not ascend")
    one = encode_item(Stretch(LAB, 1, ONE, (2,), (b"",)))
    with pytest.raises(WireError, match="do not ascend"):
        decode_item(one[:-12] + bytes(2))  # none at all


def test_kinds_and_flags_that_do_not_exist_are_refused() -> None:
    for data, match in (
        (b"", "cut short"),
        (bytes((99, 0)), "kind 99"),
        (bytes((ItemKind.HELLO, 4)) + bytes(16), "flags"),
        (bytes((ItemKind.HELLO, 2)) + bytes(18), "flags"),
        (bytes((ItemKind.HELLO, 0)) + bytes(17), "1 bytes too many"),
    ):
        with pytest.raises(WireError, match=match):
            decode_item(data)
    for size in (0, 2, 40, 42, 50):
        with pytest.raises(WireError, match=f"a block of {size} bytes"):
            block_from(bytes(size))


def test_a_reason_is_cut_between_letters_and_must_be_text() -> None:
    read = decode_item(encode_item(HoldItem(ONE, 1, "ä" * 300))).item
    assert isinstance(read, HoldItem) and read.reason == "ä" * 127
    with pytest.raises(WireError, match="no text"):
        decode_item(encode_item(HoldItem(ONE, 1, "a"))[:-1] + b"\xff")
