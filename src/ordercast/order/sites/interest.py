"""Interest: what nobody at a site wants does not travel there. One table for each daemon, which its tape alone changes.

A daemon tells what it wants in units of its stream (`wants_body`), so they come in order, over reroutings and
recoveries, as all units do. A source writes into each of its units which fragments need it, from what its tape has
brought up to there; a branch of its tree without any of them gets the unit hollow: without messages.

A join waits until everybody has the unit that tells of it. *Why that is enough*: a unit that precedes it on its
source's tape lies below the acknowledgement of that source, which the joiner's clock has heard, hence below the join;
one that follows it is for the joiner too. A view begins with everybody wanting everything, until it has told its list;
so what waits at that moment need not wait any longer. Giving up is told late: that costs bytes, and never messages.

Names of groups and daemons travel as 32-bit digests. Two that share one get each other's bytes.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple
from zlib import crc32

from ordercast.model.ids import Instant, ProcessId
from ordercast.model.inputs import Interest
from ordercast.order.sites.units import BodyKind, UnitBody
from ordercast.order.sites.views import EVERYBODY, WideView

DESTINATIONS_MAX = 8  # of a unit; one with more is for everybody
DIGESTS_MAX = 24  # in a unit: it fits the smallest packet
NEEDS_MAX = 4096  # answers that are remembered
NEVER = Instant((1 << 63) - 1)
_DIGEST = struct.Struct(">L")

Digests = tuple[int, ...]  # rising; none: for everybody


@lru_cache(maxsize=4096)
def digests_of(destinations: tuple[str, ...]) -> Digests:
    """Return destinations as they travel."""
    digests = tuple(sorted({crc32(name.encode()) for name in destinations}))
    return digests if len(digests) <= DESTINATIONS_MAX else ()


class WantsTold(NamedTuple):
    """What a daemon wants from now on, and no longer."""

    gained: Digests
    lost: Digests
    is_complete: bool  # with this the daemon has told all that it wants; before, it wants everything


def wants_body(wants: WantsTold) -> UnitBody:
    """Return the body of a unit that tells this."""
    gained, lost = map(packed, wants[:2])
    return UnitBody((), (bytes((wants.is_complete,)), gained, lost), kind=BodyKind.INTEREST)


def wants_of(body: UnitBody) -> WantsTold:
    """Return what a body tells; its decoder has found it sound."""
    (flag,), gained, lost = body.payloads
    return WantsTold(unpacked(gained), unpacked(lost), bool(flag))


def packed(digests: Digests) -> bytes:
    """Return digests as bytes."""
    return b"".join(map(_DIGEST.pack, digests))


def unpacked(data: bytes) -> Digests:
    """Return the digests in these bytes."""
    if not data:
        return ()
    return tuple(digest for (digest,) in _DIGEST.iter_unpack(data))


class InterestTable:
    """Who wants what in a view, as the tape has told so far."""

    def __init__(self, view: WideView) -> None:
        self._rank_of = view.proposal.rank_of
        self._told: dict[ProcessId, set[int]] = {}
        self._untold = Counter(self._rank_of.values())  # daemons by rank that have not told all that they want
        self._all = sum(1 << rank for rank in self._untold)
        self._everything = self._all  # fragments with such a daemon
        self._wanting: dict[int, Counter[int]] = {}  # by digest: how many daemons of a rank want it
        self._needs: dict[Digests, int] = {}

    def take(self, process: ProcessId, wants: WantsTold) -> None:
        """Hear a daemon, in the order of its stream."""
        self._needs.clear()
        told, rank = self._told.setdefault(process, set()), self._rank_of[process]
        for digest in set(wants.gained) - told:
            told.add(digest)
            self._wanting.setdefault(digest, Counter())[rank] += 1
        for digest in told.intersection(wants.lost):
            told.discard(digest)
            self._wanting[digest] -= Counter((rank,))
            if not self._wanting[digest]:
                del self._wanting[digest]
        if wants.is_complete and self._untold[rank]:
            self._untold[rank] -= 1
            if not self._untold[rank]:
                self._everything &= ~(1 << rank)

    def needs(self, destinations: Digests) -> int:
        """Return the fragments that a unit for these destinations is for, as bits."""
        if not destinations:
            return EVERYBODY
        found = self._needs.get(destinations)
        if found is None:
            if len(self._needs) >= NEEDS_MAX:
                self._needs.clear()
            found = self._everything
            for digest in destinations:
                for rank in self._wanting.get(digest, ()):
                    found |= 1 << rank
            found = self._needs[destinations] = EVERYBODY if found == self._all else found
        return found


class Wishes:
    """What the users of this process want, what of it was told in the view, and who still waits for an answer."""

    def __init__(self, unlearn_ns: int) -> None:
        self._unlearn_ns = unlearn_ns
        self._counts: Counter[int] = Counter()  # groups that are wanted, by digest
        self._waiting: dict[str, int] = {}  # groups whose wish was not answered, with their digests
        self._told: dict[int, int] = {}  # digests that others hear of: the stamp of the unit; until it has one, -number
        self._said = self._seen = 0  # units of the view that tell interests: given to the ring, and on its tape
        self._late: dict[int, Instant] = {}  # digests that are told and not wanted, and when to say so
        self._view = b""
        self._has_spoken = False  # somebody above has ever said what it wants
        self.granted: list[str] = []  # groups that are subscribed to; whoever takes them empties it

    def __bool__(self) -> bool:
        """Whether somebody waits for an answer."""
        return bool(self._waiting)

    @property
    def deadline(self) -> Instant:
        return min(self._late.values(), default=NEVER)

    def change(self, changes: Sequence[Interest], now: Instant) -> None:
        """Hear which groups are wanted from now on, and which no longer: these need no answer any more."""
        self._has_spoken = True
        for change in changes:
            digest = crc32(change.group.encode())
            self._counts[digest] += 1 if change.is_wanted else -1
            if change.is_wanted:
                self._waiting[change.group] = digest
                self._late.pop(digest, None)
                continue
            self._waiting.pop(change.group, None)
            if self._counts[digest] <= 0:
                del self._counts[digest]
                if digest in self._told:
                    self._late[digest] = Instant(now + self._unlearn_ns)

    def is_still(self, view: WideView) -> bool:
        """Whether nobody waits, and nothing will have to be told in this view."""
        return not (self._waiting or self._late or self.granted) and view.digest == self._view

    def due(self, view: WideView, now: Instant) -> list[UnitBody]:
        """Return what to tell now."""
        if view.digest != self._view:
            return self._begin(view)
        if len(view.fragments) < 2:
            self._grant(self._waiting)
            return []
        gained = [digest for digest in self._waiting.values() if digest not in self._told]
        lost = [digest for digest, at in self._late.items() if at <= now]
        for digest in lost:
            del self._late[digest], self._told[digest]
        bodies = list(_bodies(sorted({*gained}), sorted(lost)))
        for body in bodies:
            self._said += 1
            self._told.update(dict.fromkeys(wants_of(body).gained, -self._said))
        return bodies

    def _begin(self, view: WideView) -> list[UnitBody]:
        """Begin a view, in which everybody brings everything until it is told otherwise."""
        self._view = view.digest
        self._late.clear()
        self._said = self._seen = 0
        self._grant(self._waiting)
        self._told = dict.fromkeys(self._counts, 0)
        if len(view.fragments) < 2 or not self._has_spoken:
            self._told.clear()
            return []
        bodies = list(_bodies(sorted(self._told), [], is_list=True))
        self._said = len(bodies)
        return bodies

    def seen(self, body: UnitBody, stamp: int) -> None:
        """What was told is on the tape, in the view, in the order in which it was. A digest that was given up and told
        anew since waits for the later unit."""
        self._seen += 1
        for digest in wants_of(body).gained:
            if self._told.get(digest) == -self._seen:
                self._told[digest] = stamp

    def stable_at(self, stable: int) -> None:
        """Everybody has everything below this stamp."""
        if self._waiting:
            self._grant([group for group, digest in self._waiting.items() if self._is_known(digest, stable)])

    def _is_known(self, digest: int, stable: int) -> bool:
        return 0 <= self._told.get(digest, -1) < stable

    def _grant(self, groups: Iterable[str]) -> None:
        for group in list(groups):
            del self._waiting[group]
            self.granted.append(group)


def _bodies(gained: list[int], lost: list[int], *, is_list: bool = False) -> Iterable[UnitBody]:
    """Yield bodies that tell all this, as many digests in each as fit."""
    told = [(digest, True) for digest in gained] + [(digest, False) for digest in lost]
    chunks = [told[at : at + DIGESTS_MAX] for at in range(0, len(told), DIGESTS_MAX)] or ([[]] if is_list else [])
    for at, chunk in enumerate(chunks):
        more = tuple(digest for digest, is_wanted in chunk if is_wanted)
        less = tuple(digest for digest, is_wanted in chunk if not is_wanted)
        yield wants_body(WantsTold(more, less, is_list and at == len(chunks) - 1))
