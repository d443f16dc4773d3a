"""What builders of graphs have in common: a face, and whom they ask first."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Protocol

from ordercast.model.ids import ProcessId
from ordercast.order.tree.given import Given
from ordercast.order.tree.graph import Memberships, Parents

Slices = Generator[None, None, Parents]


class Builder(Protocol):
    """A way to put processes into a forest, such that each group has a common ancestor."""

    def __call__(self, groups: Memberships, given: Given, /) -> Slices: ...


def at_once(build: Callable[[Memberships, Given], Parents]) -> Builder:
    """Return a builder that works in one slice."""

    def in_one_slice(groups: Memberships, given: Given) -> Slices:
        yield
        return build(groups, given)

    return in_one_slice


def most_frequent(groups: Memberships) -> ProcessId:
    """Return the process that is in the most groups; of several the lowest."""
    counts: dict[ProcessId, int] = {}
    for members in groups.values():
        for member in members:
            counts[member] = counts.get(member, 0) + 1
    return min(counts, key=lambda process: (-counts[process], process))


def everybody(groups: Memberships) -> set[ProcessId]:
    return {member for members in groups.values() for member in members}
