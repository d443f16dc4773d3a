"""Told: a ready structure as the core sees it. Pure: live replicas and simulated ones have the same.

It takes batches apart, gives each command of the application its position, and puts their number before the pieces of a
picture.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from ordercast.model.errors import WireError
from ordercast.replicated.batching import decode_batch, encode_results
from ordercast.replicated.machine import Frozen, Origin
from ordercast.replicated.structures.base import Applied, Reloaded, Structure
from ordercast.replicated.structures.fields import U64, Reader


class Audience(Protocol):
    """Who is told of what is applied."""

    @property
    def has_any(self) -> bool: ...

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


class Told:
    """The state machine that the core sees: it takes batches apart, counts, and tells of what is applied."""

    def __init__(self, structure: Structure[Any], audience: Audience) -> None:
        self.structure = structure
        self.count = 0  # commands of the application so far
        self.loads = 0
        self._audience = audience

    def apply(self, command: bytes, origin: Origin) -> bytes:
        try:
            commands = decode_batch(command)
        except WireError:
            commands = []  # of somebody who is no replica: at all replicas alike, nothing happens
        first = self.count + 1
        name, life, request, _ = origin
        results = []
        apply, has_watchers = self.structure.apply, self._audience.has_any
        for position, each in enumerate(commands, first):
            place = Origin(name, life, request, position)
            result = apply(each, place)
            results.append(result)
            if has_watchers:
                self._audience.tell(Applied(each, place, result))
        self.count += len(commands)
        return encode_results(first, results)

    def freeze(self) -> Frozen:
        return Counted(self.count, self.structure.freeze())

    def load(self, pieces: Iterable[bytes]) -> None:
        if isinstance(pieces, Filling):
            filling = pieces
        else:
            filling = Filling(self.structure.blank())
            for piece in pieces:
                filling.take(piece)
        if filling.count is None:
            raise WireError("a picture without a count")
        self.structure.adopt(filling.structure)
        self.count = filling.count
        self.loads += 1
        self._audience.tell(Reloaded("the state was fetched from another replica"))
