"""Told: a ready structure as the core sees it. Pure: live replicas and simulated ones have the same.

It takes batches apart, gives each command of the application its position, and puts their number before the pieces of a
picture.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from ordercast.model.errors import UsageError, WireError
from ordercast.replicated.batching import decode_batch, decode_results, encode_results
from ordercast.replicated.machine import Frozen, Origin, SideState
from ordercast.replicated.quorum import Side
from ordercast.replicated.structures.base import Applied, Reloaded, Structure
from ordercast.replicated.structures.fields import U64, Reader

PAST_MAX = 5_000  # commands that are kept for those who watch from a position
PAST_SIZE_MAX = 4 << 20  # bytes of them


class Audience(Protocol):
    """Who is told of what is applied."""

    def want(self, kind: type, /) -> bool:
        """Does anybody want to hear of such events?"""

    def tell(self, event: Applied | Reloaded, /) -> None: ...


@dataclass(frozen=True, slots=True)
class Counted:
    """A picture with the number of commands before the structure's own pieces."""

    count: int
    frozen: Frozen

    def pieces(self, start: int = 0) -> Iterator[bytes]:
        if start == 0:
            yield U64.pack(self.count)
        yield from self.frozen.pieces(max(0, start - 1))


class Filling:
    """A structure that is filled while the pieces of such a picture come: what `load` gets in their place."""

    def __init__(self, structure: Structure[Any]) -> None:
        self.structure = structure
        self.count: int | None = None

    def take(self, piece: bytes) -> None:
        fields = Reader(piece)
        if self.count is None:
            self.count = fields.number(U64)
            fields.end()
        else:
            self.structure.fill(fields)

    def __iter__(self) -> Iterator[bytes]:
        assert self.count is not None
        return Counted(self.count, self.structure.freeze()).pieces()


class PastBatch(NamedTuple):
    """Commands that were applied, as they came: many small objects that are kept would cost all that comes after them
    their place in the processor's cache."""

    commands: bytes
    results: bytes
    place: Origin
    length: int  # of commands


OnMerge = Callable[[Sequence[Side[Any]]], Any]


class Told:
    """The state machine that the core sees: it takes batches apart, counts, and tells of what is applied."""

    def __init__(self, structure: Structure[Any], audience: Audience, on_merge: OnMerge | None = None) -> None:
        self.structure = structure
        self.count = 0  # commands of the application so far
        self.loads = 0
        self._audience = audience
        self._on_merge = on_merge  # of `EverySide`
        self._past: deque[PastBatch] = deque()  # what was applied last
        self._past_count = 0
        self._past_size = 0

    def apply(self, command: bytes, origin: Origin) -> bytes:
        try:
            commands = decode_batch(command)
        except WireError:
            commands = []  # of somebody who is no replica: at all replicas alike, nothing happens
        place = origin._replace(position=self.count + 1)
        results = self.structure.apply_all(commands, place)
        self.count += len(commands)
        if self._audience.want(Applied):
            for at, (each, result) in enumerate(zip(commands, results, strict=True), place.position):
                self._audience.tell(Applied(each, place._replace(position=at), result))
        encoded = encode_results(place.position, results)
        if commands:
            self._remember(PastBatch(command, encoded, place, len(commands)))
        return encoded

    def _remember(self, batch: PastBatch) -> None:
        self._past.append(batch)
        self._past_count += batch.length
        self._past_size += len(batch.commands)
        while self._past_count > PAST_MAX or self._past_size > PAST_SIZE_MAX:
            former = self._past.popleft()
            self._past_count -= former.length
            self._past_size -= len(former.commands)

    def applied_after(self, position: int) -> Iterator[Applied | Reloaded]:
        """What was applied behind this position, as far as it is kept; a Reloaded where it is not."""
        if position < self.count - self._past_count:
            yield Reloaded(f"what was applied behind position {position} is not kept here any more")
        for batch, encoded, place, _ in list(self._past):
            first, results = decode_results(encoded)
            for at, (each, result) in enumerate(zip(decode_batch(batch), results, strict=True), first):
                if at > position:
                    yield Applied(each, place._replace(position=at), result)

    def freeze(self) -> Frozen:
        return Counted(self.count, self.structure.freeze())

    def load(self, pieces: Iterable[bytes]) -> None:
        self._adopt(*self._filled(pieces), "the state was fetched from another replica")

    def unite(self, sides: Sequence[SideState]) -> None:
        """Asks the application. What it gives must be a structure of the kind that is replicated here."""
        assert self._on_merge is not None
        found = []
        for _, members, pieces in sides:
            structure, count = (self.structure, self.count) if pieces is None else self._filled(pieces)
            found.append(Side(members, count, structure, pieces is None))
        united = self._on_merge(found)
        if not isinstance(united, type(self.structure)):
            kinds = type(self.structure).__name__, type(united).__name__
            raise UsageError("on_merge must give a {}, it gave a {}".format(*kinds))
        self._adopt(united, max(side.commands for side in found), "sides that went on apart were united")

    def _filled(self, pieces: Iterable[bytes]) -> tuple[Structure[Any], int]:
        if isinstance(pieces, Filling):
            filling = pieces
        else:
            filling = Filling(self.structure.blank())
            for piece in pieces:
                filling.take(piece)
        if filling.count is None:
            raise WireError("a picture without a count")
        return filling.structure, filling.count

    def _adopt(self, structure: Structure[Any], count: int, why: str) -> None:
        if structure is not self.structure:
            self.structure.adopt(structure)
        else:
            self.structure.amended()
        self.count = count
        self._past.clear()
        self._past_count = self._past_size = 0
        self.loads += 1
        self._audience.tell(Reloaded(why))
