"""A sequence of commands as one replica knows it: how far it goes, its chained digest, and what of it is not applied.

Two tracks with equal lineage, count and digest are the same sequence: that is how replicas find out who has what.
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from ordercast.model.lineage import Lineage, Term

DIGEST_SIZE = 16
EMPTY = bytes(DIGEST_SIZE)  # of the sequence without commands


class Sequenced(NamedTuple):
    """A sequence of commands from the first on. Equal ones are the same, whatever lineage they are told of."""

    length: int  # those that are held included
    digest: bytes


class Rank(NamedTuple):
    """What one says of a track to others. Within a lineage the greater one has everything that anybody confirmed."""

    lineage: Lineage
    term: Term  # the primary component in which it was last decided current
    length: int
    digest: bytes

    @property
    def sequence(self) -> Sequenced:
        return Sequenced(self.length, self.digest)


class Held(NamedTuple):
    """A command in its place: who sent it, and the bytes that came."""

    name: str
    payload: bytes


class Tail(Protocol):
    """Commands that are held, first in first out. Mostly it is short; who is being loaded keeps in it what comes
    meanwhile, for as long as that takes, so its driver may give it one that lies on disk (`spill.py`)."""

    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Held]:
        """All of them, in order; they stay."""

    def append(self, held: Held) -> None: ...
    def popleft(self) -> Held: ...
    def prepend(self, earlier: Iterable[Held]) -> None:
        """These come before all others."""

    def close(self) -> None:
        """Nobody needs it any more."""


Tails = Callable[[], Tail]  # makes an empty one


class MemoryTail(deque[Held]):
    def prepend(self, earlier: Iterable[Held]) -> None:
        self.extendleft(reversed(list(earlier)))

    def close(self) -> None:
        self.clear()


def chained(digest: bytes, held: Held) -> bytes:
    chain = hashlib.blake2b(held.name.encode() + b"\0", key=digest, digest_size=DIGEST_SIZE)
    chain.update(held.payload)  # which may be large: not copied
    return chain.digest()


@dataclass(slots=True)
class Track:
    lineage: Lineage
    term: Term
    count: int = 0
    digest: bytes = EMPTY
    held: Tail = field(default_factory=MemoryTail)  # the last ones, not applied

    @property
    def rank(self) -> Rank:
        return Rank(self.lineage, self.term, self.count, self.digest)

    @property
    def applied(self) -> int:
        return self.count - len(self.held)

    def extend(self, more: Iterable[Held]) -> None:
        for held in more:
            self.count += 1
            self.digest = chained(self.digest, held)
            self.held.append(held)
