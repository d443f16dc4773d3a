"""The state of one replica: the application's machine, the sessions, and the track of what is applied and held."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice

from ordercast.model.errors import WireError
from ordercast.replicated.effects import Point
from ordercast.replicated.machine import Origin, StateMachine
from ordercast.replicated.quorum import Life
from ordercast.replicated.sessions import Outcome, Sessions
from ordercast.replicated.track import Held, Rank, Track, chained
from ordercast.replicated.wire import Preface, decode_command, decode_preface, encode_preface

HELD_COST = 512  # what a command costs beside its bytes, in bytes that could be applied in the time


@dataclass(slots=True)
class Due:
    """A picture that is to be taken when so many commands are applied."""

    point: Point
    count: int
    lives: set[Life]  # who is to have it


@dataclass(slots=True)
class Arriving:
    """A state that is being fetched: the picture, and what has been sequenced behind it meanwhile."""

    count: int  # of the picture, what is held in it included
    digest: bytes
    track: Track  # with what came since


@dataclass(slots=True)
class Copy:
    machine: StateMachine
    track: Track | None = None  # None: no state
    sessions: Sessions = field(default_factory=Sessions)
    applied_digest: bytes = b""  # of the track without what is held
    is_voter: bool = False
    is_kept: bool = False  # it was a voter, and has missed nothing but what came after it was cut off
    memory: int = 0  # what its journal is called; 0: it has none
    is_spoilt: bool = False  # the application raised while it changed it: there is no state here, and never will be

    @property
    def is_behind(self) -> bool:
        """Something has its place and is not applied."""
        return self.track is not None and len(self.track.held) > 0

    def unapplied(self) -> Iterator[bytes]:
        """What is held, each once, without what was applied before and what changes nothing."""
        met: set[tuple[int, int]] = set()
        for held in () if self.track is None else self.track.held:
            life, request, _, previous, is_noop, data = decode_command(held.payload)
            if (life, request) in met or self.sessions.knows(life, request):
                continue
            if previous and (life, previous) not in met and not self.sessions.knows(life, previous):
                continue
            met.add((life, request))
            if not is_noop:
                yield data

    def apply_held(self, size_max: int, count_max: int | None = None) -> Iterator[tuple[int, int, Outcome | None]]:
        """Apply what is held, in order, about so many bytes of it and up to so many commands in all: life, request and
        outcome of each; None: it does not count, because one that its sender has sent before it was not applied. Its
        sender knows that as well, and sends it again, with the one before it if that was not refused."""
        track = self.track
        assert track is not None
        done = []
        while track.held and size_max > 0 and (count_max is None or track.applied < count_max):
            held = track.held.popleft()
            size_max -= len(held.payload) + HELD_COST
            done.append(held)
            yield self._apply(held, track.applied)
        self._note_applied(track, done)

    def _note_applied(self, track: Track, done: Iterable[Held]) -> None:
        if not track.held:
            self.applied_digest = track.digest
            return
        for held in done:
            self.applied_digest = chained(self.applied_digest, held)

    def _apply(self, held: Held, position: int) -> tuple[int, int, Outcome | None]:
        life, request, settled, previous, is_noop, data = decode_command(held.payload)
        if not self.sessions.admits(life, request, settled):
            return life, request, self.sessions.outcome(life, request) or Outcome(position, b"")
        if previous and not self.sessions.knows(life, previous):
            return life, request, None
        result = b"" if is_noop else self.machine.apply(data, Origin(held.name, life, request, position))
        outcome = Outcome(position, result)
        self.sessions.remember(life, request, outcome)
        return life, request, outcome

    def preface(self, count: int) -> bytes:
        """Return the preface of the picture of so many commands: what is held beyond them is not in it."""
        track = self.track
        assert track is not None
        held = tuple(islice(track.held, count - track.applied))
        return encode_preface(Preface(track.applied, self.applied_digest, self.sessions, held))

    def remember(self, rank: Rank, picture: tuple[bytes, Iterable[bytes]] | None, held: Iterable[Held]) -> None:
        """What a journal knows. Nothing of what is behind its picture is applied before a primary component says so."""
        self.track = Track(rank.lineage, rank.term, rank.length, rank.digest)
        earlier: tuple[Held, ...] = ()
        self.applied_digest = bytes(len(rank.digest))
        if picture is not None:
            preface, pieces = picture
            _, self.applied_digest, self.sessions, earlier = decode_preface(preface)
            self.machine.load(pieces)
        self.track.held.prepend((*earlier, *held))

    def begin(self, track: Track) -> None:
        """The machine is as the application made it."""
        self.track, self.applied_digest = track, track.digest

    def cut_off(self, *, is_settled: bool) -> None:
        """It may miss something from now on. What it has still counts when all of them come back (`decision.py`), but
        not if it was cut off while something was being decided that it will never hear of."""
        self.is_voter, self.is_kept = self.is_voter and bool(self.memory), self.is_kept and is_settled

    def forget(self) -> None:
        """The beginning failed: nothing was ever applied."""
        assert self.track is None or not self.track.applied
        self.track, self.is_voter, self.is_kept = None, False, False

    def spoil(self) -> None:
        if self.track is not None:
            self.track.held.close()
        self.track, self.is_voter, self.is_kept, self.is_spoilt = None, False, False, True

    def load(self, arriving: Arriving, preface: bytes, pieces: Iterable[bytes]) -> None:
        """WireError when this is not the picture that was asked for: then nothing has changed."""
        applied, digest, sessions, held = decode_preface(preface)
        total = digest
        for each in held:
            total = chained(total, each)
        if (applied + len(held), total) != (arriving.count, arriving.digest):
            raise WireError(f"a picture of {applied} commands and {len(held)} more, {arriving.count} were wanted")
        self.machine.load(pieces)
        if self.track is not None:
            self.track.held.close()
        is_other = self.track is not None and self.track.lineage != arriving.track.lineage
        if is_other:  # a vote about another state altogether counts for nothing
            self.is_voter = self.is_kept = False
        self.track = arriving.track
        self.track.held.prepend(held)
        self.sessions, self.applied_digest = sessions, digest
