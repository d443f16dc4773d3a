from __future__ import annotations

import pytest

from ordercast.networks.styles import Rotation, shares


@pytest.mark.parametrize("parts", [1, 2, 3, 5])
@pytest.mark.parametrize(
    "bursts",
    [
        [(b"abcdefghij", 1)],
        [(b"aabbcc", 2), (b"ddd", 3), (b"eeffg", 2)],
        [(b"aa", 2)] * 7,
        [(b"abcde", 1), (b"x", 4), (b"yyyyzz", 4)],
    ],
)
def test_shares_are_all_packets_in_order_and_even(bursts: list[tuple[bytes, int]], parts: int) -> None:
    def packets(of: list[tuple[bytes, int]]) -> list[bytes]:
        return [data[at : at + size] for data, size in of for at in range(0, len(data), size)]

    pieces = [packets(piece) for piece in shares(bursts, parts)]
    assert [packet for piece in pieces for packet in piece] == packets(bursts)
    lengths = [len(piece) for piece in pieces]
    assert lengths == sorted(lengths, reverse=True) and lengths[0] - lengths[-1] <= 1


def test_a_rotation_goes_on_after_the_network_that_was_used_last() -> None:
    rotation = Rotation(4)
    assert rotation.order((0, 1, 2, 3)) == (0, 1, 2, 3)
    rotation.step((0, 1, 2, 3), 6)
    assert rotation.last == 1
    assert rotation.order((0, 1, 3)) == (3, 0, 1)
    assert rotation.order((1,)) == (1,)
