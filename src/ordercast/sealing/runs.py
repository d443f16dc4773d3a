"""Runs of packets that are alike, sealed or opened one by one: calls of a cipher, which loops in C make.

The compiled kernel has a cipher that does a whole run by one call (`packaging/fast/src/seal.c`).
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from functools import lru_cache
from itertools import chain, repeat
from typing import Final

from ordercast.model.kernel import FOUND
from ordercast.sealing.cipher import OneByOne
from ordercast.sealing.packet import GROWTH, NETWORKS_AT, NONCE, NONCE_LAYOUT, SEALED_AT
from ordercast.wire.cuts import cut
from ordercast.wire.head import HEAD_SIZE, LENGTH_AT

ROW_AT: Final = 15  # the last byte of the counter
_BYTES: Final = [bytes((number,)) for number in range(256)]
_RAMP: Final = bytes(range(256)) * 3


class Looped:
    """A `Tag` made of one that seals and opens single packets."""

    __slots__ = ("decrypt", "encrypt")

    def __init__(self, tag: OneByOne) -> None:
        self.encrypt, self.decrypt = tag.encrypt, tag.decrypt

    def seal_run(
        self,
        data: bytes,
        at: int,
        end: int,
        size: int,
        opening: bytes,
        life: int,
        counter: int,
        networks: int,
        clear: bytes,
        /,
    ) -> bytes:
        upper, lower = counter >> 32, counter & 0xFFFFFFFF
        if end - at <= size:
            nonce = NONCE_LAYOUT.pack(end - at + GROWTH, life, upper, lower)
            sealed = self.encrypt(nonce, data[at + HEAD_SIZE : end], clear)
            return b"".join((opening, nonce, _BYTES[networks], sealed))
        full, rest = divmod(end - at, size)
        numbers = range(lower, lower + full)
        bodies = cut(data, at, (size,) * full, HEAD_SIZE) if full else ()
        nonces = list(map(NONCE_LAYOUT.pack, repeat(size + GROWTH), repeat(life), repeat(upper), numbers))
        if rest:
            bodies = (*bodies, data[end - rest + HEAD_SIZE : end])
            nonces.append(NONCE_LAYOUT.pack(rest + GROWTH, life, upper, lower + full))
        all_sealed = map(self.encrypt, nonces, bodies, repeat(clear))
        packets = zip(repeat(opening), nonces, repeat(_BYTES[networks]), all_sealed, strict=False)
        return b"".join(chain.from_iterable(packets))

    def open_run(self, data: bytes, size: int, head: bytes, clear: bytes, /) -> bytes:
        if len(data) == size:
            return head + self.decrypt(data[NONCE], data[SEALED_AT:], clear)
        full, rest = divmod(len(data), size)
        pieces = _layout(size, full).unpack_from(data)
        nonces, bodies = pieces[::2], pieces[1::2]
        if rest:
            last = data[-rest:]
            nonces, bodies = (*nonces, last[NONCE]), (*bodies, last[SEALED_AT:])
        opened = list(map(self.decrypt, nonces, bodies, repeat(clear)))
        if not rest:
            return head + head.join(opened)
        length = (rest - GROWTH).to_bytes(2, "big")
        return b"".join((head, head.join(opened[:-1]), head[:LENGTH_AT], length, head[LENGTH_AT + 2 :], opened[-1]))


def are_alike(data: bytes, size: int) -> bool:
    """Tell whether all packets of a read begin alike, and were sent on the same networks."""
    return all(_is_constant(data[at::size]) for at in (*range(LENGTH_AT), NETWORKS_AT))


def nonces_in(data: bytes, size: int) -> Iterable[tuple[int, int, int, int]]:
    """Return length, life and both halves of the counter of each packet."""
    nonces = [data[at + NONCE.start : at + NONCE.stop] for at in range(0, len(data), size)]
    return NONCE_LAYOUT.iter_unpack(b"".join(nonces))


def pure_in_a_row(data: bytes, size: int, /) -> bool:
    """Tell whether the packets of a read are alike, and their counters in a row; whoever asks knows that each is long
    enough. Mostly a few columns of bytes are compared, all packets at a time."""
    if not are_alike(data, size):
        return False
    full, rest = divmod(len(data), size)
    length, life, upper, first = NONCE_LAYOUT.unpack_from(data, LENGTH_AT)
    if rest and data[-rest:][NONCE] != NONCE_LAYOUT.pack(rest, life, upper, (first + full) & 0xFFFFFFFF):
        return False
    is_ramp = data[ROW_AT::size][:full] == _RAMP[first & 0xFF : (first & 0xFF) + full]
    if is_ramp and all(_is_constant(data[at::size][:full]) for at in range(LENGTH_AT, ROW_AT)):
        return True
    expected = [(length, life, upper, (first + number) & 0xFFFFFFFF) for number in range(full)]
    return list(nonces_in(data, size))[:full] == expected


def _is_constant(column: bytes) -> bool:
    return column.count(column[:1]) == len(column)


in_a_row: Callable[[bytes, int], bool] = getattr(FOUND, "in_a_row", pure_in_a_row)


@lru_cache(maxsize=256)
def _layout(size: int, count: int) -> struct.Struct:
    """Nonce and sealed bytes of each of so many packets."""
    return struct.Struct(f"4x12s1x{size - SEALED_AT}s" * count)
