"""Cuts a stream of bytes into frames."""

from __future__ import annotations

from collections.abc import Callable, Generator

from ordercast.model.errors import WireError
from ordercast.session.batches import FRAME_SIZE_MAX
from ordercast.session.pieces import HEADER

ROOM = 1 << 18  # bytes that are read at a time


class FrameReader:
    """Give the transport `room()`, then tell how much was put there."""

    def __init__(
        self,
        size_max: int = FRAME_SIZE_MAX,
        room: bytearray | None = None,
        admit: Callable[[int, int], None] | None = None,
    ) -> None:
        """Readers whose transports fill the room and tell of it in one go may share it: a thousand idle connections
        then need it once. `admit` is asked for a frame of which only the header and perhaps more is here, with its kind
        and its whole size: it raises a WireError for one that is not to be kept until it is whole."""
        self.size_max = size_max
        self._admit = admit
        self._room = memoryview(bytearray(ROOM) if room is None else room)
        self._begun = bytearray()  # a frame of which more is to come
        self._needed = 0  # bytes, before it is worth a look

    def room(self) -> memoryview:
        return self._room

    @property
    def begun_size(self) -> int:
        """Bytes of a frame of which more is to come."""
        return len(self._begun)

    def forget(self) -> None:
        """Nothing more is read."""
        self._begun = bytearray()

    def received(self, size: int) -> Generator[tuple[int, bytes], None, None]:
        """Whole frames, one after the other, as (kind, body). WireError for one that is too large or empty; what a
        frame says may change how large the next may be. Who closes this at a frame gets that frame again, and what came
        behind it, when the reader is next told of something, or of nothing."""
        if not self._begun:
            yield from self._cut(self._room[:size])
            return
        self._begun += self._room[:size]
        if len(self._begun) >= self._needed:
            begun, self._begun = self._begun, bytearray()
            yield from self._cut(memoryview(begun))

    def _cut(self, data: memoryview) -> Generator[tuple[int, bytes], None, None]:
        at = 0
        self._needed = HEADER.size
        while len(data) - at >= HEADER.size:
            length, kind = HEADER.unpack_from(data, at)
            if not 1 <= length <= self.size_max:
                raise WireError(f"a frame of {length} bytes: at most {self.size_max}")
            end = at + HEADER.size - 1 + length
            if end > len(data):
                self._needed = end - at
                if self._admit is not None:
                    self._admit(kind, self._needed)
                break
            try:
                yield kind, bytes(data[at + HEADER.size : end])
            except GeneratorExit:
                self._begun += data[at:]
                raise
            at = end
        self._begun += data[at:]
