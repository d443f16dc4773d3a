"""Bursts arranged for the kernel: what one system call carries each time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ordercast.model.effects import Burst

SEND_SIZE_MAX = 65507  # bytes of one segmented send: what one datagram could carry
SEGMENTS_MAX = 64  # packets of one segmented send


def segmented(bursts: Sequence[Burst], segments_max: int) -> Iterator[tuple[list[bytes | memoryview], int]]:
    """What one system call can carry each time: packets of one size, the last perhaps shorter."""
    gathered: list[bytes | memoryview] = []
    size = room = 0  # of the send being put together: packets of `size`, and how many bytes more it can take
    for data, its_size in bursts:
        is_alike = its_size == size or len(data) <= its_size < size  # one shorter packet may be the last
        if gathered and (not is_alike or len(data) > room):
            yield gathered, size
            gathered = []
        rest: bytes | memoryview = data
        if not gathered:
            size = its_size
            room = limit = size * min(segments_max, max(1, SEND_SIZE_MAX // size))
            if len(data) > limit:
                view = memoryview(data)
                end = (len(data) - 1) // limit * limit
                for at in range(0, end, limit):
                    yield [view[at : at + limit]], size
                rest = view[end:]
        gathered.append(rest)
        room = room - len(rest) if len(rest) % size == 0 else 0
    if gathered:
        yield gathered, size


def singles(bursts: Sequence[Burst]) -> Iterator[tuple[tuple[memoryview], int]]:
    """One packet for each system call."""
    for data, size in bursts:
        view = memoryview(data)
        for at in range(0, len(data), size):
            yield (view[at : at + size],), size
