"""What the three styles have in common, and what each must say: where packets go, and when a token may go up.

A batch of packets is divided as if its packets took the networks in turn, one after the other; but what one network
gets of it is in one piece, so that a piece can be sent, received and read as a run.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence

from ordercast.model.effects import Broadcast, Burst, Unicast
from ordercast.model.notes import Release
from ordercast.networks.marks import Marks

Spreadable = Broadcast | Unicast
Lacking = Callable[[], bool]  # whether the token would make the engine ask for messages again


class Style(ABC):
    """One way to use several networks. It holds the pointers of its round robins, and nothing else."""

    counts_tokens = True  # a monitor compares how many tokens each network brings
    blames_expiry = False  # who did not bring the token before the timer has a problem

    def __init__(self, marks: Marks) -> None:
        self._marks = marks

    @abstractmethod
    def spread(self, effect: Spreadable) -> Sequence[Spreadable]:
        """Packets of data or of a link, with the networks that they go out on."""

    @abstractmethod
    def token_networks(self) -> tuple[int, ...]:
        """Where the next token goes."""

    @abstractmethod
    def release(self, brought: int, lacking: Lacking, *, is_first: bool) -> Release | None:
        """Why a token that these networks (bits) have brought may go up now; None when it must wait. `is_first` tells
        that it has just come."""


class Rotation:
    """A pointer that goes round the good networks, past those that are not."""

    __slots__ = ("last",)

    def __init__(self, networks: int) -> None:
        self.last = networks - 1  # so that the first is 0

    def order(self, good: tuple[int, ...]) -> tuple[int, ...]:
        """The good networks, beginning after the one that was used last."""
        at = bisect_right(good, self.last)
        return good[at:] + good[:at]

    def step(self, order: tuple[int, ...], count: int) -> None:
        """So many packets were given to the networks in this order."""
        self.last = order[(count - 1) % len(order)]


def packets_in(bursts: Sequence[Burst]) -> int:
    if len(bursts) == 1:
        data, size = bursts[0]
        return -(-len(data) // size)
    return sum(-(-len(data) // size) for data, size in bursts)


def shares(bursts: Sequence[Burst], parts: int) -> Iterator[list[Burst]]:
    """Packets in so many pieces of equal length, the first ones longer by one where that does not come out even."""
    total = packets_in(bursts)
    left = iter(bursts)
    data, size = next(left)
    at = 0
    for part in range(parts):
        want = (total - part + parts - 1) // parts
        piece: list[Burst] = []
        while want:
            packets = -(-(len(data) - at) // size)
            taken = min(want, packets)
            end = at + taken * size
            piece.append((data if taken * size >= len(data) else data[at:end], size))
            want -= taken
            at = end
            if taken == packets:
                data, size = next(left, (b"", 1))
                at = 0
        yield piece
