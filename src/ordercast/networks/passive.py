"""Passive replication: every packet on one good network, messages and tokens in turn, each by a pointer of its own.
(Section 6, Figure 4)

A token that overtakes messages on another network waits for them, so that the engine does not ask for what is merely on
its way. A network on trial gets a copy of everything: nothing relies on it.
"""

from __future__ import annotations

from collections.abc import Sequence

from ordercast.model.notes import Release
from ordercast.networks.marks import Marks
from ordercast.networks.styles import Lacking, Rotation, Spreadable, Style, packets_in, shares


class Passive(Style):
    def __init__(self, marks: Marks, networks: int) -> None:
        super().__init__(marks)
        self._messages = Rotation(networks)
        self._tokens = Rotation(networks)

    def spread(self, effect: Spreadable) -> Sequence[Spreadable]:
        marks, bursts = self._marks, effect.bursts
        order = self._messages.order(marks.good)
        count = packets_in(bursts)
        self._messages.step(order, count)
        if count == 1 or len(order) == 1:
            effect.networks = (order[0], *marks.trial)
            return (effect,)
        parts = min(count, len(order))
        pieces = shares(bursts, parts)
        spread = [effect.piece(piece, (n,)) for piece, n in zip(pieces, order, strict=False)]
        if marks.trial:
            effect.networks = marks.trial
            spread.append(effect)
        return spread

    def token_networks(self) -> tuple[int, ...]:
        order = self._tokens.order(self._marks.good)
        self._tokens.step(order, 1)
        return (order[0], *self._marks.trial)

    def release(self, brought: int, lacking: Lacking, *, is_first: bool) -> Release | None:
        if lacking():
            return None
        return Release.DIRECT if is_first else Release.GAP_CLOSED
