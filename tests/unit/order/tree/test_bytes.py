"""Blocks, control messages and reports as bytes: a round trip for each kind; anything else is a WireError."""

from __future__ import annotations

from contextlib import suppress
from random import Random

import pytest

from ordercast.model.errors import WireError
from ordercast.model.ids import ConfigurationId, ProcessId
from ordercast.order.tree.blocks import (
    BlockKind,
    Cargo,
    Close,
    Count,
    GivenPlace,
    GivenPlaces,
    Numbers,
    Offer,
    Ordered,
    TreeBlock,
    decode_block,
    earlier_of,
    encode_close,
    encode_count,
    encode_data,
    encode_numbers,
    encode_offer,
    encode_places,
)
from ordercast.order.tree.control import (
    Broken,
    Closed,
    Control,
    Everywhere,
    Holding,
    Opening,
    Reconcile,
    SenderLoad,
    Wants,
    decode_control,
    encode_broken,
    encode_closed,
    encode_cross,
    encode_everywhere,
    encode_held,
    encode_load,
    encode_opening,
    encode_reconcile,
    encode_wants,
)
from ordercast.order.tree.reports import Recovered, Report, Unordered, encode_recovered, encode_report, mark_of

A, B = ProcessId(1 << 48 | 1), ProcessId(2 << 48 | 3)
CARGO = Cargo(B, 7, 3, 2, 5, 0, (1, 4), (b"one", b""))
ORDERED = Ordered(3, A, 9, (4, 0, 2), CARGO, earlier_of(5, (4, 0, 1)) + earlier_of(6, (4, 1, 1)))
BLOCKS: list[tuple[bytes, TreeBlock]] = [
    (encode_data(ORDERED), ORDERED),
    (encode_offer(Offer(3, A, CARGO)), Offer(3, A, CARGO)),
    (encode_offer(Offer(3, A, CARGO._replace(is_again=True))), Offer(3, A, CARGO._replace(is_again=True))),
    (encode_close(5), Close(5)),
    (encode_count(BlockKind.DONE, 5, 12), Count(BlockKind.DONE, 5, 12)),
    (encode_count(BlockKind.SAFE, 5, 12), Count(BlockKind.SAFE, 5, 12)),
    (encode_places(5, [GivenPlace(7, 9, (1, 2))]), GivenPlaces(5, (GivenPlace(7, 9, (1, 2)),))),
    *(
        (encode_numbers(kind, 5, [7, 8]), Numbers(kind, 5, (7, 8)))
        for kind in (BlockKind.REFUSED, BlockKind.KNOWN, BlockKind.STABLE)
    ),
]
V = ConfigurationId(8, A)
REPORT = Report(V, 3, 4, (3, (4,)), (((A, (1, 4)), 9),), (mark_of(ORDERED),), (Unordered(8, 3, A, (1,)),))
SETTLED = REPORT._replace(settled=(mark_of(ORDERED),), ended_by=ConfigurationId(12, B))
OPENING = Opening(4, 17, bytes(8), ((3, A),), ({A: None, B: A},))
CONTROLS: list[tuple[bytes, Control]] = [
    (encode_everywhere(b"x"), Everywhere((), b"x")),
    (encode_cross(6, ["a", "b"], b"x"), Everywhere(("a", "b"), b"x", 6)),
    (encode_cross(6, ["a", "b"], b"x", is_again=True, source=9), Everywhere(("a", "b"), b"x", 6, True, 9)),
    (encode_wants(Wants(("a",), ("b", "c"), True)), Wants(("a",), ("b", "c"), True)),
    (encode_opening(OPENING), OPENING),
    (encode_closed(Closed(4, A)), Closed(4, A)),
    (encode_held(Holding(True)), Holding(True)),
    (encode_reconcile(Reconcile(5)), Reconcile(5)),
    (encode_broken(Broken(B, 4)), Broken(B, 4)),
    (encode_load(SenderLoad((("a", 7), ("b", 0)))), SenderLoad((("a", 7), ("b", 0)))),
    (encode_report(REPORT), REPORT),
    (encode_report(SETTLED), SETTLED),
    (encode_recovered(Recovered(V, mark_of(ORDERED), CARGO)), Recovered(V, mark_of(ORDERED), CARGO)),
]


@pytest.mark.parametrize(("data", "block"), BLOCKS)
def test_a_block_comes_back_from_its_bytes(data: bytes, block: TreeBlock) -> None:
    assert decode_block(data) == block


@pytest.mark.parametrize(("data", "control"), CONTROLS)
def test_a_control_message_comes_back_from_its_bytes(data: bytes, control: Control) -> None:
    assert decode_control(data) == control


@pytest.mark.parametrize("seed", range(4))
def test_other_bytes_are_a_wire_error_or_another_message(seed: int) -> None:
    rng = Random(seed)
    for data, _ in BLOCKS + CONTROLS:
        for _ in range(200):
            damaged = bytearray(data[: rng.randrange(len(data) + 1)] if rng.random() < 0.5 else data)
            for _ in range(rng.randrange(1, 4) if damaged else 0):
                damaged[rng.randrange(len(damaged))] = rng.randrange(256)
            for decode in (decode_block, decode_control):
                with suppress(WireError):
                    decode(bytes(damaged))
