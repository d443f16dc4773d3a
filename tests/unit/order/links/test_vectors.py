"""The bytes of links are pinned in `tests/vectors/links`.

`ORDERCAST_REWRITE=1 pytest tests/unit/order/links/test_vectors.py` renews the files.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

import pytest

from ordercast.order.links.codec import PART, PROBE, LinkHead, LinkKind, encode_link, encode_ranges
from ordercast.order.links.packing import Packer
from tests.unit.order.links.pair import CLUSTER, ENDS
from tests.unit.wire.vectors import bytes_in, page_of

FOLDER = Path(__file__).parents[3] / "vectors" / "links"
REWRITE = os.environ.get("ORDERCAST_REWRITE") == "1"
CLEAR = ((4, "magic, version, key"), (2, "length"), (8, "cluster"), (8, "transmitter"))
LINK = ((8, "tag"), (8, "number"), (8, "aru"), (2, "beyond"), (4, "sent"), (4, "echo"))


class Vector(NamedTuple):
    name: str
    title: str
    data: bytes
    groups: tuple[tuple[int, str], ...]


def _body(size: int, payloads: list[bytes]) -> bytes:
    packer = Packer(size, 100)
    packer.put(payloads)
    return packer.take()[0]


def _head(kind: LinkKind, flags: int, number: int) -> LinkHead:
    return LinkHead(kind, flags, 0x0000_0007_0000_0009, number, 40, 2, 1_000_000, 2_000_000)


VECTORS = (
    Vector(
        "data",
        "Two payloads in one packet, with a rider of two bytes",
        encode_link(CLUSTER, ENDS[0], _head(LinkKind.DATA, 0, 12), b"\1\2", _body(100, [b"one", b"two!"])),
        (*CLEAR, (2, "kind data, flags"), *LINK, (2, "rider"), (2, "length"), (3, "one"), (2, "length"), (4, "two!")),
    ),
    Vector(
        "part",
        "The first of the parts of a payload",
        encode_link(CLUSTER, ENDS[0], _head(LinkKind.DATA, PART, 13), b"", _body(8, [b"parts are 4 bytes"])),
        (*CLEAR, (2, "kind data, flags: part"), *LINK, (2, "index"), (2, "parts"), (4, "part")),
    ),
    Vector(
        "status",
        "A status that wants an answer and lacks packets 41 and 43 to 45",
        encode_link(CLUSTER, ENDS[0], _head(LinkKind.STATUS, PROBE, 13), b"", encode_ranges(40, [(41, 41), (43, 45)])),
        (
            *(*CLEAR, (2, "kind status, flags: probe"), *LINK, (1, "ranges")),
            *((4, "distance from aru"), (2, "packets"), (4, "distance from aru"), (2, "packets")),
        ),
    ),
)


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector.name)
def test_packets_and_the_pinned_bytes_are_one(vector: Vector) -> None:
    path = FOLDER / f"{vector.name}.txt"
    rendered = page_of(vector.title, "tests/unit/order/links/test_vectors.py", vector.data, vector.groups)
    if REWRITE:
        path.write_text(rendered, encoding="utf-8")
    text = path.read_text(encoding="utf-8")
    assert rendered == text and bytes_in(text) == vector.data
    assert sum(size for size, _ in vector.groups) == len(vector.data)
