"""Judges what processes of trees do: it sees what each of them orders, passes on, forgets and closes.

Each rule follows from `docs/internals/tree.md`, and a fault in one of them may cost nobody anything for long: a message
that is forgotten before all have it is missed only if a process is lost at that very moment, and a copy for somebody
outside costs time alone. What a rule needs is worked out here from the edges of the tree and who wants what, not asked
of the code that is judged.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Set
from functools import partial

from ordercast.checker.verdict import Verdict
from ordercast.model.ids import ConfigurationId, NodeId, ProcessId, process_text
from ordercast.model.promises import TreesPromise
from ordercast.order.engine import Engine
from ordercast.order.passing import PassingLayer
from ordercast.order.tree.blocks import EARLIER_MAX, GivenPlaces, GroupPlaces, Ordered, Rank, earlier_places
from ordercast.order.tree.control import Opening
from ordercast.order.tree.forest import Tree, TreeId
from ordercast.order.tree.graph import Memberships, Parents
from ordercast.order.tree.node import TreeNode
from ordercast.order.tree.reports import CargoIdentity, Report, mark_of
from ordercast.order.tree.stream import TreeStream
from ordercast.sim.findings import Findings
from ordercast.sim.host import Host
from ordercast.sim.trees.watched import WatchedCourse, WatchedExchange
from ordercast.wire.header import Part

Time = tuple[ConfigurationId, int]  # a configuration, and the opening after which its links began
Key = tuple[int, ProcessId, GroupPlaces, int]  # names a cargo that has a place: birth, entry, groups, number
SourceNumber = tuple[ProcessId, int, bool, int]  # originator, number, whether it is sent again, birth of a part
OpenedForest = tuple[Opening, bytes, dict[TreeId, tuple[Parents, Memberships]]]


class TreesWitness:
    """All processes of one run."""

    def __init__(self) -> None:
        self.findings = Findings()
        self._engines: dict[NodeId, TreeNode] = {}  # of the last life of each
        self._had: defaultdict[tuple[Time, Key], set[ProcessId]] = defaultdict(set)  # who has processed it
        self._footprints: dict[tuple[Time, Key], frozenset[ProcessId]] = {}
        self._of_tree: defaultdict[tuple[Time, int, ProcessId], list[Key]] = defaultdict(list)  # by birth and root
        self._ranks: dict[tuple[Time, Key], Rank] = {}
        self._places: dict[tuple[Time, SourceNumber], Key] = {}
        self._last: dict[tuple[Time, ProcessId], tuple[int, Rank]] = {}  # what each has processed last
        self._kept: defaultdict[tuple[Time, ProcessId], set[CargoIdentity]] = defaultdict(set)  # had, not forgotten
        self._known: set[tuple[Time, ProcessId, int]] = set()  # numbers of sources that know their places
        self._forests: dict[tuple[ConfigurationId, int], tuple[OpenedForest, ProcessId]] = {}

    def watched(self, make: Callable[[NodeId], Engine], node: NodeId) -> Engine:
        """Return an engine that is watched."""
        driven = make(node)
        engine = driven.above if isinstance(driven, PassingLayer) else driven
        assert isinstance(engine, TreeNode)
        engine.make_course = partial(WatchedCourse, self, engine)
        engine.make_exchange = WatchedExchange
        self._engines[node] = engine
        return driven

    @property
    def copies(self) -> tuple[int, int]:
        """How many cargoes were ordered, and how many processes have had one of them."""
        return len(self._had), sum(map(len, self._had.values()))

    @property
    def trees(self) -> int:
        """How many trees the last opening left."""
        (_, _, trees), _ = self._forests[max(self._forests)]
        return len(trees)

    def verdicts(self) -> list[Verdict]:
        return self.findings.broken()

    def _find(self, promise: TreesPromise, what: str, course: WatchedCourse) -> None:
        self.findings.add(promise, what, course.me, course.configuration.id)

    # What is ordered and passed on

    def processed(self, course: WatchedCourse, tree: Tree, ordered: Ordered) -> None:
        """A process has given a cargo its place, or has it from its parent."""
        time, key = _time(course), ordered.key
        self._judge_place(course, time, ordered)
        footprint = self._footprints.get((time, key))
        if footprint is None:
            footprint = self._footprints[time, key] = _way(tree, ordered.entry, ordered.cargo.groups)
            self._of_tree[time, tree.birth, tree.root].append(key)
        if course.me not in footprint:
            what = f"{_text(ordered)} came to a process that is not on its way"
            self._find(TreesPromise.FOOTPRINT, what, course)
        had = self._had[time, key]
        if course.me in had:
            self._find(TreesPromise.COPIES, f"{_text(ordered)} came twice", course)
        had.add(course.me)
        self._kept[time, course.me].add(mark_of(ordered).identity)
        if ordered.entry == course.me:
            self._judge_entry(course, tree, ordered)
        if ordered.cargo.originator == course.me:
            self._know(course, ordered)

    def _judge_place(self, course: WatchedCourse, time: Time, ordered: Ordered) -> None:
        cargo, key = ordered.cargo, ordered.key
        again = ordered.birth if cargo.part != Part.WHOLE else 0  # a large message that is cut is sent again whole
        place = self._places.setdefault((time, (cargo.originator, cargo.source, cargo.is_again, again)), key)
        if place != key or self._ranks.setdefault((time, key), ordered.rank) != ordered.rank:
            self._find(TreesPromise.PLACE, f"{_text(ordered)} has another place elsewhere", course)
        last = self._last.get((time, course.me), (0, ()))
        if last >= (ordered.birth, ordered.rank):
            self._find(TreesPromise.RANKS, f"{_text(ordered)} comes after {last}", course)
        self._last[time, course.me] = ordered.birth, ordered.rank

    def _judge_entry(self, course: WatchedCourse, tree: Tree, ordered: Ordered) -> None:
        """All receivers are below an entry, and so is a sender outside; one outside the tree enters at the root."""
        cargo = ordered.cargo
        if not cargo.groups:
            if cargo.originator != course.me:
                self._find(TreesPromise.ENTRY, f"{_text(ordered)} is for nobody, and has left its source", course)
            return
        receivers, parents = _receivers(tree, cargo.groups), tree.graph.parents
        below = receivers if cargo.originator in receivers else receivers | {cargo.originator}
        is_above = all(course.me in _ancestors(parents, one) for one in below if one in parents)
        if not is_above or (cargo.originator not in parents and parents[course.me] is not None):
            self._find(TreesPromise.ENTRY, f"{_text(ordered)} entered too low", course)
        if not course.behind.isdisjoint(receivers):
            self._find(TreesPromise.BEHIND, f"{_text(ordered)} is for one whose application is behind", course)

    def entered(self, course: WatchedCourse, behind: Set[ProcessId]) -> None:
        """Everything that may enter has: who still waits has a reason."""
        branch, stream = course.branch, course.branch.stream
        if stream is None or stream.is_closed:
            return
        offers = branch.offers
        for source, queue in offers.queues.items():
            if not queue:
                continue
            groups = queue[0].groups
            is_held = not behind.isdisjoint(_receivers(stream.tree, groups))
            is_full = stream.unstable[stream.me, groups] >= offers.channel_window
            is_full = is_full or stream.unstable_size >= offers.entry_window
            if not (is_held or is_full or stream.unknown(source) >= EARLIER_MAX):
                what = f"cargo {queue[0].source} of {process_text(source)} waits, and nothing is in its way"
                self._find(TreesPromise.WAITS, what, course)

    def refused(self, course: WatchedCourse, process: ProcessId, why: str) -> None:
        """A process refuses a block of another: nobody forges any here."""
        self._find(TreesPromise.BLOCKS, f"{why}, of {process_text(process)}", course)

    # Who has it

    def told(self, course: WatchedCourse, places: GivenPlaces) -> None:
        """A source was told places of its cargoes."""
        self._known.update((_time(course), course.me, place.source) for place in places.places)

    def _know(self, course: WatchedCourse, ordered: Ordered) -> None:
        """A cargo has come back to its source, which so knows its place, and those that it names."""
        time = _time(course)
        self._known.add((time, course.me, ordered.cargo.source))
        for source in earlier_places(ordered.earlier, ordered.rank):
            self._known.add((time, course.me, source))

    def stable(self, course: WatchedCourse, tree: Tree, ordered: Ordered) -> None:
        """A process forgets a cargo."""
        time, key = _time(course), ordered.key
        self._kept[time, course.me].discard(mark_of(ordered).identity)
        missing = self._footprints.get((time, key), frozenset()) - self._had[time, key]
        if missing:
            what = f"{_text(ordered)} is forgotten, and {process_text(min(missing))} does not have it"
            self._find(TreesPromise.STABLE, what, course)
        if (time, ordered.cargo.originator, ordered.cargo.source) not in self._known:
            what = f"{_text(ordered)} is forgotten, and its source does not know its place"
            self._find(TreesPromise.STABLE, what, course)

    def reported(self, course: WatchedCourse, report: Report) -> None:
        """A process says what it holds: all that it has and has not forgotten, whether it is owed that or not."""
        silent = self._kept[_time(course), course.me] - {mark.identity for mark in report.held}
        if silent:
            originator, source, _ = min(silent)
            what = f"cargo {source} of {process_text(originator)} is here, and not in the report"
            self._find(TreesPromise.REPORTED, what, course)

    def begun(self, course: WatchedCourse, engine: TreeNode) -> None:
        """A configuration begins, with everything that the one before was owed."""
        if not engine.is_regular:
            what = "begins in the transitional configuration of the control stream"
            self._find(TreesPromise.REGULAR, what, course)

    def taken_late(self, course: WatchedCourse, ordered: Ordered) -> None:
        """A process takes a cargo after it has said what it holds."""
        self._find(TreesPromise.REPORTED, f"{_text(ordered)} was taken after the report", course)

    # The forest

    def opened(self, course: WatchedCourse, opening: Opening) -> None:
        """An opening has its place in the control stream."""
        graphs = {tree.id: tree.graph for tree in course.forest_ahead.trees.values()}
        trees = {id: (graph.parents, graph.groups) for id, graph in graphs.items()}
        found: OpenedForest = opening, course.directory.digest, trees
        first, whose = self._forests.setdefault((course.configuration.id, opening.number), (found, course.me))
        if first != found:
            what = f"the forest of opening {opening.number} is not that of {process_text(whose)}"
            self._find(TreesPromise.FOREST, what, course)

    def closing(self, course: WatchedCourse, stream: TreeStream) -> None:
        """A process closes its tree."""
        opening, tree = course.boundaries[0].opening, stream.tree
        first, _ = self._forests.get((course.configuration.id, opening.number), ((opening, b"", {}), course.me))
        if tree.id not in first[0].closing:
            what = f"closes its tree of birth {tree.birth}, which opening {opening.number} does not name"
            self._find(TreesPromise.CLOSED, what, course)
        time = _time(course)
        for key in self._of_tree[time, tree.birth, tree.root]:
            if course.me in self._footprints[time, key] and course.me not in self._had[time, key]:
                self._find(TreesPromise.CLOSED, f"closes its tree, and {key} is on its way", course)

    def settled(self, hosts: Iterable[Host]) -> None:
        """Hear that all has settled: whoever is there has all that it should, and nothing is kept."""
        alive = {host.life.process for host in hosts if host.life is not None}
        courses = [engine.course for engine in self._engines.values() if engine.process in alive]
        here = {course.me: course for course in courses if isinstance(course, WatchedCourse)}
        for (time, key), footprint in self._footprints.items():
            for process in footprint & here.keys() - self._had[time, key]:
                if _time(here[process]) == time:
                    self._find(TreesPromise.COPIES, f"{key} did not come", here[process])
        for course in here.values():
            kept = sum(len(stream.held) for stream in course.branch.streams) + len(course.source.sent)
            if kept:
                self._find(TreesPromise.RELEASED, f"{kept} cargoes are kept, and all have settled", course)


def _time(course: WatchedCourse) -> Time:
    return course.configuration.id, course.links_epoch


def _receivers(tree: Tree, groups: GroupPlaces) -> frozenset[ProcessId]:
    names = sorted(tree.graph.groups)
    return frozenset().union(*(tree.graph.groups[names[place]] for place in groups))


def _ancestors(parents: Parents, process: ProcessId) -> list[ProcessId]:
    """Return a process, its parent, and so on up to the root."""
    found: list[ProcessId] = []
    at: ProcessId | None = process
    while at is not None:
        found.append(at)
        at = parents[at]
    return found


def _way(tree: Tree, entry: ProcessId, groups: GroupPlaces) -> frozenset[ProcessId]:
    """Return the entry, the receivers, and who is between."""
    visited = {entry}
    for receiver in _receivers(tree, groups):
        above = _ancestors(tree.graph.parents, receiver)
        visited.update(above[: above.index(entry)] if entry in above else [receiver])
    return frozenset(visited)


def _text(ordered: Ordered) -> str:
    return f"cargo {ordered.cargo.source} of {process_text(ordered.cargo.originator)}, at {ordered.rank},"
