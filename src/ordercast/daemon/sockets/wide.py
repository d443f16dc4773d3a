"""The sockets of a node towards other sites: one lane for links, and addresses far away.

A node listens at its wide address if this host has it, otherwise, behind a router that translates, at its address in
its site. Packets of a link go by UDP, as many in a system call as the kernel takes, or over TCP (`streams.py`).
"""

from __future__ import annotations

import errno
import socket
from collections.abc import Sequence

from ordercast.daemon.config.file import is_own_address
from ordercast.daemon.config.node import LinkProtocol, NodeConfig, Transport
from ordercast.daemon.sockets.bursts import BurstSender, wait_to_send
from ordercast.daemon.sockets.lanes import LaneSocket
from ordercast.daemon.sockets.streams import LinkStreams
from ordercast.daemon.sockets.udp import SocketAddress, address_of, ask_for_buffers, open_udp
from ordercast.model.effects import Burst, Endpoint
from ordercast.model.ids import Attachment, NodeId
from ordercast.model.inputs import Lane

Target = NodeId | Endpoint


class WideSockets:
    """Everything that a node sends to other sites, and receives from them."""

    number = 0

    def __init__(self, config: NodeConfig, attachment: Attachment) -> None:
        """Open them; UsageError says what is in the way."""
        self.attachment = attachment
        self.transport = Transport.UNICAST
        self._opened: list[socket.socket] = []
        self.streams: LinkStreams | None = None
        me, network = config.me(), config.attachments[0].network
        place = me.wide_place
        self.address = place.address if is_own_address(place.address) else me.address
        beyond = config.beyond()
        self._addresses: dict[Target, SocketAddress] = {}
        for peer, _ in beyond:
            where = peer.wide_place.address, peer.wide_place.port
            self._addresses[peer.node] = self._addresses[Endpoint(*where)] = address_of(*where)
        by_tcp = [peer for peer, protocol in beyond if protocol is LinkProtocol.TCP]
        self._by_tcp = {self._addresses[peer.node] for peer in by_tcp}
        try:
            opened = open_udp(self.address, place.listen_port, self._opened, "links")
            where_text = f"{self.address} port {place.listen_port}"
            self.link = LaneSocket(Lane.LINK, opened, where_text, 0, attachment)
            sender = open_udp(self.address, 0, self._opened, "sending")
            wait_to_send(sender)
            for one in self._opened:
                ask_for_buffers(one, network.buffer_size)
            self._bursts = BurstSender(sender, (self.link,) if network.segmentation else ())
            if by_tcp:
                self.streams = LinkStreams(self.address, place.listen_port, attachment)
        except BaseException:
            self.close()
            raise

    @property
    def lanes(self) -> tuple[LaneSocket, ...]:
        return (self.link,)

    @property
    def segmentation(self) -> bool:
        return self._bursts.segmentation

    def unicast(self, target: Target, bursts: Sequence[Burst]) -> None:
        """Send to one node, or to whoever is at an address, in order."""
        address = self._addresses.get(target)
        if address is None:
            raise OSError(errno.EHOSTUNREACH, f"no link leads to {target}")
        if self.streams is not None and address in self._by_tcp:
            self.streams.send(address, bursts, self.link.counters)
        else:
            self._bursts.send(bursts, (address,), self.link.counters)

    def close(self) -> None:
        for opened in self._opened:
            opened.close()
        if self.streams is not None:
            self.streams.close()
