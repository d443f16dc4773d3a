"""The floor of latency: the same hosts, sockets, sizes and rate as `bench.live`'s lone messages, and no protocol.

One host sends datagrams by multicast, some a second, each with the time; the others receive them, a process each: in C
(blocking), in Python with a blocking socket, with epoll, and with asyncio (a reader, a future and a task, as an
application has them). The sender is the one in C, where there is a C compiler, and Python otherwise.

    python -m bench.floor [--json] [--nodes 4] [--size 100] [--rate 100] [--count 300]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import select
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).parents[1]))

from rig import Hosts, why_not

GROUP, PORT = "239.192.79.3", 5407
STAMP = struct.Struct("=q")
SOURCE = Path(__file__).with_suffix(".c")
COMPILERS = ("cc", "gcc", "clang")
PATIENCE_S = 60.0


@dataclass(frozen=True)
class Floor:
    form: str
    nodes: int
    size: int
    p50_us: float
    p99_us: float
    received: int


def _listening(address: str) -> socket.socket:
    udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    udp.bind((GROUP, PORT))
    udp.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, socket.inet_aton(GROUP) + socket.inet_aton(address))
    return udp


def _age(data: bytes) -> int:
    stamp: int = STAMP.unpack_from(data)[0]
    return time.monotonic_ns() - stamp


def blocking(udp: socket.socket, count: int) -> list[int]:
    return [_age(udp.recv(1 << 16)) for _ in range(count)]


def with_epoll(udp: socket.socket, count: int) -> list[int]:
    udp.setblocking(False)
    poll, ages = select.epoll(), list[int]()
    poll.register(udp, select.EPOLLIN)
    while len(ages) < count:
        for _ in poll.poll():
            ages.append(_age(udp.recv(1 << 16)))
    return ages


def with_asyncio(udp: socket.socket, count: int) -> list[int]:
    async def take() -> list[int]:
        loop = asyncio.get_running_loop()
        came: list[bytes] = []
        waiting: asyncio.Future[None] | None = None

        def read() -> None:
            came.append(udp.recv(1 << 16))
            if waiting is not None and not waiting.done():
                waiting.set_result(None)

        udp.setblocking(False)
        loop.add_reader(udp, read)
        ages: list[int] = []
        while len(ages) < count:
            while not came:
                waiting = loop.create_future()
                await waiting
            ages += [_age(data) for data in came]
            came.clear()
        return ages

    return asyncio.run(take())


FORMS: dict[str, Callable[[socket.socket, int], list[int]]] = {
    "blocking": blocking,
    "epoll": with_epoll,
    "asyncio": with_asyncio,
}


def receive(form: str, address: str, count: int) -> None:
    udp = _listening(address)
    print("ready", flush=True)
    print("\n".join(map(str, FORMS[form](udp, count))))


def send(address: str, size: int, count: int, pause_s: float) -> None:
    udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    udp.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(address))
    udp.connect((GROUP, PORT))
    rest = bytes(size - STAMP.size)
    for _ in range(count):
        time.sleep(pause_s)
        udp.send(STAMP.pack(time.monotonic_ns()) + rest)


def compiled(folder: Path) -> Path | None:
    """The program in C; None where nothing compiles it."""
    compiler = next(filter(None, map(shutil.which, COMPILERS)), None)
    if compiler is None:
        return None
    program = folder / "floor"
    subprocess.run([compiler, "-O2", "-o", str(program), str(SOURCE)], check=True)
    return program


def measure(hosts: Hosts, form: str, program: Path | None, size: int, rate: float, count: int) -> Floor:
    """Of a form, or of the program in C, if the form is `C`."""

    def in_c(what: str, address: str) -> list[str]:
        return [str(program), what, GROUP, str(PORT), address, str(size), str(count), str(int(1e9 / rate))]

    receivers = []
    for host in hosts[1:]:
        here = [sys.executable, __file__, "--work", form, host.address(), str(count)]
        command = in_c("receive", host.address()) if form == "C" else here
        receivers.append(host.run(command, stdout=subprocess.PIPE, text=True))
    for receiver in receivers:
        assert receiver.stdout is not None and receiver.stdout.readline() == "ready\n"
    own = hosts[0].address()
    python = [sys.executable, __file__, "--send", own, str(size), str(count), str(1 / rate)]
    sender = hosts[0].run(python if program is None else in_c("send", own))
    if sender.wait(count / rate + PATIENCE_S):
        raise SystemExit(f"the sender has failed: {sender.returncode}")
    ages = sorted(int(age) for each in receivers for age in each.communicate(timeout=PATIENCE_S)[0].split())
    return Floor(form, len(hosts), size, median(ages) / 1e3, ages[len(ages) * 99 // 100] / 1e3, len(ages))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--nodes", type=int, default=4)
    parser.add_argument("--size", type=int, default=100)
    parser.add_argument("--rate", type=float, default=100.0, help="datagrams a second")
    parser.add_argument("--count", type=int, default=300, help="datagrams of each row")
    parser.add_argument("--work", nargs=3, help=argparse.SUPPRESS)
    parser.add_argument("--send", nargs=4, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.work:
        receive(arguments.work[0], arguments.work[1], int(arguments.work[2]))
        return
    if arguments.send:
        address, size, count, pause = arguments.send
        send(address, int(size), int(count), float(pause))
        return
    if reason := why_not():
        sys.exit(f"skipped: {reason}")
    with tempfile.TemporaryDirectory() as folder, Hosts(arguments.nodes) as hosts:
        program = compiled(Path(folder))
        forms = ["C", *FORMS] if program is not None else list(FORMS)
        rows = [measure(hosts, form, program, arguments.size, arguments.rate, arguments.count) for form in forms]
    if arguments.json:
        print(json.dumps([asdict(row) for row in rows]))
        return
    print(f"{'receivers':>10} {'nodes':>5} {'bytes':>6} {'p50 us':>8} {'p99 us':>8}")
    for row in rows:
        print(f"{row.form:>10} {row.nodes:5} {row.size:6} {row.p50_us:8.1f} {row.p99_us:8.1f}")


if __name__ == "__main__":
    main()
