"""The raw limit of a machine: UDP multicast between network namespaces with no protocol at all.

One host sends, all others receive, a process each. Nothing is lost: receivers count in shared memory, and the sender
waits while the slowest is too far behind, so no packet of its own is needed for that. Plain is a system call for each
datagram; segmented is one for many (UDP_SEGMENT and UDP_GRO). CPU is that of all processes for each datagram sent, all
receivers included.

    python -m bench.raw_udp [--json] [--seconds S] [--nodes 4,8]
"""

from __future__ import annotations

import argparse
import json
import mmap
import os
import socket
import struct
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from rig import Host, Hosts, why_not

GROUP = "239.192.79.2"
PORT = 5406
SIZE = 1350
SEGMENTS = 48  # 48 of 1350 bytes are just below the largest UDP send
UDP_SEGMENT, UDP_GRO = 103, 104
SO_RCVBUFFORCE = 33
BUFFER_SIZE = 32 << 20
WINDOW = 4096  # datagrams that a receiver may be behind: a buffer holds them, with the kernel's own overhead
COUNTER = struct.Struct("=q")
CHUNK = 1024  # datagrams between two looks at the clock


@dataclass(frozen=True)
class RawResult:
    nodes: int
    size: int
    segments: int  # datagrams for each system call
    delivered_per_s: float  # at the slowest receiver
    mbit_per_s: float
    cpu_us: float  # of all processes, for each datagram sent
    lost: int  # at the receiver that lost most


@dataclass(frozen=True)
class Part:
    """What one process reports."""

    datagrams: int
    seconds: float
    cpu_s: float


class Board:
    """Counters shared by all processes: how many each receiver has, and how many were sent in all (at the end)."""

    def __init__(self, path: Path, nodes: int) -> None:
        self.nodes = nodes
        with path.open("r+b") as file:
            os.ftruncate(file.fileno(), COUNTER.size * (nodes + 1))
            self._memory = mmap.mmap(file.fileno(), COUNTER.size * (nodes + 1))

    def put(self, at: int, value: int) -> None:
        COUNTER.pack_into(self._memory, COUNTER.size * at, value)

    def get(self, at: int) -> int:
        value: int = COUNTER.unpack_from(self._memory, COUNTER.size * at)[0]
        return value

    def slowest(self) -> int:
        return min(self.get(at) for at in range(1, self.nodes))


# The processes: host 1 sends (place 0 of the board holds the total), the others receive.


def send(board: Board, address: str, size: int, segments: int, seconds: float) -> Part:
    sending = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sending.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(address))
    sending.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_LOOP, 0)
    sending.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, BUFFER_SIZE)
    if segments > 1:
        sending.setsockopt(socket.IPPROTO_UDP, UDP_SEGMENT, size)
    sending.connect((GROUP, PORT))
    data = bytes(size * segments)
    push = sending.send
    sent, start, cpu = 0, time.monotonic(), time.process_time()
    while time.monotonic() - start < seconds:
        for _ in range(max(1, CHUNK // segments)):
            push(data)
            sent += segments
        while sent - board.slowest() > WINDOW - CHUNK and time.monotonic() - start < seconds:
            time.sleep(0.00005)
    board.put(0, sent)
    return Part(sent, time.monotonic() - start, time.process_time() - cpu)


def receive(board: Board, at: int, address: str, size: int, segments: int) -> Part:
    """Until all that was sent is here, or nothing comes any more."""
    listening = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    listening.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, BUFFER_SIZE)
    listening.bind((GROUP, PORT))
    member = socket.inet_aton(GROUP) + socket.inet_aton(address)
    listening.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, member)
    if segments > 1:
        listening.setsockopt(socket.IPPROTO_UDP, UDP_GRO, 1)
    print("ready", flush=True)
    buffer = bytearray(1 << 16)
    take = listening.recv_into
    received, start, last = take(buffer) // size, time.monotonic(), time.monotonic()
    cpu = time.process_time()
    listening.settimeout(0.5)
    try:
        while not (total := board.get(0)) or received < total:
            for _ in range(16):
                received += take(buffer) // size
            board.put(at, received)
            last = time.monotonic()
    except TimeoutError:
        board.put(at, received)
    return Part(received, last - start, time.process_time() - cpu)


def work(task: list[str]) -> None:
    path, nodes, at, address, size, segments, seconds = task
    board = Board(Path(path), int(nodes))
    if int(at) == 0:
        part = send(board, address, int(size), int(segments), float(seconds))
    else:
        part = receive(board, int(at), address, int(size), int(segments))
    print(json.dumps(asdict(part)))


# The measurement


def measure(hosts: Hosts, size: int = SIZE, segments: int = 1, seconds: float = 3.0) -> RawResult:
    """Among hosts that exist already."""
    nodes = len(hosts)
    with tempfile.NamedTemporaryFile() as file:
        Board(Path(file.name), nodes)

        def start(at: int, host: Host) -> subprocess.Popen[str]:
            task = [file.name, nodes, at, host.address(), size, segments, seconds]
            argv = [sys.executable, __file__, "--work", *(str(value) for value in task)]
            return host.run(argv, stdout=subprocess.PIPE, text=True)

        receivers = [start(at, host) for at, host in enumerate(hosts) if at]
        for receiver in receivers:
            assert receiver.stdout is not None
            receiver.stdout.readline()
        processes = [start(0, hosts[0]), *receivers]
        parts = [Part(**json.loads(each.communicate(timeout=seconds + 60)[0])) for each in processes]
    sent, received = parts[0], parts[1:]
    rate = min(part.datagrams / part.seconds for part in received)
    return RawResult(
        nodes,
        size,
        segments,
        rate,
        rate * size * 8 / 1e6,
        sum(part.cpu_s for part in parts) * 1e6 / sent.datagrams,
        max(sent.datagrams - part.datagrams for part in received),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--seconds", type=float, default=3.0, help="for each row")
    parser.add_argument("--nodes", default="4,8")
    parser.add_argument("--work", nargs=7, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.work:
        work(arguments.work)
        return
    if reason := why_not():
        sys.exit(f"skipped: {reason}")
    rows = []
    for nodes in str(arguments.nodes).split(","):
        with Hosts(int(nodes)) as hosts:
            rows += [measure(hosts, SIZE, segments, arguments.seconds) for segments in (1, SEGMENTS)]
    if arguments.json:
        print(json.dumps([asdict(row) for row in rows]))
        return
    print(f"{'nodes':>5} {'bytes':>6} {'per call':>8} {'datagrams/s':>11} {'Mbit/s':>8} {'CPU us':>7} {'lost':>6}")
    for row in rows:
        print(
            f"{row.nodes:5} {row.size:6} {row.segments:8} {row.delivered_per_s:11.0f} {row.mbit_per_s:8.0f} "
            f"{row.cpu_us:7.2f} {row.lost:6}"
        )


if __name__ == "__main__":
    main()
