"""From the configuration of a node to its engine, with the layers between the engine and several networks."""

from __future__ import annotations

from dataclasses import replace

from ordercast.daemon.config.node import NodeConfig
from ordercast.model.ids import NodeId
from ordercast.networks.assembly import Assembly, assembled
from ordercast.order.outbox import OVERHEAD
from ordercast.order.setup import Domain
from ordercast.trace.live_stamp import LIVE_STAMP_SIZE


def assembly_of(config: NodeConfig, node: NodeId, *, is_stamping: bool) -> Assembly:
    """Return the engine of a node. `is_stamping`: with room for the stamps that a full recording adds."""
    ring = config.ring
    if is_stamping:
        size = ring.message_size_max + LIVE_STAMP_SIZE
        ring = replace(ring, message_size_max=size, queue_size_max=max(ring.queue_size_max, size + OVERHEAD))
    links = replace(config.sites.links, packet_size=ring.packet_size_max)
    return assembled(
        config.engine,
        node,
        replace(config, ring=ring, sites=replace(config.sites, links=links)),
        [attached.layer for attached in config.attachments],
        verbose=is_stamping,
        domains=tuple(Domain(domain.number, domain.name) for domain in config.my_rings),
        domain_names={domain.number: domain.name for domain in config.rings},
        node_names={peer.node: peer.name for peer in config.peers},
        beyond=config.far_nodes(),
    )
