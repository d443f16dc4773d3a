"""The bytes of every frame are pinned in `tests/vectors/session`: a change of the protocol is a change of those files.

`ORDERCAST_REWRITE=1 pytest tests/unit/session/test_vectors.py` renews them.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ordercast.session.pieces import FrameKind
from ordercast.session.reader import FrameReader

from ..wire.vectors import bytes_in
from .vectors import HEADER_GROUPS, VECTORS, Vector, kind_and_body, render

FOLDER = Path(__file__).parents[2] / "vectors" / "session"
REWRITE = os.environ.get("ORDERCAST_REWRITE") == "1"

each_vector = pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector.name)


def _file_of(vector: Vector) -> str:
    path = FOLDER / f"{vector.name}.txt"
    if REWRITE:
        path.write_text(render(vector), encoding="utf-8")
    return path.read_text(encoding="utf-8")


@each_vector
def test_what_is_said_encodes_to_exactly_the_pinned_bytes(vector: Vector) -> None:
    text = _file_of(vector)
    assert render(vector) == text
    assert vector.encode() == bytes_in(text)


@each_vector
def test_the_pinned_bytes_decode_to_what_was_said(vector: Vector) -> None:
    kind, body = kind_and_body(bytes_in(_file_of(vector)))
    assert (kind, vector.decode(body)) == (vector.kind, vector.said)


@each_vector
def test_the_documented_layout_covers_every_byte(vector: Vector) -> None:
    assert sum(size for size, _ in HEADER_GROUPS + vector.groups) == len(vector.encode())


def test_all_of_them_in_one_stream_are_told_apart() -> None:
    reader = FrameReader()
    stream = b"".join(vector.encode() for vector in VECTORS)
    reader.room()[: len(stream)] = stream
    assert list(reader.received(len(stream))) == [kind_and_body(vector.encode()) for vector in VECTORS]


def test_every_kind_of_frame_has_a_vector_and_every_file_a_frame() -> None:
    assert [vector.encode()[4] for vector in VECTORS] == list(FrameKind)
    assert {path.stem for path in FOLDER.glob("*.txt")} == {vector.name for vector in VECTORS}
