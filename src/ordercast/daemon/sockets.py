"""The sockets of a node: one lane for tokens, one for data, read and written in batches.

Data goes out by multicast, or to each peer in turn; tokens go to one peer. Where the kernel can (UDP_SEGMENT, UDP_GRO)
one system call carries as many packets as fit in 64 KiB: packets of one size are cut apart again by the kernel or the
network card, and a receiver gets them joined. That needs no side channel, since every packet's header says its length.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import socket
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from ipaddress import ip_address
from itertools import groupby

from ordercast.daemon.config import LOCAL_NODES_MAX, NodeConfig, Peer, Transport, local_peer
from ordercast.daemon.counters import SocketCounters
from ordercast.model.effects import Burst
from ordercast.model.errors import UsageError
from ordercast.model.ids import NodeId
from ordercast.model.inputs import Lane, Packet
from ordercast.wire.header import HEADER_SIZE, LENGTH_AT

# Linux, <linux/udp.h>, <asm-generic/socket.h> and <linux/in.h>: Python does not name them in all versions.
UDP_SEGMENT = 103
UDP_GRO = 104
SO_ATTACH_FILTER = 26
SO_SNDBUFFORCE = 32
SO_RCVBUFFORCE = 33
SO_MEMINFO = 55
SK_MEMINFO_DROPS = 8
SK_MEMINFO_COUNT = 9
IP_MULTICAST_ALL = 49

SEND_SIZE_MAX = 65507  # bytes of one segmented send: what one datagram could carry
SEGMENTS_MAX = 64  # packets of one segmented send
READ_SIZE = 1 << 16
READS_MAX = 32  # of a lane, before the engine sees what they brought
KERNEL_OVERHEAD = 832  # bytes that the kernel spends on a received packet beside its own, more or less
SEND_PATIENCE_US = 20_000  # how long a send may wait for the network card, which is what paces a fast sender

_SEGMENT_SIZE = struct.Struct("=H")
_Address = tuple[str, int] | tuple[str, int, int, int]


@dataclass(slots=True)
class LaneSocket:
    """One lane's socket for receiving."""

    lane: Lane
    socket: socket.socket
    where: str  # for people
    is_drained: bool = True  # the last look found its end
    counters: SocketCounters = field(default_factory=SocketCounters)
    _scratch: memoryview = field(default_factory=lambda: memoryview(bytearray(READ_SIZE)))
    drops_echoes: bool = False  # the kernel drops what comes back of our own, and counts each send as a drop

    def read_one(self) -> list[Packet]:
        """A packet that is likely to be alone; without room for many being made."""
        self.is_drained = False
        try:
            size = self.socket.recv_into(self._scratch)
        except OSError as error:
            self._note_failure(error)
            return []
        counters = self.counters
        counters.reads += 1
        counters.bytes_received += size
        data = bytes(self._scratch[:size])
        length = int.from_bytes(data[LENGTH_AT : LENGTH_AT + 2], "big")
        if HEADER_SIZE <= length < size:  # not alone after all
            counters.packets_received += -(-size // length)
            return [Packet(data, length, self.lane)]
        counters.packets_received += 1
        return [Packet(data, size or 1, self.lane)]

    def _note_failure(self, error: OSError) -> None:
        self.is_drained = True
        if error.errno not in (errno.EAGAIN, errno.ECONNREFUSED):
            self.counters.receive_failures += 1

    def drain(self, reads_max: int = READS_MAX) -> list[Packet]:
        """What has arrived, up to a bound. `is_drained` tells whether the end was seen."""
        reads: list[bytes] = []
        receive = self.socket.recv
        self.is_drained = False
        for _ in range(reads_max):
            try:
                reads.append(receive(READ_SIZE))
            except OSError as error:
                self._note_failure(error)
                break
        return self._packets_from(reads) if reads else []

    def _packets_from(self, reads: list[bytes]) -> list[Packet]:
        """Single datagrams of one size are put together, as the kernel would have done with UDP_GRO: a reader of long
        runs is a fast reader."""
        packets: list[Packet] = []
        counters = self.counters
        counters.reads += len(reads)
        for (size, stated), group in groupby(reads, lambda data: (len(data), data[LENGTH_AT : LENGTH_AT + 2])):
            alike = list(group)
            length = int.from_bytes(stated, "big")
            counters.bytes_received += size * len(alike)
            if HEADER_SIZE <= length < size:  # several packets in one read
                packets += [Packet(data, length, self.lane) for data in alike]
                counters.packets_received += len(alike) * -(-size // length)
            else:
                data = alike[0] if len(alike) == 1 else b"".join(alike)
                packets.append(Packet(data, size or 1, self.lane))
                counters.packets_received += len(alike)
        return packets

    @property
    def receive_buffer_size(self) -> int:
        return self.socket.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) // 2

    @property
    def send_buffer_size(self) -> int:
        return self.socket.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) // 2

    def kernel_drops(self) -> int:
        """Packets that came and found the receive buffer full."""
        try:
            memory = self.socket.getsockopt(socket.SOL_SOCKET, SO_MEMINFO, 4 * SK_MEMINFO_COUNT)
        except OSError:
            return 0
        drops = int(struct.unpack(f"={SK_MEMINFO_COUNT}I", memory)[SK_MEMINFO_DROPS])
        return max(0, drops - self.counters.sends) if self.drops_echoes else drops


