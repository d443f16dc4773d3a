"""The three styles of replication: each says where packets go, and when a token may go up.

A batch of packets is divided as if its packets took the networks in turn, one after the other; but what one network
gets of it is in one piece, so that a piece can be sent, received and read as a run.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence

from ordercast.model.effects import Broadcast, Burst, Unicast
from ordercast.model.notes import Release
from ordercast.networks.config import NetworksConfig, Replication
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


class Active(Style):
    """Every packet on every good network. (Section 5, Figure 2)

    The token goes up when every good network has brought it: by then, on networks that keep the order of packets, every
    copy of every earlier message has come or is lost, so what the engine misses is lost everywhere; and the networks
    keep in step.
    """

    counts_tokens = False  # whoever did not bring the token is known when its timer runs out
    blames_expiry = True

    def spread(self, effect: Spreadable) -> Sequence[Spreadable]:
        effect.networks = self._marks.used
        return (effect,)

    def token_networks(self) -> tuple[int, ...]:
        return self._marks.used

    def release(self, brought: int, lacking: Lacking, *, is_first: bool) -> Release | None:
        missing = self._marks.good_bits & ~brought
        return None if missing else Release.ALL


class ActivePassive(Style):
    """Every packet on K of N good networks, in turn; messages and tokens have each a pointer of their own. (Section 7)

    The token goes up when K copies have come. The receiver does not know which K networks were chosen, so a timer that
    runs out blames nobody. The stricter rule, which is the default, waits for messages as the passive style does: K
    copies of the token say nothing of messages that went out on other networks. A network on trial gets a copy of
    everything: nothing relies on it.
    """

    def __init__(self, marks: Marks, networks: int, copies: int, *, is_strict: bool) -> None:
        super().__init__(marks)
        self._copies = copies
        self._is_strict = is_strict
        self._messages = Rotation(networks)
        self._links = Rotation(networks)  # apart: members compare how many messages each network brings
        self._tokens = Rotation(networks)

    def spread(self, effect: Spreadable) -> Sequence[Spreadable]:
        marks, bursts = self._marks, effect.bursts
        rotation = self._messages if type(effect) is Broadcast else self._links
        order = rotation.order(marks.good)
        count = packets_in(bursts)
        rotation.step(order, count)
        if count == 1 or len(order) <= self._copies:
            effect.networks = (*order[: self._copies], *marks.trial)
            return (effect,)
        parts = min(count, len(order))
        pieces = shares(bursts, parts)
        spread = [effect.piece(piece, self._group(order, first)) for first, piece in enumerate(pieces)]
        if marks.trial:
            effect.networks = marks.trial
            spread.append(effect)
        return spread

    def _group(self, order: tuple[int, ...], first: int) -> tuple[int, ...]:
        """K networks in a row."""
        return (order[first:] + order[:first])[: self._copies]

    def token_networks(self) -> tuple[int, ...]:
        order = self._tokens.order(self._marks.good)
        self._tokens.step(order, 1)
        return (*order[: self._copies], *self._marks.trial)

    def release(self, brought: int, lacking: Lacking, *, is_first: bool) -> Release | None:
        enough = min(self._copies, len(self._marks.good))
        if brought.bit_count() < enough or (self._is_strict and lacking()):
            return None
        return Release.ENOUGH


class Passive(ActivePassive):
    """Every packet on one good network, in turn. (Section 6, Figure 4)

    A token that overtakes messages on another network waits for them, so that the engine does not ask for what is
    merely on its way.
    """

    def __init__(self, marks: Marks, networks: int) -> None:
        super().__init__(marks, networks, copies=1, is_strict=True)

    def release(self, brought: int, lacking: Lacking, *, is_first: bool) -> Release | None:
        if lacking():
            return None
        return Release.DIRECT if is_first else Release.GAP_CLOSED


def style_of(config: NetworksConfig, marks: Marks) -> Style:
    match config.replication:
        case Replication.ACTIVE:
            return Active(marks)
        case Replication.PASSIVE:
            return Passive(marks, config.count)
        case Replication.ACTIVE_PASSIVE:
            return ActivePassive(marks, config.count, config.copies, is_strict=config.is_strict)


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
