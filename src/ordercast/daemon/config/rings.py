"""Several rings or sites in a configuration file: their tables, who is on which, and what a person should know."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ordercast.daemon.config.keys import NETWORK, NETWORKS, RING_ID, RINGS, RINGS_EXAMPLE, read_table, shown, suggestion
from ordercast.daemon.config.networks import places_of, several_networks
from ordercast.daemon.config.node import NodeConfig, Peer, RingDomain
from ordercast.model.roster import Place
from ordercast.order.attached import DOMAIN_MAX
from ordercast.order.catalogue import ENGINES

NAME = re.compile(r"[A-Za-z0-9_-]{1,32}")  # it begins the names of files in the state folder

Legs = list[tuple[str, tuple[Place, ...]]]  # of a node: names of rings, and where it receives on each


def ring_domains(document: Mapping[str, Any], problems: list[str], kind: str = RINGS) -> tuple[RingDomain, ...]:
    """What [rings], or [sites], says of each, still without nodes; nothing where it is not there, or wrong as a
    whole."""
    tables = document.get(kind)
    if tables is None:
        return ()
    if not isinstance(tables, dict) or not tables or not all(isinstance(table, dict) for table in tables.values()):
        problems.append(f"{kind}: {shown(tables)} stands where tables are expected: write [{kind}.NAME] above each")
        return ()
    problems += [
        f"{name} and {kind} are both there: write what [{name}] says into each [{kind}.NAME]"
        for name in ("network", NETWORKS)
        if name in document
    ]
    if len(tables) > DOMAIN_MAX:
        problems.append(f"{kind}: there are {len(tables)}: write at most {DOMAIN_MAX}")
    domains = tuple(_domain(kind, name, table, problems) for name, table in tables.items())
    owners: dict[int, str] = {}
    for domain in domains:
        owner = owners.setdefault(domain.number, domain.name)
        if domain.number and owner != domain.name:
            where = f"{kind}.{domain.name}.id"
            problems.append(f"{where}: {domain.number} is the id of {kind}.{owner} too: give it another")
    return domains


def _domain(kind: str, name: str, table: Mapping[str, Any], problems: list[str]) -> RingDomain:
    path, what = f"{kind}.{name}.", kind.removesuffix("s")
    if not NAME.fullmatch(name):
        problems.append(f"{kind}.{name}: a {what}'s name has up to 32 letters, digits, - and _: call it otherwise")
    own = {key: value for key, value in table.items() if key != NETWORKS}
    values = read_table(own, (RING_ID, *NETWORK), path, problems)
    if RING_ID.name not in own:
        problems.append(f"{path}id is missing: give each {what} a number of its own, 1 to {DOMAIN_MAX}")
    number = values.pop(RING_ID.field, 0)
    if NETWORKS in table and values:
        problems.append(f"{path}{next(iter(values))} belongs to one network: write it below [[{path}networks]]")
    networks = several_networks({NETWORKS: table[NETWORKS]} if NETWORKS in table else {}, values, problems, path)
    return RingDomain(name, number, networks[0], networks[1:])


def legs_of(values: Mapping[str, Any], domains: Sequence[RingDomain], path: str, problems: list[str]) -> Legs:
    """Return where a node receives on each of its rings, in its order; nothing when that is not said soundly."""
    legs: Legs = []
    by_name = {domain.name: domain for domain in domains}
    for name, addresses in values.get(RINGS, {}).items():
        domain = by_name.get(name)
        if domain is None:
            problems.append(f"{path}rings.{name}: there is no [rings.{name}]{suggestion(name, by_name)}")
            continue
        networks = (domain.network, *domain.more_networks)
        if len(addresses) > len(networks) == 1:
            more = f"or describe several networks of it ([[rings.{name}.networks]])"
            problems.append(f"{path}rings.{name}: {len(addresses)} addresses in one domain: write one, {more}")
            continue
        places = places_of({**values, "addresses": addresses}, networks, f"{path}rings.{name}: ", problems)
        if places:
            legs.append((name, places))
    return legs


def without_address(table: Mapping[str, Any], path: str, problems: list[str]) -> dict[str, Any]:
    """Refuse what nodes have where there is one ring alone."""
    refused = [key for key in ("address", "addresses") if key in table]
    problems += [f"{path}{key}: this file has [rings]: write rings = {RINGS_EXAMPLE} in its place" for key in refused]
    return {key: value for key, value in table.items() if key not in refused}


def with_nodes(
    domains: Sequence[RingDomain], nodes: Mapping[str, list[Peer]], problems: list[str], kind: str = RINGS
) -> tuple[RingDomain, ...]:
    """The rings, with whoever is on each. A ring of nobody is refused."""
    fix = "write it into the rings of a node" if kind == RINGS else "write it as the site of a node"
    problems += [
        f"{kind}.{domain.name}: no node is on it: {fix}, or leave it out"
        for domain in domains
        if domain.name not in nodes
    ]
    return tuple(replace(domain, peers=tuple(nodes.get(domain.name, ()))) for domain in domains)


# What a person should know


def ring_remarks(config: NodeConfig) -> Iterator[str]:
    """Rings that are not joined, and gateways that alone join others."""
    if len(config.rings) < 2 or config.has_sites:
        return
    rings = {peer.name: peer.rings for peer in config.peers}
    names = [ring.name for ring in config.rings]
    first, *others = _components(names, rings.values())
    for other in others:
        yield (
            f"no path of gateways leads from {_listed(first)} to {_listed(other)}: they are networks of their own "
            "until some node is on a ring of each"
        )
    for gateway, own in rings.items():
        rest = [its for name, its in rings.items() if name != gateway]
        parts = [part & set(own) for part in _components(names, rest) if part & set(own)]
        if len(parts) > 1:
            sides = " and ".join(_listed(part) for part in parts)
            yield f"{gateway} alone joins {sides}: when it fails the network is in {len(parts)}; add a second gateway"


def site_remarks(config: NodeConfig) -> Iterator[str]:
    """Sites that no links join, links that alone join others, and an engine for sites where there are none."""
    if not config.has_sites:
        if ENGINES[config.engine].has_sites:
            yield "no sites are named, so that all nodes are in one: write [sites.NAME] for each"
        return
    names, links = [ring.name for ring in config.rings], [(link.one, link.other) for link in config.site_links]
    first, *others = _components(names, links)
    for other in others:
        yield f"no links lead from {_listed(first)} to {_listed(other)}: they are clusters of their own without one"
    for at, link in enumerate(links):
        if len(_components(names, links[:at] + links[at + 1 :])) > 1 + len(others):
            yield f"the link between {link[0]} and {link[1]} alone joins its two sides: when it fails they are apart"


def _components(names: Sequence[str], joined: Iterable[tuple[str, ...]]) -> list[set[str]]:
    """Return the sets of rings that are connected, where each of `joined` are rings with a node in common."""
    parts = [{name} for name in names]
    for rings in joined:
        touched = [part for part in parts if part & set(rings)]
        parts = [part for part in parts if part not in touched]
        if touched:
            parts.append(set().union(*touched))
    return sorted(parts, key=lambda part: min(names.index(name) for name in part))


def _listed(rings: set[str]) -> str:
    return ", ".join(sorted(rings))
