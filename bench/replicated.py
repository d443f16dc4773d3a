"""The replicated dictionary beside PySyncObj's ReplDict (PyPI), in the same run: commands a second, and latency.

Four replicas on this machine, each a process of its own. All of them write at once, each with so many commands that
have no answer yet; then one of them writes one by one. A command counts when its writer knows that it is confirmed.

    python -m bench.replicated [--seconds S] [--window N] [--rounds R] [--json FILE]      (pip install pysyncobj)
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
REPLICAS = 4
VALUE = b"x" * 100
KEYS = 10_000
ANSWERS_S = 10.0
OURS, THEIRS = "ordercast", "pysyncobj"


@dataclass
class Figures:
    """Of one system, in one round."""

    system: str
    per_s: float  # commands of all writers
    p50_ms: float  # one by one
    p99_ms: float
    cores: float  # of all processes, under load
    same: bool  # all copies are equal in the end


# One replica


class Worker:
    """Speaks JSON lines: `load`, `ping`, `digest`."""

    def __init__(self, number: int) -> None:
        self.number = number

    def say(self, **told: object) -> None:
        print(json.dumps(told), flush=True)

    def hear(self) -> dict[str, Any]:
        line = sys.stdin.readline()
        if not line:
            raise SystemExit
        told: dict[str, Any] = json.loads(line)
        return told

    def loaded(self, confirmed: int, begun: float, cpu: float) -> None:
        self.say(
            per_s=confirmed / (time.monotonic() - begun), cores=(time.process_time() - cpu) / (time.monotonic() - begun)
        )


class OurWorker(Worker):
    async def run(self, cluster: str, port: int) -> None:
        from ordercast import Node, NodeConfig
        from ordercast.daemon.config import NetworkConfig
        from ordercast.order.ring.config import RingConfig
        from ordercast.replicated import Dictionary, Majority, Replica

        config = NodeConfig(name=f"h{self.number}", ring=RingConfig(cluster=cluster), network=NetworkConfig(port=port))
        weights = {f"r@h{number}": 1 for number in range(1, REPLICAS + 1)}
        async with (
            Node(config, name="r") as node,
            Replica(node, "bench", Dictionary(), quorum=Majority(weights)) as entries,
        ):
            await entries.ready()
            self.say(ready=True)
            while True:
                task = await asyncio.to_thread(self.hear)
                if task["do"] == "load":
                    await self.load(entries, task["seconds"], task["window"])
                elif task["do"] == "ping":
                    await self.ping(entries, task["seconds"])
                else:
                    await entries.synced()
                    self.say(digest=hash_of(sorted(map(str, entries.items()))))

    async def load(self, entries: Any, seconds: float, window: int) -> None:
        confirmed = 0
        begun, cpu = time.monotonic(), time.process_time()

        async def write(first: int) -> None:
            nonlocal confirmed
            at = first
            while time.monotonic() - begun < seconds:
                await entries.set(f"{self.number}.{at % KEYS}", VALUE)
                confirmed += 1
                at += window

        await asyncio.gather(*(write(first) for first in range(window)))
        self.loaded(confirmed, begun, cpu)

    async def ping(self, entries: Any, seconds: float) -> None:
        times: list[float] = []
        begun = time.monotonic()
        while time.monotonic() - begun < seconds:
            sent = time.perf_counter()
            await entries.set(f"{len(times) % KEYS}", VALUE)
            times.append(time.perf_counter() - sent)
        self.say(**latencies(times))


class TheirWorker(Worker):
    def run(self, ports: Sequence[int]) -> None:
        from pysyncobj import SyncObj
        from pysyncobj.batteries import ReplDict

        places = [f"127.0.0.1:{port}" for port in ports]
        me = places.pop(self.number - 1)
        entries = ReplDict()
        node = SyncObj(me, places, consumers=[entries])
        node.waitReady()
        self.say(ready=True)
        while True:
            task = self.hear()
            if task["do"] == "load":
                self.load(entries, task["seconds"], task["window"])
            elif task["do"] == "ping":
                self.ping(entries, task["seconds"])
            else:
                with suppress(Exception):  # some of its commands time out
                    entries.set("end", VALUE, sync=True, timeout=ANSWERS_S)
                time.sleep(1)  # it has no way to ask for what the others have confirmed
                self.say(digest=hash_of(sorted(map(str, entries.rawData().items()))))

    def load(self, entries: Any, seconds: float, window: int) -> None:
        room = threading.Semaphore(window)
        confirmed = failed = 0
        begun, cpu = time.monotonic(), time.process_time()

        def answered(result: object, error: object) -> None:
            nonlocal confirmed, failed
            confirmed, failed = confirmed + (not error), failed + bool(error)
            room.release()

        at = 0
        while time.monotonic() - begun < seconds:
            if room.acquire(timeout=1.0):
                entries.set(f"{self.number}.{at % KEYS}", VALUE, callback=answered)
                at += 1
        end = time.monotonic() + ANSWERS_S  # it forgets some when its leader changes
        for _ in range(window):
            room.acquire(timeout=max(0.0, end - time.monotonic()))
        self.loaded(confirmed, begun, cpu)

    def ping(self, entries: Any, seconds: float) -> None:
        times: list[float] = []
        begun = time.monotonic()
        while time.monotonic() - begun < seconds:
            sent = time.perf_counter()
            with suppress(Exception):
                entries.set(f"{len(times) % KEYS}", VALUE, sync=True, timeout=ANSWERS_S)
            times.append(time.perf_counter() - sent)
        self.say(**latencies(times))


def latencies(times: list[float]) -> dict[str, float]:
    times.sort()
    return {"p50_ms": 1e3 * times[len(times) // 2], "p99_ms": 1e3 * times[len(times) * 99 // 100]}


def hash_of(items: list[str]) -> str:
    from hashlib import blake2b

    return blake2b("\n".join(items).encode()).hexdigest()[:16]


# All of them


def measure(system: str, seconds: float, window: int) -> Figures:
    if system == OURS:
        arguments = [f"bench {os.getpid()} {time.monotonic_ns()}", str(free_ports(1, socket.SOCK_DGRAM)[0] & ~63)]
    else:
        arguments = [",".join(map(str, free_ports(REPLICAS, socket.SOCK_STREAM)))]
    with ExitStack() as stack:
        programs = [start(stack, system, number, arguments) for number in range(1, REPLICAS + 1)]
        for program in programs:
            hear(program)
        loads = ask(programs, do="load", seconds=seconds, window=window)
        (ping,) = ask(programs[:1], do="ping", seconds=seconds / 2)
        digests = {told["digest"] for told in ask(programs, do="digest")}
    return Figures(
        system,
        sum(told["per_s"] for told in loads),
        ping["p50_ms"],
        ping["p99_ms"],
        sum(told["cores"] for told in loads),
        len(digests) == 1,
    )


def start(stack: ExitStack, system: str, number: int, arguments: list[str]) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "bench.replicated", "--worker", system, str(number), *arguments]
    program = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    stack.callback(program.wait)
    stack.callback(program.kill)
    return program


def ask(programs: Sequence[subprocess.Popen[str]], **task: object) -> list[dict[str, Any]]:
    for program in programs:
        assert program.stdin is not None
        program.stdin.write(json.dumps(task) + "\n")
        program.stdin.flush()
    return [hear(program) for program in programs]


def hear(program: subprocess.Popen[str]) -> dict[str, Any]:
    assert program.stdout is not None
    line = program.stdout.readline()
    if not line:
        raise SystemExit(f"a replica has ended: {program.wait()}")
    told: dict[str, Any] = json.loads(line)
    return told


def free_ports(count: int, kind: socket.SocketKind) -> list[int]:
    with ExitStack() as stack:
        probes = [stack.enter_context(socket.socket(socket.AF_INET, kind)) for _ in range(count)]
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [int(probe.getsockname()[1]) for probe in probes]


def work(system: str, number: int, arguments: list[str]) -> None:
    if system == OURS:
        asyncio.run(OurWorker(number).run(arguments[0], int(arguments[1])))
    else:
        TheirWorker(number).run([int(port) for port in arguments[0].split(",")])


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=5.0, help="of each measurement")
    parser.add_argument("--window", type=int, default=1000, help="commands without an answer, of each writer")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--worker", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        work(options.worker[0], int(options.worker[1]), options.worker[2:])
        return
    if find_spec("pysyncobj") is None:
        raise SystemExit("PySyncObj is not here: pip install pysyncobj")
    rounds = [
        measure(system, options.seconds, options.window) for _ in range(options.rounds) for system in (OURS, THEIRS)
    ]
    print(f"{REPLICAS} replicas, values of {len(VALUE)} bytes, {options.window} commands underway per writer; medians")
    medians = {}
    for system in (OURS, THEIRS):
        mine = [figures for figures in rounds if figures.system == system]
        medians[system] = median(figures.per_s for figures in mine)
        p50, p99 = median(figures.p50_ms for figures in mine), median(figures.p99_ms for figures in mine)
        cores, same = median(figures.cores for figures in mine), all(figures.same for figures in mine)
        print(
            f"{system:10} {medians[system]:9,.0f} commands/s  one by one p50 {p50:7.2f} ms  p99 {p99:7.2f} ms"
            f"  {cores:.2f} cores  copies {'equal' if same else 'DIFFERENT'}"
        )
    print(f"ratio {medians[OURS] / medians[THEIRS]:.1f}")
    if options.json:
        options.json.write_text(json.dumps([asdict(figures) for figures in rounds], indent=1))


if __name__ == "__main__":
    main()
