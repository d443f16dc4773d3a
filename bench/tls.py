"""Clients over TCP: in the clear, over TLS, and over TLS with rights, in turns; memory and time of a TLS connection.

Three daemons on loopback and three clients, each a process, as in `bench/clients.py`; then one daemon and many idle
connections.

    python -m bench.tls [--seconds S] [--rounds N] [--connections N] [--size BYTES]
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import AsyncExitStack, ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from rig.programs import ROOT, Program, end

import ordercast
from bench.clients import PORT, Clients, cpu_s
from ordercast.api.credentials import VARIABLE
from ordercast.cli.daemons import ordercast_command
from ordercast.daemon.authority import CertificateKind, issue, new_authority

CLIENTS_PORT = PORT + 50
RULES = """
[[rights]]
who = ["cert:bench"]
names = ["c*"]
join = ["bench", "other/*"]
send = ["bench"]
[[rights]]
who = ["user:nobody", "group:nobody", "cert:others-*"]
join = ["*"]
"""


class Way(NamedTuple):
    name: str
    certificates: bool = False
    rules: str = ""


WAYS = (Way("clear"), Way("TLS", certificates=True), Way("TLS with rights", certificates=True, rules=RULES))


@contextmanager
def daemons(folder: Path, count: int, way: Way) -> Iterator[list[tuple[Program, str]]]:
    nodes = "\n".join(
        f'[nodes.n{i}]\nid = {i}\naddress = "127.0.0.1"\ntoken_port = {PORT + i}\n' for i in range(1, count + 1)
    )
    text = f'cluster = "bench {os.getpid()}"\n[network]\nport = {PORT}\n[status]\nport = 0\n'
    text += '[security]\ninsecure = true\n[clients]\nfolder = "s"\n'
    text += 'certificates = "certs"\n' if way.certificates else ""
    (folder / "cluster.toml").write_text(text + way.rules + nodes)
    with ExitStack() as stack:
        found = []
        for i in range(1, count + 1):
            port = CLIENTS_PORT + i
            options = ("--config", str(folder / "cluster.toml"), "--name", f"n{i}", "--clients-port", str(port))
            program = subprocess.Popen(ordercast_command("daemon", *options), stderr=subprocess.PIPE, cwd=ROOT)
            stack.callback(end, [program])
            assert program.stderr is not None
            if not any(b"clients at" in line for line in program.stderr):
                raise SystemExit(f"the daemon n{i} has ended: {program.wait()}")
            found.append((program, f"tcp://127.0.0.1:{port}"))
        yield found


def rate(folder: Path, way: Way, size: int, seconds: float) -> tuple[float, float]:
    """Return messages a second of three clients, and what a message costs a daemon, in µs."""
    task = {
        "size": size,
        "service": "agreed",
        "one_by_one": False,
        "mode": "load",
        "pinger": 1,
        "pause": 0,
        "seconds": seconds,
    }
    with ExitStack() as stack:
        serving = stack.enter_context(daemons(folder, 3, way))
        clients = Clients(stack, [address for _, address in serving], task)
        clients.hear()
        before = sum(cpu_s(program.pid) for program, _ in serving)
        clients.say("go")
        total = sum(told["sent"] for told in clients.hear())
        clients.say({"total": total})
        results = clients.hear()
        used = sum(cpu_s(program.pid) for program, _ in serving) - before
        clients.say("end")
    assert len({(result["hash"], result["delivered"]) for result in results}) == 1
    return total / max(result["elapsed"] for result in results), used / total / 3 * 1e6


def _memory(pid: int) -> int:
    """Resident, in KiB."""
    text = Path(f"/proc/{pid}/status").read_text()
    return int(text.partition("VmRSS:")[2].split()[0])


async def connections(pid: int, address: str, count: int) -> tuple[float, float, float, float]:
    """Return KiB of the daemon for each idle connection, the same after each has had a megabyte, and for a handshake
    with its greeting: seconds of the daemon, and seconds that it takes."""
    async with AsyncExitStack() as stack:
        for _ in range(20):
            await stack.enter_async_context(ordercast.connect(address))
        memory, cpu, start = _memory(pid), cpu_s(pid), time.monotonic()
        members = [await stack.enter_async_context(ordercast.connect(address)) for _ in range(count)]
        took, used, idle = time.monotonic() - start, cpu_s(pid) - cpu, _memory(pid) - memory
        for member in members:
            await member.join("bench")
            await member.send_many("bench", [bytes(1350)] * 200, confirm=True)
            await member.leave("bench")
        busy = _memory(pid) - memory
    return idle / count, busy / count, used / count, took / count


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--connections", type=int, default=400)
    parser.add_argument("--size", type=int, default=1350)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ordercast-bench-") as name:
        folder, certs = Path(name), Path(name) / "certs"
        new_authority(certs, "bench")
        for i in (1, 2, 3):
            issue(certs, f"n{i}", CertificateKind.DAEMON, ("127.0.0.1",))
        credentials = issue(certs, "bench", CertificateKind.CLIENT)[0]

        def use(way: Way) -> None:
            os.environ.pop(VARIABLE, None)
            if way.certificates:
                os.environ[VARIABLE] = str(credentials)

        found: dict[str, list[tuple[float, float]]] = {way.name: [] for way in WAYS}
        for _ in range(options.rounds):
            for way in WAYS:
                use(way)
                found[way.name].append(rate(folder, way, options.size, options.seconds))
        if options.rounds:
            base = statistics.median(per_s for per_s, _ in found["clear"])
        for way_name, rows in found.items():
            if rows:
                per_s, cost = statistics.median(row[0] for row in rows), statistics.median(row[1] for row in rows)
                print(f"{way_name:16} {per_s:10,.0f} messages/s {per_s / base:6.2f}   {cost:6.1f} µs of each daemon")
        for way in WAYS[:2] if options.connections else ():
            use(way)
            with daemons(folder, 1, way) as ((program, address),):
                told = asyncio.run(connections(program.pid, address, options.connections))
            idle, busy, used, took = told
            print(
                f"{way.name:16} {idle:5.1f} KiB a connection, {busy:5.1f} after use; to connect {took * 1e3:.2f} ms, "
                f"{used * 1e3:.2f} ms of the daemon"
            )


if __name__ == "__main__":
    main()
