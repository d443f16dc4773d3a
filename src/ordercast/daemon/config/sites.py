"""Several sites in a configuration file: their tables, the links between them, and where others reach a node.

[sites] has the settings of the engine, and below it a table [sites.NAME] for each site, as [rings.NAME] for a ring.
[[links]] says which sites are joined; without it every two are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

from ordercast.daemon.config.keys import LINK, LINK_LOSS, LINKS, SITES, TABLES, read_table, shown, suggestion
from ordercast.daemon.config.networks import places_of
from ordercast.daemon.config.node import Peer, RingDomain, SiteLink, WidePlace
from ordercast.daemon.config.rings import Legs
from ordercast.order.sites.config import SitesConfig


def site_tables(tables: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return the tables of sites, as [sites] alone would have them; `tables` keeps the settings of the engine. Nothing
    where there are none."""
    table = tables.get(SITES, {}) if SITES in TABLES else {}
    tables[SITES] = {key: value for key, value in table.items() if not isinstance(value, dict)}
    found = {key: value for key, value in table.items() if isinstance(value, dict)}
    return {SITES: found} if found else {}


def site_settings(values: dict[str, Any]) -> SitesConfig:
    """Return the settings of the engine; some are those of its links."""
    silence = values.pop(LINK_LOSS.field, None)
    settings = SitesConfig(**values)
    return settings if silence is None else replace(settings, links=replace(settings.links, silence_ns=silence))


def site_links(document: Mapping[str, Any], sites: Sequence[str], problems: list[str]) -> tuple[SiteLink, ...]:
    """Return which sites are joined; every two, where nothing is said of it."""
    tables = document.get(LINKS)
    if tables is None or SITES not in TABLES:
        return tuple(SiteLink(one, other) for one, other in combinations(sites, 2))
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        problems.append(f"{LINKS}: {shown(tables)} stands where tables are expected: write [[links]] above each")
        return ()
    if not sites:
        problems.append(f"{LINKS}: there are no sites: write [sites.NAME] for each, or leave out [[links]]")
        return ()
    links: dict[frozenset[str], SiteLink] = {}
    for at, table in enumerate(tables):
        link = _link(table, sites, f"{LINKS}.{at}.", problems)
        if link is not None and links.setdefault(frozenset((link.one, link.other)), link) is not link:
            problems.append(f"{LINKS}.{at}.between: {link.one} and {link.other} have a link already: leave one out")
    return tuple(links.values())


def _link(table: Mapping[str, Any], sites: Sequence[str], path: str, problems: list[str]) -> SiteLink | None:
    values = read_table(table, LINK, path, problems)
    if "between" not in table:
        problems.append(f'{path}between is missing: name the two sites, such as between = ["east", "west"]')
    ends = values.pop("between", ())
    unknown = [name for name in ends if name not in sites]
    problems += [f"{path}between: there is no [sites.{name}]{suggestion(name, sites)}" for name in unknown]
    if ends and ends[0] == ends[1]:
        problems.append(f"{path}between: {ends[0]} is there twice: a link joins two sites")
        return None
    return None if unknown or not ends else SiteLink(*ends, **values)


def site_legs(values: Mapping[str, Any], domains: Sequence[RingDomain], path: str, problems: list[str]) -> Legs:
    """Return where a node receives in its site; nothing when that is not said soundly."""
    name, by_name = values.get("site", ""), {domain.name: domain for domain in domains}
    domain = by_name.get(name)
    if domain is None:
        if name:
            problems.append(f"{path}site: there is no [sites.{name}]{suggestion(name, by_name)}")
        return []
    if "address" not in values and "addresses" not in values:
        problems.append(f"{path}address is missing: write where the nodes of its site reach it")
    networks = (domain.network, *domain.more_networks)
    places = places_of(dict(values), networks, f"{path}addresses: ", problems)
    return [(name, places)] if places else []


def wide_place(peer: Peer, values: Mapping[str, Any]) -> WidePlace:
    """Return where other sites reach a node: at its address here, where nothing else is said."""
    listen_port = values.get("link_port", peer.link_port)
    return WidePlace(values.get("wide", peer.address), values.get("wide_port", listen_port), listen_port)
