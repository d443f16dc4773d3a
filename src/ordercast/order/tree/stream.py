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
    way: ProcessId | None = None  # the child over which it comes to its source

    @property
    def is_safe(self) -> bool:
        """Whether its receivers wait until it is stable."""
        return self.ordered is not None and self.ordered.cargo.service == Service.SAFE

    @property
    def is_done(self) -> bool:
        return not self.undone

    @property
    def size(self) -> int:
        return 0 if self.ordered is None else self.ordered.cargo.size


@dataclass(slots=True)
class Edge:
    """To one child."""

    sent: int = 0
    done: int = 0
    safe: int = 0
    unsaid: int = 0  # bytes that are safe, since that was last told at once
    undone: deque[tuple[int, HeldBlock]] = field(default_factory=deque)
    unsafe: deque[tuple[int, HeldBlock]] = field(default_factory=deque)


NOBODY: frozenset[ProcessId] = frozenset()
URGENT = 1 << 13  # bytes of which others wait to hear that all have them, before they are told at once


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
        self._ways: dict[ProcessId, ProcessId] = {}  # the child that is above each source
        self.queue: deque[HeldBlock] = deque()  # for the local process
        self.outgoing: list[tuple[ProcessId, bytes]] = []
        self.stable: list[
            Ordered
        ] = []  # since somebody asked: of this process, or of sources that *safe* does not reach
        self.unstable: Counter[Channel] = Counter()  # bytes that entered here
        self.unstable_size = 0
        self.is_closed = False
        self._end: HeldBlock | None = None
        self._came = 0  # blocks from the parent
        self._from_parent: deque[HeldBlock] = deque()  # not yet done here
        self._unsafe: deque[HeldBlock] = deque()  # from the parent, not known to be stable
        self._done = self._done_said = 0
        self._undone_size = 0  # bytes that are done, since that was last told at once
        self.urgent: set[ProcessId] = set()  # who must hear at once of what is stable
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
            held.way = self._way(cargo)
        self._process(held, ordered, encode_data(ordered))
        self._judge(held)
        return ordered

    def tells(self, cargo: Cargo) -> bool:
        """Whether the message itself tells its source the place, since it passes there; *done* then says that it is
        known, and *safe* that it is stable."""
        return cargo.originator == self.me or self._way(cargo) is not None

    def _way(self, cargo: Cargo) -> ProcessId | None:
        """Return the child over which the message comes to its source, if there is one."""
        originator, groups = cargo.originator, cargo.groups
        if not groups or originator not in self.tree.footprint(self.me, groups):
            return None
        found = self._ways.get(originator)
        if found is None:
            found = self._ways[originator] = self.tree.graph.child_towards(self.me, originator)
        return found

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
            if held.way == child:
                assert held.ordered is not None
                self.known(held.ordered.cargo.originator, held.ordered.cargo.source)
            self._judge(held)
        self._advance()

    def safe(self, parent: ProcessId, count: int) -> None:
        """Hear that all blocks from the parent up to this one are stable."""
        if parent != self.parent or not self._safe_heard <= count <= self._came:
            raise BadBlock("more is safe than was sent")
        self._safe_heard = count
        while self._unsafe and self._unsafe[0].came <= count:
            held = self._unsafe.popleft()
            self._settle(held)
            if held.ordered is not None and held.ordered.cargo.originator == self.me:
                self.stable.append(held.ordered)

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
            if held.way is None:
                self.stable.append(held.ordered)
            self._settle(held)

    def _settle(self, held: HeldBlock) -> None:
        held.is_stable = True
        assert held.ordered is not None
        del self.held[held.ordered.key]
        self.safe_held -= held.ordered.cargo.service == Service.SAFE

    def _advance(self) -> None:
        while self._from_parent and self._from_parent[0].is_done:
            held = self._from_parent.popleft()
            self._done = held.came
            self._undone_size += held.size

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
            if self._undone_size >= URGENT:
                self.urgent.add(self.parent)
                self._undone_size = 0
        for child, edge in self.edges.items():
            if not edge.unsafe or not edge.unsafe[0][1].is_stable:
                continue
            safe = edge.safe
            while edge.unsafe and edge.unsafe[0][1].is_stable:
                safe, held = edge.unsafe.popleft()
                edge.unsaid += held.size
                if held.is_safe:
                    self.urgent.add(child)
            if safe > edge.safe:
                edge.safe = safe
                if edge.unsaid >= URGENT:
                    self.urgent.add(child)
                    edge.unsaid = 0
                self.outgoing.append((child, encode_count(BlockKind.SAFE, self.birth, safe)))
        outgoing, self.outgoing = self.outgoing, []
        return outgoing

    def take_urgent(self) -> frozenset[ProcessId]:
        """Return who must hear at once of what is stable, since this was asked last."""
        if not self.urgent:
            return NOBODY
        urgent, self.urgent = frozenset(self.urgent), set()
        return urgent

    def check_invariants(self) -> None:
        assert self.unstable_size == sum(self.unstable.values()) >= 0, "unstable bytes are counted"
        assert self._done_said <= self._done <= self._came, "done is what came"
        for edge in self.edges.values():
            assert edge.safe <= edge.done <= edge.sent, "what is stable all have"
