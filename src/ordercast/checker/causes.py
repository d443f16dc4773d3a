"""What each message may depend on, exactly, over chains of any length: for orders that are no one sequence.

Where deliveries and causes together fit into one order, nothing can have come before what it depends on: that is seen
quickly (`linear.py`). Where they do not, they need not contradict causal order: a circle may lead through deliveries of
which nobody's message tells. Then the past of each message on a circle is gathered, as a set of bits, and compared with
what every process delivered.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence


class Pasts:
    """The pasts of some messages, as far as they lie among these."""

    def __init__(self, among: Iterable[int]) -> None:
        self._bits = {number: 1 << place for place, number in enumerate(among)}
        self._numbers = list(self._bits)
        self._pasts: dict[int, int] = {}

    def with_itself(self, number: int) -> int:
        """Return a message and all that it may depend on."""
        return self._pasts.get(number, 0) | self._bits.get(number, 0)

    def depends(self, number: int, past: int) -> None:
        """Know that a message depends on all these."""
        self._pasts[number] = self._pasts.get(number, 0) | past

    def overtaken(self, sequence: Sequence[int]) -> Iterator[tuple[int, int]]:
        """Yield each message that came before something on which it depends, and one of these."""
        later = 0
        for number in reversed(sequence):
            if missed := self._pasts.get(number, 0) & later:
                yield number, self._numbers[missed.bit_length() - 1]
            later |= self._bits.get(number, 0)
