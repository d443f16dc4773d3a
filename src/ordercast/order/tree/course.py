"""One configuration at one process: the directory, the forest, this process's place in it, and what is under way.

What the control stream brings takes effect in its order, with openings: an opening is for everything up to a place of
the stream. A root that hears of an opening that closes its tree takes nothing more and says so to its children; a
child closes when it has heard both, from the control stream and from its parent. Where a tree is closed, what the
opening is for takes effect, and the new tree is open at once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ordercast.model.configuration import Configuration
from ordercast.model.effects import Alarm, AlarmKind, Effect, Record, Subscribed, noted
from ordercast.model.ids import NO_CONFIGURATION, ProcessId, process_text
from ordercast.model.notes import Occurrence, Opened
from ordercast.order.tree.blocks import Close, Offer, decode_block
from ordercast.order.tree.branch import Branch
from ordercast.order.tree.builders.detours import edge_of
from ordercast.order.tree.changes import trees_of
from ordercast.order.tree.config import TreeConfig
from ordercast.order.tree.control import (
    Broken,
    Closed,
    CourseControl,
    Everywhere,
    Holding,
    Opening,
    Reconcile,
    SenderLoad,
    Wants,
)
from ordercast.order.tree.delivering import ControlMessage, Delivering, Spot, parcel_of
from ordercast.order.tree.directory import Directory, InterestChange
from ordercast.order.tree.forest import Forest, Tree
from ordercast.order.tree.graph import NoGraph
from ordercast.order.tree.reports import HeldMark
from ordercast.order.tree.source import TreeSource
from ordercast.order.tree.story import ForestStep, step_of

WANTS_KEPT = 64  # openings for which it is known what was wanted here
KEPT = 2  # openings after which a tree that has closed is forgotten


class ControlItem(NamedTuple):
    """A control message with its place."""

    place: int
    spot: Spot
    originator: ProcessId
    sender: int
    service: int
    control: Everywhere | Wants

    @property
    def message(self) -> ControlMessage:
        assert isinstance(self.control, Everywhere)
        _, data, epoch, is_again, source = self.control
        return ControlMessage(epoch, self.spot, self.originator, self.sender, self.service, data, is_again, source)


class Boundary(NamedTuple):
    """An opening that was ordered, and what it is for."""

    opening: Opening
    items: tuple[ControlItem, ...]
    directory: Directory
    forest: Forest
    is_late: bool  # it was ordered when the configuration was about to end
    is_cut: bool = False  # it ends all trees at once


class FollowingForest(NamedTuple):
    """What an opening makes of the forest that there is."""

    directory: Directory
    born: list[Tree]
    forest: Forest


class Course:
    def __init__(
        self,
        me: ProcessId,
        configuration: Configuration,
        config: TreeConfig,
        source: TreeSource,
        delivering: Delivering,
    ) -> None:
        self.me = me
        self.configuration = configuration
        self.source = source
        self.delivering = delivering
        self.directory = Directory()  # of the last opening that was ordered
        self.forest_ahead = Forest()  # likewise
        self.forest = Forest()  # of the last opening that took effect here
        self.opened = 0  # its number
        self.wants: tuple[str, ...] = ()  # what is wanted here, by it
        self._wants: dict[int, tuple[str, ...]] = {}  # and by earlier ones
        self.ordered = 0  # the number of the last one that was ordered
        self.index = 0  # control messages that were ordered
        self.unopened: deque[ControlItem] = deque()  # those that no opening is for
        self.boundaries: deque[Boundary] = deque()  # that have not taken effect here
        self.ended_by = NO_CONFIGURATION  # the next one of the control stream, once there is one
        self.is_frozen = False  # the configuration ends: nothing takes effect any more until all know what was held
        self.unclosed: set[ProcessId] = set()  # roots of trees that close
        self.introduced: set[ProcessId] = set()  # who has said what it wants
        self.behind: set[ProcessId] = set()  # whose applications are
        self.links_epoch = 0  # the opening after which they began
        self.is_broken = False  # one of them has failed
        self.broken: set[tuple[ProcessId, ProcessId]] = set()  # those that ever have, lower process first
        self.rates: dict[tuple[ProcessId, str], int] = {}  # messages a second of each process to each group
        self.settled: tuple[HeldMark, ...] = ()  # what the last reconciliation has settled
        self.branch = Branch(me, config, source, delivering)
        self.trees: dict[int, list[Tree]] = {}  # by birth
        self.closed: list[Closed] = []  # to be said
        self.steps: list[ForestStep] = []  # changes of the forest, since somebody asked
        self.following = self.forest_after  # a simulation of thousands works it out once for all

    # The control stream

    def control(
        self,
        control: CourseControl,
        spot: Spot,
        originator: ProcessId,
        sender: int,
        service: int,
    ) -> Iterator[Effect]:
        """Take the next message of the control stream."""
        self.index += 1
        if isinstance(control, Everywhere) and originator == self.me:
            self.source.came_back(sender, has_effect=True)
        if isinstance(control, Opening):
            yield from self._order(control, originator)
        elif isinstance(control, Closed):
            if control.number == self.ordered:
                self.unclosed.discard(control.root)
        elif isinstance(control, Holding):
            (self.behind.add if control.is_held else self.behind.discard)(originator)
        elif isinstance(control, Reconcile):
            self._cut(control, originator)
        elif isinstance(control, Broken):
            self._break(edge_of(originator, control.peer), control.epoch)
        elif isinstance(control, SenderLoad):
            self.rates.update(((originator, name), rate) for name, rate in control.rates)
        elif isinstance(control, Everywhere) and not (self.ordered or self.is_frozen or control.groups):
            item = ControlItem(self.index, spot, originator, sender, service, control)
            yield from self._everywhere(item, is_late=False)
        else:
            if isinstance(control, Wants) and control.is_full:
                self.introduced.add(originator)
            self.unopened.append(ControlItem(self.index, spot, originator, sender, service, control))

    def _order(self, opening: Opening, originator: ProcessId) -> Iterator[Effect]:
        """An opening has its place: all know now what the forest will be."""
        if originator != self.configuration.members[0] or opening.number != self.ordered + 1:
            return
        try:
            directory, born, forest = self.following(opening)
        except NoGraph as error:
            yield Alarm(AlarmKind.IMPLAUSIBLE, f"{process_text(originator)} orders a forest that is none: {error}")
            return
        items = []
        while self.unopened and self.unopened[0].place <= opening.through:
            items.append(self.unopened.popleft())
        self.ordered, self.directory, self.forest_ahead = opening.number, directory, forest
        self.trees[opening.number] = born
        self.unclosed = {root for _, root in opening.closing}
        self.boundaries.append(Boundary(opening, tuple(items), directory, forest, self.is_frozen))
        self.steps.append(_step(opening, items))

    def forest_after(self, opening: Opening) -> FollowingForest:
        """Return what an opening makes of the forest that there is; NoGraph when it makes none."""
        directory = self.directory_through(opening.through)
        born = trees_of(opening, directory, frozenset(self.configuration.members), self.forest_ahead)
        forest = self.forest_ahead.after(opening.closing, born)
        if alone := next((name for name in directory.groups if not forest.has_group(name)), None):
            raise NoGraph(f"group {alone!r} is in no tree")
        if opening.digest != directory.digest:
            raise NoGraph("it is for others than those who want something")
        return FollowingForest(directory, born, forest)

    def _cut(self, reconcile: Reconcile, originator: ProcessId) -> None:
        """All trees end, when everybody knows what was held; the next opening is of new ones alone."""
        if originator != self.configuration.members[0] or reconcile.number != self.ordered + 1:
            return
        opening = Opening(reconcile.number, self.index, b"", tuple(sorted(self.forest_ahead.trees)), ())
        self.ordered, self.forest_ahead, self.unclosed = reconcile.number, Forest(), set()
        self.steps.append(ForestStep(reconcile.number, len(opening.closing), 0, is_cut=True))
        self.trees[reconcile.number] = []
        self.boundaries.append(Boundary(opening, (), self.directory, Forest(), self.is_frozen, is_cut=True))

    def _break(self, ends: tuple[ProcessId, ProcessId], epoch: int) -> None:
        """A link has failed; nothing enters through it any more."""
        self.broken.add(ends)
        self.is_broken = self.is_broken or epoch == self.links_epoch
        self.source.avoided |= {one for one in ends if self.me in ends and one != self.me}

    @property
    def is_cut(self) -> bool:
        """Whether all trees are to end here."""
        return any(boundary.is_cut for boundary in self.boundaries)

    def reconciled(self, settled: Iterable[HeldMark]) -> None:
        """Everybody has the same of all trees that were: go on."""
        self.settled = tuple(settled)
        self.is_frozen = self.is_broken = False
        self.links_epoch = self.opened
        self.branch.cut(self.opened)

    def directory_through(self, through: int) -> Directory:
        said = ((item.originator, item.control) for item in self.unopened if item.place <= through)
        return self.directory.after(
            InterestChange(process, wants.gained, wants.lost) for process, wants in said if isinstance(wants, Wants)
        )

    def settle(self) -> Iterator[Effect]:
        """Let openings take effect here, if nothing is in their way."""
        while self.boundaries and not self.is_frozen and not self.boundaries[0].is_cut:
            stream = self.branch.stream
            if stream is not None and stream.tree.id in self.boundaries[0].opening.closing:
                if not stream.is_closed:
                    if stream.parent is not None and stream.birth not in self.branch.close_came:
                        return
                    self.branch.close()
                yield from self.branch.deliver()
                if stream.queue:
                    return  # a safe message waits: what is behind it waits, too
            yield from self.open()

    def open(self) -> Iterator[Effect]:
        """Let the next opening take effect."""
        boundary, stream = self.boundaries.popleft(), self.branch.stream
        if stream is not None and stream.tree.id in boundary.opening.closing:
            self.branch.leave()
        yield from self._open(boundary)

    def _open(self, boundary: Boundary) -> Iterator[Effect]:
        for item in boundary.items:
            if isinstance(item.control, Everywhere):
                yield from self._everywhere_if_wanted(item, is_late=boundary.is_late)
        self.opened = boundary.opening.number
        self.forest = boundary.forest
        self.wants = boundary.directory.wants(self.me)
        self._wants[self.opened] = self.wants
        self._wants.pop(self.opened - WANTS_KEPT, None)
        yield Record(Opened(self.configuration.id, self.opened, self.wants))
        if self.branch.stream is None and (tree := self.forest.of(self.me)) is not None:
            self.branch.open(tree)
        wishes = (item.control for item in boundary.items if item.originator == self.me)
        gained = {name for wish in wishes if isinstance(wish, Wants) for name in wish.gained}
        if gained := gained.intersection(self.wants):
            yield Subscribed(tuple(sorted(gained)))
        for birth in [birth for birth in self.trees if birth < self.opened - KEPT and not self._is_used(birth)]:
            del self.trees[birth]

    def _is_used(self, birth: int) -> bool:
        return birth in self.branch.closing or any(tree.birth == birth for tree in self.forest.trees.values())

    def _everywhere_if_wanted(self, item: ControlItem, *, is_late: bool) -> Iterator[Effect]:
        """Pass up a message, if it is wanted here in the epoch of its source."""
        assert isinstance(item.control, Everywhere)
        groups = item.control.groups
        if not groups or not set(groups).isdisjoint(self._wants.get(item.control.epoch, ())):
            yield from self._everywhere(item, is_late=is_late)
        elif item.originator == self.me:
            self.source.in_effect(len(item.control.data))
            yield self.delivering.control_placed(item.message)

    def _everywhere(self, item: ControlItem, *, is_late: bool) -> Iterator[Effect]:
        if item.originator == self.me:
            self.source.in_effect(len(item.message.data))
        effect = self.delivering.control(item.message, is_late=is_late)
        if effect is not None:
            yield effect

    def leftover(self) -> Iterator[Effect]:
        """Pass up what no opening has come for: the configuration has ended."""
        for item in self.unopened:
            if isinstance(item.control, Everywhere):
                yield from self._everywhere_if_wanted(item, is_late=True)
        self.unopened.clear()

    @property
    def is_introduced(self) -> bool:
        """Whether all members have said what they want: then all have installed the configuration."""
        return self.introduced.issuperset(self.configuration.members)

    # Links

    def must_wait(self, data: bytes) -> bool:
        """Whether a block is of an epoch that is not open here."""
        return int.from_bytes(data[1:5], "big") > self.opened

    def take(self, data: bytes, process: ProcessId) -> None:
        """Take the next block of a link. WireError or BadBlock for one that is wrong."""
        block = decode_block(data)
        self.branch.take(block, data, process)
        if isinstance(block, Close):
            id = self.branch.stream_of(block.birth).tree.id
            is_known = any(id in boundary.opening.closing for boundary in self.boundaries)
            self.branch.happened[Occurrence.TREE_CLOSE_AWAITED_CONTROL] += not is_known

    def offer(self, offer: Offer) -> None:
        """Send a cargo to its entry."""
        tree = self.forest.of(offer.entry)
        assert tree is not None
        self.branch.offer(offer, tree)

    def enter(self) -> None:
        """Let enter what may."""
        self.branch.enter(self.behind)

    def placed(self) -> Iterator[Effect]:
        """Tell the places of what this process has sent and is not owed."""
        placed, self.source.placed = self.source.placed, []
        for sent in placed:
            whole = sent.wish.whole or sent.wish
            yield self.delivering.placed(parcel_of(sent.offer.cargo, whole.payloads))

    def flush(self) -> list[tuple[ProcessId, bytes]]:
        """Return what goes out on links."""
        sending, closed = self.branch.flush(self.ordered)
        self.closed += closed
        return sending

    @property
    def may_move(self) -> bool:
        """Whether what has just become stable may let something more go on."""
        source = self.source
        return bool(source.waiting or source.placed or self.boundaries or self.branch.closing)

    @property
    def is_idle(self) -> bool:
        is_calm = not self.boundaries and not self.unopened and not self.unclosed
        return is_calm and self.branch.is_idle

    def occurrences(self) -> Iterator[Effect]:
        """Tell what has happened since this was asked last."""
        return noted(self.branch.counts())

    def check_invariants(self) -> None:
        self.branch.check_invariants()


def _step(opening: Opening, items: Iterable[ControlItem]) -> ForestStep:
    wishes = [
        (item.originator, item.control.gained, item.control.lost) for item in items if isinstance(item.control, Wants)
    ]
    messages = sum(isinstance(item.control, Everywhere) for item in items)
    return step_of(opening.number, len(opening.closing), len(opening.born), wishes, messages)
