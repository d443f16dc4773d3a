"""A configuration of a process of trees as the simulator runs it: the shipped one, with somebody who looks on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from typing import TYPE_CHECKING

from ordercast.model.configuration import Configuration
from ordercast.model.effects import Effect
from ordercast.model.ids import ProcessId
from ordercast.order.tree.blocks import GivenPlaces, Ordered, TreeBlock
from ordercast.order.tree.branch import Branch
from ordercast.order.tree.config import TreeConfig
from ordercast.order.tree.control import Opening
from ordercast.order.tree.course import Course
from ordercast.order.tree.delivering import Delivering
from ordercast.order.tree.exchange import TreeExchange
from ordercast.order.tree.forest import Tree
from ordercast.order.tree.node import TreeNode
from ordercast.order.tree.reports import CargoIdentity, Recovered
from ordercast.order.tree.source import TreeSource
from ordercast.order.tree.stream import BadBlock, HeldBlock, TreeStream

if TYPE_CHECKING:
    from ordercast.sim.trees.witness import TreesWitness


class WatchedCourse(Course):
    def __init__(
        self,
        witness: TreesWitness,
        engine: TreeNode,
        me: ProcessId,
        configuration: Configuration,
        config: TreeConfig,
        source: TreeSource,
        delivering: Delivering,
    ) -> None:
        super().__init__(me, configuration, config, source, delivering)
        self.witness = witness
        self.branch: WatchedBranch = WatchedBranch(self, config)
        witness.begun(self, engine)

    def _order(self, opening: Opening, originator: ProcessId) -> Iterator[Effect]:
        yield from super()._order(opening, originator)
        if self.ordered == opening.number:
            self.witness.opened(self, opening)


class WatchedExchange(TreeExchange):
    def __init__(self, course: Course, members: Iterable[ProcessId], came: Mapping[CargoIdentity, Recovered]) -> None:
        super().__init__(course, members, came)
        assert isinstance(course, WatchedCourse)
        course.witness.reported(course, self.mine)


class WatchedBranch(Branch):
    def __init__(self, course: WatchedCourse, config: TreeConfig) -> None:
        super().__init__(course.me, config, course.source, course.delivering)
        self.course = course

    def open(self, tree: Tree) -> None:
        self.stream = WatchedStream(self.course, tree)

    def close(self) -> None:
        assert self.stream is not None
        self.course.witness.closing(self.course, self.stream)
        super().close()

    def take(self, block: TreeBlock, data: bytes, process: ProcessId) -> None:
        witness = self.course.witness
        try:
            super().take(block, data, process)
        except BadBlock as error:
            witness.refused(self.course, process, str(error))
            raise
        if isinstance(block, GivenPlaces):
            witness.told(self.course, block)
        elif isinstance(block, Ordered) and self.course.is_frozen:
            witness.taken_late(self.course, block)

    def enter(self, behind: Set[ProcessId]) -> None:
        super().enter(behind)
        self.course.witness.entered(self.course, behind)


class WatchedStream(TreeStream):
    def __init__(self, course: WatchedCourse, tree: Tree) -> None:
        super().__init__(course.me, tree)
        self._course = course

    def _process(self, held: HeldBlock, ordered: Ordered, data: bytes) -> None:
        super()._process(held, ordered, data)
        self._course.witness.processed(self._course, self.tree, ordered)

    def _settle(self, held: HeldBlock) -> None:
        super()._settle(held)
        assert held.ordered is not None
        self._course.witness.stable(self._course, self.tree, held.ordered)
