"""Stance: what a replica knows of its components, beside its state, as a journal keeps it. Pure.

All of it is what the replica would say of itself at the next view, and what it said at the last one: whoever comes back
with a journal must neither take back a word nor use a view again.
"""

from __future__ import annotations

from typing import NamedTuple

from ordercast.model.events import ViewId
from ordercast.model.lineage import Lineage, Term
from ordercast.replicated.quorum import Electorate
from ordercast.replicated.track import Held, Rank
from ordercast.replicated.wire import U32, ReplicaReader, electorate_bytes, rank_bytes, view_bytes

VOTER, HAS_VIEW, HAS_FORMED, HAS_RANK = 1, 2, 4, 8


class Stance(NamedTuple):
    era: int
    view: ViewId | None  # the last one that it was in, in this era
    voter: bool
    formed: Electorate | None  # the last primary component that it knows of
    rank: Rank | None  # of its sequence here; None: it has no state

    @property
    def matter(self) -> tuple[object, ...]:
        """What a journal does not know from the commands in it."""
        track: tuple[Lineage, Term] | None = None if self.rank is None else (self.rank.lineage, self.rank.term)
        return self.era, self.view, self.voter, self.formed, track


def encode_stance(stance: Stance) -> bytes:
    flags = VOTER * stance.voter | HAS_VIEW * (stance.view is not None)
    flags |= HAS_FORMED * (stance.formed is not None) | HAS_RANK * (stance.rank is not None)
    parts = [bytes((flags,)), U32.pack(stance.era)]
    if stance.view is not None:
        parts.append(view_bytes(stance.view))
    if stance.formed is not None:
        parts.append(electorate_bytes(stance.formed))
    if stance.rank is not None:
        parts.append(rank_bytes(stance.rank))
    return b"".join(parts)


def decode_stance(data: bytes) -> Stance:
    reader = ReplicaReader(data)
    flags, era = reader.byte(), reader.u32()
    stance = Stance(
        era,
        reader.view() if flags & HAS_VIEW else None,
        bool(flags & VOTER),
        reader.electorate() if flags & HAS_FORMED else None,
        reader.rank() if flags & HAS_RANK else None,
    )
    reader.end()
    return stance


class KeptPicture(NamedTuple):
    """A state as a journal keeps it: what a donor would give, and what goes with it."""

    stance: Stance
    preface: bytes
    pieces: tuple[bytes, ...]


class Remembered(NamedTuple):
    """What a journal knows of its replica."""

    memory: int  # what the journal is called
    stance: Stance | None  # None: nothing was ever written
    picture: KeptPicture | None  # the state that it begins with; None: the empty one
    held: tuple[Held, ...]  # the commands behind it
