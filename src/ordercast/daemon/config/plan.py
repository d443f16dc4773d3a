"""What a node would do with its configuration, worked out before it starts: where it listens, how long it waits, what
it needs of the kernel. `ordercast config check` shows it; the daemon logs a part of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from ordercast.daemon.config.defaults import host_and_port
from ordercast.daemon.config.file import is_own_address
from ordercast.daemon.config.judging import buffer_needed
from ordercast.daemon.config.node import LOCAL_NODES_MAX, NodeConfig, TraceLevel, Transport
from ordercast.daemon.config.rings import ring_remarks, site_remarks
from ordercast.daemon.descriptors import limit_possible, room_from, room_remark
from ordercast.model.quantities import duration_text, size_text
from ordercast.order.catalogue import ENGINES, LIVE
from ordercast.session.addresses import socket_path
from ordercast.trace.private_files import remark_on_folder

RMEM_MAX = Path("/proc/sys/net/core/rmem_max")


@dataclass(frozen=True, slots=True)
class Plan:
    name: str
    cluster: str
    engine: str
    node: int | None
    transport: str
    tokens_at: str  # address and port, for people
    data_at: str
    networks: tuple[str, ...]  # where it listens on each, if there are several
    replication: str  # how they are used
    rings: tuple[str, ...]  # that it is on, where it listens on each, and who else is there; if the file has several
    links: tuple[str, ...]  # where this node listens for them; to other sites, over what, and at which addresses
    status_at: str | None
    clients_at: tuple[str, ...]  # for `ordercast daemon`
    sealing: str  # of packets between nodes, for people
    is_loopback_only: bool  # no other host can be a member
    peers: tuple[str, ...]  # names
    token_loss_ns: int
    detection_ns: int  # from a crash to a view without the crashed member, more or less
    packet_size_max: int
    window: int
    visit_max: int
    buffer_needed: int  # bytes that a rotation may bring
    buffer_asked: int
    buffer_limit: int | None  # what this kernel grants to an ordinary user; None: not known
    sysctl: str | None  # the command that would let the kernel grant all that is asked
    state_folder: str | None
    trace: str
    remarks: tuple[str, ...]  # what the operator should know, one sentence each
    buffer_remark: str | None  # the same of the buffers, as far as it can be known before they are asked for

    def document(self) -> dict[str, Any]:
        return asdict(self)


def plan_of(config: NodeConfig, limit_file: Path = RMEM_MAX, open_files: int | None = None) -> Plan:
    first = config.attachments[0]
    ring, network = config.ring, first.network
    address, tokens_at, data_at = _addresses(first)
    limit = _limit(limit_file)
    sysctl = None
    if limit is not None and limit < network.buffer_size:
        sysctl = f"sysctl -w net.core.rmem_max={network.buffer_size}"
    status, sessions_max = config.status, config.clients.sessions_max
    files_limit = limit_possible() if open_files is None else open_files
    remarks = [*_remarks(config, address), room_remark(room_from(files_limit, sessions_max), sessions_max)]
    trace = "off" if config.trace.level is TraceLevel.OFF else f"{config.trace.level.value}, in {config.trace.folder}"
    return Plan(
        name=config.name,
        cluster=ring.cluster,
        engine=config.engine,
        node=config.node,
        transport=network.transport.value,
        tokens_at=tokens_at,
        data_at=data_at,
        networks=tuple(_networks(config)),
        replication=config.layer.replication.value,
        rings=tuple(_rings(config)),
        links=tuple(_links(config)),
        status_at=None if status.port is None else host_and_port(status.address, status.port),
        clients_at=tuple(_clients_at(config)),
        sealing=_sealing(config),
        is_loopback_only=ip_address(address).is_loopback,
        peers=tuple(peer.name for peer in config.peers),
        token_loss_ns=ring.token_loss_ns,
        detection_ns=ring.token_loss_ns + ring.consensus_ns,
        packet_size_max=ring.packet_size_max,
        window=ring.window,
        visit_max=ring.visit_max,
        buffer_needed=buffer_needed(first),
        buffer_asked=network.buffer_size,
        buffer_limit=limit,
        sysctl=sysctl,
        state_folder=None if config.state_folder is None else str(config.state_folder),
        trace=trace,
        remarks=tuple(remark for remark in remarks if remark),
        buffer_remark=_buffer_remark(first, limit),
    )


def _addresses(config: NodeConfig) -> tuple[str, str, str]:
    """The node's own address, where it takes tokens, where it takes data."""
    network = config.network
    if config.node is None:  # the first free id of this machine decides
        base = network.port
        last = base + 2 * LOCAL_NODES_MAX
        tokens_at = f"127.0.0.1, the first free even port of {base + 2}..{last}"
        data_at = "127.0.0.1, the port after it"
        address = "127.0.0.1"
    else:
        me = config.me()
        address, tokens_at, data_at = (
            me.address,
            f"{me.address} port {me.token_port}",
            f"{me.address} port {me.data_port}",
        )
    if network.transport is Transport.MULTICAST:
        data_at = f"group {network.group} port {network.port}, on the interface of {address}"
    return address, tokens_at, data_at


