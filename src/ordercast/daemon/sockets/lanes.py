"""Reading a lane: what one look at a socket brings, as packets for the engine."""

from __future__ import annotations

import errno
import socket
import struct
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import groupby
from math import isqrt
from pathlib import Path

from ordercast.daemon.sockets.filters import SHOWN_OF, attach_filter
from ordercast.daemon.status.counters import SocketCounters
from ordercast.model.ids import MAIN, Attachment
from ordercast.model.inputs import Lane, Packet
from ordercast.wire.head import HEAD_SIZE, LENGTH_AT

# Linux, <asm-generic/socket.h> and <linux/sock_diag.h>: Python does not name them in all versions.
SO_MEMINFO = 55
SK_MEMINFO_DROPS = 8
SK_MEMINFO_COUNT = 9

STATED = slice(LENGTH_AT, LENGTH_AT + 2)  # where a packet says its length
COUNTS = Path("/proc/self/net")  # where the kernel counts, for all sockets together
_NO_ROOM = ("UdpRcvbufErrors", "UdpMemErrors", "Udp6RcvbufErrors", "Udp6MemErrors")
READ_SIZE = 1 << 16
READS_MAX = 32  # of a lane, before the engine sees what they brought


@dataclass(slots=True)
class LaneSocket:
    """One lane's socket for receiving."""

    lane: Lane
    socket: socket.socket
    where: str  # for people
    network: int = 0  # which of several
    attachment: Attachment = MAIN  # which of several
    is_drained: bool = True  # the last look found its end
    counters: SocketCounters = field(default_factory=SocketCounters)
    _scratch: memoryview = field(default_factory=lambda: memoryview(bytearray(READ_SIZE)))
    drops_echoes: bool = False  # the kernel drops what comes back of our own, and counts each send as a drop
    _heads: tuple[bytes, ...] = ()  # with which our packets begin: the kernel drops most of all else
    _echo: tuple[str, int] | None = None  # where our own multicast comes from
    strangers_seen: int = 0  # that the kernel let through: one in sixteen
    _refused_before: int | None = field(default_factory=lambda: refused_for_room())  # when it began
    _buffers: dict[int, int] = field(default_factory=dict)  # sizes that were granted, by option

    def admit(self, heads: Sequence[bytes]) -> None:
        """Packets that begin so are wanted here."""
        if attach_filter(self.socket, heads, self._echo):
            self._heads = tuple(heads)

    def drop_echoes(self, address: str, port: int) -> None:
        """Multicast that we send from there, and that is looped back for our neighbours, comes back to us too: let the
        kernel drop it. Without this the engine would, as duplicates."""
        if attach_filter(self.socket, self._heads, (address, port)):
            self._echo, self.drops_echoes = (address, port), True

    def read_one(self) -> list[Packet]:
        """A packet that is likely to be alone; without room for many being made."""
        self.is_drained = False
        try:
            size = self.socket.recv_into(self._scratch)
        except OSError as error:
            self._note_failure(error)
            return []
        data = bytes(self._scratch[:size])
        if HEAD_SIZE < int.from_bytes(data[STATED], "big") < size:
            return self._packets_from([data])
        counters = self.counters
        if not data.startswith(self._heads) and self._heads:
            self.strangers_seen += 1
        counters.reads += 1
        counters.bytes_received += size
        counters.packets_received += 1
        return [Packet(data, size or 1, self.lane, self.attachment, self.network)]

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
        for alike in [reads] if len(reads) == 1 else [list(group) for _, group in groupby(reads, _shape)]:
            size, length = len(alike[0]), int.from_bytes(alike[0][STATED], "big")
            counters.bytes_received += size * len(alike)
            if not alike[0].startswith(self._heads) and self._heads:
                self.strangers_seen += len(alike)
            if HEAD_SIZE < length < size:  # several packets in one read
                packets += [Packet(data, length, self.lane, self.attachment, self.network) for data in alike]
                counters.packets_received += len(alike) * -(-size // length)
            else:
                data = alike[0] if len(alike) == 1 else b"".join(alike)
                packets.append(Packet(data, size or 1, self.lane, self.attachment, self.network))
                counters.packets_received += len(alike)
        return packets

    @property
    def receive_buffer_size(self) -> int:
        return self._granted(socket.SO_RCVBUF)

    @property
    def send_buffer_size(self) -> int:
        return self._granted(socket.SO_SNDBUF)

    def _granted(self, option: int) -> int:
        """By the kernel; of a socket that is closed, for its node has left, what it was when last asked for."""
        with suppress(OSError):
            self._buffers[option] = self.socket.getsockopt(socket.SOL_SOCKET, option) // 2
        return self._buffers.get(option, 0)

    def kernel_drops(self) -> int:
        """Packets that came and found the receive buffer full."""
        try:
            memory = self.socket.getsockopt(socket.SOL_SOCKET, SO_MEMINFO, 4 * SK_MEMINFO_COUNT)
        except OSError:
            return 0
        drops = int(struct.unpack(f"={SK_MEMINFO_COUNT}I", memory)[SK_MEMINFO_DROPS])
        # What the filter drops is counted likewise, and known by what it lets through, within four deviations.
        strangers = (SHOWN_OF - 1) * self.strangers_seen + 4 * SHOWN_OF * isqrt(self.strangers_seen)
        echoes = self.counters.sends if self.drops_echoes else 0
        likely = max(0, drops - strangers - echoes)
        # Of all sockets together the kernel does tell which found no room: no more than these did.
        now = refused_for_room() if likely else None
        return likely if now is None or self._refused_before is None else min(likely, now - self._refused_before)


def refused_for_room(folder: Path = COUNTS) -> int | None:
    """Return how many packets found a receive buffer full, of all UDP sockets of this network namespace; None where the
    kernel does not say."""
    try:
        names, counts = (
            line.split() for line in (folder / "snmp").read_text("ascii").splitlines() if line[:4] == "Udp:"
        )
        told = {f"Udp{name}": count for name, count in zip(names, counts, strict=True)}
        with suppress(FileNotFoundError):
            told |= dict(line.split() for line in (folder / "snmp6").read_text("ascii").splitlines())
        return sum(int(told.get(name, 0)) for name in _NO_ROOM)
    except (OSError, ValueError):
        return None


def _shape(data: bytes) -> tuple[int, bytes]:
    """Return what is the same in reads that are alike: the first bytes, and what they say of the length."""
    return len(data), data[: STATED.stop]
