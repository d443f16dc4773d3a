"""The replicated dictionary beside PySyncObj's ReplDict (PyPI), in the same run: commands a second, and latency.

Four replicas on this machine, each a process of its own. All of them write at once, each with so many commands that
have no answer yet; then one after the other writes one by one. A command counts when its writer knows that it is
confirmed. The systems take turns, several times, and medians are shown: what else the machine does hits all alike.
PySyncObj is shown with its defaults, and with what is best for its throughput and for its latency.

    python -m bench.replicated [--seconds S] [--window N] [--rounds R] [--json FILE]      (pip install pysyncobj)
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass, field
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from rig.programs import Program, cpu_seconds, heard, kill, tell, worker

from bench.clients import daemons
from bench.etcd_peer import etcd_path, start_etcd
from bench.replicated_worker import VALUE

REPLICAS = 4
PATIENT = {"raftMinTimeout": 2.0, "raftMaxTimeout": 4.0, "connectionTimeout": 10.0}  # a busy leader stays the leader


@dataclass(frozen=True)
class System:
    name: str
    kind: str  # nodes, clients or pysyncobj
    settings: dict[str, Any] = field(default_factory=dict)


SYSTEMS = (
    System("Ordercast, embedded nodes", "nodes"),
    System("Ordercast, daemons and clients", "clients"),
    System("Ordercast, nodes with journals", "nodes", {"journal": True}),
    System("etcd", "etcd"),
    System("PySyncObj, defaults", "pysyncobj"),
    System("PySyncObj, driven by its program", "pysyncobj", {"autoTick": False, **PATIENT}),
    System("PySyncObj, without batches", "pysyncobj", {"appendEntriesUseBatch": False, **PATIENT}),
)


@dataclass
class Figures:
    """Of one system, in one round."""

    system: str
    per_s: float  # commands of all writers
    p50_ms: float  # one by one
    p99_ms: float
    cores: float  # of all processes, under load
    same: bool  # all copies are equal in the end
    load_average: float  # of the machine, others included


def measure(system: System, seconds: float, window: int) -> Figures:
    with ExitStack() as stack:
        places: list[dict[str, Any]] = [{} for _ in range(REPLICAS)]
        others: list[int] = []
        if system.kind == "pysyncobj":
            ports = free_ports(REPLICAS, socket.SOCK_STREAM)
            places = [{"ports": ports, "settings": system.settings}] * REPLICAS
        elif system.kind == "nodes":
            port = free_ports(1, socket.SOCK_DGRAM)[0] & ~63
            cluster = f"bench {os.getpid()} {time.monotonic_ns()}"
            folder = stack.enter_context(TemporaryDirectory()) if system.settings.get("journal") else None
            places = [{"place": f"{cluster},{port}", "journal": folder}] * REPLICAS
        elif system.kind == "etcd":
            folder = stack.enter_context(TemporaryDirectory())
            others, clients = start_etcd(stack, Path(folder), free_ports(2 * REPLICAS, socket.SOCK_STREAM))
            places = [{"port": port} for port in clients]
        else:
            running = stack.enter_context(daemons(REPLICAS))
            others = [program.pid for program, _ in running]
            places = [{"place": address} for _, address in running]
        programs = [
            start(stack, {"system": system.kind, "number": number, "replicas": REPLICAS, **place})
            for number, place in enumerate(places, 1)
        ]
        for program in programs:
            heard(program)
        cpu, begun = sum(map(cpu_seconds, others)), time.monotonic()
        loads = ask(programs, do="load", seconds=seconds, window=window)
        cores = (sum(map(cpu_seconds, others)) - cpu) / (time.monotonic() - begun)
        times = [ask([program], do="ping", seconds=seconds / REPLICAS)[0]["times_ms"] for program in programs]
        digests = {told["digest"] for told in ask(programs, do="digest")}
    return Figures(
        system.name,
        sum(told["per_s"] for told in loads),
        median(median(each) for each in times),
        median(sorted(each)[len(each) * 99 // 100] for each in times),
        sum(told["cores"] for told in loads) + cores,
        len(digests) == 1,
        os.getloadavg()[0],
    )


def start(stack: ExitStack, task: dict[str, Any]) -> Program:
    command = [sys.executable, "-m", "bench.replicated_worker", json.dumps(task)]
    program = worker(command, stderr=subprocess.DEVNULL)
    stack.callback(kill, [program])
    return program


def ask(programs: Sequence[Program], **task: object) -> list[dict[str, Any]]:
    for program in programs:
        tell(program, task)
    return [heard(program) for program in programs]


def free_ports(count: int, kind: socket.SocketKind) -> list[int]:
    with ExitStack() as stack:
        probes = [stack.enter_context(socket.socket(socket.AF_INET, kind)) for _ in range(count)]
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [int(probe.getsockname()[1]) for probe in probes]


# What comes of it


def show(rounds: Sequence[Figures], systems: Sequence[System]) -> None:
    print(f"{'':33} commands/s   p50 ms   p99 ms  cores  µs CPU a command  copies")
    for system in systems:
        mine = [figures for figures in rounds if figures.system == system.name]
        per_s, cores = median(each.per_s for each in mine), median(each.cores for each in mine)
        p50, p99 = median(each.p50_ms for each in mine), median(each.p99_ms for each in mine)
        cost = median(1e6 * each.cores / each.per_s for each in mine)
        same = "equal" if all(each.same for each in mine) else "DIFFERENT"
        print(f"{system.name:33} {per_s:10,.0f} {p50:8.2f} {p99:8.2f} {cores:6.2f} {cost:17.0f}  {same}")
    loads = sorted(each.load_average for each in rounds)
    print(f"load average of the machine {loads[0]:.1f} to {loads[-1]:.1f}")


def show_ratios(rounds: Sequence[Figures], systems: Sequence[System]) -> None:
    theirs = [system for system in systems if system.kind == "pysyncobj"]
    if not theirs:
        return
    rate = {system.name: median(e.per_s for e in rounds if e.system == system.name) for system in systems}
    delay = {system.name: median(e.p50_ms for e in rounds if e.system == system.name) for system in systems}
    fastest, soonest = max(rate[each.name] for each in theirs), min(delay[each.name] for each in theirs)
    default = next((each.name for each in theirs if not each.settings), theirs[0].name)
    for system in systems:
        if system.kind not in ("pysyncobj", "etcd"):
            print(
                f"{system.name}: {rate[system.name] / fastest:.1f} times the commands of PySyncObj at its best "
                f"({rate[system.name] / rate[default]:.1f} of its defaults); its latency is "
                f"{soonest / delay[system.name]:.1f} times ours at its best ({delay[default] / delay[system.name]:.0f} "
                f"with its defaults)"
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=5.0, help="of each measurement")
    parser.add_argument("--window", type=int, default=1000, help="commands without an answer, of each writer")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="", help="systems whose names have one of these words: nodes,etcd")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    words = options.only.lower().split(",")
    systems = [system for system in SYSTEMS if any(word in system.name.lower() for word in words)]
    if any(system.kind == "pysyncobj" for system in systems) and find_spec("pysyncobj") is None:
        raise SystemExit("PySyncObj is not here: pip install pysyncobj")
    if etcd_path() is None:
        systems = [system for system in systems if system.kind != "etcd"]
        print("etcd is not here: install etcd-server, or name it in $ETCD", file=sys.stderr)
    rounds: list[Figures] = []
    with suppress(KeyboardInterrupt):  # what there is so far is shown
        for number in range(options.rounds * len(systems)):
            system = systems[number % len(systems)]
            rounds.append(measure(system, options.seconds, options.window))
            print(f"round {number // len(systems) + 1}: {system.name}: {rounds[-1].per_s:,.0f}/s", file=sys.stderr)
    systems = [system for system in systems if any(each.system == system.name for each in rounds)]
    if not rounds:
        return
    print(f"{REPLICAS} replicas, values of {len(VALUE)} bytes, {options.window} commands underway per writer; medians")
    show(rounds, systems)
    show_ratios(rounds, systems)
    if options.json:
        options.json.write_text(json.dumps([asdict(figures) for figures in rounds], indent=1))


if __name__ == "__main__":
    main()