class Sockets:
    """Everything that a node sends and receives on one network."""

    def __init__(self, config: NodeConfig) -> None:
        """Opens them; UsageError says what is in the way. A node without an id gets the first that is free."""
        self.transport = config.network.transport
        self._opened: list[socket.socket] = []
        try:
            self.config, token = _claim(config, self._opened)
            me = self.config.me()
            self.token = LaneSocket(Lane.TOKEN, token, f"{me.address} port {me.token_port}")
            self.data = self._open_data(me)
            self._sender = self._open_sender(me)
            self._targets = self._broadcast_targets()
            for opened in self._opened:
                _ask_for_buffers(opened, config.network.buffer_size)
            self.segmentation = config.network.segmentation and self._find_segmentation()
        except BaseException:
            self.close()
            raise
        self._token_addresses: dict[NodeId, _Address] = {}

    def packets_held(self, packet_size: int) -> int:
        """How many packets the receive buffer holds for sure: the kernel counts the memory that it spends on each."""
        return self.data.receive_buffer_size // (packet_size + KERNEL_OVERHEAD)

    def close(self) -> None:
        for opened in self._opened:
            opened.close()

    # Sending

    def broadcast(self, bursts: Sequence[Burst]) -> None:
        """To everybody else, in order."""
        counters = self.data.counters
        if len(bursts) == 1 and len(bursts[0][0]) <= bursts[0][1]:  # one packet: nothing to arrange
            for target in self._targets:
                self._send((bursts[0][0],), bursts[0][1], target)
            counters.sends += 1
            counters.bytes_sent += len(bursts[0][0])
            counters.packets_sent += 1
            return
        sends = _sends(bursts, SEGMENTS_MAX) if self.segmentation else _singles(bursts)
        for pieces, size in sends:
            for target in self._targets:
                self._send(pieces, size, target)
            counters.sends += 1
        total = sum(len(data) for data, _ in bursts)
        counters.bytes_sent += total
        counters.packets_sent += sum(-(-len(data) // size) for data, size in bursts)

    def send_to(self, node: NodeId, packet: bytes) -> None:
        address = self._token_addresses.get(node)
        if address is None:
            peer = self.config.peer(node)
            address = self._token_addresses[node] = _address(peer.address, peer.token_port)
        counters = self.token.counters
        try:
            self.token.socket.sendto(packet, address)
            counters.packets_sent += 1
            counters.bytes_sent += len(packet)
            counters.sends += 1
        except OSError:
            counters.send_failures += 1  # the token is sent again, and a peer that cannot be reached has failed

    def _send(self, pieces: Sequence[bytes | memoryview], size: int, target: _Address | None) -> None:
        """Packets of one size in one call; the kernel cuts them apart."""
        is_single = len(pieces) == 1 and len(pieces[0]) <= size
        ancillary = () if is_single else ((socket.SOL_UDP, UDP_SEGMENT, _SEGMENT_SIZE.pack(size)),)
        try:
            if target is not None:
                self._sender.sendmsg(pieces, ancillary, 0, target)
            elif is_single:
                self._sender.send(pieces[0])
            else:
                self._sender.sendmsg(pieces, ancillary)
        except OSError as error:
            if ancillary and error.errno in (errno.EIO, errno.EINVAL, errno.EMSGSIZE):
                self.segmentation = False  # the network card cannot, whatever the kernel said
                for single, length in _singles([(bytes(piece), size) for piece in pieces]):
                    self._send(single, length, target)
            else:
                self.data.counters.send_failures += 1

    # Opening

    def _open_data(self, me: Peer) -> LaneSocket:
        network = self.config.network
        if self.transport is Transport.UNICAST:
            opened = _open(me.address, me.data_port, self._opened, "data")
            where = f"{me.address} port {me.data_port}"
        else:
            opened = _open(network.group, network.port, self._opened, "data", interface=me.address, shared=True)
            _join_group(opened, network.group, me.address)
            where = f"{network.group} port {network.port} on {me.address}"
        return LaneSocket(Lane.DATA, opened, where)

    def _open_sender(self, me: Peer) -> socket.socket:
        opened = _open(me.address, 0, self._opened, "sending")
        opened.setblocking(True)
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("@ll", 0, SEND_PATIENCE_US))
        if self.transport is Transport.MULTICAST:
            _route_multicast(opened, me.address, self.config.network.ttl, loop=self._has_neighbours(me))
            if self._has_neighbours(me):
                self.data.drops_echoes = _drop_echoes(self.data.socket, opened)
            try:
                opened.connect(_address(self.config.network.group, self.config.network.port, me.address))
            except OSError as error:
                raise UsageError(
                    f"no route for multicast from {me.address} to {self.config.network.group}: {error.strerror}; "
                    "add one (ip route add 224.0.0.0/4 dev …) or set transport to unicast"
                ) from error
        return opened

    def _broadcast_targets(self) -> list[_Address | None]:
        if self.transport is Transport.MULTICAST:
            return [None]
        return [_address(peer.address, peer.data_port) for peer in self.config.others()]

    def _has_neighbours(self, me: Peer) -> bool:
        """Other nodes run on this machine, and hear our multicast only if it is looped back."""
        return self.config.is_local or any(_is_here(peer.address) for peer in self.config.others())

    def _find_segmentation(self) -> bool:
        try:
            self._sender.setsockopt(socket.SOL_UDP, UDP_SEGMENT, 0)
            self.data.socket.setsockopt(socket.SOL_UDP, UDP_GRO, 1)
        except OSError:
            return False
        return True


def _sends(bursts: Sequence[Burst], segments_max: int) -> Iterator[tuple[list[bytes | memoryview], int]]:
    """What one system call can carry each time: packets of one size, the last perhaps shorter."""
    gathered: list[bytes | memoryview] = []
    size = room = 0  # of the send being put together: packets of `size`, and how many bytes more it can take
    for data, its_size in bursts:
        is_alike = its_size == size or len(data) <= its_size < size  # one shorter packet may be the last
        if gathered and (not is_alike or len(data) > room):
            yield gathered, size
            gathered = []
        if not gathered:
            size = its_size
            room = limit = size * min(segments_max, max(1, SEND_SIZE_MAX // size))
            if len(data) > limit:
                view = memoryview(data)
                for at in range(0, len(data), limit):
                    yield [view[at : at + limit]], size
                continue
        gathered.append(data)
        room = room - len(data) if len(data) % size == 0 else 0
    if gathered:
        yield gathered, size


def _singles(bursts: Sequence[Burst]) -> Iterator[tuple[tuple[memoryview], int]]:
    """One packet for each system call."""
    for data, size in bursts:
        view = memoryview(data)
        for at in range(0, len(data), size):
            yield (view[at : at + size],), size


def _claim(config: NodeConfig, opened: list[socket.socket]) -> tuple[NodeConfig, socket.socket]:
    """The socket for tokens. On one machine its port stands for the node id, and who has the port has the id."""
    if config.node is not None:
        me = config.me()
        return replace(config, name=config.name or me.name), _open(me.address, me.token_port, opened, "tokens")
    for number in range(1, LOCAL_NODES_MAX + 1):
        peer = local_peer(NodeId(number), config.network.port)
        try:
            claimed = _open(peer.address, peer.token_port, opened, "tokens")
        except PortInUse:
            continue
        return replace(config, node=peer.node, name=config.name or peer.name), claimed
    raise UsageError(f"{LOCAL_NODES_MAX} nodes run on this machine already; describe larger clusters in a file")


class PortInUse(UsageError):
    """Another process has it."""


def _open(
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
        udp.bind(_address(address, port, interface or address))
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


def _address(address: str, port: int, interface: str = "") -> _Address:
    if ":" not in address:
        return address, port
    scoped = ip_address(address.split("%")[0])
    scope = interface_index(interface) if interface and (scoped.is_multicast or scoped.is_link_local) else 0
    return address, port, 0, scope


def interface_index(address: str) -> int:
    """Of the network interface that has this IPv6 address; 0 when none has."""
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


def _is_here(address: str) -> bool:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind(_address(address, 0, address))
        except OSError:
            return False
    return True


def _join_group(udp: socket.socket, group: str, interface: str) -> None:
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


def _route_multicast(udp: socket.socket, interface: str, ttl: int, *, loop: bool) -> None:
    if udp.family == socket.AF_INET:
        udp.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(interface))
        udp.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, ttl)
        udp.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_LOOP, loop)
    else:
        udp.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_IF, interface_index(interface))
        udp.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_HOPS, ttl)
        udp.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_LOOP, loop)


