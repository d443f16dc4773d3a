"""A cluster in one TOML file, the same on every host; `load_config` makes of it what one node needs to know.

Everything that is wrong is said at once, each problem in one sentence that names the file, the key and what to write.
docs/examples/cluster.toml shows every key.
"""

from __future__ import annotations

import socket
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from ordercast.daemon.config.keys import (
    CLUSTER,
    COPIES,
    ENGINE,
    NETWORKS,
    NODE,
    NODE_ON_SEVERAL,
    NODES,
    NODES_VERSION,
    REPLICATION,
    RING,
    TABLES,
    Key,
    elsewhere,
    read_table,
    shown,
    suggestion,
)
from ordercast.daemon.config.networks import places_of, redundancy, redundancy_problems, several_networks
from ordercast.daemon.config.node import (
    ClientsConfig,
    NetworkConfig,
    NodeConfig,
    Peer,
    StatusConfig,
    TraceConfig,
    Transport,
)
from ordercast.daemon.config.rules_text import in_the_words_of_the_file
from ordercast.groups.names import checked_daemon
from ordercast.model.errors import UsageError
from ordercast.model.ids import NodeId
from ordercast.order.catalogue import DEFAULT
from ordercast.order.ring.config import RingConfig

STATUS_PORT = 4790
HEADERS = {4: 28, 6: 48}  # of IP and UDP
SMALLEST_PACKET = 159  # `RingConfig.validate` refuses smaller ones
FILE_SIZE_MAX = 1 << 20


class ConfigError(UsageError):
    """What is wrong with a file, one sentence each."""

    def __init__(self, path: Path, problems: list[str]) -> None:
        self.problems = tuple(f"{path}: {problem}" for problem in problems)
        super().__init__("; ".join((self.problems[0], *problems[1:])))


@dataclass(frozen=True, slots=True)
class ClusterFile:
    """A file that was read and found sound: what is common to all nodes, and what each has of its own."""

    path: Path
    common: NodeConfig  # without name and node
    status_ports: Mapping[str, int] = field(default_factory=dict)  # of nodes that have one of their own

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(peer.name for peer in self.common.peers)

    def node(self, name: str) -> NodeConfig:
        """The configuration of one node."""
        for peer in self.common.peers:
            if peer.name == name:
                port = self.status_ports.get(name, self.common.status.port) or None
                status = replace(self.common.status, port=port)
                state = _below(self.common.state_folder, name)  # one file serves several nodes of one machine
                return replace(self.common, name=name, node=peer.node, status=status, state_folder=state)
        hint = suggestion(name, self.names)
        raise ConfigError(self.path, [f"there is no [nodes.{name}]{hint}; the file has {', '.join(self.names)}"])


def load_config(path: Path | str, name: str | None = None) -> NodeConfig:
    """What node `name` needs to know; by default the node that this host is. Raises ConfigError."""
    cluster = read_cluster(Path(path))
    return cluster.node(name if name is not None else own_name(cluster))


def own_name(cluster: ClusterFile, host: str | None = None, is_here: Callable[[str], bool] | None = None) -> str:
    """The entry named like this host, or the only one whose address is one of this host's."""
    host = socket.gethostname() if host is None else host
    for candidate in (host, host.partition(".")[0]):
        if candidate in cluster.names:
            return candidate
    here = [peer.name for peer in cluster.common.peers if (is_here or is_own_address)(peer.address)]
    if len(here) == 1:
        return here[0]
    why = f"{len(here)} have addresses of it ({', '.join(here)})" if here else "none has an address of it"
    problem = f"no node is called {host} like this host, and {why}: give --name, one of {', '.join(cluster.names)}"
    raise ConfigError(cluster.path, [problem])


