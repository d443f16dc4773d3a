"""UDP as the kernel offers it: opening, multicast, buffers, with errors that say what is in the way."""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import struct
from ipaddress import ip_address

from ordercast.model.errors import UsageError

# Linux, <asm-generic/socket.h> and <linux/in.h>: Python does not name them in all versions.
SO_SNDBUFFORCE = 32
SO_RCVBUFFORCE = 33
IP_MULTICAST_ALL = 49

SocketAddress = tuple[str, int] | tuple[str, int, int, int]


class PortInUse(UsageError):
    """Another process has it."""


def open_udp(
    address: str, port: int, opened: list[socket.socket], purpose: str, interface: str = "", shared: bool = False
) -> socket.socket:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    udp = socket.socket(family, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC)
    opened.append(udp)
    try:
        if family == socket.AF_INET6:
            udp.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        if shared:
            udp.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        udp.bind(address_of(address, port, interface or address))
    except OSError as error:
        opened.remove(udp)
        udp.close()
        raise _bind_error(error, address, port, purpose) from error
    return udp


def _bind_error(error: OSError, address: str, port: int, purpose: str) -> UsageError:
    place = f"{address} port {port} ({purpose})"
    if error.errno == errno.EADDRINUSE:
        return PortInUse(f"{place} is taken by another process: end it, or choose another port")
    if error.errno == errno.EADDRNOTAVAIL:
        return UsageError(f"{address} is not an address of this host: see `ip address`, and correct the node's address")
    if error.errno == errno.EACCES:
        return UsageError(f"this user may not open {place}: choose a port above 1023")
    return UsageError(f"{place} cannot be opened: {error.strerror}")


def address_of(address: str, port: int, interface: str = "") -> SocketAddress:
    if ":" not in address:
        return address, port
    scoped = ip_address(address.split("%")[0])
    scope = interface_index(interface) if interface and (scoped.is_multicast or scoped.is_link_local) else 0
    return address, port, 0, scope


def interface_index(address: str) -> int:
    """Return the index of the network interface that has this IPv6 address; 0 when none has."""
    wanted = ip_address(address.split("%")[0]).packed.hex()
    try:
        with open("/proc/net/if_inet6", encoding="ascii") as table:
            for line in table:
                digits, index, *_ = line.split()
                if digits == wanted:
                    return int(index, 16)
    except OSError:
        pass
    return 0


def is_here(address: str) -> bool:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.bind(address_of(address, 0, address))
    except OSError:  # the host may have no IPv6 at all
        return False
    return True


def join_group(udp: socket.socket, group: str, interface: str) -> None:
    try:
        if udp.family == socket.AF_INET:
            udp.setsockopt(socket.IPPROTO_IP, IP_MULTICAST_ALL, 0)
            request = socket.inet_aton(group) + socket.inet_aton(interface)
            udp.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, request)
        else:
            request = socket.inet_pton(socket.AF_INET6, group) + struct.pack("@I", interface_index(interface))
            udp.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_JOIN_GROUP, request)
    except OSError as error:
        raise UsageError(
            f"the interface of {interface} cannot join the multicast group {group}: {error.strerror}; "
            "set transport to unicast, or use an interface that does multicast"
        ) from error


def route_multicast(udp: socket.socket, interface: str, ttl: int, *, loop: bool) -> None:
    if udp.family == socket.AF_INET:
        udp.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(interface))
        udp.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, ttl)
        udp.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_LOOP, loop)
    else:
        udp.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_IF, interface_index(interface))
        udp.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_HOPS, ttl)
        udp.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_LOOP, loop)


def ask_for_buffers(udp: socket.socket, size: int) -> None:
    """As large as asked, with the privilege if we have it; what was granted is in the status."""
    for plain, forced in ((socket.SO_RCVBUF, SO_RCVBUFFORCE), (socket.SO_SNDBUF, SO_SNDBUFFORCE)):
        udp.setsockopt(socket.SOL_SOCKET, plain, size)
        if os.geteuid() == 0:
            with contextlib.suppress(OSError):  # root of a container
                udp.setsockopt(socket.SOL_SOCKET, forced, size)
