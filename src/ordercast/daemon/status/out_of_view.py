"""Rings, sites and nodes of the file that are not in the view of this node: since when, and why, as far as it knows."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ordercast.daemon.config.node import Peer
from ordercast.model.ids import Instant, node_of

if TYPE_CHECKING:  # it has this in its status
    from ordercast.daemon.status.places import PlacedNode


@dataclass(frozen=True, slots=True)
class OutOfView:
    """Nodes that are not in the view, of one ring or site of which nobody is, or one node whose rings are there."""

    place: str  # the ring or site; empty where others of it are in the view
    nodes: tuple[str, ...]
    for_ns: int | None  # since the last of them was in it; None: none was, since this node started
    why: str | None  # that view ended


def out_of_view(node: PlacedNode, seen: Collection[str], now: Instant) -> tuple[OutOfView, ...]:
    """Return who of the file is missing; `seen` are the rings or sites of the view."""
    here = {node_of(process) for process in node.engine.configuration.members}
    gone = [peer for peer in node.config.peers if peer.node not in here]
    unseen = [domain.name for domain in node.config.rings if domain.name not in seen]
    places = [(name, [peer for peer in gone if name in peer.rings]) for name in unseen]
    places += [("", [peer]) for peer in gone if not any(name in unseen for name in peer.rings)]
    return tuple(_missing(node, place, peers, now) for place, peers in places if peers)


def _missing(node: PlacedNode, place: str, peers: Sequence[Peer], now: Instant) -> OutOfView:
    away = node.counters.absences.away
    last = max((away[peer.node] for peer in peers if peer.node in away), key=lambda one: one.since, default=None)
    names = tuple(peer.name for peer in peers)
    if last is None:
        return OutOfView(place, names, None, None)
    return OutOfView(place, names, now - last.since, last.reason.text)
