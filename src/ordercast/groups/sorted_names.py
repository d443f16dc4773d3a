"""Many names, kept in order while some come and go: in blocks, so that a change moves a few hundred of them at most."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Iterator

BLOCK = 512  # names, on average


class SortedNames:
    def __init__(self, names: Iterable[str] = ()) -> None:
        ordered = sorted(names)
        self._blocks = [ordered[start : start + BLOCK] for start in range(0, len(ordered), BLOCK)]  # none is empty
        self._lasts = [block[-1] for block in self._blocks]

    def __iter__(self) -> Iterator[str]:
        for block in self._blocks:
            yield from block

    def add(self, name: str) -> None:
        """A name that is not there."""
        if not self._blocks:
            self._blocks, self._lasts = [[name]], [name]
            return
        at = min(bisect_left(self._lasts, name), len(self._blocks) - 1)
        block = self._blocks[at]
        insort(block, name)
        if len(block) > 2 * BLOCK:
            self._blocks[at : at + 1] = halves = [block[:BLOCK], block[BLOCK:]]
            self._lasts[at : at + 1] = [half[-1] for half in halves]
        else:
            self._lasts[at] = block[-1]

    def remove(self, name: str) -> None:
        """A name that is there."""
        at = bisect_left(self._lasts, name)
        block = self._blocks[at]
        del block[bisect_left(block, name)]
        if block:
            self._lasts[at] = block[-1]
        else:
            del self._blocks[at], self._lasts[at]

    def after(self, name: str) -> Iterator[str]:
        """Return the names that come later."""
        at = bisect_right(self._lasts, name)
        if at < len(self._blocks):
            yield from self._blocks[at][bisect_right(self._blocks[at], name) :]
            for block in self._blocks[at + 1 :]:
                yield from block
