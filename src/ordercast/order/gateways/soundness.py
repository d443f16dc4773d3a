"""Items whose bytes are sound and which yet nobody can have said: they are counted and dropped, and nothing moves.

Whoever takes an item asks here first. What is asked follows from what all members of a ring know of it, so they drop
the same; of ticks it is enough that nobody is near the bound.
"""

from __future__ import annotations

from collections.abc import Iterable

from ordercast.model.ids import ConfigurationId, ProcessId
from ordercast.order.gateways.items import (
    Carried,
    EndItem,
    Flooded,
    HoldItem,
    MarkItem,
    NoticeItem,
    Stretch,
    TopologyItem,
    domain_of,
)
from ordercast.order.gateways.known import Known
from ordercast.order.gateways.merging import Flush
from ordercast.order.membership.bounds import CLOCK_LEAP


def why_not_carried(known: Known, sender: ProcessId, carried: Carried, *, is_gateway: bool) -> str | None:
    """Return why an item that somebody put on a ring is dropped, None if it is taken."""
    item, since, _ = carried
    assert isinstance(item, Flooded)
    if not is_gateway and not (isinstance(item, HoldItem) and item.process == sender):
        return "an item from a process that is no gateway"
    if max(since[0], _highest_tick(item)) > known.clock + CLOCK_LEAP:
        return "an item from a time that cannot be"
    if isinstance(item, EndItem) and not _is_of_one_domain(item):
        return "an END across domains"
    return _why_of_ring(known, carried)


def _highest_tick(item: Flooded) -> int:
    match item:
        case Stretch():
            return item.tick
        case NoticeItem():
            return max(item.stamp[0], item.stable[0])
        case EndItem():
            return item.successor.tick
        case HoldItem():
            return 0


def _is_of_one_domain(end: EndItem) -> bool:
    ring = end.successor
    others: Iterable[ConfigurationId] = (
        end.ring,
        *(half.ring for half in ring.halves),
        *(side for topology in ring.topologies for side in (topology.physical, topology.ring)),
    )
    return all(domain_of(other) == domain_of(ring.id) for other in others)


def _why_of_ring(known: Known, carried: Carried) -> str | None:
    """Return what an item says of a ring that is known not to be so."""
    item, _, half = carried
    if isinstance(item, Stretch | NoticeItem | EndItem) and item.ring in known.rings:
        members = known.rings[item.ring].members
        if isinstance(item, Stretch) and item.originator not in members:
            return "a packet of a process that is not on its ring"
        named = half if isinstance(item, Stretch) else item.half
        if named is not None and not named <= members:
            return "a half with others than the members of its ring"
    return None


def why_no_mark(known: Known, mark: MarkItem, domain: int) -> str | None:
    """Return why a mark is dropped."""
    if domain not in mark.domains or domain_of(mark.logical) != domain:
        return "a mark of another domain"
    if mark.clock > known.clock + CLOCK_LEAP:
        return "a mark from a time that cannot be"
    return None


def why_no_topology(topology: TopologyItem, flush: Flush) -> str | None:
    """Return why a topology is dropped."""
    if not any(half.ring == topology.ring and topology.by in half.members for half in flush.halves):
        return "a topology of a half that its speaker is not in"
    return None
