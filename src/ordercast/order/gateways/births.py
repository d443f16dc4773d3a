"""What the birth of a logical ring does to the topology. A merge brings the topologies of all its halves with it.

Members of the new ring are those of its half who still count and were not claimed by a later ring: whoever is claimed
by two rings went to the later one. Nobody who has left the view comes back by a birth; only a merge brings processes.
"""

from __future__ import annotations

from ordercast.model.ids import ConfigurationId, ProcessId
from ordercast.model.notes import Occurrence
from ordercast.order.gateways.items import NOBODY_ELSE, LogicalRing, Processes, TopologyItem, domain_of
from ordercast.order.gateways.known import Known

PartMembers = dict[ConfigurationId, Processes]


def bear(known: Known, ring: LogicalRing) -> None:
    """Put a logical ring in its predecessors' place. The caller has come to its birth in the order."""
    assert ring.birth > known.place, f"{ring.id} is born at {ring.birth}, in the past of {known.place}"
    known.learn(ring)
    known.place = ring.birth
    known.born.add(ring.id)
    before = known.parts
    parts = dict(before)
    for topology in ring.topologies:
        _join(known, parts, topology, ring)
    if ring.is_merge:
        known.merges.add(ring.birth)
        known.lost |= _lost(ring)
    parts[ring.id] = _members(known, parts, ring)
    for process in ring.members:
        known.rebase(process, domain_of(ring.id), ring.id)
    known.ends.add_merge(ring)
    known.parts = _latest(parts)
    for new in parts:
        if new != ring.id and new not in before:
            known.streams[new].begin_at(ring.birth)
            known.occurred[Occurrence.NETWORK_BACK] += new in known.deleted
    known.occurred[Occurrence.NETWORK_MERGE if ring.is_merge else Occurrence.NETWORK_BIRTH] += 1
    known.changed()


def _join(known: Known, parts: PartMembers, topology: TopologyItem, ring: LogicalRing) -> None:
    """Take over the logical state of one half, just before the merge."""
    for part in topology.parts:
        known.learn(part.ring)
        known.born.add(part.ring.id)
        parts[part.ring.id] = parts.get(part.ring.id, NOBODY_ELSE) | part.members
    for base in topology.bases:
        known.rebase(base.process, base.domain, base.ring)
    for end in topology.ends:
        known.learn(end.successor)
        known.ends.add(end)
        if end.successor.birth < ring.birth:
            known.born.add(end.successor.id)
    known.ends.add_words(topology.words)


def _lost(ring: LogicalRing) -> PartMembers:
    """Return who has left each part that a merge brings because nothing more was known of them: at all sides that have
    the part. Another side may know more."""
    lost: PartMembers = {}
    for topology in ring.topologies:
        for part in topology.parts:
            lost[part.ring.id] = lost.get(part.ring.id, part.lost) & part.lost
    return lost


def _members(known: Known, parts: PartMembers, ring: LogicalRing) -> Processes:
    domain = domain_of(ring.id)
    counted = NOBODY_ELSE.union(*(members for part, members in parts.items() if domain_of(part) == domain))
    predecessors = {end.ring for end in known.ends.into(ring.id)} | {half.ring for half in ring.halves}
    elsewhere = NOBODY_ELSE.union(
        *(end.half for old in predecessors for end in known.ends.of(old) if end.successor.id > ring.id)
    )
    if ring.members & counted & elsewhere:
        known.occurred[Occurrence.NETWORK_TWO_MINDS if ring.is_merge else Occurrence.NETWORK_CLAIMED_TWICE] += 1
    return ring.members & counted - elsewhere


def _latest(parts: PartMembers) -> PartMembers:
    """Return the parts with each process on the newest ring of a domain that counts it."""
    newest: dict[tuple[ProcessId, int], ConfigurationId] = {}
    for ring, members in parts.items():
        domain = domain_of(ring)
        for process in members:
            if (process, domain) not in newest or ring > newest[process, domain]:
                newest[process, domain] = ring
    return {
        ring: frozenset(process for process in members if newest[process, domain_of(ring)] == ring)
        for ring, members in parts.items()
    }
