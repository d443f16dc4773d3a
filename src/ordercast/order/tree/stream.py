"""One birth of a tree at one of its processes: what comes from the parent, what enters here, ranks, and who has it.

A message gets its place, its *rank*, where it enters. The ranks that a process sees rise strictly, whether a message
comes from above or enters here: so ranks are one linear extension of everybody's order. Processing is one act: check
rank and channel, keep, pass on to each child below which there is a receiver, queue for the local process.

Two numbers go over every edge, counting its blocks. *done* comes up: all blocks up to it are held by the child and by
all receivers below it. *safe* goes down: all blocks up to it are stable. A message is stable when it is done on all
edges of its entry, and its source knows its place; then everybody forgets it, and a safe message may be delivered.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass, field

from ordercast.model.ids import ProcessId
from ordercast.model.service import Service
from ordercast.order.tree.blocks import (
    BlockKind,
    Cargo,
    Channel,
    Ordered,
    Rank,
    earlier_of,
    encode_close,
    encode_count,
    encode_data,
)
from ordercast.order.tree.forest import Tree


@dataclass(slots=True, eq=False)
class HeldBlock:
    """A block that was processed here and is not known to be stable."""

    ordered: Ordered | None  # None: the end of the birth
    came: int = 0  # its number on the edge from the parent; 0: it entered here
    undone: int = 0  # children that do not have it for certain
    is_known: bool = True  # by its source
    is_stable: bool = False
    targets: tuple[ProcessId, ...] = ()

    @property
    def is_done(self) -> bool:
        return not self.undone


@dataclass(slots=True)
class Edge:
    """To one child."""

    sent: int = 0
    done: int = 0
    safe: int = 0
    undone: deque[tuple[int, HeldBlock]] = field(default_factory=deque)
    unsafe: deque[tuple[int, HeldBlock]] = field(default_factory=deque)


class BadBlock(Exception):
    """A block that no process of the tree can have sent."""


class TreeStream:
    def __init__(self, me: ProcessId, tree: Tree) -> None:
        self.me = me
        self.tree = tree
        self.birth = tree.birth
        self.parent = tree.graph.parent(me)
        self.depth = tree.graph.depth(me)
        self.edges = {child: Edge() for child in tree.graph.children(me)}
        self.last: Rank = ()
        self.counts: dict[Channel, int] = {}  # blocks of each channel that were processed here
        self.held: dict[tuple[int, ProcessId, tuple[int, ...], int], HeldBlock] = {}
        self.safe_held = 0  # how many of these are safe messages
        self._unknown: dict[ProcessId, dict[int, tuple[HeldBlock, bytes]]] = {}  # entered here, their sources do not
        # know their places; were this process cut off, nobody else would, so later ones name them
        self.queue: deque[HeldBlock] = deque()  # for the local process
        self.outgoing: list[tuple[ProcessId, bytes]] = []
        self.stable: list[Ordered] = []  # of what entered here, since somebody asked
        self.unstable: Counter[Channel] = Counter()  # bytes that entered here
        self.unstable_size = 0
        self.is_closed = False
        self._end: HeldBlock | None = None
        self._came = 0  # blocks from the parent
        self._from_parent: deque[HeldBlock] = deque()  # not yet done here
        self._unsafe: deque[HeldBlock] = deque()  # from the parent, not known to be stable
        self._done = self._done_said = 0
        self._safe_heard = 0

    # What is processed

    def enter(self, cargo: Cargo) -> Ordered:
        """Give a cargo its place."""
        assert not self.is_closed, "nothing enters after the end"
        channel = self.me, cargo.groups
        last, depth = self.last, self.depth
        above = (*last[:depth], *(0,) * (depth - len(last[:depth])))
        rank = (*above, 1 + last[depth] if len(last) > depth else 1)
        unknown = self._unknown.setdefault(cargo.originator, {})
        earlier = b"".join([named for _, named in unknown.values()])
        ordered = Ordered(self.birth, self.me, self.counts.get(channel, 0) + 1, rank, cargo, earlier)
        held = HeldBlock(ordered, is_known=cargo.originator == self.me)
        self.unstable[channel] += cargo.size
        self.unstable_size += cargo.size
        if not held.is_known:
            unknown[cargo.source] = held, earlier_of(cargo.source, rank)
        self._process(held, ordered, encode_data(ordered))
        self._judge(held)
        return ordered

    def unknown(self, originator: ProcessId) -> int:
        """Return how many places a source may not know."""
        return len(self._unknown.get(originator, ()))

    def take(self, ordered: Ordered, data: bytes) -> None:
        """Take what the parent has passed on."""
        if self.is_closed or self.parent is None or not self._is_plausible(ordered):
            raise BadBlock("a block that does not belong here")
        if ordered.rank <= self.last or ordered.number != self.counts.get(ordered.channel, 0) + 1:
            raise BadBlock("a block that is out of turn")
        self._came += 1
        held = HeldBlock(ordered, self._came)
        self._from_parent.append(held)
        self._unsafe.append(held)
        self._process(held, ordered, data)
        self._advance()

    def _is_plausible(self, ordered: Ordered) -> bool:
        tree, groups = self.tree, ordered.cargo.groups
        if ordered.entry == self.me or not groups or groups[-1] >= len(tree.names):
            return False
        return tree.has(ordered.entry) and self.me in tree.footprint(ordered.entry, groups)

    def _process(self, held: HeldBlock, ordered: Ordered, data: bytes) -> None:
        assert ordered.rank > self.last, "ranks rise"
        self.last = ordered.rank
        channel = ordered.channel
        self.counts[channel] = ordered.number
        self.held[ordered.key] = held
        self.safe_held += ordered.cargo.service == Service.SAFE
        targets = self.tree.children(self.me, ordered.entry, ordered.cargo.groups) if ordered.cargo.groups else ()
        self._forward(held, targets, data)
        if not ordered.cargo.groups or self.me in self.tree.receivers(ordered.cargo.groups):
            self.queue.append(held)

    def _forward(self, held: HeldBlock, targets: tuple[ProcessId, ...], data: bytes) -> None:
        held.targets, held.undone = targets, len(targets)
        for child in targets:
            edge = self.edges[child]
            edge.sent += 1
            edge.undone.append((edge.sent, held))
            if held.ordered is not None:
                edge.unsafe.append((edge.sent, held))
            self.outgoing.append((child, data))

    # The end of a birth

    def close(self) -> None:
        """Nothing more is taken: tell the children, if the parent has said so, or there is none."""
        assert not self.is_closed
        self.is_closed = True
        self._end = HeldBlock(None)
        if self.parent is not None:
            self._came += 1
            self._end.came = self._came
            self._from_parent.append(self._end)
        self._forward(self._end, tuple(self.edges), encode_close(self.birth))
        self._end.undone += 1  # this process itself has not passed to the next birth
        self._advance()

    def passed(self) -> None:
        """This process has passed to the next birth."""
        if self._end is not None:
            self._end.undone -= 1
            self._advance()

    @property
    def is_closed_below(self) -> bool:
        """Whether all below have closed."""
        return self._end is not None and self._end.is_done

    @property
    def is_finished(self) -> bool:
        """Whether nothing is left to be said or heard."""
        return self.is_closed_below and not self.held and not self.queue and self._done == self._done_said == self._came

    # Who has it

    def done(self, child: ProcessId, count: int) -> None:
        """Hear that a child and those below it have all blocks up to this one."""
        edge = self.edges.get(child)
        if edge is None or not edge.done <= count <= edge.sent:
            raise BadBlock("more is done than was sent")
        edge.done = count
        while edge.undone and edge.undone[0][0] <= count:
            _, held = edge.undone.popleft()
            held.undone -= 1
            self._judge(held)
        self._advance()

    def safe(self, parent: ProcessId, count: int) -> None:
        """Hear that all blocks from the parent up to this one are stable."""
        if parent != self.parent or not self._safe_heard <= count <= self._came:
            raise BadBlock("more is safe than was sent")
        self._safe_heard = count
        while self._unsafe and self._unsafe[0].came <= count:
            self._settle(self._unsafe.popleft())

    def known(self, originator: ProcessId, source: int) -> None:
        """Hear that a source knows the place of its cargo."""
        held, _ = self._unknown.get(originator, {}).pop(source, (None, b""))
        if held is not None:
            held.is_known = True
            self._judge(held)

    def _judge(self, held: HeldBlock) -> None:
        """What entered here is stable when all below have it, and its source knows."""
        if held.ordered is not None and not held.came and held.is_done and held.is_known and not held.is_stable:
            channel, size = held.ordered.channel, held.ordered.cargo.size
            self.unstable[channel] -= size
            self.unstable_size -= size
            self.stable.append(held.ordered)
            self._settle(held)

    def _settle(self, held: HeldBlock) -> None:
        held.is_stable = True
        assert held.ordered is not None
        del self.held[held.ordered.key]
        self.safe_held -= held.ordered.cargo.service == Service.SAFE

    def _advance(self) -> None:
        while self._from_parent and self._from_parent[0].is_done:
            self._done = self._from_parent.popleft().came

    # What goes out

    def deliverable(self) -> Iterator[Ordered]:
        """Take from the queue what may be delivered: a safe message, and all behind it, wait until it is stable."""
        while self.queue:
            held = self.queue[0]
            assert held.ordered is not None
            if held.ordered.cargo.service == Service.SAFE and not held.is_stable:
                return
            self.queue.popleft()
            yield held.ordered

    def flush(self) -> list[tuple[ProcessId, bytes]]:
        """Return what is to be sent, and to whom."""
        if self.parent is not None and self._done > self._done_said:
            self._done_said = self._done
            self.outgoing.append((self.parent, encode_count(BlockKind.DONE, self.birth, self._done)))
        for child, edge in self.edges.items():
            safe = edge.safe
            while edge.unsafe and edge.unsafe[0][1].is_stable:
                safe = edge.unsafe.popleft()[0]
            if safe > edge.safe:
                edge.safe = safe
                self.outgoing.append((child, encode_count(BlockKind.SAFE, self.birth, safe)))
        outgoing, self.outgoing = self.outgoing, []
        return outgoing

    def check_invariants(self) -> None:
        assert self.unstable_size == sum(self.unstable.values()) >= 0, "unstable bytes are counted"
        assert self._done_said <= self._done <= self._came, "done is what came"
        for edge in self.edges.values():
            assert edge.safe <= edge.done <= edge.sent, "what is stable all have"
