"""What can be seen of the tree engine from outside: the forest, this process's place in it, what enters here, why the
forest changed, and what waits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from ordercast.model.ids import Instant, ProcessId
from ordercast.order.links.link import LinkFigures
from ordercast.order.tree.course import Course
from ordercast.order.tree.story import ForestStep, ForestStory

OWN = ("=", "@")  # begin the names of groups that a process, or its daemon, has to itself


class EntrySeen(NamedTuple):
    """A group whose messages enter at this process."""

    group: str
    members: int  # processes that want it
    visited: int  # processes that its messages visit
    rate: int  # messages a second to it, as all senders have said
    unstable: int  # bytes of it that are not known to be everywhere


class EdgeSeen(NamedTuple):
    """A child, or the parent."""

    peer: ProcessId
    undone: int  # blocks that were sent to it and are not known to have come to all below it
    figures: LinkFigures | None  # of the link; None: nothing was sent there yet


class TreeSeen(NamedTuple):
    manager: ProcessId
    opened: int = 0  # the opening that is in effect here
    parents: Mapping[ProcessId, ProcessId | None] = MappingProxyType({})  # of the whole forest
    entered: Mapping[ProcessId, int] = MappingProxyType({})  # groups that enter at each process
    birth: int | None = None  # of this process's tree; None: it is between two
    depth: int = 0
    parent: EdgeSeen | None = None
    children: tuple[EdgeSeen, ...] = ()
    links: int = 0  # that are in use, to anybody
    entries: tuple[EntrySeen, ...] = ()  # the busiest first
    wants: tuple[str, ...] = ()
    waiting: int = 0  # messages of this process's users that were not sent yet
    unstable: int = 0  # that were sent and are not known to be everywhere
    held: int = 0  # blocks that are kept here for others
    queued: int = 0  # that wait here for a safe message
    behind: tuple[ProcessId, ...] = ()  # whose applications do not take their deliveries
    broken: tuple[tuple[ProcessId, ProcessId], ...] = ()  # edges that have failed in this configuration
    closing: tuple[ProcessId, ...] = ()  # roots of trees that have not closed yet
    steps: tuple[ForestStep, ...] = ()  # the last changes
    pauses: tuple[int, ...] = ()  # of this process, between two trees: the last ones, in nanoseconds
    pause_count: int = 0
    longest_pause_ns: int = 0
    paused_for_ns: int | None = None  # None: it is in a tree


def nothing_seen(me: ProcessId) -> TreeSeen:
    """What is seen before the first configuration."""
    return TreeSeen(me)


def tree_seen(course: Course, story: ForestStory, links: Mapping[ProcessId, LinkFigures], now: Instant) -> TreeSeen:
    stream, source, forest = course.branch.stream, course.source, course.forest
    parents: dict[ProcessId, ProcessId | None] = {}
    entered: Counter[ProcessId] = Counter()
    for tree in forest.trees.values():
        parents.update(tree.graph.parents)
        entered.update(tree.graph.entry(name) for name in tree.names if not name.startswith(OWN))
    parent, children = None, list[EdgeSeen]()
    if stream is not None:
        parent = None if stream.parent is None else EdgeSeen(stream.parent, 0, links.get(stream.parent))
        children = [EdgeSeen(child, len(edge.undone), links.get(child)) for child, edge in stream.edges.items()]
    return TreeSeen(
        manager=course.configuration.members[0],
        opened=course.opened,
        parents=dict(sorted(parents.items())),
        entered=dict(entered),
        birth=None if stream is None or stream.is_closed else stream.birth,
        depth=0 if stream is None else stream.depth,
        parent=parent,
        children=tuple(children),
        links=len(links),
        entries=_entries(course),
        wants=tuple(name for name in course.wants if not name.startswith(OWN)),
        waiting=len(source.waiting),
        unstable=len(source.sent),
        held=sum(len(one.held) for one in course.branch.streams),
        queued=0 if stream is None else len(stream.queue),
        behind=tuple(sorted(course.behind)),
        broken=tuple(sorted(course.broken)),
        closing=tuple(sorted(course.unclosed)),
        steps=tuple(story.steps),
        pauses=tuple(story.pauses),
        pause_count=story.pause_count,
        longest_pause_ns=story.longest_pause_ns,
        paused_for_ns=story.paused_for(now),
    )


def _entries(course: Course) -> tuple[EntrySeen, ...]:
    """Return the groups that enter here, but for those that are this process's alone."""
    stream = course.branch.stream
    if stream is None:
        return ()
    rates: Counter[str] = Counter()
    for (_, name), rate in course.rates.items():
        rates[name] += rate
    graph, unstable = stream.tree.graph, Counter[str]()
    for (_, places), size in stream.unstable.items():
        unstable.update(dict.fromkeys((stream.tree.names[place] for place in places), size))
    here = (name for name in stream.tree.names if not name.startswith(OWN) and graph.entry(name) == course.me)
    found = [
        EntrySeen(name, len(graph.groups[name]), len(graph.footprint(name)), rates[name], unstable[name])
        for name in here
    ]
    return tuple(sorted(found, key=lambda entry: (-entry.rate, entry.group)))
