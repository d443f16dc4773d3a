"""The bytes of every message are pinned in `tests/vectors`: a change of the wire format is a change of those files.

`ORDERCAST_REWRITE=1 pytest tests/unit/wire/test_vectors.py` renews them.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ordercast.wire.head import KIND_AT, LAYER_KIND
from ordercast.wire.header import MessageKind

from .vectors import VECTORS, Vector, bytes_in, render

FOLDER = Path(__file__).parents[2] / "vectors"
REWRITE = os.environ.get("ORDERCAST_REWRITE") == "1"

each_vector = pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector.name)


def _file_of(vector: Vector) -> str:
    path = FOLDER / f"{vector.name}.txt"
    if REWRITE:
        path.write_text(render(vector), encoding="utf-8")
    return path.read_text(encoding="utf-8")


@each_vector
def test_the_stated_message_encodes_to_exactly_the_pinned_bytes(vector: Vector) -> None:
    text = _file_of(vector)
    assert render(vector) == text
    assert vector.encode() == bytes_in(text)


@each_vector
def test_the_pinned_bytes_decode_to_the_stated_message(vector: Vector) -> None:
    assert vector.decode(bytes_in(_file_of(vector))) == vector.message


@each_vector
def test_the_documented_layout_covers_every_byte(vector: Vector) -> None:
    assert sum(size for size, _ in vector.groups) == len(vector.encode())


def test_every_kind_of_message_has_a_vector_and_every_file_a_message() -> None:
    assert {vector.encode()[KIND_AT] for vector in VECTORS} == {*MessageKind, LAYER_KIND}
    assert {path.stem for path in FOLDER.glob("*.txt")} == {vector.name for vector in VECTORS}
