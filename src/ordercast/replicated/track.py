"""A sequence of commands as one replica knows it: how far it goes, its chained digest, and what of it is not applied.

Two tracks with equal lineage, count and digest are the same sequence: that is how replicas find out who has what.
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from ordercast.model.events import ViewId
from ordercast.model.lineage import Lineage

DIGEST_SIZE = 16
EMPTY = bytes(DIGEST_SIZE)  # of the sequence without commands


class Sequenced(NamedTuple):
    """A sequence of commands from the first on. Equal ones are the same, whatever lineage they are told of."""

    length: int  # those that are held included
    digest: bytes


class Rank(NamedTuple):
    """What one says of a track to others. Within a lineage the greater one has everything that anybody confirmed."""

    lineage: Lineage
    term: ViewId  # the primary view in which it was last decided current
    length: int
    digest: bytes

    @property
    def sequence(self) -> Sequenced:
        return Sequenced(self.length, self.digest)


class Held(NamedTuple):
    """A command in its place: who sent it, and the bytes that came."""

    name: str
    payload: bytes


def chained(digest: bytes, held: Held) -> bytes:
    return hashlib.blake2b(held.name.encode() + b"\0" + held.payload, key=digest, digest_size=DIGEST_SIZE).digest()


@dataclass(slots=True)
class Track:
    lineage: Lineage
    term: ViewId
    count: int = 0
    digest: bytes = EMPTY
    held: deque[Held] = field(default_factory=deque)  # the last ones, not applied

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
