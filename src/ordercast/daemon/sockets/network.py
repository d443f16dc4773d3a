"""The sockets of a node on one network: a lane for tokens, one for data, and one for links where the engine has them.

Data goes out by multicast, or to each peer in turn; tokens and bursts of a link go to one peer. Where the kernel can
(UDP_SEGMENT, UDP_GRO) one system call carries as many packets as fit in 64 KiB: packets of one size are cut apart again
by the kernel or the network card, and a receiver gets them joined. This needs no side channel, since every packet's
header says its length.
"""

from __future__ import annotations

import errno
import socket
from collections.abc import Sequence
from dataclasses import replace

from ordercast.daemon.config.node import LOCAL_NODES_MAX, NodeConfig, Peer, Transport, local_peer, peer_from
from ordercast.daemon.sockets.bursts import BurstSender, wait_to_send
from ordercast.daemon.sockets.lanes import LaneSocket
from ordercast.daemon.sockets.udp import (
    PortInUse,
    SocketAddress,
    address_of,
    ask_for_buffers,
    is_here,
    join_group,
    open_udp,
    route_multicast,
)
from ordercast.model.effects import Burst, Endpoint
from ordercast.model.errors import UsageError
from ordercast.model.ids import MAIN, Attachment, NodeId
from ordercast.model.inputs import Lane

KERNEL_OVERHEAD = 832  # bytes that the kernel spends on a received packet beside its own, more or less


