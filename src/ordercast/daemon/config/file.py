"""A cluster in one TOML file, the same on every host; `load_config` makes of it what one node needs to know.

Everything that is wrong is said at once, each problem in one sentence that names the file, the key and what to write.
docs/examples/cluster.toml shows every key.
"""

from __future__ import annotations

import socket
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ordercast.daemon.config.defaults import STATUS_PORT as STATUS_PORT
from ordercast.daemon.config.interfaces import with_mtus
from ordercast.daemon.config.judging import clashes, problems_of, with_packet_size
from ordercast.daemon.config.keys import (
    CLUSTER,
    COPIES,
    ENGINE,
    LINKS,
    NETWORKS,
    NODES,
    NODES_VERSION,
    REPLICATION,
    RINGS,
    SITES,
    TABLES,
    Key,
    elsewhere,
    read_table,
    shown,
    suggestion,
)
from ordercast.daemon.config.networks import redundancy, several_networks
from ordercast.daemon.config.node import (
    ClientsConfig,
    NodeConfig,
    Peer,
    SecurityConfig,
    StatusConfig,
    TraceConfig,
)
from ordercast.daemon.config.nodes import NodesRead
from ordercast.daemon.config.rights import RIGHTS_TABLE, access_rules
from ordercast.daemon.config.rings import ring_domains, with_nodes
from ordercast.daemon.config.sites import site_links, site_settings, site_tables
from ordercast.model.errors import UsageError
from ordercast.order.adaptive.config import AdaptiveConfig
from ordercast.order.catalogue import DEFAULT, ENGINES
from ordercast.order.gateways.config import GatewaysConfig
from ordercast.order.gateways.promised import ENGINE as GATEWAYS
from ordercast.order.ring.config import RingConfig
from ordercast.order.sites.promised import ENGINE as WIDE
from ordercast.order.tree.config import TreeConfig

FILE_SIZE_MAX = 1 << 20


class ConfigError(UsageError):
    """What is wrong with a file, one sentence each. `is_partial`: what joins several keys could not be judged yet."""

    def __init__(self, path: Path, problems: list[str], *, is_partial: bool = False) -> None:
        self.is_partial = is_partial
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

    def _ports(self) -> Iterator[tuple[str, int]]:
        """Where each node serves its status."""
        for name in self.names:
            yield name, self.status_ports.get(name, self.common.status.port or 0)

    def node(self, name: str) -> NodeConfig:
        """The configuration of one node."""
        for peer in self.common.peers:
            if peer.name == name:
                port = self.status_ports.get(name, self.common.status.port) or None
                status = replace(self.common.status, port=port, ports=tuple(self._ports()))
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
    sites = site_tables(tables)
    has_sites = bool(sites)
    values = {name: read_table(tables[name], keys, f"{name}.", problems) for name, keys in TABLES.items()}
    networks = several_networks(document, values["network"], problems)
    kind = SITES if has_sites else RINGS
    domains = ring_domains({**document, **sites} if has_sites else document, problems, kind)
    nodes = NodesRead(networks, domains, has_rings=RINGS in document, has_sites=has_sites)
    nodes.read(tables[NODES], problems)
    peers = nodes.peers
    config = NodeConfig(
        peers=tuple(peers),
        nodes_version=_at_top(document, NODES_VERSION, 1, problems),
        engine=_engine(document, problems, has_sites=has_sites),
        rings=with_nodes(domains, nodes.by_ring, problems, kind),
        sites=site_settings(values.get(SITES, {})),
        site_links=site_links(document, [domain.name for domain in domains] if has_sites else [], problems),
        source=path,
        ring=RingConfig(cluster=cluster, **values["ring"]),
        adaptive=_adaptive(values["adaptive"], peers, problems),
        gateways=GatewaysConfig(**values["gateways"]),
        tree=TreeConfig(**values["tree"]),
        network=networks[0],
        more_networks=networks[1:],
        redundancy=redundancy(document, values["redundancy"], problems),
        trace=_trace(values["trace"], path.parent),
        status=_status(values["status"], path.parent),
        clients=_clients(values["clients"], path.parent),
        security=_security(values["security"], path.parent, problems),
        rights=access_rules(document, problems),
        state_folder=_below(path.parent, values["state"].get("folder")),
        **values["inbox"],
    )
    is_sound = not any(
        problem.startswith(("network", "ring", "nodes", "redundancy", "copies", "adaptive", "sites", "links", "engine"))
        for problem in problems
    )
    if peers and is_sound:
        config = with_mtus(config)
    problems += clashes(config, is_sound=is_sound)
    if peers and is_sound:
        config = with_packet_size(config, is_given="packet_size_max" in values["ring"])
        problems += problems_of(config, values["ring"].get("members_max", len(peers)))
    if problems:
        raise ConfigError(path, problems, is_partial=not (peers and is_sound))
    return ClusterFile(path, config, nodes.status_ports)


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
    known = (
        CLUSTER.name,
        ENGINE.name,
        NODES_VERSION.name,
        REPLICATION.name,
        COPIES.name,
        *TABLES,
        NETWORKS,
        RINGS,
        RIGHTS_TABLE,
        *((LINKS,) if SITES in TABLES else ()),
        NODES,
    )
    strange = [name for name in document if name not in known]
    free = [name for name in known if name not in document]
    problems += [f"{name} is not a key{elsewhere(name, '') or suggestion(name, free)}" for name in strange]
    if CLUSTER.name not in document:
        problems.append('cluster is missing: name the cluster at the top of the file, such as cluster = "shop"')
        return ""
    return str(read_table({CLUSTER.name: document[CLUSTER.name]}, (CLUSTER,), "", problems).get(CLUSTER.field, ""))


