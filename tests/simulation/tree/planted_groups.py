"""Faults planted in what the tree engine tells groups: rules of its chapter, taken out one by one.

`test_planted.py` demands that each is caught where it was caught last. To look for others:
`python -m tests.simulation.tree.planted_groups NAME 0 60`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from ordercast.checker.verdict import Outcome
from ordercast.groups.confirmations import ConfirmationOrder
from ordercast.groups.interests import Interests
from ordercast.groups.layer import Confirmed, Groups, Output
from ordercast.model.configuration import Configuration
from ordercast.model.effects import Deliver, Effect, Parted
from ordercast.order.tree.branch import Branch
from ordercast.order.tree.course import Course
from ordercast.order.tree.delivering import ControlMessage, Delivering
from ordercast.sim.run import simulate
from ordercast.sim.swarm import SwarmKind, options_of

from .planted import PlantedFault


def _one_signal_for_all(patch: pytest.MonkeyPatch) -> None:
    """All groups are signalled with the transitional configuration."""
    right = Groups.install

    def install(self: Groups, view: Configuration, *, parts: bool = False) -> list[Output]:
        return right(self, view)

    def part(self: Groups, parted: Parted) -> list[Output]:
        return []

    patch.setattr(Groups, "install", install)
    patch.setattr(Groups, "part", part)


def _views_of_delivery(patch: pytest.MonkeyPatch) -> None:
    """A view that a join makes names the configuration in which the join is delivered here."""
    right = Delivering.control

    def control(self: Delivering, message: ControlMessage, *, is_late: bool) -> Deliver | None:
        return right(self, message, is_late=True)

    patch.setattr(Delivering, "control", control)


def _views_behind_as_before(patch: pytest.MonkeyPatch) -> None:
    """A view that a join makes behind the end of its group has the id that it has before the end."""
    patch.setattr(Groups, "_view_id", lambda self, group, at: at)


def _views_taken_for_alike(patch: pytest.MonkeyPatch) -> None:
    """Whoever comes along does so in all groups, whatever views its clients have had."""
    patch.setattr("ordercast.groups.table._with_like_views", lambda name, me, together, behind: together)


def _joins_at_once(patch: pytest.MonkeyPatch) -> None:
    """A join is submitted whether the messages of its group come here or not."""
    patch.setattr(Interests, "is_ready", lambda self, groups: True)


def _no_places(patch: pytest.MonkeyPatch) -> None:
    """Nobody is told the place of a message that does not come back."""

    def placed(self: Course) -> Iterator[Effect]:
        self.source.placed = []
        return iter(())

    patch.setattr(Course, "placed", placed)


def _confirmed_as_known(patch: pytest.MonkeyPatch) -> None:
    """Confirmations go out in the order in which places are known."""

    def take(self: ConfirmationOrder, confirmed: Confirmed) -> list[Confirmed]:
        return [confirmed]

    patch.setattr(ConfirmationOrder, "take", take)


def _hold_stops_all(patch: pytest.MonkeyPatch) -> None:
    """When an application is behind nothing enters, for whomever it is."""
    right = Branch.enter
    patch.setattr(Branch, "enter", lambda self, behind: None if behind else right(self, behind))


def _hold_stops_none(patch: pytest.MonkeyPatch) -> None:
    """Messages enter whether the applications of their receivers are behind or not."""
    right = Branch.enter
    patch.setattr(Branch, "enter", lambda self, behind: right(self, frozenset()))


GROUP_FAULTS = [
    PlantedFault("views behind the end of a group as before it", _views_behind_as_before, range(163, 164)),
    PlantedFault("HOLD that stops all", _hold_stops_all, range(114, 120)),
    PlantedFault("HOLD that stops none", _hold_stops_none, range(29, 30)),
    PlantedFault("places of what does not come back are not told", _no_places, range(0, 8)),
]
RARE_FAULTS = [  # that show in few runs: sought by command
    PlantedFault("one signal for all groups", _one_signal_for_all, range(0, 1000)),
    PlantedFault("views name the configuration of delivery", _views_of_delivery, range(0, 1000)),
    PlantedFault("views of one join taken for alike", _views_taken_for_alike, range(0, 1000)),
    PlantedFault("joins before interest is in force", _joins_at_once, range(0, 1000)),
    PlantedFault("confirmations in the order of knowledge", _confirmed_as_known, range(0, 1000)),
]


def is_caught_with_groups(fault: PlantedFault, seed: int) -> bool:
    """Whether a run with the fault is found wrong, by a judge or by an assertion."""
    with pytest.MonkeyPatch.context() as patch:
        fault.plant(patch)
        try:
            result = simulate(options_of(seed, SwarmKind.GROUPS, "tree"), seed)
        except AssertionError:
            return True
    return result.verdict.outcome is Outcome.INVALID


if __name__ == "__main__":
    name, first, last = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    for fault in (*GROUP_FAULTS, *RARE_FAULTS):
        if name in fault.name:
            caught = next((seed for seed in range(first, last) if is_caught_with_groups(fault, seed)), None)
            sys.stdout.write(f"{fault.name}: {caught}\n")
