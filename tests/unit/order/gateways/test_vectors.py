"""The bytes of items and blocks are pinned in `tests/vectors/gateways`.

`ORDERCAST_REWRITE=1 pytest tests/unit/order/gateways/test_vectors.py` renews them.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

import pytest

from ordercast.order.gateways.codec import ItemKind, decode_item, encode_item
from ordercast.order.gateways.packets import block_from, block_of
from tests.unit.wire.vectors import bytes_in, page_of

from .vectors import BLOCKS, ITEMS, Group

FOLDER = Path(__file__).parents[3] / "vectors" / "gateways"
REWRITE = os.environ.get("ORDERCAST_REWRITE") == "1"


class Pinned(NamedTuple):
    name: str
    title: str
    says: object
    data: bytes
    groups: tuple[Group, ...]


PINNED = [
    *(Pinned(one.name, one.title, one.read, encode_item(*one.read), one.groups) for one in ITEMS),
    *(Pinned(name, title, block, block_of(*block), groups) for name, title, block, groups in BLOCKS),
]


def _rendered(pinned: Pinned) -> str:
    return page_of(pinned.title, "tests/unit/order/gateways/test_vectors.py", pinned.data, pinned.groups)


@pytest.mark.parametrize("pinned", PINNED, ids=lambda pinned: pinned.name)
def test_what_is_said_and_the_pinned_bytes_are_one(pinned: Pinned) -> None:
    path = FOLDER / f"{pinned.name}.txt"
    if REWRITE:
        path.write_text(_rendered(pinned), encoding="utf-8")
    text = path.read_text(encoding="utf-8")
    assert _rendered(pinned) == text and bytes_in(text) == pinned.data
    assert sum(size for size, _ in pinned.groups) == len(pinned.data)
    decode = block_from if pinned.name.startswith("block") else decode_item
    assert decode(pinned.data) == pinned.says


def test_every_kind_has_a_vector_and_every_file_an_item() -> None:
    assert {encode_item(*one.read)[0] for one in ITEMS} == set(ItemKind)
    assert {path.stem for path in FOLDER.glob("*.txt")} == {pinned.name for pinned in PINNED}
