"""Engines as drivers get them: made by the catalogue, with a layer for several networks under any of them.

Daemon and simulator make their engines here, so that what is simulated is what ships.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ordercast.model.ids import NodeId
from ordercast.networks.config import NetworksConfig
from ordercast.networks.layer import Networks
from ordercast.order.catalogue import ENGINES, entry_of, tables_of
from ordercast.order.engine import Engine, ObservedEngine
from ordercast.order.ring.node import RingNode
from ordercast.order.setup import Domain, Setup


@dataclass(frozen=True, slots=True)
class Assembly:
    engine: ObservedEngine
    layer: Networks | None  # between the engine and several networks

    @property
    def driven(self) -> Engine:
        """What a driver drives."""
        return self.layer or self.engine


def assembled(
    name: str,
    node: NodeId,
    holder: object,
    networks: NetworksConfig,
    *,
    nodes: int = 0,
    verbose: bool = False,
    domains: tuple[Domain, ...] = (),
    is_filtering: bool = True,
) -> Assembly:
    """The engine of this name. `holder` has its configuration tables as attributes; `nodes` is how many there are;
    nothing is filtered where the raw stream is wanted."""

    def over_networks(ring: RingNode) -> Networks:
        return Networks(ring, node, networks, setup.ring, verbose=verbose, cluster=ring.cluster)

    others = tuple(other for other in ENGINES if other != name)
    tables = tables_of(name, holder)
    setup = Setup(node, tables, nodes, verbose, networks.in_words, others, domains, is_filtering=is_filtering)
    entry = entry_of(name)
    if networks.count == 1:
        return Assembly(entry.make(setup), None)
    if entry.is_layered:
        return Assembly(entry.make(replace(setup, over_networks=over_networks)), None)
    engine = entry.make(setup)
    return Assembly(engine, Networks(engine, node, networks, setup.ring, verbose=verbose))