def _networks(config: NodeConfig) -> Iterator[str]:
    for number, network in enumerate(config.networks if config.more_networks else ()):
        _, tokens_at, data_at = _addresses(config.on(number))
        yield f"{network.name or number}: tokens {tokens_at}, data {data_at} ({network.transport.value})"


def _rings(config: NodeConfig) -> Iterator[str]:
    for domain, ring in zip(config.my_rings, config.attachments, strict=False):
        each = [_addresses(ring.on(number)) for number in range(len(ring.networks))]
        wheres = "; ".join(f"tokens {tokens_at}, data {data_at}" for _, tokens_at, data_at in each)
        several = f" ({ring.layer.in_words})" if ring.more_networks else ""
        others = ", ".join(peer.name for peer in ring.others()) or "nobody else"
        yield f"{domain.name} (id {domain.number}), with {others}: {wheres}{several}"


def _links(config: NodeConfig) -> Iterator[str]:
    """Return where this node listens for links, and, where they join sites, where it finds the others."""
    if config.has_link_lane:
        yield f"others reach it at {host_and_port(config.me().address, config.me().link_port)}"
    if not config.has_sites:
        return
    mine = config.me().wide_place
    listens = "" if mine.port == mine.listen_port else f"; it listens at port {mine.listen_port}"
    yield f"others reach it at {host_and_port(mine.address, mine.port)}{listens}"
    for link in config.site_links:
        site = link.beyond(config.me().rings[0])
        nodes = [peer for peer in config.peers if site in peer.rings]
        wheres = ", ".join(f"{p.name} at {host_and_port(p.wide_place.address, p.wide_place.port)}" for p in nodes)
        if site is not None:
            yield f"to {site} by {link.protocol.value.upper()}: {wheres}"


def _clients_at(config: NodeConfig) -> Iterator[str]:
    clients = config.clients
    yield str(socket_path(config.name or "NAME", clients.folder))
    if clients.port is not None:
        how = "" if clients.certificates is None else f" (TLS, certificates in {clients.certificates})"
        yield host_and_port(clients.address, clients.port) + how


def _sealing(config: NodeConfig) -> str:
    security = config.security
    if security.key is not None:
        return f"by the key in {security.key}"
    if security.insecure:
        return "none: packets are clear, as insecure = true says"
    return "by the key of this user, as all nodes are on this machine" if config.is_on_one_machine else "none"


def _remarks(config: NodeConfig, address: str) -> list[str]:
    remarks = []
    others = [peer for peer in config.peers if peer.node != config.node]
    if ip_address(address).is_loopback:
        remarks.append(f"binds to loopback only ({address}): no other host can be a member")
        remarks += [
            f"{peer.name} at {peer.address} cannot reach this node" for peer in others if not _is_loopback(peer.address)
        ]
    if not is_own_address(address):
        remarks.append(f"{address} is not an address of this host: the node can only start where it is")
    if len(config.peers) == 1:
        remarks.append("there is no other node: this one is alone")
    largest = max(config.each_ring, key=lambda ring: len(ring.peers))
    if len(largest.peers) > config.sizes.members_max:
        remarks.append(
            f"{len(largest.peers)} nodes, but members_max is {config.sizes.members_max}: not all will be together"
        )
    remarks += [*ring_remarks(config), *site_remarks(config), *_unread_tables(config)]
    if config.state_folder is None and config.peers:
        remarks.append("no state folder: every start is a new process, which is sound, but nothing is kept")
    if config.status.port is not None and config.status.token is None and not _is_loopback(config.status.address):
        remarks.append(
            f"status is served on {config.status.address} without a password: anybody who reaches it may read it"
        )
    if config.clients.mode & 0o007:
        remarks.append(
            f"the socket for clients has mode {config.clients.mode:04o}: every user of this machine may send and read; "
            'with mode = "0660" those of its group may'
        )
    if config.trace.level is not TraceLevel.OFF and (remark := remark_on_folder(config.trace.folder)) is not None:
        remarks.append(remark)
    clients = config.clients
    if clients.port is not None and clients.certificates is None:
        who = "every user of this machine" if _is_loopback(clients.address) else "anybody who reaches it"
        remarks.append(
            f"clients are served on {clients.address} without a password and in clear text: {who} may send and read"
        )
    if any(not who.startswith(("user:", "group:")) for rule in config.rights for who in rule.who) and not clients.port:
        remarks.append(
            "[[rights]] names certificates or tokens, and clients are not served over TCP: set port in [clients]"
        )
    return remarks


