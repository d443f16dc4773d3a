"""Faults planted in the tree engine: rules of its chapter, taken out one by one.

`test_planted.py` demands that each is caught where it was caught last. To look for others:
`python -m tests.simulation.tree.planted NAME 0 60`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

import pytest

from ordercast.checker.verdict import Outcome
from ordercast.model.configuration import Configuration
from ordercast.model.effects import Effect
from ordercast.model.errors import WireError
from ordercast.model.ids import Instant, ProcessId
from ordercast.model.inputs import Lane, Packet
from ordercast.order.tree import plan
from ordercast.order.tree.blocks import Cargo, Ordered
from ordercast.order.tree.branch import Branch
from ordercast.order.tree.bundle import Bundle
from ordercast.order.tree.control import Wants
from ordercast.order.tree.course import Course
from ordercast.order.tree.delivering import Spot
from ordercast.order.tree.directory import Directory, InterestChange
from ordercast.order.tree.exchange import TreeExchange
from ordercast.order.tree.forest import Tree
from ordercast.order.tree.node import TreeNode
from ordercast.order.tree.reports import Recovered, mark_of
from ordercast.order.tree.source import SourceWish, TreeSource
from ordercast.order.tree.stream import BadBlock, TreeStream
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

    def entry(self: TreeSource, wish: SourceWish, tree: Tree) -> ProcessId:
        return tree.entry(tree.places(wish.destinations), self.me)

    patch.setattr(TreeSource, "_entry", entry)
    patch.setattr(TreeSource, "_is_asked_elsewhere", lambda self, entry: False)


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


def _receivers_report_alone(patch: pytest.MonkeyPatch) -> None:
    """Who has passed a message on, and is not owed it, does not say so at the end of a configuration."""
    right = TreeExchange._held

    def held(self: TreeExchange) -> list[Ordered]:
        return [one for one in right(self) if self.course.me in self.receivers(mark_of(one))]

    patch.setattr(TreeExchange, "_held", held)


def nothing_implied(patch: pytest.MonkeyPatch) -> None:
    """What was ordered before something that is held is sent again all the same."""
    patch.setattr(plan, "_implied", lambda reports, marks: [])


def _done_without_those_below(patch: pytest.MonkeyPatch) -> None:
    """A process says that all have what it has itself."""

    def advance(self: TreeStream) -> None:
        while self._from_parent:
            self._done = self._from_parent.popleft().came

    patch.setattr(TreeStream, "_advance", advance)


def _no_refusal(patch: pytest.MonkeyPatch) -> None:
    """An entry that has closed says nothing to who comes too late."""
    patch.setattr(Branch, "_refuse", lambda self, source, birth, numbers: None)


def _no_source_rule(patch: pytest.MonkeyPatch) -> None:
    """What was refused is sent anew at once, whatever is unanswered."""
    right = TreeSource.refuse

    def refuse(self: TreeSource, source: int) -> bool:
        is_new = right(self, source)
        self.waiting.extendleft(reversed(self.refused))
        self.refused = []
        return is_new

    patch.setattr(TreeSource, "refuse", refuse)


def _outsiders_at_the_own_entry(patch: pytest.MonkeyPatch) -> None:
    """A sender outside its groups enters where their members do."""
    right = Tree.entry
    patch.setattr(Tree, "entry", lambda self, groups, sender: right(self, groups, min(self.receivers(groups))))


def _recovered_unsorted(patch: pytest.MonkeyPatch) -> None:
    """What is left of a configuration is passed up by its sources, not by its ranks."""
    right = TreeExchange.owed
    patch.setattr(TreeExchange, "owed", lambda self: sorted(right(self), key=lambda one: (one[2], one[3][:2])))


def reconciled_sent_again(patch: pytest.MonkeyPatch) -> None:
    """After a reconciliation everything is sent again that was not known to be ordered."""
    right = TreeSource.start_over

    def start_over(
        self: TreeSource, held: set[tuple[int, int]], along: Collection[ProcessId] | None
    ) -> tuple[int, int]:
        return right(self, set() if along is None else held, along)

    patch.setattr(TreeSource, "start_over", start_over)


def _passed_on_to_all(patch: pytest.MonkeyPatch) -> None:
    """A process passes what it gets on to all its children, whether there are receivers below them or not."""
    patch.setattr(Tree, "children", lambda self, node, entry, groups: self.graph.children(node))


def _nothing_is_shared(patch: pytest.MonkeyPatch) -> None:
    """Nobody looks whether a block belongs where it comes."""
    _passed_on_to_all(patch)
    patch.setattr(TreeStream, "_is_plausible", lambda self, ordered: True)


def _taken_after_the_report(patch: pytest.MonkeyPatch) -> None:
    """What comes on links is taken after this process has said what it holds."""
    install, reconcile, receive = TreeNode._installed, TreeNode._reconcile, TreeNode.receive
    before: dict[ProcessId, Bundle] = {}

    def installed(self: TreeNode, configuration: Configuration, now: Instant) -> Iterator[Effect]:
        if self._bundle is not None:
            before[self.process] = self._bundle
        yield from install(self, configuration, now)

    def reconciled(self: TreeNode, course: Course) -> None:
        assert self._bundle is not None
        before[self.process] = self._bundle
        reconcile(self, course)

    def received(self: TreeNode, packets: Sequence[Packet], now: Instant) -> list[Effect]:
        effects = receive(self, packets, now)
        if self._exchange is not None and (bundle := before.get(self.process)) is not None:
            for packet in packets:
                if packet.lane is Lane.LINK:
                    bundle.read(bytes(packet.data), packet.segment_size, now)
            for process, blocks in bundle.inbound.items():
                while blocks:
                    with suppress(BadBlock, WireError):
                        self._exchange.course.take(blocks.popleft(), process)
        return effects

    patch.setattr(TreeNode, "_installed", installed)
    patch.setattr(TreeNode, "_reconcile", reconciled)
    patch.setattr(TreeNode, "receive", received)


def _completed_at_the_end(patch: pytest.MonkeyPatch) -> None:
    """What is owed counts wherever the control stream brings it, in the end of a configuration, too."""
    right, recovered = TreeNode._ordered, TreeExchange.recovered

    def ordered(
        self: TreeNode, spot: Spot, originator: ProcessId, sender: int, service: int, data: bytes
    ) -> Iterator[Effect]:
        yield from right(self, spot, originator, sender, service, data)
        if not self._is_regular:
            yield from self._complete()

    def taken(self: TreeExchange, one: Recovered, *, is_regular: bool) -> None:
        recovered(self, one, is_regular=True)

    patch.setattr(TreeNode, "_ordered", ordered)
    patch.setattr(TreeExchange, "recovered", taken)


def _wishes_forgotten(patch: pytest.MonkeyPatch) -> None:
    """A process forgets what others do not want any more, and nobody looks at the digest of the directory."""
    right = Course.directory_through

    def directory_through(self: Course, through: int) -> Directory:
        if self.me != self.configuration.members[-1]:
            return right(self, through)
        said = ((item.originator, item.control) for item in self.unopened if item.place <= through)
        return self.directory.after(
            InterestChange(process, wants.gained) for process, wants in said if isinstance(wants, Wants)
        )

    patch.setattr(Course, "directory_through", directory_through)
    patch.setattr(Directory, "digest", property(lambda self: bytes(8)))


def _never_forgotten(patch: pytest.MonkeyPatch) -> None:
    """A source keeps what it has sent, stable or not."""
    patch.setattr(TreeSource, "stable", lambda self, number: None)


FAULTS = [
    PlantedFault("no entry rule", _no_entry_rule, range(0, 8)),
    PlantedFault("birth ignored", _birth_ignored, range(0, 28)),
    PlantedFault("safe without the source's word", _safe_without_source, range(0, 8)),
    PlantedFault("safe at once", _safe_at_once, range(14, 20)),
    PlantedFault("held messages sent again", _held_sent_again, range(45, 50)),
    PlantedFault("close before the parent's word", _close_before_control, range(0, 8)),
    PlantedFault("done without those below", _done_without_those_below, range(0, 30)),
    PlantedFault("an entry that does not refuse", _no_refusal, range(0, 12)),
    PlantedFault("no source rule", _no_source_rule, range(0, 12)),
    PlantedFault("recovered messages unsorted", _recovered_unsorted, range(0, 16)),
    PlantedFault("reports of receivers alone", _receivers_report_alone, range(0, 48)),
    PlantedFault("sender outside at the group's entry", _outsiders_at_the_own_entry, range(0, 40)),
    PlantedFault("a channel shared by children", _passed_on_to_all, range(0, 8)),
    PlantedFault("blocks that do not belong there", _nothing_is_shared, range(0, 8)),
    PlantedFault("data taken after the report", _taken_after_the_report, range(0, 40)),
    PlantedFault("completing in the transitional configuration", _completed_at_the_end, range(8, 9)),
    PlantedFault("a directory whose digest is not checked", _wishes_forgotten, range(0, 40)),
    PlantedFault("what all have is kept", _never_forgotten, range(0, 8)),
]


def is_caught(fault: PlantedFault, seed: int) -> bool:
    """Whether a run with the fault is found wrong, by a judge or by an assertion of the engine."""
    with pytest.MonkeyPatch.context() as patch:
        fault.plant(patch)
        try:
            result = simulate(options_of(seed, engine="tree"), seed)
        except (AssertionError, LookupError):
            return True
    return result.verdict.outcome is Outcome.INVALID or not result.settled


if __name__ == "__main__":
    name, first, last = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    for fault in FAULTS:
        if name in fault.name:
            caught = next((seed for seed in range(first, last) if is_caught(fault, seed)), None)
            sys.stdout.write(f"{fault.name}: {caught}\n")
