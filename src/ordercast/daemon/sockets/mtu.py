"""How large IP packets may be: on the interface of an address, and on the way to another host, as the kernel knows it.

The kernel learns of a narrower path from routers, and keeps that for some minutes. A switch that drops large frames
says nothing: whoever is behind it fails to receive.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from ipaddress import ip_address

from ordercast.daemon.config.node import NodeConfig
from ordercast.daemon.sockets.udp import SocketAddress, address_of, interface_index
from ordercast.model.effects import Alarm, AlarmKind

# Linux, <linux/in.h> and <linux/in6.h>: Python does not name them.
IP_MTU = 14
IPV6_MTU = 24
DISCARD = 9  # a port; nothing is sent there


def interface_mtu(address: str) -> int | None:
    """Return the MTU of the interface that has this address; None when this host has none, or cannot tell."""
    is_six = ip_address(address.split("%")[0]).version == 6
    with socket.socket(socket.AF_INET6 if is_six else socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind(address_of(address, 0, address))
            if is_six:
                scope = interface_index(address)
                probe.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_IF, struct.pack("@I", scope))
                return _mtu_towards(probe, ("ff15::4f43", DISCARD, 0, scope))
            probe.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(address))
            return _mtu_towards(probe, ("239.192.79.67", DISCARD))
        except OSError:
            return None


def path_mtu(own: str, other: str) -> int | None:
    """Return the MTU of the way from an address of this host to another host; None when nobody can tell."""
    is_six = ip_address(own.split("%")[0]).version == 6
    try:
        with socket.socket(socket.AF_INET6 if is_six else socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.bind(address_of(own, 0, own))
            return _mtu_towards(probe, address_of(other, DISCARD, own))
    except OSError:
        return None


def _mtu_towards(probe: socket.socket, there: SocketAddress) -> int:
    probe.connect(there)
    if probe.family == socket.AF_INET6:
        return probe.getsockopt(socket.IPPROTO_IPV6, IPV6_MTU)
    return probe.getsockopt(socket.IPPROTO_IP, IP_MTU)


@dataclass(slots=True)
class PathWatch:
    """Compares what the kernel knows of the ways to the others with the MTU that packets are made for."""

    config: NodeConfig
    measure: Callable[[str, str], int | None] = path_mtu
    _told: dict[str, int] = field(default_factory=dict)  # what was said last of the way to each address

    def alarms(self) -> Iterator[Alarm]:
        for leg in self.config.attachments:
            for number in range(len(leg.networks)):
                yield from self._narrow(leg.on(number))

    def _narrow(self, config: NodeConfig) -> Iterator[Alarm]:
        own = next((peer.address for peer in config.peers if peer.node == config.node), None)
        if own is None:
            return
        for peer in config.others():
            found, wanted = self.measure(own, peer.address), config.network.mtu
            if found is None or found >= wanted:
                self._told.pop(peer.address, None)
            elif self._told.get(peer.address) != found:
                self._told[peer.address] = found
                text = f"the path to {peer.name} ({peer.address}) takes packets of {found} bytes, and network.mtu is"
                text += f" {wanted}: larger ones are cut up, or lost; write mtu = {found} for all, or widen the path"
                yield Alarm(AlarmKind.NARROW_PATH, text)
