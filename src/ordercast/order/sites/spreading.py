"""How frames of a view spread from their sources over the links between fragments, and what changes when a link fails.

Each source has a tree, equal at everybody (`routes.py`). A link of a tree that fails while another path is left changes
the trees and not the view: the coordinator floods ROUTES, the links to use from now on, under an epoch that rises.
Whoever takes up an epoch tells each of its new parents what it has of the streams that it gets from there (VECTOR); a
parent that has the epoch sends what is lacking, and what comes later goes down the new trees. By induction from the
source everything arrives. So a representative keeps the frames that it passed on until everybody has them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ordercast.model.ids import ProcessId
from ordercast.model.notes import Occurrence
from ordercast.order.sites.frames import Had, RoutesFrame, UnitFrame, UpdateFrame, VectorFrame
from ordercast.order.sites.neighbours import Neighbours
from ordercast.order.sites.order import WideOrder
from ordercast.order.sites.routes import SourceTree, children, trees_of
from ordercast.order.sites.views import SiteEdge

KEPT_MAX = 4096  # frames that are kept before those are let go that everybody has
HAD_MAX = 1024  # stamps of a stream in a VECTOR

LinkedParents = dict[int, tuple[int, tuple[int, int]]]  # by source: the parent, and the epoch of the link to it


class Spreading:
    def __init__(self, neighbours: Neighbours, occurred: Counter[Occurrence]) -> None:
        self._neighbours = neighbours
        self._occurred = occurred
        self.trees: tuple[SourceTree, ...] = ()
        self.edges: tuple[SiteEdge, ...] = ()  # that are in use
        self.routes: RoutesFrame | None = None  # the newest of the view; None: those of its proposal
        self._order: WideOrder | None = None
        self._kept: dict[tuple[int, int], bytes] = {}  # frames of units by rank and stamp
        self._kept_max = KEPT_MAX
        self._updates: dict[int, tuple[int, int, bytes]] = {}  # the newest of each rank: line, aru, frame
        self._asked: dict[int, VectorFrame] = {}  # VECTORs of epochs that have not come here, by rank

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
        self._kept_max = KEPT_MAX

    # Frames of the view

    def is_copy(self, frame: UnitFrame | UpdateFrame) -> bool:
        """Whether a frame, or one that says more, came before."""
        if isinstance(frame, UnitFrame):
            return frame.stamp < self.order.stable or (frame.rank, frame.stamp) in self._kept
        line, aru, _ = self._updates.get(frame.rank, (0, 0, b""))
        return frame.line <= line and frame.aru <= aru

    def spread(self, frame: UnitFrame | UpdateFrame, data: bytes) -> None:
        """Keep a new frame, and send it to those who get it from here."""
        if isinstance(frame, UnitFrame):
            self._kept[frame.rank, frame.stamp] = data
            if len(self._kept) > self._kept_max:
                stable = self.order.stable
                self._kept = {key: kept for key, kept in self._kept.items() if key[1] >= stable}
                self._kept_max = max(KEPT_MAX, 2 * len(self._kept))
        else:
            self._updates[frame.rank] = frame.line, frame.aru, data
        for child in children(self.trees[frame.rank], self.order.rank):
            self._send(child, data)

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
        before = self._parents()
        self.routes, self.edges = frame, frame.edges
        self.trees = trees_of(len(self.order.streams), self.edges)
        self._occurred[Occurrence.SITES_REROUTED] += 1
        asked, self._asked = self._asked, {}
        for rank, vector in sorted(asked.items()):
            self.take_vector(self._process(rank), vector)
        fresh: dict[int, list[int]] = {}
        for source, parent in sorted(self._parents().items()):
            if before.get(source) != parent:
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

    def _vector(self, sources: Sequence[int]) -> VectorFrame:
        """Say what is here of these streams."""
        had = []
        for source in sources:
            through = self.order.streams[source].through
            beyond = sorted(stamp for rank, stamp in self._kept if rank == source and stamp > through)
            had.append(Had(source, through, tuple(beyond[:HAD_MAX])))
        return VectorFrame(self.order.view.digest, self.epoch, tuple(had))

    def take_vector(self, peer: ProcessId, frame: VectorFrame) -> None:
        """Send a child what it lacks; one whose epoch has not come here waits for it."""
        order = self.order
        rank = order.view.proposal.rank_of.get(peer)
        if frame.view != order.view.digest or rank is None or frame.epoch < self.epoch:
            return
        if frame.epoch > self.epoch:
            self._asked[rank] = frame
            return
        for had in frame.had:
            if had.rank >= len(self.trees) or self.trees[had.rank][rank] != order.rank:
                continue
            held = set(had.beyond)
            stamps = (stamp for source, stamp in self._kept if source == had.rank and stamp > had.through)
            for stamp in sorted(stamp for stamp in stamps if stamp not in held):
                self._occurred[Occurrence.SITES_SENT_ANEW] += 1
                self._send(rank, self._kept[had.rank, stamp])
            if had.rank in self._updates:
                self._send(rank, self._updates[had.rank][2])
