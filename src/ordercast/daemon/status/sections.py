"""What a status says of one engine alone: a section for each engine that daemons can run. Pure.

A new engine has its values here, under its name, and draws them in `cli/status_drawing.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ordercast.daemon.config.node import NodeConfig
from ordercast.model.ids import SECOND, Instant
from ordercast.order.engine import ObservedEngine
from ordercast.order.membership.stats import RingStats

SILENCE_NS = 10 * SECOND


@dataclass(frozen=True, slots=True)
class RingSection:
    """The token and the flow control that goes with it."""

    visits: int
    rotation_ns: int  # smoothed, while the token does not rest
    last_visit_ns: int | None  # how long ago
    window: int
    visit_max: int
    limited_visits: int  # on which flow control let this process send less than it had

    def warnings(self, members: int) -> Iterator[str]:
        silence = self.last_visit_ns
        if silence is not None and silence > SILENCE_NS and members > 1:
            yield f"no token for {silence / SECOND:.0f} s"

    def as_before(self, document: dict[str, Any]) -> dict[str, Any]:
        """What readers of a status looked for when the ring was the only engine, at its old places."""
        own = document["ring"]
        return {
            "ring": {**document["configuration"], **own},
            "token": {key: own[key] for key in ("visits", "rotation_ns", "last_visit_ns")},
            "flow": {**{key: own[key] for key in ("window", "visit_max", "limited_visits")}, **document["flow"]},
        }


def _ring(engine: ObservedEngine, config: NodeConfig, now: Instant) -> RingSection:
    stats, ring = engine.stats, config.ring
    assert isinstance(stats, RingStats)
    last = now - stats.last_visit_at if stats.visits else None
    return RingSection(stats.visits, stats.rotation_ns, last, ring.window, ring.visit_max, stats.limited_visits)


@dataclass(frozen=True, slots=True)
class NetworkSection:
    """The rings that this process is on."""

    rings: tuple[str, ...]

    def warnings(self, members: int) -> Iterator[str]:
        return iter(())

    def as_before(self, document: dict[str, Any]) -> dict[str, Any]:
        return {}


def _network(engine: ObservedEngine, config: NodeConfig, now: Instant) -> NetworkSection:
    return NetworkSection(tuple(ring.name for ring in config.my_rings))


Section = RingSection | NetworkSection
SECTIONS: Mapping[str, Callable[[ObservedEngine, NodeConfig, Instant], Section]] = {"ring": _ring, "gateways": _network}
