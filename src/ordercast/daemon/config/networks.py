"""Several networks in a configuration file: their tables, the addresses of nodes on each, and how they are used."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ordercast.daemon.config.keys import (
    COPIES,
    NAMED_NETWORK,
    NETWORKS,
    REDUNDANCY,
    REPLICATION,
    RING,
    RINGS,
    SITES,
    read_table,
    shown,
)
from ordercast.daemon.config.node import PORT_MAX, NetworkConfig, NodeConfig
from ordercast.daemon.config.rules_text import in_the_words_of_the_file
from ordercast.model.roster import Place
from ordercast.networks.config import NETWORKS_MAX, NetworksConfig


def several_networks(
    document: Mapping[str, Any], single: dict[str, Any], problems: list[str], path: str = ""
) -> tuple[NetworkConfig, ...]:
    """What [[networks]] says, or [network]; one at least, whatever is wrong. `path`: the table in which they stand."""
    tables = document.get(NETWORKS)
    if tables is None:
        return (NetworkConfig(**single),)
    if not isinstance(tables, list) or not tables or not all(isinstance(table, dict) for table in tables):
        where = f"{path}{NETWORKS}"
        problems.append(f"{where}: {shown(tables)} stands where tables are expected: write [[{where}]] above each")
        return (NetworkConfig(**single),)
    if "network" in document:
        problems.append("network and networks are both there: write [[networks]] for each, and leave out [network]")
    if len(tables) > NETWORKS_MAX:
        problems.append(f"{path}networks: there are {len(tables)}: write at most {NETWORKS_MAX}")
    found = [read_table(table, NAMED_NETWORK, f"{path}networks.{at}.", problems) for at, table in enumerate(tables)]
    networks = tuple(NetworkConfig(**{"name": f"network {at}", **values}) for at, values in enumerate(found))
    names = [network.name for network in networks]
    twins = [name for name in sorted(set(names)) if names.count(name) > 1]
    problems += [f"{path}networks: {name} is the name of two of them" for name in twins]
    return networks


def redundancy(document: Mapping[str, Any], values: dict[str, Any], problems: list[str]) -> NetworksConfig:
    top = {key.name: document[key.name] for key in (REPLICATION, COPIES) if key.name in document}
    chosen = read_table(top, (REPLICATION, COPIES), "", problems)
    domains = [document.get(kind) for kind in (RINGS, SITES)]
    tables = [document, *(table for each in domains if isinstance(each, dict) for table in each.values())]
    if top and not any(isinstance(table, dict) and NETWORKS in table for table in tables):
        name = next(iter(top))
        problems.append(f"{name} is there, but one network alone: write [[networks]] for each of them, or leave it out")
    return NetworksConfig(**chosen, **values)


def places_of(
    values: dict[str, Any], networks: tuple[NetworkConfig, ...], path: str, problems: list[str]
) -> tuple[Place, ...]:
    """Where a node receives on each network; nothing when that is not said."""
    addresses = values.get("addresses", (values["address"],) if "address" in values else ())
    if addresses and len(addresses) != len(networks):
        count = len(networks)
        problems.append(f"{path}{len(addresses)} for {count} networks: write one for each, in their order")
    if len(addresses) != len(networks):
        return ()
    return tuple(
        Place(
            address,
            values.get("token_port", min(network.port + 1, PORT_MAX)),
            values.get("data_port", network.port),
        )
        for address, network in zip(addresses, networks, strict=True)
    )


def redundancy_problems(config: NodeConfig) -> list[str]:
    """What does not go together, in the words of the file."""
    if not config.more_networks:
        return []
    layer = config.layer
    sentences = layer.problems(config.ring, config.nodes_expected)
    keys = (*REDUNDANCY, *RING)
    return [
        *_shared(config),
        *(f"[redundancy] {in_the_words_of_the_file(s, keys, layer, config.ring)}" for s in sentences),
    ]


def _shared(config: NodeConfig) -> Iterator[str]:
    """Networks that are one and the same are not redundant."""
    seen: dict[tuple[str, int], str] = {}
    for peer in config.peers:
        places = [(peer.address, peer.token_port), *((place.address, place.token_port) for place in peer.more)]
        for place, network in zip(places, config.networks, strict=True):
            if place in seen:
                where = f"{place[0]} port {place[1]}"
                yield f"nodes.{peer.name}.addresses: {where} is used on {seen[place]} and on {network.name}"
            seen.setdefault(place, network.name)
