"""Active-passive replication: every packet on K of N good networks, in turn. (Section 7)

Passive monitors in front of the active gate: the token goes up when K copies have come. The receiver does not know
which K networks were chosen, so a timer that runs out blames nobody. The stricter rule, which is the default, waits for
messages as the passive style does: K copies of the token say nothing of messages that went out on other networks.
"""

from __future__ import annotations

from collections.abc import Sequence

from ordercast.model.notes import Release
from ordercast.networks.marks import Marks
from ordercast.networks.styles import Lacking, Rotation, Spreadable, Style, packets_in, shares


class ActivePassive(Style):
    def __init__(self, marks: Marks, networks: int, copies: int, *, is_strict: bool) -> None:
        super().__init__(marks)
        self._copies = copies
        self._is_strict = is_strict
        self._messages = Rotation(networks)
        self._tokens = Rotation(networks)

    def spread(self, effect: Spreadable) -> Sequence[Spreadable]:
        marks, bursts = self._marks, effect.bursts
        order = self._messages.order(marks.good)
        count = packets_in(bursts)
        self._messages.step(order, count)
        if count == 1 or len(order) <= self._copies:
            effect.networks = (*order[: self._copies], *marks.trial)
            return (effect,)
        parts = min(count, len(order))
        pieces = shares(bursts, parts)
        spread = [effect.piece(piece, self._group(order, first)) for first, piece in enumerate(pieces)]
        if marks.trial:
            effect.networks = marks.trial
            spread.append(effect)
        return spread

    def _group(self, order: tuple[int, ...], first: int) -> tuple[int, ...]:
        """K networks in a row."""
        return (order[first:] + order[:first])[: self._copies]

    def token_networks(self) -> tuple[int, ...]:
        order = self._tokens.order(self._marks.good)
        self._tokens.step(order, 1)
        return (*order[: self._copies], *self._marks.trial)

    def release(self, brought: int, lacking: Lacking, *, is_first: bool) -> Release | None:
        enough = min(self._copies, len(self._marks.good))
        if brought.bit_count() < enough or (self._is_strict and lacking()):
            return None
        return Release.ENOUGH
