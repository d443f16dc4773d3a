"""What one process has of the trees that it is in: its stream, those that close, and what comes and goes on links.

An entry gives what it takes a place, and the source hears of it: with the message, if that comes down to it, or it is
told, and says that it knows. When all below have it, too, it is stable, and the source hears that likewise. What comes
to an entry that has closed is refused.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Set

from ordercast.model.effects import Effect
from ordercast.model.ids import ProcessId
from ordercast.model.notes import Occurrence
from ordercast.order.tree.blocks import (
    BlockKind,
    Close,
    Count,
    GivenPlace,
    GivenPlaces,
    Numbers,
    Offer,
    Ordered,
    TreeBlock,
    encode_numbers,
    encode_offer,
    encode_places,
)
from ordercast.order.tree.config import TreeConfig
from ordercast.order.tree.control import Closed
from ordercast.order.tree.delivering import Delivering
from ordercast.order.tree.forest import Tree
from ordercast.order.tree.offers import Offers
from ordercast.order.tree.reports import NOTHING_DELIVERED, Order
from ordercast.order.tree.source import SourceTurn, TreeSource
from ordercast.order.tree.stream import NOBODY, BadBlock, HeldBlock, TreeStream


class Branch:
    def __init__(self, me: ProcessId, config: TreeConfig, source: TreeSource, delivering: Delivering) -> None:
        self.me = me
        self.source = source
        self.delivering = delivering
        self.stream: TreeStream | None = None  # of the tree that this process is in
        self.closing: dict[int, TreeStream] = {}  # earlier ones that are not finished, by birth
        self.offers = Offers(config.channel_window, config.entry_window)
        self.delivered: Order = NOTHING_DELIVERED
        self.close_came: set[int] = set()  # births of which the parent has said the end
        self.happened: Counter[Occurrence] = Counter()  # since somebody asked
        self._to_send: list[tuple[ProcessId, bytes]] = []
        self._answers: dict[tuple[ProcessId, int], list[GivenPlace]] = {}  # ORDERED, by source and birth
        self._known: dict[tuple[ProcessId, int], list[int]] = {}  # likewise, by entry
        self._was_closing = False  # when it was last asked what goes out
        self._unsettled: list[HeldBlock] | None = None  # what the next message of the control stream waits for

    # Births

    def open(self, tree: Tree) -> None:
        """This process is in a tree from now on."""
        self.stream = TreeStream(self.me, tree)

    def close(self) -> None:
        """End the birth of this process's tree here: what came too late is refused."""
        stream = self.stream
        assert stream is not None
        stream.close()
        self.closing[stream.birth] = stream
        for source, numbers in sorted(self.offers.refused().items()):
            self._refuse(source, stream.birth, numbers)

    def leave(self) -> None:
        """This process passes to the next birth."""
        stream, self.stream = self.stream, None
        assert stream is not None
        stream.passed()

    def cut(self, number: int) -> None:
        """All trees of openings before this one have ended, and everything in them was passed up."""
        self.stream = None
        self.closing, self.close_came = {}, set()
        self.offers.refused()
        self._to_send, self._answers, self._known, self._unsettled = [], {}, {}, None
        self.delivered = number, ()

    @property
    def streams(self) -> list[TreeStream]:
        """Return those that are not finished, the oldest first."""
        return [*self.closing.values(), *([self.stream] if self.stream and not self.stream.is_closed else [])]

    def _refuse(self, source: ProcessId, birth: int, numbers: list[int]) -> None:
        if source == self.me:
            for number in numbers:
                self.source.refuse(number)
        else:
            self._to_send.append((source, encode_numbers(BlockKind.REFUSED, birth, numbers)))

    # What links bring

    def take(self, block: TreeBlock, data: bytes, process: ProcessId) -> None:
        """Take the next block of a link. BadBlock for one that is wrong."""
        if isinstance(block, Ordered):
            stream = self.stream
            if stream is None or stream.birth != block.birth or process != stream.parent:
                raise BadBlock("a block of another tree")
            stream.take(block, data)
            if block.cargo.originator == self.me:
                self._came_back(block, stream)
        elif isinstance(block, Offer):
            self._offer(block, process)
        elif isinstance(block, Close):
            if process != self.stream_of(block.birth).parent:
                raise BadBlock("the end is told by a stranger")
            self.close_came.add(block.birth)
        elif isinstance(block, Count):
            self._count(block, process)
        elif isinstance(block, GivenPlaces):
            self._ordered(block, process)
        else:
            self._numbers(block, process)

    def _came_back(self, block: Ordered, stream: TreeStream) -> None:
        """A cargo of this process has come down to it: so its place is known."""
        number, sent = block.cargo.source, self.source.sent.get(block.cargo.source)
        if sent is None or (sent.offer.birth, sent.offer.entry) != (stream.birth, block.entry):
            raise BadBlock("a message that its source has not sent")
        self.source.ordered(GivenPlace(number, block.number, block.rank))

    def stream_of(self, birth: int) -> TreeStream:
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
        if not stream.tree.footprint(self.me, groups):
            raise BadBlock("an offer to one who is not above all receivers")
        self.offers.add(offer.cargo)

    def _count(self, block: Count, process: ProcessId) -> None:
        if block.birth not in self.closing and (self.stream is None or block.birth < self.stream.birth):
            return  # all of it was done, and safe
        stream = self.stream_of(block.birth)
        (stream.done if block.kind is BlockKind.DONE else stream.safe)(process, block.through)

    def _ordered(self, block: GivenPlaces, process: ProcessId) -> None:
        for place in block.places:
            self._check_answer(place.source, process, block.birth)
            self.source.ordered(place)
            self._known.setdefault((process, block.birth), []).append(place.source)

    def _numbers(self, block: Numbers, process: ProcessId) -> None:
        for number in block.sources:
            if block.kind is not BlockKind.KNOWN:
                self._check_answer(number, process, block.birth)
            if block.kind is BlockKind.REFUSED:
                self.happened[Occurrence.TREE_REFUSED] += self.source.refuse(number)
            elif block.kind is BlockKind.STABLE:
                self.source.stable(number)
            else:
                self.stream_of(block.birth).known(process, number)

    def _check_answer(self, number: int, process: ProcessId, birth: int) -> None:
        sent = self.source.sent.get(number)
        if sent is not None and (sent.offer.birth, sent.offer.entry) != (birth, process):
            raise BadBlock("an answer of one who was not asked")

    # What this process sends

    def offer(self, offer: Offer, tree: Tree) -> None:
        """Send a cargo to its entry."""
        groups = offer.cargo.groups
        self.happened[Occurrence.TREE_NOBODY] += not groups
        self.happened[Occurrence.TREE_TWO_GROUPS] += len(groups) > 1
        self.happened[Occurrence.TREE_SENDER_OUTSIDE] += bool(groups) and self.me not in tree.receivers(groups)
        if offer.entry == self.me:
            self.offers.add(offer.cargo)
        else:
            self._to_send.append((offer.entry, encode_offer(offer)))

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

    def enter(self, behind: Set[ProcessId]) -> None:
        """Let enter what may: nothing for those whose applications are behind."""
        stream = self.stream
        if stream is None or stream.is_closed:
            return
        for cargo in self.offers.takeable(stream, lambda receivers: not behind.isdisjoint(receivers)):
            ordered = stream.enter(cargo)
            place = GivenPlace(cargo.source, ordered.number, ordered.rank)
            if cargo.originator == self.me:
                self.source.ordered(place)
            elif not stream.tells(cargo):
                self._answers.setdefault((cargo.originator, stream.birth), []).append(place)
        self._stabilise(stream)

    def _stabilise(self, stream: TreeStream) -> None:
        if not stream.stable:
            return
        stable: dict[ProcessId, list[int]] = {}
        for ordered in stream.stable:
            stable.setdefault(ordered.cargo.originator, []).append(ordered.cargo.source)
        stream.stable = []
        for source, numbers in sorted(stable.items()):
            if source == self.me:
                for number in numbers:
                    self.source.stable(number)
            else:
                self._to_send.append((source, encode_numbers(BlockKind.STABLE, stream.birth, numbers)))

    # What comes of it

    def deliver(self) -> Iterator[Effect]:
        """Pass up what may be."""
        stream = self.stream
        if stream is None:
            return
        for ordered in stream.deliverable():
            self.delivered = ordered.birth, ordered.rank
            effect = self.delivering.cargo(ordered.cargo)
            if effect is not None:
                yield effect
        if len(stream.queue) > 1:
            self.happened[Occurrence.TREE_BEHIND_SAFE] += 1

    def flush(self, opening: int) -> tuple[list[tuple[ProcessId, bytes]], list[Closed]]:
        """Return what goes out on links, and which trees have closed for the opening that was ordered last."""
        sending: list[tuple[ProcessId, bytes]] = []
        self._was_closing = bool(self.closing)  # others still wait for the last word of what finishes with it
        if self._known:
            for (process, birth), numbers in self._known.items():
                sending.append((process, encode_numbers(BlockKind.KNOWN, birth, numbers)))
            self._known = {}
        sending += self._to_send  # behind what its entries must know before
        self._to_send = []
        closed: list[Closed] = []
        if self._answers:
            for (process, birth), places in self._answers.items():
                sending.append((process, encode_places(birth, places)))
            self._answers = {}
        for stream in self.streams:
            self._stabilise(stream)
            sending += self._to_send
            self._to_send = []
            sending += stream.flush()
            if stream.is_closed_below and stream.parent is None and stream.birth not in self.close_came:
                self.close_came.add(stream.birth)
                closed.append(Closed(opening, stream.me))
        for birth in [birth for birth, stream in self.closing.items() if stream.is_finished] if self.closing else ():
            if self.stream is None or self.stream.birth != birth:
                del self.closing[birth]
        return sending, closed

    def hurried(self) -> frozenset[ProcessId] | None:
        """Return who must hear at once of what is stable, since much is. None, all of them, while somebody here waits
        for that: a safe message, the end of a birth, a control message."""
        stream = self.stream
        urgent = NOBODY if stream is None else stream.take_urgent()
        is_calm = not self._was_closing and self._unsettled is None and not self.source.safe
        return urgent if is_calm and (stream is None or not stream.safe_held) else None

    @property
    def is_idle(self) -> bool:
        stream = self.stream
        return not self.offers and not self.closing and (stream is None or not (stream.held or stream.queue))

    def counts(self) -> Counter[Occurrence]:
        """Return what has happened since this was asked last."""
        source, offers, delivering = self.source, self.offers, self.delivering
        is_quiet = not (self.happened or delivering.dropped or offers.held_back or offers.held_by_application)
        if is_quiet and not (source.entry_raised or source.entry_waited):
            return Counter()
        counts = self.happened.copy()
        counts[Occurrence.TREE_ENTRY_RAISED] = source.entry_raised
        counts[Occurrence.TREE_ENTRY_AWAITED] = source.entry_waited
        counts[Occurrence.TREE_WINDOW_FULL] = offers.held_back
        counts[Occurrence.TREE_HELD_BY_APPLICATION] = offers.held_by_application
        counts[Occurrence.TREE_DROPPED_AGAIN] = delivering.dropped
        source.entry_raised = source.entry_waited = offers.held_back = offers.held_by_application = 0
        delivering.dropped = 0
        self.happened.clear()
        return counts

    def check_invariants(self) -> None:
        for stream in self.streams:
            stream.check_invariants()
