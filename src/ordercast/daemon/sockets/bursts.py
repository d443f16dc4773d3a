"""Sending bursts: many packets in one system call, where kernel and network card can (UDP_SEGMENT, UDP_GRO)."""

from __future__ import annotations

import errno
import socket
import struct
from collections.abc import Iterable, Sequence

from ordercast.daemon.sockets.lanes import LaneSocket
from ordercast.daemon.sockets.sends import SEGMENTS_MAX, segmented, singles
from ordercast.daemon.sockets.udp import SocketAddress
from ordercast.daemon.status.counters import SocketCounters
from ordercast.model.effects import Burst

# Linux, <linux/udp.h>: Python does not name them in all versions.
UDP_SEGMENT = 103
UDP_GRO = 104

SEND_PATIENCE_US = 20_000  # how long a send may wait for the network card, which is what paces a fast sender

_SEGMENT_SIZE = struct.Struct("=H")


def wait_to_send(opened: socket.socket) -> None:
    """Let sends wait for the network card, a little."""
    opened.setblocking(True)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("@ll", 0, SEND_PATIENCE_US))


class BurstSender:
    """A socket that sends bursts."""

    def __init__(self, sender: socket.socket, lanes: Iterable[LaneSocket]) -> None:
        """`lanes`: those that read what other nodes send so; none: every packet goes alone."""
        self._sender = sender
        self.segmentation = self._find_segmentation(tuple(lanes))

    def _find_segmentation(self, lanes: tuple[LaneSocket, ...]) -> bool:
        try:
            self._sender.setsockopt(socket.SOL_UDP, UDP_SEGMENT, 0)
            for lane in lanes:
                lane.socket.setsockopt(socket.SOL_UDP, UDP_GRO, 1)
        except OSError:
            return False
        return bool(lanes)

    def send(self, bursts: Sequence[Burst], targets: Sequence[SocketAddress | None], counters: SocketCounters) -> None:
        """Send them to each target, in order; None is whom the socket is connected to."""
        for pieces, size in segmented(bursts, SEGMENTS_MAX) if self.segmentation else singles(bursts):
            for target in targets:
                self._send(pieces, size, target, counters)
            counters.sends += 1
        for data, size in bursts:
            counters.bytes_sent += len(data)
            counters.packets_sent += -(-len(data) // size)

    def _send(
        self, pieces: Sequence[bytes | memoryview], size: int, target: SocketAddress | None, counters: SocketCounters
    ) -> None:
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
                for single, length in singles([(bytes(piece), size) for piece in pieces]):
                    self._send(single, length, target, counters)
            else:
                counters.send_failures += 1