def is_own_address(address: str) -> bool:
    """Whether a socket of this host can have it."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.bind(socket.getaddrinfo(address, 0, family, socket.SOCK_DGRAM, 0, socket.AI_NUMERICHOST)[0][4])
    except OSError:
        return False
    return True


# Reading


def read_cluster(path: Path) -> ClusterFile:
    """Reads and checks the whole file, whichever node this is."""
    document = _parse(path)
    problems: list[str] = []
    tables = {name: _table(document, name, problems) for name in (*TABLES, NODES)}
    cluster = _cluster(document, problems)
    values = {name: read_table(tables[name], keys, f"{name}.", problems) for name, keys in TABLES.items()}
    networks = several_networks(document, values["network"], problems)
    peers, status_ports = _peers(tables[NODES], networks, problems)
    config = NodeConfig(
        peers=tuple(peers),
        nodes_version=_at_top(document, NODES_VERSION, 1, problems),
        engine=_at_top(document, ENGINE, DEFAULT, problems),
        source=path,
        ring=RingConfig(cluster=cluster, **values["ring"]),
        network=networks[0],
        more_networks=networks[1:],
        redundancy=redundancy(document, values["redundancy"], problems),
        trace=_trace(values["trace"], path.parent),
        status=StatusConfig(**{"port": STATUS_PORT, **values["status"]}),
        clients=_clients(values["clients"], path.parent),
        state_folder=_below(path.parent, values["state"].get("folder")),
        **values["inbox"],
    )
    is_sound = not any(problem.startswith(("network", "ring", "nodes", "redundancy", "copies")) for problem in problems)
    for number in range(len(networks)) if is_sound else (0,):
        problems += _clashes(config.on(number))
    if peers and is_sound:
        config = _with_packet_size(config, is_given="packet_size_max" in values["ring"])
        problems += _network_problems(config) or _ring_problems(config.ring)
        for number in range(1, len(networks)):
            problems += [f"networks.{number}: {problem}" for problem in _network_problems(config.on(number))]
        problems += redundancy_problems(config)
    if problems:
        raise ConfigError(path, problems)
    return ClusterFile(path, config, status_ports)


def _parse(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            text = file.read(FILE_SIZE_MAX + 1)
        if len(text) > FILE_SIZE_MAX:
            raise ConfigError(path, [f"larger than {FILE_SIZE_MAX >> 20} MiB: this is no configuration file"])
        return tomllib.loads(text.decode("utf-8"))
    except OSError as error:
        raise ConfigError(path, [f"cannot be read: {error.strerror}"]) from error
    except UnicodeDecodeError as error:
        raise ConfigError(path, [f"byte {error.start} is not UTF-8: this is no TOML file"]) from error
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(path, [f"not TOML: {error}"]) from error
    except ValueError as error:
        raise ConfigError(path, ["not TOML: a number has thousands of digits"]) from error
    except RecursionError as error:
        raise ConfigError(path, ["not TOML: arrays or tables are nested too deeply"]) from error


def _table(document: Mapping[str, Any], name: str, problems: list[str]) -> dict[str, Any]:
    table = document.get(name, {})
    if isinstance(table, dict):
        return table
    problems.append(f"{name}: {shown(table)} stands where a table is expected: write [{name}] above its keys")
    return {}


def _cluster(document: Mapping[str, Any], problems: list[str]) -> str:
    """The one key that every file has. Strangers on one network must not merge by accident, so it has no default."""
    known = (CLUSTER.name, ENGINE.name, NODES_VERSION.name, REPLICATION.name, COPIES.name, *TABLES, NETWORKS, NODES)
    strange = [name for name in document if name not in known]
    problems += [f"{name} is not a key{elsewhere(name, '') or suggestion(name, known)}" for name in strange]
    if CLUSTER.name not in document:
        problems.append('cluster is missing: name the cluster at the top of the file, such as cluster = "shop"')
        return ""
    return str(read_table({CLUSTER.name: document[CLUSTER.name]}, (CLUSTER,), "", problems).get(CLUSTER.field, ""))


def _at_top(document: Mapping[str, Any], key: Key, default: Any, problems: list[str]) -> Any:
    """The value of a key outside of tables."""
    given = {name: value for name, value in document.items() if name == key.name}
    return read_table(given, (key,), "", problems).get(key.field, default)


def _trace(values: dict[str, Any], folder: Path) -> TraceConfig:
    """Paths are relative to the file that names them."""
    trace = TraceConfig(**values)
    return replace(trace, folder=folder / trace.folder)


def _clients(values: dict[str, Any], folder: Path) -> ClientsConfig:
    clients = ClientsConfig(**values)
    return replace(
        clients,
        folder=_below(folder, clients.folder),
        port=clients.port or None,
        queue_size_max=clients.queue_size_max or None,
        memory_max=clients.memory_max or None,
    )


def _below(folder: Path | None, path: Path | str | None) -> Path | None:
    return None if folder is None or path is None else folder / path


def _peers(
    nodes: Mapping[str, Any], networks: tuple[NetworkConfig, ...], problems: list[str]
) -> tuple[list[Peer], dict[str, int]]:
    peers: list[Peer] = []
    status_ports: dict[str, int] = {}
    if not nodes:
        problems.append("no nodes: add a table [nodes.NAME] with id and address for each")
    for name, table in nodes.items():
        path = f"nodes.{name}."
        if not isinstance(table, dict):
            problems.append(f"nodes.{name}: {shown(table)} stands where a table is expected: write [nodes.{name}]")
            continue
        try:
            checked_daemon(name)
        except UsageError as error:
            problems.append(f"nodes.{name}: {error}")
        keys = NODE if len(networks) == 1 else NODE_ON_SEVERAL
        values = read_table(table, keys, path, problems)
        problems += [f"{path}{key.name} is missing" for key in keys[:2] if key.name not in table]
        places = places_of(values, networks, path, problems)
        if "node" in values and places:
            if "status_port" in values:
                status_ports[name] = values["status_port"]
            peers.append(Peer(NodeId(values["node"]), name, *places[0], places[1:]))
    return peers, status_ports


# Judging


def _clashes(config: NodeConfig) -> Iterator[str]:
    """What two nodes, or two sockets of one, cannot both have."""
    ids: dict[int, str] = {}
    ports: dict[tuple[str, int], str] = {}
    for peer in config.peers:
        where = f"nodes.{peer.name}"
        if peer.node in ids:
            yield f"{where}.id: {peer.node} is the id of nodes.{ids[peer.node]} too: every node needs its own"
        ids.setdefault(peer.node, peer.name)
        used = {"token_port": peer.token_port}
        if config.network.transport is Transport.UNICAST:
            used["data_port"] = peer.data_port
        for key, port in used.items():
            owner = ports.setdefault((peer.address, port), f"{where}.{key}")
            if owner != f"{where}.{key}":
                yield f"{where}.{key}: {peer.address} port {port} is {owner} too: give one of them another port"
    versions = {ip_address(peer.address).version: peer.name for peer in reversed(config.peers)}
    if len(versions) > 1:
        yield f"nodes.{versions[4]} has an IPv4 address and nodes.{versions[6]} an IPv6 address: use one for all"


def _with_packet_size(config: NodeConfig, *, is_given: bool) -> NodeConfig:
    """Packets as large as the MTU allows; a size that is given is kept by speaking of a smaller MTU."""
    headers = HEADERS[ip_address(config.peers[0].address).version]
    fits = SMALLEST_PACKET + headers <= config.network.mtu
    if is_given and fits and config.ring.packet_size_max + headers <= config.network.mtu:
        return replace(config, network=replace(config.network, mtu=config.ring.packet_size_max + headers))
    return config if is_given or not fits else config.with_packet_size()


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
    try:
        ring.validate()
    except UsageError as error:
        return [f"[ring] {in_the_words_of_the_file(sentence, RING, ring)}" for sentence in str(error).split("; ")]
    return []
