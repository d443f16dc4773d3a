"""The digest of a live message: 32 bits that many messages get at once.

The bytes, padded with zeros, are little-endian words of 32 bits. Each word is multiplied by the weight of its place;
the digest is the upper half of the sum, modulo 2⁶⁴ (multilinear hashing: for weights drawn at random two messages of
one size share a digest once in 2³²). The weights are the same everywhere, the outputs of a generator, so that what one
node submitted and another delivered can be compared. The digest is evidence of faults, not a defence against forgers,
which is the matter of seals; a cryptographic hash cost more than all other work on a message. Simulated runs, clients
and older traces have another one (`digest_of` in `records.py`).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from operator import mul
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordercast.trace import kernel

Ints = NDArray[np.int64]
Bytes = NDArray[np.uint8]
Words = NDArray[np.uint64]

_WORD = 4
_PADS = (b"", b"\0\0\0", b"\0\0", b"\0")  # by the size modulo 4
_NO_BYTES = bytes(_WORD)  # what stands for a message without bytes
_CHUNK_SIZE = 1 << 19  # bytes looked at in one go: they stay in the processor's cache
_FEW_WORDS = 96  # a lone message of so few is quicker in Python
_MASK = (1 << 64) - 1
_GENERATOR = np.array([0x9E37_79B9_7F4A_7C15, 0xBF58_476D_1CE4_E5B9, 0x94D0_49BB_1331_11EB], np.uint64)  # SplitMix64


class _Weights:
    """As many weights as the longest message so far had words. The loop and the writer's thread ask for them."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._drawn = self._draw(1024)
        self.first: list[int] = self._drawn[0][:_FEW_WORDS].tolist()

    def __call__(self, count: int) -> Words:
        return self._at_least(count)[0][:count]

    def bytes_of(self, count: int) -> bytes:
        """Return at least so many, as this processor has them."""
        return self._at_least(count)[1]

    def _at_least(self, count: int) -> tuple[Words, bytes]:
        drawn = self._drawn
        if count > len(drawn[0]):
            with self._lock:
                drawn = self._drawn
                if count > len(drawn[0]):
                    drawn = self._drawn = self._draw(max(count, 2 * len(drawn[0])))
        return drawn

    @staticmethod
    def _draw(count: int) -> tuple[Words, bytes]:
        step, *factors = _GENERATOR
        drawn = np.arange(1, count + 1, dtype=np.uint64) * step
        for shift, factor in zip((30, 27), factors, strict=True):
            drawn = (drawn ^ (drawn >> np.uint64(shift))) * factor
        weights: Words = drawn ^ (drawn >> np.uint64(31))
        return weights, weights.tobytes()


_weights = _Weights()


def digest(data: bytes) -> int:
    """Return the digest of one message."""
    if kernel.look is not None:
        return int(looked_at([data], 0)[1][0])
    count = -(-len(data) // _WORD)
    padded = data + _PADS[len(data) % _WORD]
    if count > _FEW_WORDS:
        return int(np.dot(np.frombuffer(padded, "<u4").astype(np.uint64), _weights(count))) >> 32
    total: int = sum(map(mul, struct.unpack(f"<{count}I", padded), _weights.first)) & _MASK
    return total >> 32


def looked_at(payloads: Sequence[bytes], head: int) -> tuple[Ints, Ints, Bytes]:
    """Return the size of each message, its digest, and its first `head` bytes; anything instead of those that a shorter
    one lacks."""
    if kernel.look is not None:
        return _compiled(kernel.look, payloads, head)
    lengths = list(map(len, payloads))
    sizes = np.array(lengths, np.int64)
    if payloads and lengths.count(lengths[0]) == len(lengths) and lengths[0] >= max(head, 1):
        each = max(1, _CHUNK_SIZE // lengths[0])
        parts = range(0, len(payloads), each)
        found = [_of_one_size(payloads[first : first + each], lengths[0], head) for first in parts]
    else:
        found = [_of_any_size(payloads[first:last], sizes[first:last], head) for first, last in _chunks(sizes)]
    if len(found) == 1:
        return sizes, *found[0]
    both = [(np.zeros(0, np.int64), np.zeros((0, head), np.uint8)), *found]
    return sizes, np.concatenate([one for one, _ in both]), np.concatenate([two for _, two in both])


def _compiled(look: kernel.Look, payloads: Sequence[bytes], head: int) -> tuple[Ints, Ints, Bytes]:
    words = -(-max(map(len, payloads), default=0) // _WORD)
    sizes, found, heads = look(payloads, head, _weights.bytes_of(words))
    first = np.frombuffer(heads, np.uint8).reshape(len(payloads), head)
    return np.frombuffer(sizes, np.int64), np.frombuffer(found, np.int64), first


def _chunks(sizes: Ints) -> Iterator[tuple[int, int]]:
    """Messages that are looked at together: about `_CHUNK_SIZE` bytes, and at least one message."""
    ends = np.cumsum(sizes)
    first, done = 0, 0
    while first < len(sizes):
        last = max(first + 1, int(np.searchsorted(ends, done + _CHUNK_SIZE, side="right")))
        yield first, last
        first, done = last, int(ends[last - 1])


def _of_one_size(payloads: Sequence[bytes], size: int, head: int) -> tuple[Ints, Bytes]:
    """The messages are the rows of a matrix."""
    pad = _PADS[size % _WORD]
    data = pad.join([*payloads, b""])
    words = np.frombuffer(data, "<u4").reshape(len(payloads), -1)
    sums = np.einsum("ij,j->i", words, _weights(words.shape[1]))
    heads = np.ndarray(len(payloads), f"V{head}", data, 0, (size + len(pad),)).copy()  # a head is copied in one piece
    return (sums >> np.uint64(32)).view(np.int64), heads.view(np.uint8).reshape(len(payloads), head)


def _of_any_size(payloads: Sequence[bytes], sizes: Ints, head: int) -> tuple[Ints, Bytes]:
    pieces: list[Any] = [None] * (2 * len(payloads))
    pieces[::2] = payloads
    pieces[1::2] = [_PADS[size % _WORD] if size else _NO_BYTES for size in sizes.tolist()]
    data = b"".join(pieces)
    counts = np.maximum(-(-sizes // _WORD), 1)
    begins = np.cumsum(counts) - counts
    words = np.frombuffer(data, "<u4")
    places = np.arange(len(words)) - np.repeat(begins, counts)
    products = words * _weights(int(counts.max()))[places]
    sums = np.add.reduceat(products, begins)
    padded = np.frombuffer(data + bytes(head), np.uint8)
    heads = padded[(begins * _WORD)[:, None] + np.arange(head)]
    return (sums >> np.uint64(32)).astype(np.int64), heads
