"""The manager: the first member of a configuration, who decides when the forest changes. All others wait for it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ordercast.model.effects import Effect, Record
from ordercast.model.ids import Instant
from ordercast.model.notes import Occurred, Occurrence
from ordercast.order.tree.changes import ChangeKind, ForestChange, next_opening
from ordercast.order.tree.config import TreeConfig
from ordercast.order.tree.control import Everywhere
from ordercast.order.tree.course import Course

OCCURRENCES = {
    ChangeKind.KEPT: Occurrence.TREE_EDGES_KEPT,
    ChangeKind.GRAFTED: Occurrence.TREE_GRAFTED,
    ChangeKind.BUILT: Occurrence.TREE_BUILT,
}


START = Instant(0)


@dataclass(slots=True)
class Manager:
    config: TreeConfig
    not_before: Instant = START
    asked: int = 0  # the number of the last opening that was submitted

    def begin(self) -> None:
        """A configuration begins."""
        self.asked = 0

    def next_deadline(self, course: Course) -> Instant | None:
        return self.not_before if self._is_due(course) else None

    def change(self, course: Course, now: Instant) -> ForestChange | None:
        """Return the change to be made now, if any is."""
        if not self._is_due(course) or now < self.not_before:
            return None
        self.not_before = Instant(now + self.config.open_gap_ns)
        self.asked = course.ordered + 1
        disturbed: list[str] | None = []
        for item in course.unopened:
            if isinstance(item.control, Everywhere) and disturbed is not None:
                disturbed = [*disturbed, *item.control.groups] if item.control.groups else None
        directory = course.directory_through(course.index)
        return next_opening(self.asked, course.index, directory, course.forest_ahead, disturbed, self.config.builder)

    def _is_due(self, course: Course) -> bool:
        """Whether something waits for an opening, and nothing is in its way."""
        members = course.configuration.members
        if course.me != members[0] or course.is_frozen or self.asked > course.ordered:
            return False
        if course.boundaries or course.unclosed or not course.is_introduced:
            return False
        return bool(course.unopened)

    def notes(self, change: ForestChange) -> Iterator[Effect]:
        return (Record(Occurred(OCCURRENCES[kind])) for kind in change.kinds)
