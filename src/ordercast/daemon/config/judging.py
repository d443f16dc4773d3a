"""What cannot be together in a configuration file: the rules that join several keys. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from ipaddress import ip_address

from ordercast.daemon.config.keys import ENGINE_TABLES
from ordercast.daemon.config.networks import redundancy_problems
from ordercast.daemon.config.node import LINK_OFFSET, NetworkConfig, NodeConfig, Peer, Transport
from ordercast.daemon.config.rules_text import in_the_words_of_the_file
from ordercast.model.errors import UsageError
from ordercast.order.adaptive.config import AdaptiveConfig
from ordercast.order.ring.config import RingConfig
from ordercast.order.sites.config import FRAGMENTS_MAX

HEADERS = {4: 28, 6: 48}  # of IP and UDP
ADAPTIVE = "adaptive"  # whose reach must suit the members
TREE = "tree"  # whose links must not fail before a pause of a member is over
SMALLEST_PACKET = 159  # `RingConfig.validate` refuses smaller ones


def clashes(config: NodeConfig, *, is_sound: bool) -> Iterator[str]:
    """What two nodes, or two sockets of one, cannot both have."""
    yield from _twin_ids(config.peers)
    if config.has_sites and is_sound:
        yield from _twin_links(config.peers)
    ports: dict[tuple[str, int], str] = {}
    for ring in config.each_ring if is_sound else (config,):
        for number in range(len(ring.networks) if is_sound else 1):
            one = ring.on(number)
            yield from _twin_ports(one, ports)
            yield from _mixed_versions(one.peers)
            ports = ports if config.rings else {}  # two networks of one ring are compared elsewhere


def _twin_ids(peers: Iterable[Peer]) -> Iterator[str]:
    ids: dict[int, str] = {}
    for peer in peers:
        if peer.node in ids:
            yield f"nodes.{peer.name}.id: {peer.node} is the id of nodes.{ids[peer.node]} too: every node needs its own"
        ids.setdefault(peer.node, peer.name)


def _twin_links(peers: Iterable[Peer]) -> Iterator[str]:
    """What others cannot tell apart, or one host cannot open twice."""
    places: dict[tuple[str, int], str] = {}
    for peer in peers:
        where = peer.wide_place.address, peer.wide_place.port
        owner = places.setdefault(where, peer.name)
        if owner != peer.name:
            yield (
                f"nodes.{peer.name}.wide_port: other sites reach nodes.{owner} at {where[0]} port {where[1]} too: "
                "give one of them another"
            )


def _twin_ports(config: NodeConfig, ports: dict[tuple[str, int], str]) -> Iterator[str]:
    for peer in config.peers:
        where = f"nodes.{peer.name}"
        used = {f"{where}.token_port": peer.token_port}
        if config.network.transport is Transport.UNICAST:
            used[f"{where}.data_port"] = peer.data_port
        if config.has_link_lane:
            used[f"{where}.token_port (its link port, {LINK_OFFSET} above)"] = peer.link_port
        for key, port in used.items():
            owner = ports.setdefault((peer.address, port), key)
            if owner != key:
                yield f"{key}: {peer.address} port {port} is {owner} too: give one of them another port"


def _mixed_versions(peers: Sequence[Peer]) -> Iterator[str]:
    versions = {ip_address(peer.address).version: peer.name for peer in reversed(peers)}
    if len(versions) > 1:
        yield f"nodes.{versions[4]} has an IPv4 address and nodes.{versions[6]} an IPv6 address: use one for all"


def problems_of(config: NodeConfig, members: int) -> list[str]:
    """What does not fit together in networks, rings and their timers, and in the engine's own table; there may be so
    many members."""
    problems = _problems_of_rings(config) if config.rings else _problems_of_networks(config)
    problems += _adaptive_problems(config.adaptive, max(2, members) if config.engine == ADAPTIVE else 2)
    try:
        config.gateways.validate()
    except UsageError as error:
        problems += [f"gateways.{problem}" for problem in str(error).split("; ")]
    if config.engine in ENGINE_TABLES and config.has_sites:
        problems += _problems_of_table(config.domain_table, config.sites, config.sites.validate)
    pause_ns = config.ring.pause_ns if config.engine == TREE else 0
    problems += _problems_of_table(TREE, config.tree, lambda: config.tree.validate_beside(pause_ns))
    return problems


def _problems_of_networks(config: NodeConfig) -> list[str]:
    problems = _network_problems(config) or _ring_problems(config.ring)
    for number in range(1, len(config.networks)):
        problems += [f"networks.{number}: {problem}" for problem in _network_problems(config.on(number))]
    return problems + redundancy_problems(config)


def _problems_of_rings(config: NodeConfig) -> list[str]:
    problems = _ring_problems(config.ring)
    if config.has_sites and len(config.rings) > FRAGMENTS_MAX:
        problems.append(f"sites: {len(config.rings)} are too many: a view has {FRAGMENTS_MAX} at most")
    for domain, ring in zip(config.rings, config.each_ring, strict=True):
        path = f"{config.domain_table}.{domain.name}."
        for number in range(len(ring.networks)):
            where = path if not domain.more_networks else f"{path}networks.{number}."
            problems += [problem.replace("network.", where) for problem in _network_problems(ring.on(number))]
        problems += [f"{path[:-1]}: {problem}" for problem in redundancy_problems(ring)]
    return problems


def with_packet_size(config: NodeConfig, *, is_given: bool) -> NodeConfig:
    """Packets as large as the MTU allows; a size that is given is kept by speaking of a smaller MTU."""
    if not is_given:
        fits = all(SMALLEST_PACKET + _headers(ring) <= ring.network.mtu for ring in config.each_ring)
        return config.with_packet_size() if fits else config
    rings = tuple(
        replace(domain, network=_narrowed(ring)) for domain, ring in zip(config.rings, config.each_ring, strict=False)
    )
    return replace(config, network=config.network if rings else _narrowed(config), rings=rings)


def _narrowed(config: NodeConfig) -> NetworkConfig:
    """The network, with an MTU for the size of packets that is given, if it can have them."""
    mtu, wanted = config.network.mtu, config.ring.packet_size_max + _headers(config)
    fits = SMALLEST_PACKET + _headers(config) <= mtu and wanted <= mtu
    return replace(config.network, mtu=wanted) if fits else config.network


def _headers(config: NodeConfig) -> int:
    return HEADERS[ip_address(config.peers[0].address).version]


def _network_problems(config: NodeConfig) -> list[str]:
    return list(_find_network_problems(config))


def _find_network_problems(config: NodeConfig) -> Iterator[str]:
    network = config.network
    version = ip_address(config.peers[0].address).version
    if network.transport is Transport.MULTICAST and ip_address(network.group).version != version:
        example = "239.192.79.67" if version == 4 else "ff15::4f43"
        yield f"network.group: {network.group} is not an IPv{version} group as the nodes' addresses: write {example}"
    room = network.mtu - HEADERS[version]
    if room < SMALLEST_PACKET:
        yield f"network.mtu: {network.mtu} is too small: write at least {SMALLEST_PACKET + HEADERS[version]}"
    elif config.ring.packet_size_max > room:
        yield (
            f"ring.packet_size_max: {config.ring.packet_size_max} does not fit in network.mtu {network.mtu}: "
            f"leave it out, or write at most {room}"
        )
    if network.buffer_size < (needed := buffer_needed(config)):
        yield f"network.buffer_size: {network.buffer_size} does not hold a rotation: write at least {needed}"


def buffer_needed(config: NodeConfig) -> int:
    """What may arrive between two looks at a socket: the packets of a rotation (docs/guides/size-a-ring.md)."""
    return (config.ring.window + config.ring.visit_max) * config.ring.packet_size_max


def _ring_problems(ring: RingConfig) -> list[str]:
    """The ring's own rules, with the keys as the file has them, and what they are now."""
    return _problems_of_table("ring", ring, ring.validate)


def _adaptive_problems(adaptive: AdaptiveConfig, members: int) -> list[str]:
    return _problems_of_table("adaptive", adaptive, lambda: adaptive.validate(members))


def _problems_of_table(name: str, settings: object, validate: Callable[[], None]) -> list[str]:
    try:
        validate()
    except UsageError as error:
        keys = ENGINE_TABLES[name]
        return [f"[{name}] {in_the_words_of_the_file(sentence, keys, settings)}" for sentence in str(error).split("; ")]
    return []
