"""Somebody on the network of a cluster on loopback who has no key, or does not belong there."""

from __future__ import annotations

import socket

from ordercast.daemon.config.node import GROUP, LOOPBACK, local_peer
from ordercast.model.ids import NodeId
from tests.ports import own_ports


class Stranger:
    """Somebody on the network without a key: hears all that is multicast, and can send anything to anybody."""

    def __init__(self) -> None:
        self.port = own_ports()
        self.ear = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.ear.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.ear.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
        self.ear.bind((GROUP, self.port))
        member = socket.inet_aton(GROUP) + socket.inet_aton(LOOPBACK)
        self.ear.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, member)
        self.ear.setblocking(False)
        self.mouth = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.mouth.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(LOOPBACK))
        self.mouth.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_LOOP, 1)

    def __enter__(self) -> Stranger:
        return self

    def __exit__(self, *how: object) -> None:
        self.ear.close()
        self.mouth.close()

    def heard(self) -> list[bytes]:
        packets: list[bytes] = []
        while True:
            try:
                packets.append(self.ear.recv(65536))
            except BlockingIOError:
                return packets

    def tell_all(self, packet: bytes) -> None:
        self.mouth.sendto(packet, (GROUP, self.port))

    def tell(self, node: int, packet: bytes) -> None:
        self.mouth.sendto(packet, (LOOPBACK, local_peer(NodeId(node), self.port).token_port))
