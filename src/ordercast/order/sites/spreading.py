"""How frames of a view spread from their sources over the links between fragments, and what changes when a link fails.

Each source has a tree, equal at everybody (`routes.py`). A link of a tree that fails while another path is left changes
the trees and not the view: the coordinator floods ROUTES, the links to use from now on, under an epoch that rises.
Whoever takes up an epoch tells each of its new parents what it has of the streams that it gets from there (VECTOR); a
parent that has the epoch, or a later one in which it is that parent still, sends what is lacking, and what comes later
goes down the new trees. Whoever has missed an epoch cannot know who sent to it meanwhile, and tells all its parents. By
induction from the source everything arrives. So a representative keeps the frames that it passed on until everybody has
them.

A branch in which no fragment needs a unit gets it hollow (`interest.py`). Routes anew may put somebody behind such a
branch who needs it. So whoever holds a unit hollow that itself or somebody behind it needs asks its own parent for it
by a VECTOR that does not count it, when it takes up an epoch or the unit comes; and passes it on when it is there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from ordercast.model.ids import ProcessId
from ordercast.model.notes import Occurrence
from ordercast.order.sites.codec import decode, encode
from ordercast.order.sites.frames import Contradiction, Had, RoutesFrame, UnitFrame, UpdateFrame, VectorFrame
from ordercast.order.sites.neighbours import Neighbours
from ordercast.order.sites.order import WideOrder
from ordercast.order.sites.routes import SourceTree, children, reaches, trees_of
from ordercast.order.sites.units import BodyKind
from ordercast.order.sites.views import EVERYBODY, SiteEdge

KEPT_MAX = 4096  # frames that are kept before those are let go that everybody has,
KEPT_SIZE_MAX = 8 << 20  # or bytes of them
HAD_MAX = 1024  # stamps of a stream in a VECTOR
ASKED_MAX = 256  # VECTORs of one fragment that wait for an epoch

LinkedParents = dict[int, tuple[int, tuple[int, int]]]  # by source: the parent, and the epoch of the link to it


class KeptUnit(NamedTuple):
    """A frame of a unit that not everybody is known to have."""

    data: bytes
    needs: int
    is_hollow: bool


class Spreading:
    def __init__(self, neighbours: Neighbours, occurred: Counter[Occurrence]) -> None:
        self._neighbours = neighbours
        self._occurred = occurred
        self.trees: tuple[SourceTree, ...] = ()
        self.edges: tuple[SiteEdge, ...] = ()  # that are in use
        self.routes: RoutesFrame | None = None  # the newest of the view; None: those of its proposal
        self._order: WideOrder | None = None
        self._kept: dict[tuple[int, int], KeptUnit] = {}  # by rank and stamp
        self._kept_size = 0  # bytes of them, and of those that they took the place of
        self._kept_max, self._kept_size_max = KEPT_MAX, KEPT_SIZE_MAX
        self._updates: dict[int, tuple[int, int, bytes]] = {}  # the newest of each rank: line, aru, frame
        self._asked: dict[int, list[VectorFrame]] = {}  # VECTORs of epochs that have not come here, by rank

    @property
    def epoch(self) -> int:
        return 0 if self.routes is None else self.routes.epoch

    @property
    def order(self) -> WideOrder:
        assert self._order is not None, "a view has begun"
        return self._order

    def begin(self, order: WideOrder) -> None:
        """Begin a view: nothing of the old one is kept."""
        self._order, self.routes = order, None
        self.edges = order.view.proposal.edges
        self.trees = trees_of(len(order.streams), self.edges)
        self._kept.clear()
        self._updates.clear()
        self._asked.clear()
        self._kept_size, self._kept_max, self._kept_size_max = 0, KEPT_MAX, KEPT_SIZE_MAX

    def kept_of(self, source: int) -> dict[int, KeptUnit]:
        """Return the units of a stream that are kept, by stamp, for whoever looks on."""
        return {stamp: kept for (rank, stamp), kept in self._kept.items() if rank == source}

    def update_of(self, rank: int) -> bytes | None:
        """Return the newest update of a stream that is known, likewise."""
        newest = self._updates.get(rank)
        return None if newest is None else newest[2]

    # Frames of the view

    def is_copy(self, frame: UnitFrame | UpdateFrame, data: bytes) -> bool:
        """Whether a frame, or one that says more, came before. A Contradiction: another one with its name did."""
        if isinstance(frame, UnitFrame):
            kept = self._kept.get((frame.rank, frame.stamp))
            is_hollow = frame.body.kind is BodyKind.HOLLOW
            if kept is not None and kept.is_hollow is is_hollow and kept.data != data:
                raise Contradiction("two units with one stamp in one stream")
            is_fuller = kept is not None and kept.is_hollow and frame.body.kind is BodyKind.WHOLE
            return frame.stamp < self.order.stable or (kept is not None and not is_fuller)
        line, aru, _ = self._updates.get(frame.rank, (0, 0, b""))
        return frame.line <= line and frame.aru <= aru

    def is_news(self, frame: UnitFrame | UpdateFrame) -> bool:
        """Whether a frame that is no copy is for the own tape: a unit that is needed here comes there whole, once."""
        if isinstance(frame, UpdateFrame):
            return True
        if frame.needs >> self.order.rank & 1:
            return frame.body.kind is not BodyKind.HOLLOW
        return (frame.rank, frame.stamp) not in self._kept

    def spread(self, frame: UnitFrame | UpdateFrame, data: bytes) -> None:
        """Keep a new frame, and send it to those who get it from here."""
        if isinstance(frame, UnitFrame):
            self._spread_unit(frame, data)
            return
        self._updates[frame.rank] = frame.line, frame.aru, data
        for child in children(self.trees[frame.rank], self.order.rank):
            self._send(child, data)

    def _spread_unit(self, frame: UnitFrame, data: bytes) -> None:
        is_hollow, was_known = frame.body.kind is BodyKind.HOLLOW, (frame.rank, frame.stamp) in self._kept
        self._kept[frame.rank, frame.stamp] = KeptUnit(data, frame.needs, is_hollow)
        self._kept_size += len(data)
        if len(self._kept) > self._kept_max or self._kept_size > self._kept_size_max:
            self._let_go()
        tree, hollow = self.trees[frame.rank], data if is_hollow else b""
        for child in children(tree, self.order.rank):
            if frame.needs == EVERYBODY or frame.needs & reaches(tree, child):
                if not is_hollow:
                    self._send(child, data)
            elif not was_known:
                hollow = hollow or encode(frame._replace(body=frame.body.hollow()))
                self._send(child, hollow)
                self._occurred[Occurrence.SITES_PRUNED] += not is_hollow

    def _let_go(self) -> None:
        """Let go what everybody has."""
        stable = self.order.stable
        self._kept = {key: kept for key, kept in self._kept.items() if key[1] >= stable}
        self._kept_size = sum(len(kept.data) for kept in self._kept.values())
        self._kept_max = max(KEPT_MAX, 2 * len(self._kept))
        self._kept_size_max = max(KEPT_SIZE_MAX, 2 * self._kept_size)

    def _send(self, rank: int, data: bytes, *, is_urgent: bool = False) -> None:
        link = self._neighbours.link_to(self._process(rank))
        if link is not None:  # where it has failed, other routes will follow, or a view
            link.send([data], is_urgent)

    def _process(self, rank: int) -> ProcessId:
        return self.order.view.fragments[rank].representative

    # Routes anew

    def take_routes(self, frame: RoutesFrame) -> list[tuple[ProcessId, VectorFrame]]:
        """Take up an epoch; return what to tell its new parents. Nothing happens when it is not news."""
        if frame.view != self.order.view.digest or frame.epoch <= self.epoch:
            return []
        before = self._parents() if frame.epoch == self.epoch + 1 else {}
        self.routes, self.edges = frame, frame.edges
        self.trees = trees_of(len(self.order.streams), self.edges)
        self._occurred[Occurrence.SITES_REROUTED] += 1
        asked, self._asked = self._asked, {}
        for rank, vectors in sorted(asked.items()):
            for vector in vectors:
                self.take_vector(self._process(rank), vector)
        fresh: dict[int, list[int]] = {}
        for source, parent in sorted(self._parents().items()):
            lacking = self._lacking(source)
            self._occurred[Occurrence.SITES_ASKED_WHOLE] += len(lacking)
            if before.get(source) != parent or lacking:
                fresh.setdefault(parent[0], []).append(source)
        return [(self._process(parent), self._vector(sources)) for parent, sources in sorted(fresh.items())]

    def _parents(self) -> LinkedParents:
        me, parents = self.order.rank, {}
        tags = {frozenset((edge.low, edge.high)): edge.tags for edge in self.edges}
        for source, tree in enumerate(self.trees):
            parent = tree[me]
            if parent is not None:
                parents[source] = parent, tags[frozenset((me, parent))]
        return parents

    def lacks(self, frame: UnitFrame) -> bool:
        """Whether a unit came hollow, and is held so, that is needed here or beyond."""
        if frame.body.kind is not BodyKind.HOLLOW:
            return False
        kept = self._kept.get((frame.rank, frame.stamp))
        tree = self.trees[frame.rank]
        return kept is not None and kept.is_hollow and bool(kept.needs & reaches(tree, self.order.rank))

    def _lacking(self, source: int) -> set[int]:
        """Return the stamps of units of a stream that are held hollow, and needed here or beyond."""
        hollow = [(stamp, kept) for (rank, stamp), kept in self._kept.items() if rank == source and kept.is_hollow]
        if not hollow:
            return set()
        beyond = reaches(self.trees[source], self.order.rank)
        return {stamp for stamp, kept in hollow if kept.needs & beyond}

    def ask(self, source: int) -> tuple[ProcessId, VectorFrame] | None:
        """Return what to ask the parent for a stream; None: there is no parent now."""
        parent = self._parents().get(source)
        return None if parent is None else (self._process(parent[0]), self._vector([source]))

    def _vector(self, sources: Sequence[int]) -> VectorFrame:
        """Say what is here of these streams."""
        had = []
        for source in sources:
            lacking = self._lacking(source)
            through = min([self.order.streams[source].through, *(stamp - 1 for stamp in lacking)])
            stamps = (stamp for rank, stamp in self._kept if rank == source and stamp > through)
            beyond = sorted(stamp for stamp in stamps if stamp not in lacking)
            had.append(Had(source, through, tuple(beyond[:HAD_MAX])))
        return VectorFrame(self.order.view.digest, self.epoch, tuple(had))

    def take_vector(self, peer: ProcessId, frame: VectorFrame) -> None:
        """Send a child what it lacks; one whose epoch has not come here waits for it. One whose epoch is over counts
        for the streams that the child gets from here still: it will not ask for them again."""
        order = self.order
        rank = order.view.proposal.rank_of.get(peer)
        if frame.view != order.view.digest or rank is None:
            return
        if frame.epoch > self.epoch:
            waiting = self._asked.setdefault(rank, [])
            if len(waiting) >= ASKED_MAX:
                raise Contradiction("more VECTORs of epochs to come than there are epochs")
            waiting.append(frame)
            return
        for had in frame.had:
            if had.rank >= len(self.trees) or self.trees[had.rank][rank] != order.rank:
                continue
            held, beyond = set(had.beyond), reaches(self.trees[had.rank], rank)
            stamps = (stamp for source, stamp in self._kept if source == had.rank and stamp > had.through)
            for stamp in sorted(stamp for stamp in stamps if stamp not in held):
                self._send_anew(rank, self._kept[had.rank, stamp], beyond)
            if had.rank in self._updates:
                self._send(rank, self._updates[had.rank][2])

    def _send_anew(self, rank: int, kept: KeptUnit, beyond: int) -> None:
        """Send a unit to a child: whole where it is needed, and hollow elsewhere. One that is needed and not here has
        been asked for, and will be passed on."""
        is_needed = bool(kept.needs & beyond)
        if is_needed and kept.is_hollow:
            return
        data = kept.data
        if not is_needed and not kept.is_hollow:
            frame = decode(data)
            assert isinstance(frame, UnitFrame), "units alone are kept here"
            data = encode(frame._replace(body=frame.body.hollow()))
        self._occurred[Occurrence.SITES_SENT_ANEW] += 1
        self._send(rank, data)
