"""What frames are made of."""

from __future__ import annotations

import pytest

from ordercast.model.errors import WireError
from ordercast.session.pieces import FrameKind, expect_end, frame, read_names, reading, write_names
from ordercast.wire.reader import ByteReader


def test_a_frame_says_how_much_follows_its_length() -> None:
    assert frame(FrameKind.CREDIT, b"ab", b"", b"c") == b"\0\0\0\x04" + bytes([FrameKind.CREDIT]) + b"abc"
    assert frame(FrameKind.PING) == b"\0\0\0\x01" + bytes([FrameKind.PING])


def test_numbers_of_frames_are_from_1_on_without_holes() -> None:
    assert sorted(FrameKind) == list(range(1, len(FrameKind) + 1))


def test_names_are_read_from_anywhere_and_say_where_they_end() -> None:
    names = ("chat", "x" * 255, "")
    encoded = write_names(names)
    assert encoded[:9] == b"\0\0\0\x03\x04chat"
    reader = ByteReader(b"??" + encoded + b"??", 2)
    assert (read_names(reader), reader.rest()) == (names, b"??")
    assert read_names(ByteReader(write_names(()))) == ()


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"\xff\xff\xff\xff" + bytes(9), "cut short"),
        (b"\0\0\0\x03\0\0", "cut short"),
        (b"\0\0\0\x01\x05chat", "cut short"),
        (b"\0\0\0\x02\x04chat", "cut short"),
        (b"\0\0\0\x01\x01\xe9", "not ASCII"),
        (b"\0\0\0", "cut short"),
    ],
)
def test_names_that_are_not_there_are_refused(body: bytes, why: str) -> None:
    with pytest.raises(WireError, match=why):
        read_names(ByteReader(body))


def test_what_the_other_side_did_wrong_is_named() -> None:
    with pytest.raises(WireError, match=r"^a thing that cannot be read: list index out of range$"), reading("a thing"):
        [][0]
    with pytest.raises(ZeroDivisionError), reading("our own mistake"):
        _ = 1 // 0


def test_a_frame_ends_where_it_says() -> None:
    expect_end(b"abc", 3)
    for at in (2, 4):
        with pytest.raises(WireError, match=f"a frame of 3 bytes ends after {at}"):
            expect_end(b"abc", at)
