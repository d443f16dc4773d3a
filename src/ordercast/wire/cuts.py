"""Cuts pieces that lie one behind the other out of bytes: messages out of a packet or out of a client's frame. Equally
long ones are cut by C code alone."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate, pairwise

PIECES_MAX = 256  # that are cut by one call: a layout takes 32 bytes of memory for each


@lru_cache(maxsize=512)
def _layout(before: int, kept: int, behind: int, count: int) -> struct.Struct:
    """So many pieces, of each of which something in the middle is kept."""
    return struct.Struct(f"{before}x{kept}s{behind}x" * count)


def cut(data: bytes, at: int, lengths: tuple[int, ...], skip: int = 0) -> Sequence[bytes]:
    """Return the pieces of these lengths from `at` on, each without its first `skip` bytes. None is shorter than that,
    and all are there."""
    length, count = lengths[0], len(lengths)
    if count == 1:
        return (data[at + skip : at + length],)
    if lengths.count(length) == count:
        return _equal_pieces(data, at, (skip, length - skip, 0), count)
    return [data[start + skip : end] for start, end in pairwise(accumulate(lengths, initial=at))]


def beginnings(data: bytes, at: int, lengths: tuple[int, ...], size: int) -> Sequence[bytes]:
    """Return the first `size` bytes of each of these pieces; none is shorter."""
    length, count = lengths[0], len(lengths)
    if lengths.count(length) == count:
        return _equal_pieces(data, at, (0, size, length - size), count)
    return [data[start : start + size] for start in accumulate(lengths[:-1], initial=at)]


def _equal_pieces(data: bytes, at: int, shape: tuple[int, int, int], count: int) -> Sequence[bytes]:
    if count <= PIECES_MAX:
        return _layout(*shape, count).unpack_from(data, at)
    pieces: list[bytes] = []
    for done in range(0, count, PIECES_MAX):
        layout = _layout(*shape, min(PIECES_MAX, count - done))
        pieces += layout.unpack_from(data, at + done * sum(shape))
    return pieces
