"""The network of the demo, in a program of its own: it carries every datagram between the daemons, or drops it.

Started by `hosts.py`, by the path of this file: it imports the standard library alone, and needs no privilege. Each
ordered pair of daemons has two doors here, a UDP port for data and one for tokens: what the one sends to the door comes
out at the other. A pair that is cut has its datagrams read and thrown away, as a cable that was pulled would do: the
daemons know nothing of it, and find out as they would on a real network.

The first line of stdin lists the links, the answer names their doors; each further line says which pairs are cut from
now on, and the answer is what was carried and dropped so far. It ends when stdin does.
"""

from __future__ import annotations

import json
import select
import socket
import struct
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

HOST = "127.0.0.1"
READ_SIZE = 1 << 16
READS_MAX = 64  # of one door, before the others have their turn
BUFFER_SIZE = 4 << 20  # asked of the kernel for each door

# Linux, <linux/udp.h>: several packets of one size in one call, for those who can.
UDP_SEGMENT, UDP_GRO = 103, 104
_SEGMENT_SIZE = struct.Struct("=H")
_JOINED_SIZE = struct.Struct("=i")

Pair = tuple[int, int]  # from, to


class Door(NamedTuple):
    """One lane from one daemon to another."""

    pair: Pair
    socket: socket.socket
    target: tuple[str, int]


class Relay:
    def __init__(self, links: Sequence[dict[str, Any]]) -> None:
        """`links`: objects with `pair`, and the other's `host`, `data` port and `token` port."""
        self.cuts: set[Pair] = set()
        self.carried = self.dropped = 0
        self._data = {tuple(link["pair"]): _open(link, "data") for link in links}
        self._tokens = {tuple(link["pair"]): _open(link, "token") for link in links}
        self._doors = {door.socket.fileno(): door for door in (*self._data.values(), *self._tokens.values())}
        self._poll = select.epoll()
        for descriptor in self._doors:
            self._poll.register(descriptor, select.EPOLLIN)

    def places(self) -> list[dict[str, Any]]:
        """Where the doors are, in the order of the links."""
        return [
            {"pair": pair, "data": _port(self._data[pair]), "token": _port(self._tokens[pair])} for pair in self._data
        ]

    def run(self) -> None:
        control = sys.stdin.fileno()
        self._poll.register(control, select.EPOLLIN)
        while True:
            ready = [descriptor for descriptor, _ in self._poll.poll()]
            for descriptor in ready:
                if descriptor != control:
                    self._carry(self._doors[descriptor])
            if control in ready:
                line = sys.stdin.readline()
                if not line:
                    return
                for door in self._doors.values():  # what was sent before the change goes by the old rules
                    self._carry(door)
                self.cuts = {(source, target) for source, target in json.loads(line)}
                _answer({"carried": self.carried, "dropped": self.dropped})

    def _carry(self, door: Door) -> None:
        """A token does not overtake the data that were sent before it."""
        data = self._data[door.pair]
        if door is not data:
            while self._some(data) == READS_MAX:
                pass
        self._some(door)

    def _some(self, door: Door) -> int:
        is_cut = door.pair in self.cuts
        for count in range(READS_MAX):
            try:
                data, ancillary, _, _ = door.socket.recvmsg(READ_SIZE, 64)
            except BlockingIOError:
                return count
            except OSError:
                continue  # word that an earlier datagram found nobody: that daemon is gone
            size = _JOINED_SIZE.unpack_from(ancillary[0][2])[0] if ancillary else len(data)
            packets = -(-len(data) // size) if size else 1
            if is_cut or not self._pass_on(door, data, size):
                self.dropped += packets
            else:
                self.carried += packets
        return READS_MAX

    def _pass_on(self, door: Door, data: bytes, size: int) -> bool:
        ancillary = () if size >= len(data) else ((socket.SOL_UDP, UDP_SEGMENT, _SEGMENT_SIZE.pack(size)),)
        try:
            door.socket.sendmsg((data,), ancillary, 0, door.target)
        except OSError:
            return False
        return True


def _open(link: dict[str, Any], lane: str) -> Door:
    opened = socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER_SIZE)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, BUFFER_SIZE)
    try:
        opened.setsockopt(socket.SOL_UDP, UDP_SEGMENT, 0)
        opened.setsockopt(socket.SOL_UDP, UDP_GRO, 1)
    except OSError:
        pass  # an old kernel: one packet at a time
    opened.bind((HOST, 0))
    source, target = link["pair"]
    return Door((source, target), opened, (link["host"], link[lane]))


def _port(door: Door) -> int:
    return int(door.socket.getsockname()[1])


def _answer(document: Any) -> None:
    sys.stdout.write(json.dumps(document) + "\n")
    sys.stdout.flush()


def main() -> None:
    links = json.loads(sys.stdin.readline())
    relay = Relay(links)
    _answer(relay.places())
    relay.run()


if __name__ == "__main__":
    main()
