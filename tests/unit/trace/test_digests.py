"""The digest of live messages: the same however many are looked at together, and another one for other bytes."""

from __future__ import annotations

from random import Random

import pytest

from ordercast.trace.digests import digest, looked_at
from tests.kernels import KERNELS, running

RANDOM = Random(7)
SIZES = (0, 1, 3, 4, 5, 17, 18, 19, 100, 383, 384, 385, 1368, 70_000)


def _defined(data: bytes) -> int:
    """Return the digest as the documentation defines it."""
    mask, total = (1 << 64) - 1, 0
    for index in range(0, len(data), 4):
        drawn = (index // 4 + 1) * 0x9E37_79B9_7F4A_7C15 & mask
        drawn = (drawn ^ drawn >> 30) * 0xBF58_476D_1CE4_E5B9 & mask
        drawn = (drawn ^ drawn >> 27) * 0x94D0_49BB_1331_11EB & mask
        total += int.from_bytes(data[index : index + 4], "little") * (drawn ^ drawn >> 31)
    return (total & mask) >> 32


@pytest.mark.parametrize("name", KERNELS)
def test_it_is_the_digest_that_is_documented(name: str) -> None:
    messages = [RANDOM.randbytes(size) for size in SIZES]
    with running(name):
        assert [digest(data) for data in messages] == [_defined(data) for data in messages]


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("sizes", [(), (0, 0), (118,) * 50, (1368,) * 900, SIZES, (5, 1368) * 400], ids=str)
def test_messages_looked_at_together_have_their_own_digests_sizes_and_heads(name: str, sizes: tuple[int, ...]) -> None:
    messages = [RANDOM.randbytes(size) for size in sizes]
    with running(name):
        found, digests, heads = looked_at(messages, 18)
        assert digests.tolist() == [digest(data) for data in messages]
    assert found.tolist() == list(sizes)
    for data, head in zip(messages, heads, strict=True):
        assert len(data) < 18 or head.tobytes() == data[:18]


def test_a_changed_byte_a_swap_and_a_shift_change_it() -> None:
    data = RANDOM.randbytes(1368)
    others = {digest(data[:at] + bytes([data[at] ^ 1 << at % 8]) + data[at + 1 :]) for at in range(len(data))}
    others |= {digest(data[4 * at :] + data[: 4 * at]) for at in range(1, 300)}
    assert digest(data) not in others and len(others) == len(data) + 299
