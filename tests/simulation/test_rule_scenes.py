"""Rules that no promise shows: without each of them its scene has other configurations than it should have."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import NamedTuple

import pytest

from ordercast.model.ids import Instant, ProcessId
from ordercast.order.membership import frame
from ordercast.order.membership.consensus import Proposal
from ordercast.order.membership.hearing import Hearing
from ordercast.wire.messages import Join

from .rule_scenes import AllPaused, LateJoin, Outsider, RuleScene


class Rule(NamedTuple):
    """A rule, as it is taken out, and the scene that misses it."""

    take_out: Callable[[pytest.MonkeyPatch], None]
    scene: type[RuleScene]


def _others_are_blamed_for_a_pause(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(frame, "BLAMING", ())


def _nothing_is_stale(patch: pytest.MonkeyPatch) -> None:
    def wrong(self: Hearing, join: Join, now: Instant) -> bool:
        return False

    patch.setattr(Hearing, "is_stale", wrong)


def _outsiders_are_believed(patch: pytest.MonkeyPatch) -> None:
    right = Proposal.merge

    def wrong(self: Proposal, join: Join, my_ring: Collection[ProcessId]) -> None:
        right(self, join, (*my_ring, join.sender))

    patch.setattr(Proposal, "merge", wrong)


RULES = {
    "a pause is nobody's fault": Rule(_others_are_blamed_for_a_pause, AllPaused),
    "an older Join is stale": Rule(_nothing_is_stale, LateJoin),
    "outsiders do not break up a ring": Rule(_outsiders_are_believed, Outsider),
}


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("name", RULES)
def test_a_rule_that_is_taken_out_is_missed(name: str, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rule = RULES[name]
    scene = rule.scene(seed=seed)
    assert scene.run().is_valid and scene.is_as_it_should_be()
    rule.take_out(monkeypatch)
    without = rule.scene(seed=seed)
    without.run()
    assert not without.is_as_it_should_be()
