"""Book: what the desk knows of its journal: what is noted, what of that is safe, and what waits for it. Pure.

Nothing that a replica says of itself leaves it before the journal has it: what it says at a view, and that it was
loaded, wait here for the disk. Commands do not: their sender promises nothing. While one write is underway the next
ones gather, so a slow disk writes more at a time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from ordercast.replicated.effects import Note, Write
from ordercast.replicated.facts import Claim
from ordercast.replicated.frames import PIECE_SIZE_MAX

GROWN_MIN = 4 << 20  # bytes behind a picture, before there is a new one
GROWN_RATIO = 2  # and so many times the size of the picture
GROWN_MAX = PIECE_SIZE_MAX // 2  # but never more: after a power cut all that is held goes to others in one piece
PENDING_MAX = 64 << 20  # bytes that wait for a disk; when there are more, a picture takes their place


@dataclass(slots=True)
class Book:
    grown_min: int = GROWN_MIN
    noted: int = 0  # the number of the last write that was, or will be, asked for
    safe: int = 0  # of the last that is safe
    pending: list[Note] = field(default_factory=list)
    pending_size: int = 0
    underway: int = 0  # the number of the write that the disk has; 0: none
    is_picturing: bool = False  # a picture is being written
    grown: int = 0  # bytes since the last one
    picture_size: int = 0
    _waiting: deque[tuple[int, tuple[bytes, ...]]] = field(default_factory=deque)  # messages, until so much is safe
    _claims: deque[tuple[int, Claim]] = field(default_factory=deque)  # what may be said of it when so much is safe
    _claimed: Claim | None = None

    @property
    def is_idle(self) -> bool:
        return not (self.pending or self.underway or self._waiting)

    @property
    def wants_picture(self) -> bool:
        """Too much has come behind the last one."""
        limit = min(max(self.grown_min, GROWN_RATIO * self.picture_size), GROWN_MAX)
        return not self.is_picturing and (self.grown > limit or self.pending_size > PENDING_MAX)

    @property
    def _mark(self) -> int:
        """The write that has everything that was noted so far."""
        return self.noted + bool(self.pending)

    def note(self, notes: Sequence[Note]) -> None:
        self.pending += notes
        size = sum(len(note.body) for note in notes)
        self.pending_size += size
        self.grown += size

    def claim(self, claim: Claim | None) -> None:
        """What the replica could say of itself, were everything safe that is noted."""
        if claim is not None and claim != self._claimed:
            self._claimed = claim
            self._claims.append((self._mark, claim))

    def write(self) -> Write | None:
        """What the disk is to do now."""
        if not self.pending or self.underway:
            return None
        return self.flush()

    def flush(self) -> Write | None:
        """Whatever it does."""
        if not self.pending:
            return None
        notes, self.pending, self.pending_size = tuple(self.pending), [], 0
        self.noted += 1
        self.underway = self.noted
        return Write(self.noted, notes)

    def replace(self) -> int:
        """A picture takes the place of everything. Return the number of this write."""
        self.pending, self.pending_size = [], 0
        self.noted += 1
        self.underway = self.noted
        self.is_picturing = True
        self.grown = 0
        return self.noted

    def picture(self) -> None:
        """One is being written, beside all else."""
        self.is_picturing = True
        self.grown = 0

    def pictured(self, size: int) -> None:
        self.is_picturing, self.picture_size = False, size

    def written(self, number: int) -> None:
        self.safe = max(self.safe, number)
        if self.underway <= self.safe:
            self.underway = 0

    # What waits

    def send(self, payloads: tuple[bytes, ...], *, is_bound: bool) -> None:
        """`is_bound`: not before everything is safe that is noted. What is behind it waits, too."""
        self._waiting.append((self._mark if is_bound else 0, payloads))

    def sent(self) -> list[bytes]:
        """Return what may go out."""
        found: list[bytes] = []
        while self._waiting and self._waiting[0][0] <= self.safe:
            found += self._waiting.popleft()[1]
        return found

    def said(self) -> Claim | None:
        """Return the last claim that is true now, once."""
        found = None
        while self._claims and self._claims[0][0] <= self.safe:
            found = self._claims.popleft()[1]
        return found

    def drop(self) -> None:
        """Nothing of what waits is to be sent any more."""
        self._waiting.clear()
        self._claims.clear()
        self._claimed = None
