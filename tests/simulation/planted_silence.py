"""Faults planted in how silent members are excluded: for random schedules, and for simulated runs."""

from __future__ import annotations

import pytest

from ordercast.replicated.component import Component
from ordercast.replicated.core import Core
from ordercast.replicated.effects import Effect
from ordercast.replicated.quorum import Life, Majority


def excluded_alone(patch: pytest.MonkeyPatch) -> None:
    """Each excludes whom it has not heard when its own patience is over, instead of all at a place in the order."""

    def wrong(self: Core) -> list[Effect]:
        effects: list[Effect] = []
        component = self._component
        if component is not None and not component.is_signalled and self.me.name in component.states:
            awaited = set(component.awaited)
            if awaited:
                self._on_exclude(component, awaited, effects)
        return effects

    patch.setattr(Core, "lose_patience", wrong)


def excluded_believes(patch: pytest.MonkeyPatch) -> None:
    """Who is excluded decides as the others do, and believes that its state is theirs."""

    def wrong(self: Core, component: Component, silent: set[str], effects: list[Effect]) -> None:
        component.exclude(silent)
        if component.is_complete:
            component.excluded.discard(self.me.name)
            self._end_round(component, effects)
            component.has_best = component.has_best or self._copy.track is not None

    patch.setattr(Core, "_on_exclude", wrong)


def excluded_counts(patch: pytest.MonkeyPatch) -> None:
    """Who is excluded has a vote."""
    right = Core._decide

    def wrong(self: Core, component: Component, effects: list[Effect]) -> None:
        rule = self._rule
        assert isinstance(rule, Majority)
        lives = [Life(name, 0, 0) for name in sorted(component.excluded)]
        with patch.context() as patched:
            patched.setattr(
                Majority, "is_quorum", lambda self, voters, known: is_quorum(rule, [*voters, *lives], known)
            )
            right(self, component, effects)

    is_quorum = Majority.is_quorum
    patch.setattr(Core, "_decide", wrong)
