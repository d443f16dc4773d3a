"""One configuration at one process: the directory, the forest, this process's place in it, and what is under way.

What the control stream brings takes effect in its order, with openings: an opening is for everything up to a place of
the stream. A root that hears of an opening that closes its tree takes nothing more and says so to its children; a
child closes when it has heard both, from the control stream and from its parent. Where a tree is closed, what the
opening is for takes effect, and the new tree is open at once.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator
from typing import NamedTuple

from ordercast.model.configuration import Configuration
from ordercast.model.effects import Alarm, AlarmKind, Effect, Record, Subscribed
from ordercast.model.ids import ProcessId, process_text
from ordercast.model.notes import Occurred, Occurrence, Opened
from ordercast.order.tree.blocks import (
    BlockKind,
    Close,
    Count,
    GivenPlace,
    GivenPlaces,
    Numbers,
    Offer,
    Ordered,
    decode_block,
    encode_numbers,
    encode_offer,
    encode_places,
)
from ordercast.order.tree.changes import applied, trees_of, wants_of
from ordercast.order.tree.config import TreeConfig
from ordercast.order.tree.control import Closed, Everywhere, Holding, Opening, Wants
from ordercast.order.tree.delivering import ControlMessage, Delivering, Spot, parcel_of
from ordercast.order.tree.forest import Forest, Tree, digest_of
from ordercast.order.tree.graph import Memberships, NoGraph
from ordercast.order.tree.offers import Offers
from ordercast.order.tree.reports import ACTUAL, NOTHING_DELIVERED, Order
from ordercast.order.tree.source import SourceTurn, TreeSource
from ordercast.order.tree.stream import BadBlock, HeldBlock, TreeStream

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
        epoch, data = self.control.epoch, self.control.data
        return ControlMessage(epoch, self.spot, self.originator, self.sender, self.service, data)


class Boundary(NamedTuple):
    """An opening that was ordered, and what it is for."""

    opening: Opening
    items: tuple[ControlItem, ...]
    directory: Memberships
    forest: Forest
    is_late: bool  # it was ordered when the configuration was about to end


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
        self.directory: Memberships = {}  # of the last opening that was ordered
        self.forest_ahead = Forest()  # likewise
        self.forest = Forest()  # of the last opening that took effect here
        self.opened = 0  # its number
        self.wants: tuple[str, ...] = ()  # what is wanted here, by it
        self._wants: dict[int, tuple[str, ...]] = {}  # and by earlier ones
        self.ordered = 0  # the number of the last one that was ordered
        self.index = 0  # control messages that were ordered
        self.unopened: deque[ControlItem] = deque()  # those that no opening is for
        self.boundaries: deque[Boundary] = deque()  # that have not taken effect here
        self.is_frozen = False  # the configuration ends: nothing takes effect any more until all know what was held
        self.unclosed: set[ProcessId] = set()  # roots of trees that close
        self.introduced: set[ProcessId] = set()  # who has said what it wants
        self.behind: set[ProcessId] = set()  # whose applications are
        self.stream: TreeStream | None = None  # of the tree that this process is in
        self.closing: dict[int, TreeStream] = {}  # earlier ones that are not finished
        self.trees: dict[int, list[Tree]] = {}  # by birth
        self.offers = Offers(config.channel_window, config.entry_window)
        self.delivered: Order = NOTHING_DELIVERED
        self.to_send: list[tuple[ProcessId, bytes]] = []  # on links
        self.closed: list[Closed] = []  # to be said
        self._close_came: set[int] = set()  # births of which the parent has said the end
        self._answers: dict[tuple[ProcessId, int], list[GivenPlace]] = {}  # ORDERED, by source and birth
        self._known: dict[tuple[ProcessId, int], list[int]] = {}  # likewise, by entry
        self._unsettled: list[HeldBlock] | None = None  # what the next message of the control stream waits for
        self.happened: Counter[Occurrence] = Counter()  # since somebody asked

    # The control stream

    def control(
        self,
        control: Everywhere | Wants | Opening | Closed | Holding,
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
        directory = self.directory_through(opening.through)
        try:
            born = trees_of(opening, directory)
            if opening.closing and not set(opening.closing) <= self.forest_ahead.trees.keys():
                raise NoGraph("a tree closes that there is not")
            forest = self.forest_ahead.after(opening.closing, born)
            self._check(forest, directory)
        except NoGraph as error:
            yield Alarm(AlarmKind.IMPLAUSIBLE, f"{process_text(originator)} orders a forest that is none: {error}")
            return
        assert opening.digest == digest_of(directory), "all have the same directory"
        items = []
        while self.unopened and self.unopened[0].place <= opening.through:
            items.append(self.unopened.popleft())
        self.ordered, self.directory, self.forest_ahead = opening.number, directory, forest
        self.trees[opening.number] = born
        self.unclosed = {root for _, root in opening.closing}
        self.boundaries.append(Boundary(opening, tuple(items), directory, forest, self.is_frozen))

    def _check(self, forest: Forest, directory: Memberships) -> None:
        """Raise NoGraph when a group is in no tree."""
        for name in directory:
            if not forest.of_groups((name,)):
                raise NoGraph(f"group {name!r} is in no tree")

    def directory_through(self, through: int) -> Memberships:
        directory = self.directory
        for item in self.unopened:
            if item.place <= through and isinstance(item.control, Wants):
                directory = applied(directory, item.originator, item.control.gained, item.control.lost)
        return directory

    def close(self) -> None:
        """End the birth of this process's tree here: what came too late is refused."""
        stream = self.stream
        assert stream is not None
        stream.close()
        self.closing[stream.birth] = stream
        for source, numbers in sorted(self.offers.refused().items()):
            self._refuse(source, stream.birth, numbers)

    def _refuse(self, source: ProcessId, birth: int, numbers: list[int]) -> None:
        if source == self.me:
            for number in numbers:
                self.source.refuse(number)
        else:
            self.to_send.append((source, encode_numbers(BlockKind.REFUSED, birth, numbers)))

    def settle(self) -> Iterator[Effect]:
        """Let openings take effect here, if nothing is in their way."""
        while self.boundaries and not self.is_frozen:
            stream = self.stream
            if stream is not None and stream.tree.id in self.boundaries[0].opening.closing:
                if not stream.is_closed:
                    if stream.parent is not None and stream.birth not in self._close_came:
                        return
                    self.close()
                yield from self.deliver()
                if stream.queue:
                    return  # a safe message waits: what is behind it waits, too
            yield from self.open()

    def open(self) -> Iterator[Effect]:
        """Let the next opening take effect."""
        boundary, stream = self.boundaries.popleft(), self.stream
        if stream is not None and stream.tree.id in boundary.opening.closing:
            self.stream = None
            stream.passed()
        yield from self._open(boundary)

    def _open(self, boundary: Boundary) -> Iterator[Effect]:
        for item in boundary.items:
            if isinstance(item.control, Everywhere):
                yield from self._everywhere_if_wanted(item, is_late=boundary.is_late)
        self.opened = boundary.opening.number
        self.forest = boundary.forest
        self.wants = wants_of(boundary.directory, self.me)
        self._wants[self.opened] = self.wants
        self._wants.pop(self.opened - WANTS_KEPT, None)
        yield Record(Opened(self.configuration.id, self.opened, self.wants))
        if self.stream is None and (tree := self.forest.of(self.me)) is not None:
            self.stream = TreeStream(self.me, tree)
        wishes = (item.control for item in boundary.items if item.originator == self.me)
        gained = {name for wish in wishes if isinstance(wish, Wants) for name in wish.gained}
        if gained := gained.intersection(self.wants):
            yield Subscribed(tuple(sorted(gained)))
        for birth in [birth for birth in self.trees if birth < self.opened - KEPT and not self._is_used(birth)]:
            del self.trees[birth]

    def _is_used(self, birth: int) -> bool:
        return birth in self.closing or any(tree.birth == birth for tree in self.forest.trees.values())

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
        yield self.delivering.control(item.message, is_late=is_late)

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
        if isinstance(block, Ordered):
            stream = self.stream
            if stream is None or stream.birth != block.birth or process != stream.parent:
                raise BadBlock("a block of another tree")
            stream.take(block, data)
        elif isinstance(block, Offer):
            self._offer(block, process)
        elif isinstance(block, Close):
            stream = self._stream_of(block.birth)
            if process != stream.parent:
                raise BadBlock("the end is told by a stranger")
            self._close_came.add(block.birth)
            is_known = any(stream.tree.id in boundary.opening.closing for boundary in self.boundaries)
            self.happened[Occurrence.TREE_CLOSE_AWAITED_CONTROL] += not is_known
        elif isinstance(block, Count):
            if block.birth not in self.closing and (self.stream is None or block.birth < self.stream.birth):
                return  # all of it was done, and safe
            stream = self._stream_of(block.birth)
            (stream.done if block.kind is BlockKind.DONE else stream.safe)(process, block.through)
        elif isinstance(block, GivenPlaces):
            self._ordered(block, process)
        else:
            self._numbers(block, process)

    def _stream_of(self, birth: int) -> TreeStream:
        stream = self.stream if self.stream is not None and self.stream.birth == birth else self.closing.get(birth)
        if stream is None:
            raise BadBlock("a block of a tree that this process is not in")
        return stream

    def _offer(self, offer: Offer, process: ProcessId) -> None:
        if process != offer.cargo.originator or offer.entry != self.me:
            raise BadBlock("an offer in the name of another, or to another")
        stream = self.stream
        if stream is None or stream.birth != offer.birth or stream.is_closed:
            self._refuse(process, offer.birth, [offer.cargo.source])
            return
        groups = offer.cargo.groups
        if not groups or groups[-1] >= len(stream.tree.names):
            raise BadBlock("an offer to groups that there are not")
        self.offers.add(offer.cargo)

    def _ordered(self, block: GivenPlaces, process: ProcessId) -> None:
        for place in block.places:
            self.source.ordered(place)
            self._known.setdefault((process, block.birth), []).append(place.source)

    def _numbers(self, block: Numbers, process: ProcessId) -> None:
        for number in block.sources:
            if block.kind is BlockKind.REFUSED:
                self.happened[Occurrence.TREE_REFUSED] += self.source.refuse(number)
            elif block.kind is BlockKind.STABLE:
                self.source.stable(number)
            else:
                self._stream_of(block.birth).known(process, number)

    # What this process sends

    def offer(self, offer: Offer) -> None:
        """Send a cargo to its entry."""
        groups, tree = offer.cargo.groups, self.forest.of(offer.entry)
        assert tree is not None
        self.happened[Occurrence.TREE_NOBODY] += not groups
        self.happened[Occurrence.TREE_TWO_GROUPS] += len(groups) > 1
        self.happened[Occurrence.TREE_SENDER_OUTSIDE] += bool(groups) and self.me not in tree.receivers(groups)
        if offer.entry == self.me:
            self.offers.add(offer.cargo)
        else:
            self.to_send.append((offer.entry, encode_offer(offer)))

    def is_shut(self, turn: SourceTurn) -> bool:
        """Whether what is to be sent next would enter here, where the tree has closed."""
        stream, tree = self.stream, turn.tree
        if tree is None or turn.entry != self.me:
            return False
        return stream is None or stream.birth != tree.birth or stream.is_closed

    def is_settled(self) -> bool:
        """Whether everything that was processed here is stable, since this was first asked for what goes by the control
        stream next. The control stream may reach those whom a tree does not reach any more, and what it brings may
        depend on what came before; so all have that."""
        if self._unsettled is None:
            self._unsettled = [held for stream in self.streams for held in stream.held.values()]
        if self.source.sent or not all(held.is_stable for held in self._unsettled):
            return False
        self._unsettled = None
        return True

    def enter(self) -> None:
        """Let enter what may."""
        stream = self.stream
        if stream is None or stream.is_closed:
            return
        for cargo in self.offers.takeable(stream, lambda receivers: not self.behind.isdisjoint(receivers)):
            ordered = stream.enter(cargo)
            place = GivenPlace(cargo.source, ordered.number, ordered.rank)
            if cargo.originator == self.me:
                self.source.ordered(place)
            else:
                self._answers.setdefault((cargo.originator, stream.birth), []).append(place)
        self._stabilise(stream)

    def _stabilise(self, stream: TreeStream) -> None:
        stable: dict[ProcessId, list[int]] = {}
        for ordered in stream.stable:
            stable.setdefault(ordered.cargo.originator, []).append(ordered.cargo.source)
        stream.stable = []
        for source, numbers in sorted(stable.items()):
            if source == self.me:
                for number in numbers:
                    self.source.stable(number)
            else:
                self.to_send.append((source, encode_numbers(BlockKind.STABLE, stream.birth, numbers)))

    # What comes of it

    @property
    def streams(self) -> list[TreeStream]:
        """Return those that are not finished, the oldest first."""
        return [*self.closing.values(), *([self.stream] if self.stream and not self.stream.is_closed else [])]

    def deliver(self) -> Iterator[Effect]:
        """Pass up what may be."""
        stream = self.stream
        if stream is None:
            return
        for ordered in stream.deliverable():
            self.delivered = ordered.birth, ordered.rank, ACTUAL, 0
            effect = self.delivering.cargo(ordered.cargo)
            if effect is not None:
                yield effect
        self.happened[Occurrence.TREE_BEHIND_SAFE] += len(stream.queue) > 1

    def placed(self) -> Iterator[Effect]:
        """Tell the places of what this process has sent and is not owed."""
        placed, self.source.placed = self.source.placed, []
        for sent in placed:
            whole = sent.wish.whole or sent.wish
            yield self.delivering.placed(parcel_of(sent.offer.cargo, whole.payloads))

    def flush(self) -> list[tuple[ProcessId, bytes]]:
        """Return what goes out on links."""
        sending, self.to_send = self.to_send, []
        for (process, birth), places in self._answers.items():
            sending.append((process, encode_places(birth, places)))
        for (process, birth), numbers in self._known.items():
            sending.append((process, encode_numbers(BlockKind.KNOWN, birth, numbers)))
        self._answers, self._known = {}, {}
        for stream in self.streams:
            self._stabilise(stream)
            sending += self.to_send
            self.to_send = []
            sending += stream.flush()
            if stream.is_closed_below and stream.parent is None and stream.birth not in self._close_came:
                self._close_came.add(stream.birth)
                self.closed.append(Closed(self.ordered, stream.me))
        for birth in [birth for birth, stream in self.closing.items() if stream.is_finished]:
            if self.stream is None or self.stream.birth != birth:
                del self.closing[birth]
        return sending

    @property
    def is_idle(self) -> bool:
        is_calm = not self.boundaries and not self.unopened and not self.unclosed and not self.offers
        return is_calm and not self.closing and (self.stream is None or not (self.stream.held or self.stream.queue))

    def occurrences(self) -> Iterator[Effect]:
        """Tell what has happened since this was asked last."""
        source, offers, delivering = self.source, self.offers, self.delivering
        counts = self.happened + Counter(
            {
                Occurrence.TREE_ENTRY_RAISED: source.entry_raised,
                Occurrence.TREE_ENTRY_AWAITED: source.entry_waited,
                Occurrence.TREE_WINDOW_FULL: offers.held_back,
                Occurrence.TREE_HELD_BY_APPLICATION: offers.held_by_application,
                Occurrence.TREE_DROPPED_AGAIN: delivering.dropped,
            }
        )
        source.entry_raised = source.entry_waited = offers.held_back = offers.held_by_application = 0
        delivering.dropped = 0
        self.happened.clear()
        yield from (Record(Occurred(what, count)) for what, count in counts.items() if count)

    def check_invariants(self) -> None:
        for stream in self.streams:
            stream.check_invariants()
