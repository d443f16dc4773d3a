"""`mtu = "auto"`: the MTU of the interface that has a node's address, found when the file is read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ordercast.daemon.config.node import AUTO_MTU, NetworkConfig, NodeConfig
from ordercast.daemon.sockets.mtu import interface_mtu

JUMBO_MTU = 9000  # what is called a jumbo frame; the loopback interface would take more
USUAL_MTU = 1500  # of Ethernet: what a host without an address of the cluster goes by
Measure = Callable[[str], int | None]


def with_mtus(config: NodeConfig, measure: Measure = interface_mtu) -> NodeConfig:
    """Packets of each network as large as the interface takes them, at most a jumbo frame, where the file says so."""
    if config.rings:
        rings = tuple(
            replace(domain, network=found[0], more_networks=found[1:])
            for domain in config.rings
            if (found := _networks(config.on_ring(domain), measure))
        )
        return replace(config, rings=rings)
    found = _networks(config, measure)
    return replace(config, network=found[0], more_networks=found[1:])


def _networks(config: NodeConfig, measure: Measure) -> tuple[NetworkConfig, ...]:
    return tuple(_network(config.on(number), measure) for number in range(len(config.networks)))


def _network(config: NodeConfig, measure: Measure) -> NetworkConfig:
    if config.network.mtu != AUTO_MTU:
        return config.network
    for peer in config.peers:
        if (found := measure(peer.address)) is not None:
            return replace(config.network, mtu=min(found, JUMBO_MTU))
    return replace(config.network, mtu=USUAL_MTU)
