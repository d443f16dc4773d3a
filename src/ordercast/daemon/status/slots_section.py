"""What a status says of the adaptive engine: how the places are shared out, what was said and asked for, and who holds
up the order. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ordercast.daemon.status.rings_section import SectionSource
from ordercast.model.ids import SECOND

BLOCKED_NS = SECOND  # a member for which packets wait so long is worth a warning


@dataclass(frozen=True, slots=True)
class SlotOwner:
    """A member and its places."""

    name: str
    weight: int  # slots of a period
    rank: int  # 0: nobody has to answer its messages
    packets: int  # of it that are here, in this configuration
    behind_places: int  # below the highest place that any member has acknowledged
    waiting: int  # packets that it would send, as it said last
    is_behind: bool  # its application cannot take more: nobody sends
    blocks_ns: int | None  # how long packets have waited here for its word; none: they do not


@dataclass(frozen=True, slots=True)
class SlotsSection:
    distribution: int  # number in this configuration
    period: int  # slots
    block: int  # places of a slot
    book_keeper: str  # who announces the next distribution
    members: tuple[SlotOwner, ...]
    waiting_places: int  # from what is delivered here to the highest place of a packet
    window: int
    marks: int  # of this node, since it started; as all below
    asks: int
    answers: int  # packets that it sent again in another's place
    relayed: int  # marks of others that it passed on
    distributions: int  # adopted

    @property
    def blockers(self) -> dict[str, int]:
        """For how long packets have waited for whom."""
        return {member.name: member.blocks_ns for member in self.members if member.blocks_ns is not None}

    def warnings(self, members: int) -> Iterator[str]:
        for name, lasted in self.blockers.items():
            if lasted >= BLOCKED_NS:
                yield f"delivery has waited for {lasted / SECOND:.0f} s for {name}: see whether it runs and is heard"
        for member in self.members:
            if member.is_behind:
                yield f"nobody sends, for the application at {member.name} does not take its deliveries"

    def as_before(self, document: dict[str, Any]) -> dict[str, Any]:
        """This engine was never the only one."""
        return {}


def slots_section(node: SectionSource) -> SlotsSection:
    from ordercast.order.adaptive.node import AdaptiveNode

    engine = node.engine
    assert isinstance(engine, AdaptiveNode)
    seen, stats, now = engine.observed(), engine.adaptive_stats, node.now()
    highest = max(member.aru for member in seen.members)
    owners = tuple(
        SlotOwner(
            node.name_of(member.process),
            member.weight,
            member.rank,
            member.packets,
            highest - member.aru,
            member.waiting,
            member.is_behind,
            None if member.blocks_since is None else now - member.blocks_since,
        )
        for member in seen.members
    )
    return SlotsSection(
        seen.number,
        seen.period,
        seen.block,
        node.name_of(seen.book_keeper),
        owners,
        max(0, seen.highest - seen.delivered),
        node.config.ring.window,
        stats.marks,
        stats.asks,
        stats.answers,
        stats.relayed,
        stats.distributions,
    )