# A program for the kernel: (load source port; is it mine? load source address; is it mine? refuse : accept).
_INSTRUCTION = struct.Struct("=HBBI")
_LOAD_HALF, _LOAD_WORD, _JUMP_IF_EQUAL, _RETURN = 0x28, 0x20, 0x15, 0x06
_NETWORK_HEADER = -0x100000 & 0xFFFFFFFF
_SOURCE_ADDRESS_AT = 12  # in an IPv4 header


def _drop_echoes(receiver: socket.socket, sender: socket.socket) -> bool:
    """Multicast that is looped back for our neighbours comes back to us too: let the kernel drop it. Without this the
    engine would, as duplicates."""
    if receiver.family != socket.AF_INET:
        return False
    address, port = sender.getsockname()
    program = b"".join(
        _INSTRUCTION.pack(*instruction)
        for instruction in (
            (_LOAD_HALF, 0, 0, 0),
            (_JUMP_IF_EQUAL, 0, 3, port),
            (_LOAD_WORD, 0, 0, (_NETWORK_HEADER + _SOURCE_ADDRESS_AT) & 0xFFFFFFFF),
            (_JUMP_IF_EQUAL, 0, 1, int.from_bytes(socket.inet_aton(address), "big")),
            (_RETURN, 0, 0, 0),
            (_RETURN, 0, 0, 0xFFFFFFFF),
        )
    )
    memory = ctypes.create_string_buffer(program, len(program))
    header = struct.pack("@HP", len(program) // _INSTRUCTION.size, ctypes.addressof(memory))
    try:
        receiver.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, header)
    except OSError:
        return False
    return True


def _ask_for_buffers(udp: socket.socket, size: int) -> None:
    """As large as asked, with the privilege if we have it; what was granted is in the status."""
    for plain, forced in ((socket.SO_RCVBUF, SO_RCVBUFFORCE), (socket.SO_SNDBUF, SO_SNDBUFFORCE)):
        udp.setsockopt(socket.SOL_SOCKET, plain, size)
        if os.geteuid() == 0:
            with contextlib.suppress(OSError):  # root of a container
                udp.setsockopt(socket.SOL_SOCKET, forced, size)
