"""Cuts a stream of bytes into frames."""

from __future__ import annotations

from ordercast.model.errors import WireError
from ordercast.session.batches import FRAME_SIZE_MAX
from ordercast.session.pieces import HEADER

ROOM = 1 << 18  # bytes that are read at a time


class FrameReader:
    """Give the transport `room()`, then tell how much was put there."""

    def __init__(self, size_max: int = FRAME_SIZE_MAX) -> None:
        self.size_max = size_max
        self._buffer = bytearray(ROOM)
        self._end = 0

    def room(self) -> memoryview:
        if len(self._buffer) - self._end < HEADER.size:
            self._grow(len(self._buffer))
        return memoryview(self._buffer)[self._end :]

    def received(self, size: int) -> list[tuple[int, bytes]]:
        """Whole frames, as (kind, body). WireError for one that is too large or empty."""
        buffer = self._buffer
        self._end += size
        frames: list[tuple[int, bytes]] = []
        at = 0
        while self._end - at >= HEADER.size:
            length, kind = HEADER.unpack_from(buffer, at)
            if not 1 <= length <= self.size_max:
                raise WireError(f"a frame of {length} bytes: at most {self.size_max}")
            end = at + HEADER.size - 1 + length
            if end > self._end:
                self._expect(end - at)
                break
            frames.append((kind, bytes(memoryview(buffer)[at + HEADER.size : end])))
            at = end
        if at:
            rest = bytes(memoryview(buffer)[at : self._end])
            self._end = len(rest)
            if not rest and len(buffer) > ROOM:
                self._buffer = bytearray(ROOM)  # the large one is over
            else:
                self._buffer[: len(rest)] = rest
        return frames

    def _expect(self, size: int) -> None:
        """Make room for a frame that is larger than all before. Only as it comes: a length alone costs nothing."""
        if self._end >= len(self._buffer) - HEADER.size and size > len(self._buffer):
            self._grow(min(size + ROOM - len(self._buffer), len(self._buffer)))

    def _grow(self, size: int) -> None:
        """A new buffer: the transport still holds a view of the old one, which can therefore not change its size."""
        self._buffer = self._buffer + bytes(size)
