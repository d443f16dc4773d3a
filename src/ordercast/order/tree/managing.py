"""The manager: the first member of a configuration, who decides when the forest changes. All others wait for it.

It plans in slices, with other things between. When nothing waits for it, it looks now and then whether another forest
would cost less. Trees that do not close in time, or a link that has failed, it answers by ending all trees at once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from ordercast.model.effects import Effect, Record
from ordercast.model.ids import Instant
from ordercast.model.notes import Occurred, Occurrence
from ordercast.order.tree.changes import ChangeKind, ForestChange, Planning, better_opening, next_opening
from ordercast.order.tree.config import TreeConfig
from ordercast.order.tree.control import Everywhere, Opening, Reconcile
from ordercast.order.tree.course import Course
from ordercast.order.tree.given import Given

OCCURRENCES = {
    ChangeKind.KEPT: Occurrence.TREE_EDGES_KEPT,
    ChangeKind.GRAFTED: Occurrence.TREE_GRAFTED,
    ChangeKind.BUILT: Occurrence.TREE_BUILT,
    ChangeKind.REBUILT: Occurrence.TREE_REBUILT,
}


START = Instant(0)


@dataclass(slots=True)
class Manager:
    config: TreeConfig
    not_before: Instant = START
    asked: int = 0  # the number of the last opening that was submitted
    _look_at: Instant | None = None  # when to look whether another forest would cost less
    _plan: Planning | None = None  # that is being made
    _hangs_at: Instant | None = None  # when trees that close have had time enough

    def begin(self) -> None:
        """A configuration begins."""
        self.asked = 0
        self._plan = self._hangs_at = self._look_at = None

    def next_deadline(self, course: Course) -> Instant | None:
        if course.me != course.configuration.members[0] or course.is_frozen or self.asked > course.ordered:
            return None
        if self._plan is not None:
            return START
        look_at = self._look_at if self._may_look(course) else None
        deadlines = [self._hangs_at, self.not_before if self._is_due(course) else None, look_at]
        return min((at for at in deadlines if at is not None), default=None)

    def change(self, course: Course, now: Instant) -> ForestChange | Reconcile | None:
        """Return the change to be made now, if any is."""
        if course.me != course.configuration.members[0] or course.is_frozen or self.asked > course.ordered:
            return None
        if self._must_end(course, now):
            self._plan = self._hangs_at = None
            self.asked = course.ordered + 1
            return Reconcile(self.asked)
        if self._plan is None:
            self._begin_plan(course, now)
        return self._worked(course, now)

    def _must_end(self, course: Course, now: Instant) -> bool:
        """Whether trees do not close, or a link has failed."""
        if not course.unclosed:
            self._hangs_at = None
        elif self._hangs_at is None:
            self._hangs_at = Instant(now + self.config.close_patience_ns)
        is_hanging = self._hangs_at is not None and now >= self._hangs_at
        return bool(course.ordered) and (is_hanging or course.is_broken)

    def _begin_plan(self, course: Course, now: Instant) -> None:
        if self._look_at is None:
            self._look_at = Instant(now + self.config.rebuild_gap_ns)
        if self._is_due(course):
            if now >= self.not_before:
                self._plan = self._next(course)
        elif now >= self._look_at and self._may_look(course):
            self._look_at = Instant(now + self.config.rebuild_gap_ns)
            opening = Opening(course.ordered + 1, 0, course.directory.digest, (), ())
            self._plan = better_opening(opening, course.forest_ahead, self.config.builder, _given(course))

    def _next(self, course: Course) -> Planning:
        disturbed: list[str] | None = []
        for item in course.unopened:
            if isinstance(item.control, Everywhere) and disturbed is not None:
                disturbed = [*disturbed, *item.control.groups] if item.control.groups else None
        directory = course.directory_through(course.index)
        opening = Opening(course.ordered + 1, course.index, directory.digest, (), ())
        return next_opening(opening, directory, course.forest_ahead, disturbed, self.config.builder, _given(course))

    def _worked(self, course: Course, now: Instant) -> ForestChange | None:
        """Work on the plan for a while; return it when it is made."""
        if self._plan is None:
            return None
        try:
            for _ in range(self.config.build_budget):
                next(self._plan)
        except StopIteration as end:
            self._plan = None
            change: ForestChange | None = end.value
            if change is not None:
                self.not_before = Instant(now + self.config.open_gap_ns)
                self.asked = change.opening.number
            return change
        return None

    def _is_due(self, course: Course) -> bool:
        """Whether something waits for an opening, and nothing is in its way."""
        if course.boundaries or course.unclosed or not course.is_introduced:
            return False
        return bool(course.unopened) or (bool(course.directory.groups) and not course.forest_ahead.trees)

    def _may_look(self, course: Course) -> bool:
        """Whether nothing is under way that another forest would disturb."""
        return bool(course.ordered) and not (course.boundaries or course.unclosed or self._is_due(course))

    def notes(self, change: ForestChange) -> Iterator[Effect]:
        return (Record(Occurred(OCCURRENCES[kind])) for kind in change.kinds)


def _given(course: Course) -> Given:
    """Return what is known of links and of loads."""
    rates: Counter[str] = Counter()
    for (_, name), rate in course.rates.items():
        rates[name] += rate
    known = {name: max(1.0, float(rate)) for name, rate in rates.items()}
    return Given(rates=known, forbidden=frozenset(course.broken))
