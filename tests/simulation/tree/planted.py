"""Faults planted in the tree engine: rules of its chapter, taken out one by one.

`test_planted.py` demands that each is caught where it was caught last. To look for others:
`python -m tests.simulation.tree.planted NAME 0 60`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from ordercast.checker.verdict import Outcome
from ordercast.model.ids import ProcessId
from ordercast.order.tree.blocks import Cargo, Ordered
from ordercast.order.tree.branch import Branch
from ordercast.order.tree.course import Course
from ordercast.order.tree.exchange import TreeExchange
from ordercast.order.tree.forest import Forest, Tree
from ordercast.order.tree.source import SourceTurn, SourceWish, TreeSource
from ordercast.order.tree.stream import TreeStream
from ordercast.sim.run import simulate
from ordercast.sim.swarm import options_of

Plant = Callable[[pytest.MonkeyPatch], None]


@dataclass(frozen=True)
class PlantedFault:
    name: str
    plant: Plant
    seeds: range  # caught in one of these runs


def _no_entry_rule(patch: pytest.MonkeyPatch) -> None:
    """Every cargo enters at its own entry, whatever is under way elsewhere."""
    right = TreeSource.next

    def entry(self: TreeSource, wish: SourceWish, tree: Tree) -> ProcessId:
        return tree.entry(tree.places(wish.destinations), self.me)

    def following(self: TreeSource, forest: Forest) -> SourceTurn | None:
        with pytest.MonkeyPatch.context() as inner:
            inner.setattr(TreeSource, "unordered", property(lambda self: iter(())))
            return right(self, forest)

    patch.setattr(TreeSource, "_entry", entry)
    patch.setattr(TreeSource, "next", following)


def _birth_ignored(patch: pytest.MonkeyPatch) -> None:
    """Blocks of an epoch that is not open here are taken as they come."""
    patch.setattr(Course, "must_wait", lambda self, data: False)


def _safe_without_source(patch: pytest.MonkeyPatch) -> None:
    """A safe message is stable when all receivers have it, whether its source knows its place or not."""
    right = TreeStream.enter

    def enter(self: TreeStream, cargo: Cargo) -> Ordered:
        ordered = right(self, cargo)
        self.known(cargo.originator, cargo.source)
        return ordered

    patch.setattr(TreeStream, "enter", enter)


def _safe_at_once(patch: pytest.MonkeyPatch) -> None:
    """Safe messages are delivered as agreed ones are."""

    def deliverable(self: TreeStream) -> list[Ordered]:
        ready = [held.ordered for held in self.queue if held.ordered is not None]
        self.queue.clear()
        return ready

    patch.setattr(TreeStream, "deliverable", deliverable)


def _held_sent_again(patch: pytest.MonkeyPatch) -> None:
    """What others hold of this process's messages is sent again all the same."""
    patch.setattr(TreeExchange, "own_held", property(lambda self: set()))


def _close_before_control(patch: pytest.MonkeyPatch) -> None:
    """A child closes as soon as the control stream says so, whatever its parent still sends."""

    def close_came(self: Branch) -> set[int]:
        return {self.stream.birth} if self.stream is not None else set()

    patch.setattr(Branch, "close_came", property(close_came, lambda self, value: None), raising=False)


FAULTS = [
    PlantedFault("no entry rule", _no_entry_rule, range(0, 8)),
    PlantedFault("birth ignored", _birth_ignored, range(0, 8)),
    PlantedFault("safe without the source's word", _safe_without_source, range(0, 8)),
    PlantedFault("safe at once", _safe_at_once, range(0, 8)),
    PlantedFault("held messages sent again", _held_sent_again, range(0, 8)),
    PlantedFault("close before the parent's word", _close_before_control, range(0, 8)),
]


def is_caught(fault: PlantedFault, seed: int) -> bool:
    """Whether a run with the fault is found wrong, by a judge or by an assertion of the engine."""
    with pytest.MonkeyPatch.context() as patch:
        fault.plant(patch)
        try:
            result = simulate(options_of(seed, engine="tree"), seed)
        except AssertionError:
            return True
    return result.verdict.outcome is Outcome.INVALID


if __name__ == "__main__":
    name, first, last = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    for fault in FAULTS:
        if name in fault.name:
            caught = next((seed for seed in range(first, last) if is_caught(fault, seed)), None)
            sys.stdout.write(f"{fault.name}: {caught}\n")
