"""The reader of control formats."""

from __future__ import annotations

import struct

import pytest

from ordercast.model.errors import WireError
from ordercast.wire.reader import ByteReader

NAMES = b"\x05alice\x00\x03bob"


def test_pieces_are_taken_front_to_back() -> None:
    reader = ByteReader(b"?" + NAMES + b"\x07\x00\x09rest", 1)
    assert reader.names(3) == ["alice", "", "bob"]
    assert (reader.byte(), reader.unpack(struct.Struct(">H")), reader.left) == (7, (9,), 4)
    assert reader.rest() == b"rest"
    reader.end()


@pytest.mark.parametrize("size", range(len(NAMES)))
def test_names_that_are_cut_anywhere_are_refused_and_nothing_is_taken(size: int) -> None:
    reader = ByteReader(NAMES[:size], what="a list")
    with pytest.raises(WireError, match="a list is cut short"):
        reader.names(3)
    assert reader.left == size


def test_a_count_that_cannot_be_ends_where_the_bytes_do() -> None:
    with pytest.raises(WireError, match="cut short"):
        ByteReader(NAMES).names((1 << 32) - 1)


def test_names_are_ascii() -> None:
    with pytest.raises(WireError, match="a list has a name that is not ASCII"):
        ByteReader(b"\x01\xe9", what="a list").name()


def test_what_is_left_over_is_refused() -> None:
    with pytest.raises(WireError, match="2 bytes too many behind a list"):
        ByteReader(b"ab", what="a list").end()