def _at_top(document: Mapping[str, Any], key: Key, default: Any, problems: list[str]) -> Any:
    """The value of a key outside of tables."""
    given = {name: value for name, value in document.items() if name == key.name}
    return read_table(given, (key,), "", problems).get(key.field, default)


def _engine(document: Mapping[str, Any], problems: list[str], *, has_sites: bool) -> str:
    """The engine that is chosen; several rings, or sites, have one that can have them."""
    usual = WIDE if has_sites else GATEWAYS if RINGS in document else DEFAULT
    engine = str(_at_top(document, ENGINE, usual, problems))
    entry = ENGINES[engine]
    if has_sites and not entry.has_sites:
        problems.append(f'engine: "{engine}" is for one place, and this file has [sites.NAME]: write "{WIDE}"')
    if entry.has_sites and not has_sites:
        problems.append(f'engine: "{engine}" needs sites: write [sites.NAME] for each, and site = "NAME" for each node')
    if RINGS in document and (entry.attachments_max == 1 or entry.has_sites):
        problems.append(f'engine: "{engine}" is for one ring, and this file has [rings]: write "{GATEWAYS}"')
    return engine


def _adaptive(values: dict[str, Any], peers: Sequence[Peer], problems: list[str]) -> AdaptiveConfig:
    """The table of that engine; shares are those of nodes by name."""
    nodes = {peer.name: peer.node for peer in peers}
    shares = values.pop("shares", ())
    problems += [
        f"adaptive.shares.{name}: there is no [nodes.{name}]{suggestion(name, nodes)}"
        for name, _ in shares
        if nodes and name not in nodes
    ]
    return AdaptiveConfig(**values, shares=tuple((nodes[name], weight) for name, weight in shares if name in nodes))


def _trace(values: dict[str, Any], folder: Path) -> TraceConfig:
    """Paths are relative to the file that names them."""
    trace = TraceConfig(**values)
    return replace(trace, folder=folder / trace.folder)


def _status(values: dict[str, Any], folder: Path) -> StatusConfig:
    status = StatusConfig(**{"port": STATUS_PORT, **values})
    return replace(status, token=_below(folder, status.token))


def _security(values: dict[str, Any], folder: Path, problems: list[str]) -> SecurityConfig:
    security = SecurityConfig(**values)
    if security.key is not None and security.insecure:
        problems.append("security: packets are sealed with a key, or insecure is true: leave out one of the two")
    return replace(security, key=_below(folder, security.key))


def _clients(values: dict[str, Any], folder: Path) -> ClientsConfig:
    clients = ClientsConfig(**values)
    return replace(
        clients,
        certificates=_below(folder, clients.certificates),
        folder=_below(folder, clients.folder),
        port=clients.port or None,
        queue_size_max=clients.queue_size_max or None,
        memory_max=clients.memory_max or None,
    )


def _below(folder: Path | None, path: Path | str | None) -> Path | None:
    return None if folder is None or path is None else folder / path
