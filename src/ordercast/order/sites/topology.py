"""Who is in reach: records of representatives, and what follows from them. Pure.

An edge counts when both ends list it, with the same epoch. The *component* of a representative is whoever it reaches
over edges; the smallest representative of a component coordinates.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from ordercast.model.ids import ConfigurationId, Instant, ProcessId
from ordercast.order.sites.frames import ReachRecord
from ordercast.order.sites.routes import used_edges
from ordercast.order.sites.views import Fragment, SiteEdge, WideView, next_seq

Component = dict[ProcessId, ReachRecord]


class Records:
    """The newest record of each representative that is heard."""

    def __init__(self, lifetime_ns: int) -> None:
        self._lifetime_ns = lifetime_ns
        self._records: dict[ProcessId, tuple[ReachRecord, Instant]] = {}

    def take(self, record: ReachRecord, now: Instant) -> bool:
        """Take a record; False when a newer one, or this one, is here."""
        known = self._records.get(record.process)
        if known is not None and known[0].number >= record.number:
            return False
        self._records[record.process] = record, now
        return True

    def all(self) -> list[ReachRecord]:
        return [record for record, _ in self._records.values()]

    def forget(self, me: ProcessId, now: Instant) -> bool:
        """Forget whom nobody speaks of any more; return whether there was one."""
        old = [one for one, (_, at) in self._records.items() if one != me and now - at > self._lifetime_ns]
        for process in old:
            del self._records[process]
        return bool(old)

    def forgive(self, now: Instant) -> None:
        """Take no record for old: this process itself did nothing for a while."""
        self._records = {one: (record, now) for one, (record, _) in self._records.items()}

    def clear(self) -> None:
        self._records.clear()

    def component(self, me: ProcessId, without: Collection[ProcessId] = ()) -> Component:
        """Return the records of those whom this process reaches, itself included."""
        records = {one: record for one, (record, _) in self._records.items() if one not in without or one == me}
        found = {me} & records.keys()
        fresh = list(found)
        while fresh:
            one = fresh.pop()
            for link in records[one].links:
                if link.peer not in found and is_edge(records, one, link.peer):
                    found.add(link.peer)
                    fresh.append(link.peer)
        return {one: records[one] for one in sorted(found)}


def is_edge(records: Mapping[ProcessId, ReachRecord], one: ProcessId, other: ProcessId) -> bool:
    """Whether both list the link between them."""
    return other in records and _edge(records, one, other) is not None


def _edge(
    records: Mapping[ProcessId, ReachRecord], one: ProcessId, other: ProcessId
) -> tuple[int, int, int, int] | None:
    """Return the costs both ways and the tags of a link; None where there is none."""
    forth = next((link for link in records[one].links if link.peer == other), None)
    back = next((link for link in records[other].links if link.peer == one), None)
    if forth is None or back is None or forth.tags != back.tags[::-1]:
        return None
    return forth.cost, back.cost, *forth.tags


def fragments_of(component: Component) -> tuple[Fragment, ...] | None:
    """Return the fragments of a component by rank; None when two claim one member: somebody's record is old."""
    fragments = tuple(component[one].fragment for one in sorted(component))
    members = [member for fragment in fragments for member in fragment.members]
    return fragments if len(set(members)) == len(members) else None


def edges_of(component: Component) -> tuple[SiteEdge, ...]:
    """Return the edges of a component, between ranks."""
    ranked = sorted(component)
    edges = []
    for low, one in enumerate(ranked):
        for high in range(low + 1, len(ranked)):
            found = _edge(component, one, ranked[high])
            if found is not None:
                edges.append(SiteEdge(low, high, found[0], found[1], (found[2], found[3])))
    return tuple(edges)


def carries(component: Component, fragments: Sequence[Fragment], edges: Sequence[SiteEdge]) -> bool:
    """Whether all these fragments are there, and every link that trees over these edges use, of the same epoch."""
    ranked = [fragment.representative for fragment in fragments]
    if any(one not in component or component[one].fragment not in fragments for one in ranked):
        return False
    for edge in used_edges(len(ranked), edges):
        found = _edge(component, ranked[edge.low], ranked[edge.high])
        if found is None or found[2:] != edge.tags:
            return False
    return True


def is_view_of(component: Component, view: WideView) -> bool:
    """Whether the view is that of the component, at everybody."""
    return fragments_of(component) == view.fragments and all(record.view == view.id for record in component.values())


def highest_seq(component: Component) -> int:
    return max(max(record.seq, record.view.seq) for record in component.values())


def shape_of(component: Component) -> tuple[object, ...]:
    """Return what has to be still for a while: who is there and which links, not their costs."""
    return (
        tuple(record.fragment for record in component.values()),
        tuple((edge.low, edge.high, edge.tags) for edge in edges_of(component)),
    )


def attempt_id(component: Component, coordinator: ProcessId, seq: int) -> ConfigurationId:
    """Return the id of the next attempt, above all that anybody of the component knows, and above `seq`."""
    highest = max(highest_seq(component), seq)
    return ConfigurationId(next_seq(highest), coordinator)
