"""Several sites on one machine, as a cluster file, and the wide area between them: what `ordercast up --sites` runs.

Each site has its own part of the loopback network (127.0.1.x, 127.0.2.x, …) and its own multicast group. Packets of
links go through this process, which keeps each for the delay that was asked for, as a router far away would.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterable, Sequence
from typing import NamedTuple, Self, cast

from ordercast.cli.circle import FIRST_GROUP, Placed
from ordercast.daemon.config.node import LOCAL_NODES_MAX, name_at
from ordercast.model.errors import UsageError
from ordercast.model.ids import SECOND, NodeId, node_of
from ordercast.wire.head import HEAD_SIZE, transmitter_of

LOCALHOST = "127.0.0.1"
EACH = 2  # daemons of a site, where nothing is said


class WidePort(NamedTuple):
    """Where the wide area takes packets for a node, and where that node listens."""

    node: NodeId
    reached: int
    listens: int


def sites_from(text: str, each: int | None) -> list[Placed]:
    """Return the daemons of sites, written as east=2,west=2, or as their number. UsageError when it cannot be read."""
    sizes: dict[str, int] = {}
    parts = [f"s{number + 1}" for number in range(int(text))] if text.isdecimal() else text.split(",")
    for part in parts:
        name, _, count = part.strip().partition("=")
        is_sound = name.isidentifier() and name.isascii() and (not count or count.isdecimal())
        if not is_sound or count == "0":
            raise UsageError(f"--sites: {text!r} is no list of sites: write their number, or east=2,west=2")
        if name in sizes:
            raise UsageError(f"--sites: {name} is there twice: write each site once, with all of its daemons")
        sizes[name] = int(count) if count else each or EACH
    if not sizes or (total := sum(sizes.values())) > LOCAL_NODES_MAX:
        raise UsageError(f"--sites: one daemon at least, and {LOCAL_NODES_MAX} at most: {text!r} has others")
    names = [site for site, size in sizes.items() for _ in range(size)]
    assert len(names) == total
    return [Placed(f"n{number}", (site,)) for number, site in enumerate(names, 1)]


def wide_ports(placed: Sequence[Placed], port: int) -> list[WidePort]:
    """Return the ports of links, above those that a cluster of this port has anyway."""
    first = port + 2 * LOCAL_NODES_MAX + 2
    return [WidePort(NodeId(node), first + 2 * node, first + 2 * node + 1) for node in range(1, len(placed) + 1)]


def sites_file(placed: Sequence[Placed], port: int, status_port: int) -> str:
    """Return the cluster file of these daemons. The status of the first is at `status_port`, and so on."""
    sites = list(dict.fromkeys(one.rings[0] for one in placed))
    cluster = f'cluster = "{name_at("sites", port)}"'
    lines = ["# Several sites on one machine, made by `ordercast up --sites`.", cluster, 'engine = "sites"']
    for number, site in enumerate(sites, 1):
        group = f"239.192.79.{FIRST_GROUP + number - 1}"
        lines += ["", f"[sites.{site}]", f"id = {number}", f'group = "{group}"', f"port = {port}"]
    for one, wide in zip(placed, wide_ports(placed, port), strict=True):
        site = one.rings[0]
        address = f"127.0.{sites.index(site) + 1}.{wide.node}"
        lines += ["", f"[nodes.{one.name}]", f"id = {wide.node}", f'site = "{site}"', f'address = "{address}"']
        lines += [f'wide = "{LOCALHOST}"', f"wide_port = {wide.reached}", f"link_port = {wide.listens}"]
        lines += [f"status_port = {status_port + wide.node - 1}"]
    return "\n".join(lines) + "\n"


class WideArea:
    """Passes on what nodes send to each other, each packet after the delay, in its order. Pairs can be cut, where
    packets are clear and say who sends them."""

    def __init__(self, ports: Iterable[WidePort], delay_ns: int = 0) -> None:
        self.delay_ns = delay_ns
        self.lost = 0  # packets that met a cut
        self._ports = tuple(ports)
        self._cut: set[frozenset[NodeId]] = set()
        self._transports: list[asyncio.DatagramTransport] = []

    async def __aenter__(self) -> Self:
        """Open every port; UsageError when one is taken."""
        loop = asyncio.get_running_loop()
        try:
            for port in self._ports:
                make = lambda port=port: _Passing(self, port)  # noqa: E731
                transport, _ = await loop.create_datagram_endpoint(make, local_addr=(LOCALHOST, port.reached))
                transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
                self._transports.append(transport)
        except OSError as error:
            await self.__aexit__()
            raise UsageError(f"{LOCALHOST} port {port.reached} is taken: choose another --port") from error
        return self

    async def __aexit__(self, *how: object) -> None:
        for transport in self._transports:
            transport.close()

    def cut(self, some: Iterable[NodeId], others: Iterable[NodeId]) -> None:
        """Lose whatever goes between these, both ways."""
        others = tuple(others)
        self._cut |= {frozenset((one, other)) for one in some for other in others}

    def heal(self) -> None:
        self._cut.clear()

    def is_cut(self, packet: bytes, target: NodeId) -> bool:
        """Whether the path from whoever sent this packet is cut. What is no packet passes: daemons judge it."""
        is_packet = len(packet) > HEAD_SIZE
        return is_packet and frozenset((node_of(transmitter_of(packet)), target)) in self._cut


class _Passing(asyncio.DatagramProtocol):
    def __init__(self, area: WideArea, port: WidePort) -> None:
        self._area = area
        self._port = port
        self._transport: asyncio.DatagramTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.DatagramTransport, transport)

    def datagram_received(self, data: bytes, address: object) -> None:
        if self._area.is_cut(data, self._port.node):
            self._area.lost += 1
            return
        if self._area.delay_ns:
            asyncio.get_running_loop().call_later(self._area.delay_ns / SECOND, self._pass_on, data)
        else:
            self._pass_on(data)

    def _pass_on(self, data: bytes) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.sendto(data, (LOCALHOST, self._port.listens))