class Sockets:
    """Everything that a node sends and receives on one network of one attachment."""

    def __init__(
        self, config: NodeConfig, number: int = 0, attachment: Attachment = MAIN, *, has_links: bool = False
    ) -> None:
        """Opens them; UsageError says what is in the way. A node without an id gets the first that is free."""
        self.number = number
        self.attachment = attachment
        self.transport = config.network.transport
        self._opened: list[socket.socket] = []
        try:
            self.config, token = _claim(config, self._opened)
            me = self.config.me()
            self.token = self._lane(Lane.TOKEN, token, f"{me.address} port {me.token_port}")
            self.data = self._open_data(me)
            self.link = self._open_link(me) if has_links else None
            self._sender = self._open_sender(me)
            self._token_addresses: dict[NodeId, SocketAddress] = {}
            self._link_addresses: dict[NodeId, SocketAddress] = {}
            self._targets: list[SocketAddress | None] = []
            for opened in self._opened:
                ask_for_buffers(opened, config.network.buffer_size)
            lanes = (self.data,) if self.link is None else (self.data, self.link)
            self._bursts = BurstSender(self._sender, lanes if config.network.segmentation else ())
        except BaseException:
            self.close()
            raise
        self.reach([peer_from(entry) for entry in self.config.roster.entries])

    def packets_held(self, packet_size: int) -> int:
        """How many packets the receive buffer holds for sure: the kernel counts the memory that it spends on each."""
        return self.data.receive_buffer_size // (packet_size + KERNEL_OVERHEAD)

    def close(self) -> None:
        for opened in self._opened:
            opened.close()

    @property
    def segmentation(self) -> bool:
        """One system call carries many packets."""
        return self._bursts.segmentation

    @property
    def lanes(self) -> tuple[LaneSocket, ...]:
        """The lanes that are read."""
        return (self.token, self.data) if self.link is None else (self.token, self.data, self.link)

    # Sending

    def broadcast(self, bursts: Sequence[Burst]) -> None:
        """To everybody else, in order."""
        self._bursts.send(bursts, self._targets, self.data.counters)

    def unicast(self, target: NodeId | Endpoint, bursts: Sequence[Burst]) -> None:
        """To one node, or to an address, on the link lane, in order."""
        if self.link is None:
            raise UsageError("no link lane was opened for this engine")
        address = address_of(*target) if isinstance(target, Endpoint) else self._link_addresses.get(target)
        if address is None:
            raise OSError(errno.EHOSTUNREACH, f"node {target} is not on the node list")
        self._bursts.send(bursts, (address,), self.link.counters)

    def send_to(self, node: NodeId, packet: bytes) -> None:
        """To one node. Whatever is in the way is counted: the token is sent again, and a peer that cannot be reached
        has failed."""
        counters = self.token.counters
        address = self._token_addresses.get(node)
        try:
            if address is None:
                raise OSError(errno.EHOSTUNREACH, f"node {node} is not on the node list")
            self.token.socket.sendto(packet, address)
            counters.packets_sent += 1
            counters.bytes_sent += len(packet)
            counters.sends += 1
        except (OSError, OverflowError, ValueError):
            counters.send_failures += 1

    def reach(self, peers: Sequence[Peer]) -> None:
        """These are the nodes now, this one among them."""
        self.config = replace(self.config, peers=() if self.config.is_local else tuple(peers))
        self._token_addresses = {peer.node: address_of(peer.address, peer.token_port) for peer in peers}
        self._link_addresses = {peer.node: address_of(peer.address, peer.link_port) for peer in peers}
        self._targets = self._broadcast_targets()
        if self.transport is Transport.MULTICAST and not self._is_looping:
            self._loop_back(self._sender, self.config.me())

    # Opening

    def _open_data(self, me: Peer) -> LaneSocket:
        network = self.config.network
        if self.transport is Transport.UNICAST:
            opened = open_udp(me.address, me.data_port, self._opened, "data")
            where = f"{me.address} port {me.data_port}"
        else:
            opened = open_udp(network.group, network.port, self._opened, "data", interface=me.address, shared=True)
            join_group(opened, network.group, me.address)
            where = f"{network.group} port {network.port} on {me.address}"
        return self._lane(Lane.DATA, opened, where)

    def _open_link(self, me: Peer) -> LaneSocket:
        opened = open_udp(me.address, me.link_port, self._opened, "links")
        return self._lane(Lane.LINK, opened, f"{me.address} port {me.link_port}")

    def _lane(self, lane: Lane, opened: socket.socket, where: str) -> LaneSocket:
        return LaneSocket(lane, opened, where, self.number, self.attachment)

    def _open_sender(self, me: Peer) -> socket.socket:
        opened = open_udp(me.address, 0, self._opened, "sending")
        wait_to_send(opened)
        if self.transport is Transport.MULTICAST:
            self._is_looping = False
            self._loop_back(opened, me)
            try:
                opened.connect(address_of(self.config.network.group, self.config.network.port, me.address))
            except OSError as error:
                raise UsageError(
                    f"no route for multicast from {me.address} to {self.config.network.group}: {error.strerror}; "
                    "add one (ip route add 224.0.0.0/4 dev …) or set transport to unicast"
                ) from error
        return opened

    def _loop_back(self, sender: socket.socket, me: Peer) -> None:
        """Multicast comes back to this machine if other nodes run here, and to them alone."""
        self._is_looping = self._has_neighbours()
        route_multicast(sender, me.address, self.config.network.ttl, loop=self._is_looping)
        if self._is_looping and sender.family == socket.AF_INET:
            self.data.drop_echoes(*sender.getsockname())

    def _broadcast_targets(self) -> list[SocketAddress | None]:
        if self.transport is Transport.MULTICAST:
            return [None]
        return [address_of(peer.address, peer.data_port) for peer in self.config.others()]

    def _has_neighbours(self) -> bool:
        """Other nodes run on this machine, and hear our multicast only if it is looped back."""
        return self.config.is_local or any(is_here(peer.address) for peer in self.config.others())


def _claim(config: NodeConfig, opened: list[socket.socket]) -> tuple[NodeConfig, socket.socket]:
    """The socket for tokens. On one machine its port stands for the node id, and who has the port has the id."""
    if config.node is not None:
        me = config.me()
        return replace(config, name=config.name or me.name), open_udp(me.address, me.token_port, opened, "tokens")
    for number in range(1, LOCAL_NODES_MAX + 1):
        peer = local_peer(NodeId(number), config.network.port)
        try:
            claimed = open_udp(peer.address, peer.token_port, opened, "tokens")
        except PortInUse:
            continue
        return replace(config, node=peer.node, name=config.name or peer.name), claimed
    raise UsageError(f"{LOCAL_NODES_MAX} nodes run on this machine already; describe larger clusters in a file")
