"""A stream of bytes is cut into frames, however it comes. More in `tests/properties/test_session_reader.py`."""

from __future__ import annotations

import pytest

from ordercast.model.errors import WireError
from ordercast.session.pieces import HEADER, FrameKind, frame
from ordercast.session.reader import ROOM, FrameReader


def _read(reader: FrameReader, data: bytes) -> list[tuple[int, bytes]]:
    """As a transport does: it holds the room while it tells how much it has put there."""
    frames: list[tuple[int, bytes]] = []
    while data:
        room = reader.room()
        size = min(len(room), len(data))
        room[:size] = data[:size]
        data = data[size:]
        frames += reader.received(size)
    return frames


def test_frames_come_out_whole() -> None:
    reader = FrameReader()
    stream = frame(FrameKind.PING) + frame(FrameKind.CLOSING, b"why") + frame(FrameKind.BYE)
    assert _read(reader, stream[:-1]) == [(FrameKind.PING, b""), (FrameKind.CLOSING, b"why")]
    assert _read(reader, stream[-1:]) == [(FrameKind.BYE, b"")]


def test_a_kind_that_nobody_knows_is_not_the_readers_business() -> None:
    assert _read(FrameReader(), b"\0\0\0\x02\xffx") == [(255, b"x")]


@pytest.mark.parametrize("size", [ROOM - HEADER.size, ROOM - 1, ROOM, ROOM + 1, 5 * ROOM + 7])
def test_a_frame_larger_than_the_room_makes_room_for_itself_and_gives_it_back(size: int) -> None:
    reader = FrameReader()
    body = (bytes(range(256)) * (size // 256 + 1))[:size]
    assert _read(reader, frame(FrameKind.SEND, body)) == [(FrameKind.SEND, body)]
    assert len(reader.room()) == ROOM
    assert _read(reader, frame(FrameKind.PING)) == [(FrameKind.PING, b"")]


def test_two_readers_may_share_their_room() -> None:
    room = bytearray(64)
    one, two = FrameReader(room=room), FrameReader(room=room)
    first, second = frame(FrameKind.CLOSING, bytes(100)), frame(FrameKind.CLOSING, b"x" * 200)
    got: list[list[tuple[int, bytes]]] = [[], []]
    for at in range(0, len(second), 50):  # in turns
        for reader, data, frames in ((one, first, got[0]), (two, second, got[1])):
            piece = data[at : at + 50]
            reader.room()[: len(piece)] = piece
            frames += reader.received(len(piece))
    assert got == [[(FrameKind.CLOSING, bytes(100))], [(FrameKind.CLOSING, b"x" * 200)]]


def test_a_frame_of_the_largest_size_is_read_and_a_larger_one_refused() -> None:
    assert _read(FrameReader(8), frame(FrameKind.CLOSING, bytes(7))) == [(FrameKind.CLOSING, bytes(7))]
    with pytest.raises(WireError, match="a frame of 9 bytes: at most 8"):
        _read(FrameReader(8), frame(FrameKind.CLOSING, bytes(8)))
    with pytest.raises(WireError, match="a frame of 4294967295 bytes"):
        _read(FrameReader(), b"\xff" * HEADER.size)


def test_a_frame_that_is_not_admitted_is_refused_at_its_header_and_nothing_of_it_is_kept() -> None:
    asked = []

    def admit(kind: int, size: int) -> None:
        asked.append((kind, size))
        if size > 100:
            raise WireError("too large")

    reader = FrameReader(1 << 20, admit=admit)
    small, large = frame(FrameKind.CLOSING, bytes(95)), frame(FrameKind.SEND, bytes(96))
    assert _read(reader, small) == [(FrameKind.CLOSING, bytes(95))]
    assert (asked, reader.begun_size) == ([], 0)  # it was whole
    assert _read(reader, small[:50]) == []
    assert (asked, reader.begun_size) == ([(FrameKind.CLOSING, 100)], 50)
    assert _read(reader, small[50:] + large[:3]) == [(FrameKind.CLOSING, bytes(95))]
    with pytest.raises(WireError, match="too large"):
        _read(reader, large[3 : HEADER.size])
    assert (asked[1:], reader.begun_size) == ([(FrameKind.SEND, 101)], 0)
    reader.forget()
    assert reader.begun_size == 0


def test_who_stops_at_a_frame_gets_it_again_with_what_came_behind_it() -> None:
    reader = FrameReader()
    stream = b"".join(frame(FrameKind.CLOSING, b"%d" % number) for number in range(4)) + frame(FrameKind.BYE)
    taken = []
    for piece in (stream[:-3], b"", stream[-3:], b"", b""):
        reader.room()[: len(piece)] = piece
        frames = reader.received(len(piece))
        for turn, (_, body) in enumerate(frames):
            if turn == 2:
                frames.close()
                break
            taken.append(body)
    assert taken == [b"0", b"1", b"2", b"3", b""]
    assert reader.begun_size == 0


def test_a_frame_without_a_kind_is_refused() -> None:
    with pytest.raises(WireError, match="a frame of 0 bytes"):
        _read(FrameReader(), bytes(HEADER.size))


def test_what_was_read_does_not_change_with_what_is_read_next() -> None:
    reader = FrameReader()
    ((_, first),) = _read(reader, frame(FrameKind.CLOSING, b"first"))
    _read(reader, frame(FrameKind.CLOSING, b"other"))
    assert first == b"first"
