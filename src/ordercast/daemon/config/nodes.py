"""The nodes of a configuration file: who there is, and where each receives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ordercast.daemon.config.keys import (
    NODE,
    NODE_ON_RINGS,
    NODE_ON_SEVERAL,
    NODE_ON_SITES,
    RINGS,
    RINGS_EXAMPLE,
    Key,
    read_table,
    shown,
)
from ordercast.daemon.config.networks import places_of
from ordercast.daemon.config.node import NetworkConfig, Peer, RingDomain
from ordercast.daemon.config.rings import Legs, legs_of, without_address
from ordercast.daemon.config.sites import site_legs, wide_place
from ordercast.groups.names import checked_daemon
from ordercast.model.errors import UsageError
from ordercast.model.ids import NodeId


@dataclass
class NodesRead:
    """The nodes of a file, on the networks of the only ring, or on several rings."""

    networks: tuple[NetworkConfig, ...]
    domains: tuple[RingDomain, ...]
    has_rings: bool
    has_sites: bool = False
    peers: list[Peer] = field(default_factory=list)  # with their places on the first ring of each
    by_ring: dict[str, list[Peer]] = field(default_factory=dict)
    status_ports: dict[str, int] = field(default_factory=dict)

    @property
    def keys(self) -> tuple[Key, ...]:
        if self.has_sites:
            return NODE_ON_SITES
        if self.has_rings:
            return NODE_ON_RINGS
        return NODE if len(self.networks) == 1 else NODE_ON_SEVERAL

    def read(self, nodes: Mapping[str, Any], problems: list[str]) -> None:
        if not nodes:
            problems.append(f"no nodes: add a table [nodes.NAME] with id and {self.keys[1].name} for each")
        for name, table in nodes.items():
            if not isinstance(table, dict):
                problems.append(f"nodes.{name}: {shown(table)} stands where a table is expected: write [nodes.{name}]")
                continue
            try:
                checked_daemon(name)
            except UsageError as error:
                problems.append(f"nodes.{name}: {error}")
            self._read_one(name, table, problems)

    def _read_one(self, name: str, table: Mapping[str, Any], problems: list[str]) -> None:
        path = f"nodes.{name}."
        table = without_address(table, path, problems) if self.has_rings else table
        values = read_table(table, self.keys, path, problems)
        missing = [key.name for key in self.keys[:2] if key.name not in table]
        hint = {
            RINGS: f": write rings = {RINGS_EXAMPLE}, with the rings that it is on",
            "site": ": write the name of one of [sites]",
        }
        problems += [f"{path}{key} is missing{hint.get(key, '')}" for key in missing]
        legs = self._legs(values, path, problems)
        if "node" not in values or not legs:
            return
        if "status_port" in values:
            self.status_ports[name] = values["status_port"]
        rings = tuple(ring for ring, _ in legs if ring)
        on_each = [Peer(NodeId(values["node"]), name, *places[0], places[1:], rings) for _, places in legs]
        if self.has_sites:
            on_each = [replace(peer, wide=wide_place(peer, values)) for peer in on_each]
        self.peers.append(on_each[0])
        for ring, peer in zip(rings, on_each, strict=False):
            self.by_ring.setdefault(ring, []).append(peer)

    def _legs(self, values: dict[str, Any], path: str, problems: list[str]) -> Legs:
        if self.has_sites:
            return site_legs(values, self.domains, path, problems)
        if self.has_rings:
            return legs_of(values, self.domains, path, problems)
        places = places_of(values, self.networks, f"{path}addresses: ", problems)
        return [("", places)] if places else []
