"""Engines as drivers get them: made by the catalogue, with a layer for several networks under any of them.

Daemon and simulator make their engines here, so that what is simulated is what ships.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from ordercast.model.ids import Attachment, NodeId
from ordercast.model.inputs import Lane
from ordercast.networks.config import NetworksConfig
from ordercast.networks.layer import Networks
from ordercast.order.catalogue import entry_of, neighbours_of, tables_of
from ordercast.order.engine import Engine, ObservedEngine
from ordercast.order.ring.node import RingNode
from ordercast.order.setup import ONE_DOMAIN, Domain, FarNode, Setup
from ordercast.wire.head import cluster_id_from


@dataclass(frozen=True, slots=True)
class Assembly:
    engine: ObservedEngine
    layers: tuple[Networks | None, ...] = (None,)  # between the engine and several networks, by attachment
    is_above: bool = True  # the engine is above the layer; otherwise the layer is inside it
    clusters: tuple[bytes, ...] = ()  # the ids in the packets of each attachment on which all hear all
    link_cluster: bytes = b""  # and in those of links
    other_engines: Mapping[bytes, str] = field(default_factory=dict)  # by the id of this cluster on them

    def cluster(self, attachment: Attachment, lane: Lane) -> bytes:
        """Return the id in the packets of a lane."""
        is_link = lane is Lane.LINK or attachment >= len(self.clusters)
        return self.link_cluster if is_link else self.clusters[attachment]

    @property
    def driven(self) -> Engine:
        """What a driver drives."""
        return (self.layers[0] if self.is_above else None) or self.engine


def assembled(
    name: str,
    node: NodeId,
    holder: object,
    networks: NetworksConfig | Sequence[NetworksConfig],
    *,
    nodes: int = 0,
    verbose: bool = False,
    domains: tuple[Domain, ...] = (),
    domain_names: Mapping[int, str] | None = None,
    node_names: Mapping[NodeId, str] | None = None,
    beyond: tuple[FarNode, ...] = (),
) -> Assembly:
    """The engine of this name. `holder` has its configuration tables as attributes; `networks`: of all attachments, or
    of each; `nodes` is how many there are; names are those of the whole network; `beyond` are nodes of other sites."""
    entry = entry_of(name)
    each = (networks,) * (len(domains) or 1) if isinstance(networks, NetworksConfig) else tuple(networks)
    tables, names = tables_of(name, holder), (domain_names or {}, node_names or {})
    cluster_name = tables["ring" if "ring" in tables else "baseline"].cluster
    cluster, others = cluster_id_from(cluster_name, name), neighbours_of(cluster_name, name)
    late = each[0].token_hold_ns if each[0].count > 1 else 0
    setup = Setup(node, tables, nodes, verbose, each[0].in_words, late, others, domains, *names, beyond)
    if not entry.is_layered:
        engine = entry.make(setup)
        layer = Networks(engine, node, each[0], setup.ring, verbose=verbose) if each[0].count > 1 else None
        return Assembly(engine, (layer,), clusters=(cluster,), link_cluster=cluster, other_engines=others)
    layers: list[Networks | None] = []
    clusters: list[bytes] = []

    def over(own: NetworksConfig, ring: RingNode) -> Engine:
        layer = Networks(ring, node, own, setup.ring, verbose=verbose, cluster=ring.cluster) if own.count > 1 else None
        layers.append(layer)
        clusters.append(ring.cluster)
        return layer or ring

    placed = tuple(
        replace(domain, beneath=own.in_words, over_networks=partial(over, own))
        for domain, own in zip(domains or ONE_DOMAIN, each, strict=True)
    )
    engine = entry.make(replace(setup, domains=placed))
    found = tuple(clusters)
    return Assembly(engine, tuple(layers), False, found, link_cluster=cluster, other_engines=others)
