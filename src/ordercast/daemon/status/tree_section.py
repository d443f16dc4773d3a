"""What a status says of the tree engine: the forest, this node's place in it, what enters here, why it changed. Pure.

Every daemon knows the whole forest, so any of them may be asked. What is its own are its parent and children, the
groups that enter at it, and the pauses between two of its trees.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ordercast.daemon.status.rings_section import SectionSource, TokenStatus
from ordercast.model.ids import SECOND, ProcessId
from ordercast.model.notes import Occurrence
from ordercast.order.membership.stats import RingStats

if TYPE_CHECKING:
    from ordercast.order.tree.observed import EdgeSeen, TreeSeen
    from ordercast.order.tree.story import ForestStep

ENTRIES_SHOWN = 100  # groups that enter here, the busiest first
WANTS_NAMED = 3  # in the sentence of a change
PRIVATE = ("=", "@")  # begin the names of groups that a process, or its daemon, has to itself
PAUSED_NS = 2 * SECOND  # a node that is between two trees for so long is worth a warning


@dataclass(frozen=True, slots=True)
class TreeEdge:
    """A neighbour in the tree."""

    node: str
    round_trip_ns: int  # 0: unknown
    waiting_size: int  # bytes that were not sent yet
    under_way: int  # packets that were sent and are not known to have come
    undone: int  # blocks that not all below it are known to have


@dataclass(frozen=True, slots=True)
class EnteringGroup:
    """A group whose messages enter at this node."""

    group: str
    members: int  # nodes that want it
    visited: int  # nodes that its messages visit
    rate: int  # messages a second, as senders told last
    unstable_size: int  # bytes that not everybody is known to have


@dataclass(frozen=True, slots=True)
class ForestNode:
    """A node of the forest."""

    name: str
    parent: str | None  # None: it is a root
    entries: int  # groups whose messages enter at it


@dataclass(frozen=True, slots=True)
class TreeSection:
    manager: str  # who changes the forest
    opened: int  # number of the opening that is in effect here
    birth: int | None  # of this node's tree; none: it is between two
    depth: int  # edges above it
    parent: TreeEdge | None  # none: it is a root
    children: tuple[TreeEdge, ...]
    links: int  # that are in use, to anybody
    entries: tuple[EnteringGroup, ...]  # the busiest
    entries_count: int
    wanted: int  # groups that this node wants
    forest: tuple[ForestNode, ...]
    waiting: int  # messages of this node that were not sent yet
    unstable: int  # cargoes of it that not everybody is known to have
    held: int  # blocks that are kept here for others
    queued: int  # that wait here for a safe message
    behind: tuple[str, ...]  # nodes whose applications do not take their deliveries
    broken: tuple[tuple[str, str], ...]  # edges that have failed, and are not used again before the members change
    closing: tuple[str, ...]  # roots of trees that have not closed yet
    changes: tuple[str, ...]  # why the forest changed, the last one last
    pauses: int  # times that this node was between two trees
    pause_median_ns: int  # of the last ones
    pause_p99_ns: int
    longest_pause_ns: int
    paused_for_ns: int | None  # none: it is in a tree
    reconciled: int  # times that all trees ended at once, since this node started
    refused: int  # cargoes that came to an entry too late, and were sent again
    token: TokenStatus  # of the control ring

    @property
    def trees(self) -> int:
        return sum(node.parent is None for node in self.forest)

    def warnings(self, members: int) -> Iterator[str]:
        for name in self.behind:
            yield f"groups of {name} wait, for its application does not take its deliveries"
        for one, other in self.broken:
            yield f"no tree uses the link between {one} and {other}, which failed: see whether they reach each other"
        if self.paused_for_ns is not None and self.paused_for_ns >= PAUSED_NS:
            waits = f", and waits for the trees of {' '.join(self.closing)} to close" if self.closing else ""
            yield f"this node has been in no tree for {self.paused_for_ns / SECOND:.0f} s{waits}"
        if silence := self.token.silence(members):
            yield f"control ring: {silence}"

    def as_before(self, document: dict[str, Any]) -> dict[str, Any]:
        """This engine was never the only one."""
        return {}


def tree_section(node: SectionSource) -> TreeSection:
    from ordercast.order.tree.node import TreeNode

    engine, now, occurred = node.engine, node.now(), node.counters.occurred
    assert isinstance(engine, TreeNode) and isinstance(engine.stats, RingStats)
    seen = engine.observed(now)
    entries = tuple(EnteringGroup(*entry) for entry in seen.entries[:ENTRIES_SHOWN])
    return TreeSection(
        manager=node.name_of(seen.manager),
        opened=seen.opened,
        birth=seen.birth,
        depth=seen.depth,
        parent=None if seen.parent is None else _edge(node, seen.parent),
        children=tuple(_edge(node, child) for child in seen.children),
        links=seen.links,
        entries=entries,
        entries_count=len(seen.entries),
        wanted=len(seen.wants),
        forest=_forest(node, seen),
        waiting=seen.waiting,
        unstable=seen.unstable,
        held=seen.held,
        queued=seen.queued,
        behind=tuple(map(node.name_of, seen.behind)),
        broken=tuple((node.name_of(one), node.name_of(other)) for one, other in seen.broken),
        closing=tuple(map(node.name_of, seen.closing)),
        changes=tuple(change_text(node, step) for step in seen.steps),
        pauses=seen.pause_count,
        pause_median_ns=_quantile(seen.pauses, 50),
        pause_p99_ns=_quantile(seen.pauses, 99),
        longest_pause_ns=seen.longest_pause_ns,
        paused_for_ns=seen.paused_for_ns,
        reconciled=occurred[Occurrence.TREE_RECONCILED.value],
        refused=occurred[Occurrence.TREE_REFUSED.value],
        token=TokenStatus.of(engine.stats, node.config.ring, now, len(engine.configuration.members)),
    )


def _forest(node: SectionSource, seen: TreeSeen) -> tuple[ForestNode, ...]:
    return tuple(
        ForestNode(
            node.name_of(process), None if parent is None else node.name_of(parent), seen.entered.get(process, 0)
        )
        for process, parent in seen.parents.items()
    )


def _edge(node: SectionSource, edge: EdgeSeen) -> TreeEdge:
    figures, name = edge.figures, node.name_of(edge.peer)
    if figures is None:
        return TreeEdge(name, 0, 0, 0, edge.undone)
    return TreeEdge(name, figures.round_trip_ns, figures.waiting, figures.under_way, edge.undone)


def _quantile(values: Sequence[int], percent: int) -> int:
    return sorted(values)[min(len(values) - 1, len(values) * percent // 100)] if values else 0


def change_text(node: SectionSource, step: ForestStep) -> str:
    """Say why the forest changed, and what became of its trees."""
    reasons = list(_reasons(node, step))
    what = f"{step.closed} closed, {step.born} born"
    return f"{step.number}: {'; '.join(reasons) or 'another forest costs less'} ({what})"


def _reasons(node: SectionSource, step: ForestStep) -> Iterator[str]:
    if step.is_cut:
        yield "a tree did not close in time, or a link failed: all trees ended"
        return
    gained, lost = _of_clients(step.gained), _of_clients(step.lost)
    if gained:
        yield _wishes(node, gained, "now wants", "now want groups")
    elif step.gained:
        yield f"{' '.join(sorted({node.name_of(process) for process, _ in step.gained}))} began"
    if lost:
        yield _wishes(node, lost, "no longer wants", "no longer want groups")
    if step.messages:
        yield "1 message went everywhere" if step.messages == 1 else f"{step.messages} messages went everywhere"


def _of_clients(wishes: Sequence[tuple[ProcessId, str]]) -> list[tuple[ProcessId, str]]:
    """Leave out the groups that every process has to itself."""
    return [(process, name) for process, name in wishes if not name.startswith(PRIVATE)]


def _wishes(node: SectionSource, wishes: Sequence[tuple[ProcessId, str]], one: str, several: str) -> str:
    """Name who wants what, if few do."""
    if len(wishes) <= WANTS_NAMED:
        return ", ".join(f"{node.name_of(process)} {one} {group}" for process, group in wishes)
    nodes = len({process for process, _ in wishes})
    return f"{nodes} node{'' if nodes == 1 else 's'} {several if nodes > 1 else one + ' groups'}: {len(wishes)} in all"
