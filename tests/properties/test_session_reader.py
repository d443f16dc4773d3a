"""However a stream is cut into reads, the same frames come out of it."""

from __future__ import annotations

from contextlib import suppress

from hypothesis import given
from hypothesis import strategies as st

from ordercast.model.errors import WireError
from ordercast.session.pieces import HEADER
from ordercast.session.reader import ROOM, FrameReader

Frames = list[tuple[int, bytes]]

sizes = st.one_of(
    st.integers(0, 40),
    st.integers(ROOM - 2 * HEADER.size, ROOM + 2 * HEADER.size),
    st.integers(0, 5 * ROOM),
)
frame_lists = st.lists(st.tuples(st.integers(0, 255), sizes, st.integers(0, 255)), max_size=5)
cuts = st.lists(st.one_of(st.integers(1, 7), st.integers(1, 6 * ROOM)), min_size=1, max_size=20)


def _frames(drawn: list[tuple[int, int, int]]) -> Frames:
    """Each with a body that differs from place to place."""
    pattern = bytes(range(251)) * (5 * ROOM // 251 + 2)
    return [(kind, pattern[start : start + size]) for kind, size, start in drawn]


def _read(reader: FrameReader, stream: memoryview, reads: list[int]) -> tuple[Frames, int]:
    """What came out, and the largest room there was. The transport holds the room while it tells what it put there."""
    frames: Frames = []
    at = turn = largest = 0
    while at < len(stream):
        room = reader.room()
        assert len(room) >= HEADER.size
        size = min(reads[turn % len(reads)] if turn < 3 * len(reads) else len(room), len(room), len(stream) - at)
        room[:size] = stream[at : at + size]
        largest = max(largest, len(room))
        frames += reader.received(size)
        at += size
        turn += 1
    return frames, largest


@given(frame_lists, cuts)
def test_any_cutting_gives_the_same_frames_and_the_room_is_given_back(
    drawn: list[tuple[int, int, int]], reads: list[int]
) -> None:
    frames = _frames(drawn)
    stream = b"".join(HEADER.pack(len(body) + 1, kind) + body for kind, body in frames)
    reader = FrameReader()
    got, largest = _read(reader, memoryview(stream), reads)
    assert got == frames
    assert len(reader.room()) == ROOM
    assert largest <= 2 * max([len(body) + HEADER.size for _, body in frames], default=0) + 2 * ROOM


@given(frame_lists, st.binary(max_size=30), cuts)
def test_what_is_cut_off_waits_for_the_rest(drawn: list[tuple[int, int, int]], begun: bytes, reads: list[int]) -> None:
    frames = _frames(drawn)
    whole = b"".join(HEADER.pack(len(body) + 1, kind) + body for kind, body in frames)
    last = HEADER.pack(len(begun) + 2, 7) + begun
    reader = FrameReader()
    got, _ = _read(reader, memoryview(whole + last), reads)
    assert got == frames
    assert _read(reader, memoryview(b"!"), [1])[0] == [(7, begun + b"!")]


@given(st.binary(max_size=300), cuts, st.integers(1, 300))
def test_noise_gives_a_wire_error_at_worst_and_no_room(noise: bytes, reads: list[int], size_max: int) -> None:
    reader = FrameReader(size_max)
    with suppress(WireError):
        frames, largest = _read(reader, memoryview(noise), reads)
        assert all(len(body) < size_max for _, body in frames)
        assert largest <= ROOM
