"""Silence: a live replica's patience with members that do not say what they have.

When a round (`component.py`) has been open for so long, the core says in the order that the others go on without those
who are silent; and again, until the round is over. A silent member costs the group this time once at a view, and
nothing at any other.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from ordercast.replicated.facts import Round


class Silence:
    def __init__(self, patience_s: float, round_of: Callable[[], Round | None], on_over: Callable[[], None]) -> None:
        """`round_of`: the round that is open now. `on_over`: called whenever it has been open for so long again."""
        self._patience_s = patience_s
        self._round_of = round_of
        self._on_over = on_over
        self._timer: asyncio.TimerHandle | None = None
        self._round: Round | None = None  # that is timed

    def look(self) -> None:
        """A round may have begun, or ended."""
        now_open = self._round_of()
        if now_open == self._round:
            return
        self.stop()
        if now_open is not None:
            self._begin(now_open)

    def stop(self) -> None:
        self._round = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _begin(self, now_open: Round) -> None:
        self._round = now_open
        self._timer = asyncio.get_running_loop().call_later(self._patience_s, self._over)

    def _over(self) -> None:
        is_open = self._round is not None and self._round == self._round_of()
        if is_open:
            self._on_over()
        self._round = None
        self.look()
