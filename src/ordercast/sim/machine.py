"""The replicated state of a simulated replica: a real structure as the core sees it, and a chained digest of its past.

Pictures are cut into small pieces, so that transfers take their time.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any

from ordercast.replicated.machine import Frozen, Origin
from ordercast.replicated.structures.base import Applied, Reloaded, Structure
from ordercast.replicated.told import Told

PIECE_SIZE = 60
_GOES_ON, _LAST = b"\0", b"\1"  # before a piece: whether the structure's own piece ends with it


class Picture:
    def __init__(self, chain: bytes, frozen: Frozen) -> None:
        self.chain, self.frozen = chain, frozen

    def pieces(self, start: int = 0) -> Iterator[bytes]:
        return islice(self._pieces(), start, None)

    def _pieces(self) -> Iterator[bytes]:
        yield self.chain
        for whole in self.frozen.pieces():
            cuts = range(0, len(whole), PIECE_SIZE)
            for at in cuts:
                yield (_LAST if at == cuts[-1] else _GOES_ON) + whole[at : at + PIECE_SIZE]


class Chained:
    """Reports every command of the application with its place in its batch, and every state that is loaded."""

    def __init__(
        self,
        structure: Structure[Any],
        on_applied: Callable[[Applied, int], None],
        on_loaded: Callable[[], None],
    ) -> None:
        self.structure = structure
        self.chain = bytes(8)
        self._told = Told(structure, self)
        self._on_applied = on_applied
        self._on_loaded = on_loaded
        self._index = 0  # in the batch that is being applied

    @property
    def count(self) -> int:
        """Commands of the application so far."""
        return self._told.count

    def apply(self, command: bytes, origin: Origin) -> bytes:
        self._index = 0
        return self._told.apply(command, origin)

    def want(self, kind: type, /) -> bool:
        return kind is Applied

    def tell(self, event: Applied | Reloaded, /) -> None:
        if isinstance(event, Reloaded):
            return
        _, life, request, position = event.origin
        text = b"%d %d %d %d %s" % (position, life, request, self._index, event.command)
        self.chain = hashlib.blake2b(text, key=self.chain, digest_size=8).digest()
        self._on_applied(event, self._index)
        self._index += 1

    def freeze(self) -> Picture:
        return Picture(self.chain, self._told.freeze())

    def load(self, pieces: Iterable[bytes]) -> None:
        chain, *rest = pieces
        self._told.load(_joined(rest))
        self.chain = chain
        self._on_loaded()


def _joined(pieces: Iterable[bytes]) -> Iterator[bytes]:
    whole = b""
    for piece in pieces:
        whole += piece[1:]
        if piece[:1] == _LAST:
            yield whole
            whole = b""
