"""Clients of daemons on this machine: throughput, latency, many clients and many groups.

Three daemons on loopback, each a process of its own, as `ordercast daemon` runs it; clients are processes too, over
unix sockets, and each sends and receives everything.

    python -m bench.clients [--seconds S] [--json FILE] [--plot FILE] [--only WORD]
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from rig.programs import ROOT, Program, end, heard, tell, worker

from ordercast.cli.daemons import ordercast_command

SPREAD = (25_000, 33_000)  # messages a second of three C clients of three C daemons, 1,350 B agreed, on two cores
SPREAD_LATENCY_MS = (0.06, 0.17)
PORT = 24_700
PATIENCE_S = 60.0


@dataclass(frozen=True)
class Case:
    """One row. The defaults are the row that all others differ from in one thing."""

    size: int = 1350
    daemons: int = 3
    service: str = "agreed"
    one_by_one: bool = False
    mode: str = "load"  # or ping: one message at a time, from one client
    pinger: int = 1  # the daemon whose client pings; 1 is the ring's representative
    pause: float = 0.0  # between pings
    form: str = "asyncio"  # or blocking: of the client that pings

    @property
    def name(self) -> str:
        words = [f"{self.size} B", self.service, f"{self.daemons} daemons"]
        words += ["one by one" if self.one_by_one else ""]
        if self.mode == "ping":
            form = f"{self.form} " if self.form != "asyncio" else ""
            words += [f"{form}client {self.pinger} one at a time", "100 a second" if self.pause else ""]
        return ", ".join(word for word in words if word)


@dataclass
class Outcome:
    case: Case
    per_s: float = 0.0
    client_cores: float = 0.0
    daemon_cores: float = 0.0
    p50_ms: float = 0.0
    p99_ms: float = 0.0
    same_order: bool = True
    extra: dict[str, float] = field(default_factory=dict)


@contextmanager
def daemons(count: int) -> Iterator[list[tuple[Program, str]]]:
    """Processes and the addresses of their sockets."""
    with tempfile.TemporaryDirectory(prefix="ordercast-bench-") as name, ExitStack() as stack:
        folder = Path(name)
        nodes = "\n".join(
            f'[nodes.n{i}]\nid = {i}\naddress = "127.0.0.1"\ntoken_port = {PORT + i}\n' for i in range(1, count + 1)
        )
        text = f'cluster = "bench {os.getpid()}"\n[network]\nport = {PORT}\n[status]\nport = 0\n'
        text += '[security]\ninsecure = true\n[clients]\nfolder = "s"\n'  # bench.live has what a seal costs
        (folder / "cluster.toml").write_text(text + nodes)
        found = []
        for i in range(1, count + 1):
            command = ordercast_command("daemon", "--config", str(folder / "cluster.toml"), "--name", f"n{i}")
            program = subprocess.Popen(command, stderr=subprocess.PIPE, cwd=ROOT)
            stack.callback(end, [program])
            assert program.stderr is not None
            for line in program.stderr:
                if b"clients at" in line:
                    break
            else:
                raise SystemExit(f"the daemon n{i} has ended: {program.wait()}")
            found.append((program, f"unix://{folder / 's' / f'n{i}.sock'}"))
        yield found


class Clients:
    """Processes that are spoken to line by line."""

    def __init__(self, stack: ExitStack, addresses: Sequence[str], task: dict[str, Any]) -> None:
        self.programs: list[Program] = []
        stack.callback(end, self.programs)
        for number, address in enumerate(addresses, 1):
            program = worker([sys.executable, "-m", "bench.client_load"])
            self.programs.append(program)
            tell(program, {**task, "number": number, "address": address, "clients": len(addresses)})

    def hear(self) -> list[dict[str, Any]]:
        return [heard(program) for program in self.programs]

    def say(self, what: object) -> None:
        for program in self.programs:
            tell(program, what)


def measure(case: Case, seconds: float) -> Outcome:
    with ExitStack() as stack:
        serving = stack.enter_context(daemons(case.daemons))
        task = {
            "size": case.size,
            "service": case.service,
            "one_by_one": case.one_by_one,
            "mode": case.mode,
            "pinger": case.pinger,
            "pause": case.pause,
            "form": case.form,
            "seconds": seconds,
        }
        clients = Clients(stack, [address for _, address in serving], task)
        clients.hear()
        before = sum(cpu_s(program.pid) for program, _ in serving)
        clients.say("go")
        total = sum(told["sent"] for told in clients.hear())
        clients.say({"total": total})
        results = clients.hear()
        used = sum(cpu_s(program.pid) for program, _ in serving) - before
        clients.say("end")
    elapsed = max(result["elapsed"] for result in results)
    outcome = Outcome(case, total / elapsed)
    outcome.client_cores = sum(result["cpu"] for result in results) / elapsed
    outcome.daemon_cores = used / elapsed
    outcome.same_order = len({(result["hash"], result["delivered"]) for result in results}) == 1
    latencies = results[case.pinger - 1]["latencies"]
    if latencies:
        outcome.p50_ms = latencies[len(latencies) // 2] / 1e6
        outcome.p99_ms = latencies[len(latencies) * 99 // 100] / 1e6
    return outcome


def cpu_s(pid: int) -> float:
    """CPU time of a process of one thread."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9


CASES = (
    Case(),
    Case(size=100),
    Case(size=8192),
    Case(service="safe"),
    Case(one_by_one=True),
    Case(daemons=1),
    *(Case(mode="ping", pinger=pinger) for pinger in (1, 2, 3)),
    Case(mode="ping", pinger=1, form="blocking"),
    *(Case(mode="ping", pinger=pinger, pause=0.01) for pinger in (1, 2, 3)),
    Case(mode="ping", pinger=1, pause=0.01, form="blocking"),
    *(Case(mode="ping", pinger=pinger, service="safe") for pinger in (1, 2, 3)),
)


def line(outcome: Outcome) -> str:
    words = f"{outcome.case.name:58} {outcome.per_s:10,.0f} msg/s"
    words += f"  clients {outcome.client_cores:.2f} daemons {outcome.daemon_cores:.2f} cores"
    if outcome.p50_ms:
        words += f"  p50 {outcome.p50_ms:.2f} p99 {outcome.p99_ms:.2f} ms"
    elif outcome.case == Case():
        words += f"  {outcome.per_s / SPREAD[1]:.1f} to {outcome.per_s / SPREAD[0]:.1f} times Spread in C"
    return words + ("" if outcome.same_order else "  ORDERS DIFFER")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=5.0, help="of each row")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the rows there too")
    parser.add_argument("--only", default="", metavar="WORD", help="rows whose name has this word")
    arguments = parser.parse_args()
    outcomes = []
    for case in CASES:
        if arguments.only in case.name:
            outcomes.append(measure(case, arguments.seconds))
            print(line(outcomes[-1]), flush=True)
    if arguments.json is not None:
        arguments.json.write_text(json.dumps([asdict(outcome) for outcome in outcomes], indent=1) + "\n")
    return 0 if all(outcome.same_order for outcome in outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