def _unread_tables(config: NodeConfig) -> Iterator[str]:
    """Return which settings have no effect, since they are those of engines that are not chosen."""
    read = ENGINES[config.engine].tables
    for name in LIVE:
        for table, kind in ENGINES[name].tables.items():
            if table not in read and getattr(config, table) != kind():
                yield (
                    f'[{table}] has no effect: the engine is "{config.engine}", and that table is for engine = "{name}"'
                )


def _buffer_remark(config: NodeConfig, limit: int | None) -> str | None:
    asked = config.network.buffer_size
    if limit is None or limit >= asked:
        return None
    enough = (
        "enough for a rotation" if limit >= buffer_needed(config) else "too little for a rotation: packets get lost"
    )
    return f"the kernel grants an ordinary user {size_text(limit)} of the {size_text(asked)} asked for, {enough}"


def _is_loopback(address: str) -> bool:
    return ip_address(address).is_loopback


def _limit(file: Path) -> int | None:
    try:
        return int(file.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None


def plan_lines(plan: Plan) -> list[tuple[str, str]]:
    """Title and text, for people."""
    node = "the first free on this machine" if plan.node is None else f"{plan.node}"
    detection = (
        f"a crash is noticed after {duration_text(plan.token_loss_ns)} of silence; "
        f"a view without the member follows after about {duration_text(plan.detection_ns)}"
    )
    lines = [
        ("node", f"{plan.name or 'n1, n2, …'}, id {node}, of cluster {plan.cluster}"),
        ("engine", plan.engine),
        ("members", ", ".join(plan.peers) if plan.peers else "whoever runs on this machine"),
        *_listens(plan),
        *(("network", f"{text}") for text in plan.networks),
        *([("replication", f"{plan.replication}, on {len(plan.networks)} networks")] if plan.networks else []),
        ("status", "not served" if plan.status_at is None else f"http://{plan.status_at}/status, /metrics"),
        ("clients", " and ".join(plan.clients_at)),
        ("sealing", plan.sealing),
        ("failure detection", detection),
        ("flow control", f"{plan.window} packets of all in a rotation, {plan.visit_max} of each"),
        ("socket buffers", _buffer_text(plan)),
        ("state", plan.state_folder or "nothing is kept"),
        ("trace", plan.trace),
    ]
    lines += [("note", remark) for remark in (*plan.remarks, plan.buffer_remark) if remark]
    if plan.sysctl is not None:
        lines.append(("fix", plan.sysctl))
    return lines


def _listens(plan: Plan) -> Iterator[tuple[str, str]]:
    packets = f"packets of up to {plan.packet_size_max} bytes"
    if plan.rings and plan.links:
        yield "packets", f"by {plan.transport} inside the site, {packets}"
        yield from (("site", text) for text in plan.rings)
    elif plan.rings:
        yield "packets", f"by {plan.transport}, {packets}; what clients send goes out on the first ring"
        yield from (("ring", text) for text in plan.rings)
    else:
        yield "tokens", plan.tokens_at
        yield "data", f"{plan.data_at} ({plan.transport}), {packets}"
    yield from (("link", text) for text in plan.links)


def _buffer_text(plan: Plan) -> str:
    limit = "" if plan.buffer_limit is None else f", net.core.rmem_max is {size_text(plan.buffer_limit)}"
    return f"{size_text(plan.buffer_needed)} needed for a rotation, {size_text(plan.buffer_asked)} asked for{limit}"
