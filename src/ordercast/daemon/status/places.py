"""All nodes of a cluster as one of them knows them: where each serves its status, who is away since when. Pure."""

from __future__ import annotations

from ipaddress import ip_address
from typing import Protocol

from ordercast.daemon.config.defaults import LOOPBACK, STATUS_PORT, host_and_port
from ordercast.daemon.config.node import PORT, NodeConfig
from ordercast.daemon.status.counters import Counters
from ordercast.daemon.status.parts import NodePlace
from ordercast.model.ids import ConfigurationId, Instant, NodeId, ProcessId, node_of
from ordercast.order.catalogue import entry_of
from ordercast.order.engine import ObservedEngine


class PlacedNode(Protocol):
    @property
    def config(self) -> NodeConfig: ...
    @property
    def engine(self) -> ObservedEngine: ...
    @property
    def counters(self) -> Counters: ...
    def name_of(self, process: ProcessId) -> str: ...


def id_text(id: ConfigurationId, node: PlacedNode) -> str:
    text = entry_of(node.config.engine).id_text
    return f"{id.seq}.{node.name_of(id.representative)}" if text is None else text(id)


def own_port(config: NodeConfig, port: int, node: NodeId | None = None) -> int:
    """Nodes that share a machine without a file have one port each, in the order of their ids."""
    node = config.node if node is None else node
    assert node is not None
    is_usual = port - config.network.port == STATUS_PORT - PORT
    return port + node - 1 if config.is_local and is_usual else port


def everybody(node: PlacedNode, now: Instant) -> tuple[NodePlace, ...]:
    """Members, those who are on the list, and where there is none those who were members; by their numbers."""
    config, away = node.config, node.counters.absences.away
    members = {node_of(process): node.name_of(process) for process in node.engine.configuration.members}
    roster = node.engine.roster
    listed = {} if config.is_local or roster is None else {entry.node: entry.name for entry in roster.entries}
    gone = {number: node.name_of(absence.process) for number, absence in away.items() if not listed}
    named = gone | {peer.node: peer.name for peer in config.peers if config.rings} | listed | members
    found = []
    for number, name in sorted(named.items()):
        place, absence = status_place(config, number, name), away.get(number)
        if number in members or absence is None:
            found.append(NodePlace(name, number, place, number in members))
        else:
            last = id_text(absence.last, node)
            found.append(NodePlace(name, number, place, False, now - absence.since, last, absence.reason.text))
    return tuple(found)


def status_place(config: NodeConfig, node: NodeId, name: str) -> str | None:
    """Where a node serves its status, as far as this one knows; None where only its own host could ask."""
    status = config.status
    usual = status.port or 0
    port = own_port(config, usual, node) if config.is_local else dict(status.ports).get(name, usual)
    address = next((peer.address for peer in config.peers if peer.node == node), LOOPBACK)
    is_here = node == config.node or ip_address(address).is_loopback
    if not port or (ip_address(status.address).is_loopback and not is_here):
        return None
    return host_and_port(status.address if ip_address(status.address).is_loopback else address, port)
