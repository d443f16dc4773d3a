"""A configuration at one process, for tests: who wants what is said, openings are ordered, blocks come."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ordercast.model.configuration import ChangeReason, Configuration, ConfigurationKind
from ordercast.model.effects import Effect
from ordercast.model.ids import ConfigurationId, Position, ProcessId
from ordercast.model.service import Service
from ordercast.order.tree.config import TreeConfig
from ordercast.order.tree.control import CourseControl, Opening, Wants
from ordercast.order.tree.course import Course
from ordercast.order.tree.delivering import Delivering
from ordercast.order.tree.graph import Parents
from ordercast.order.tree.source import TreeSource

PROCESSES = A, B, C, D = [ProcessId(node << 48 | 1) for node in range(1, 5)]
V = ConfigurationId(8, A)


class Rehearsal:
    """The control stream of a course."""

    def __init__(self, me: ProcessId, wanted: Mapping[ProcessId, Sequence[str]]) -> None:
        view = Configuration(
            ConfigurationKind.REGULAR, V, tuple(PROCESSES), V, tuple(PROCESSES), ChangeReason.STARTED, Position(V, 0, 0)
        )
        source = TreeSource(me, 1_000, 10_000)
        self.course = Course(me, view, TreeConfig(), source, Delivering(V))
        for process in PROCESSES:
            names = (f"={process:x}", *wanted.get(process, ()))
            self.say(Wants(names, is_full=True), process)

    def say(self, control: CourseControl, process: ProcessId) -> list[Effect]:
        course = self.course
        return [*course.control(control, (course.index, 0), process, 0, Service.AGREED), *course.settle()]

    def opening(self, *born: Parents, closing: Sequence[tuple[int, ProcessId]] = ()) -> Opening:
        course = self.course
        digest = course.directory_through(course.index).digest
        return Opening(course.ordered + 1, course.index, digest, tuple(closing), born)
