"""What a status says of one engine alone: a section for each engine that daemons can run. Pure.

A new engine has its values here, under its name, and draws them in `cli/status_drawing.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ordercast.daemon.status.rings_section import RingsSection, SectionSource, TokenStatus, rings_section
from ordercast.daemon.status.sites_section import SitesSection, sites_section
from ordercast.daemon.status.slots_section import SlotsSection, slots_section
from ordercast.daemon.status.tree_section import TreeSection, tree_section
from ordercast.order.membership.stats import RingStats


@dataclass(frozen=True, slots=True)
class RingSection(TokenStatus):
    """The one ring of a process."""

    def warnings(self, members: int) -> Iterator[str]:
        if silence := self.silence(members):
            yield silence

    def as_before(self, document: dict[str, Any]) -> dict[str, Any]:
        """What readers of a status looked for when the ring was the only engine, at its old places."""
        own = document["ring"]
        return {
            "ring": {**document["configuration"], **own},
            "token": {key: own[key] for key in ("visits", "rotation_ns", "last_visit_ns")},
            "flow": {**{key: own[key] for key in ("window", "visit_max", "limited_visits")}, **document["flow"]},
        }


def _ring(node: SectionSource) -> RingSection:
    stats = node.engine.stats
    assert isinstance(stats, RingStats)
    return RingSection.of(stats, node.config.ring, node.now(), len(node.engine.configuration.members))


Section = RingSection | RingsSection | SlotsSection | SitesSection | TreeSection
SECTIONS: Mapping[str, Callable[[SectionSource], Section]] = {
    "ring": _ring,
    "gateways": rings_section,
    "adaptive": slots_section,
    "sites": sites_section,
    "tree": tree_section,
}
