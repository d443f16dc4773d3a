"""Many clients and many groups on one daemon: rates of joining and leaving, memory, cost of a message; and latency
against the number of groups and of connections, as figures 3.4 and 3.5 of the Spread paper have it.

All clients are in this process; the daemon is another one, whose CPU time and memory are read from the kernel.

    python -m bench.client_crowd [--clients N] [--json FILE] [--plot FILE]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import sys
import time
from contextlib import AsyncExitStack
from pathlib import Path
from statistics import median
from typing import Any

import ordercast
from bench.clients import cpu_s, daemons
from ordercast.api.client import Client

STEPS = (1, 10, 100, 300, 1000)
PINGS = 300
MESSAGES = 2000


class Reader:
    """Takes everything that comes for one client."""

    def __init__(self, me: Client) -> None:
        self.me = me
        self.messages = self.views = 0
        self._wanted: tuple[int, asyncio.Future[None]] | None = None
        self.task = asyncio.create_task(self._read())

    async def _read(self) -> None:
        async for piece in self.me.batches():
            if isinstance(piece, ordercast.Batch):
                self.messages += len(piece)
                if self._wanted is not None and self.messages >= self._wanted[0] and not self._wanted[1].done():
                    self._wanted[1].set_result(None)
            else:
                self.views += 1

    async def has(self, messages: int) -> None:
        if self.messages < messages:
            self._wanted = messages, asyncio.get_running_loop().create_future()
            await self._wanted[1]


async def crowd(stack: AsyncExitStack, address: str, count: int) -> list[Reader]:
    readers = []
    for number in range(count):
        me = await stack.enter_async_context(ordercast.connect(address, name=f"m{number}"))
        readers.append(Reader(me))
    return readers


async def rates(pid: int, address: str, count: int) -> dict[str, float]:
    async with AsyncExitStack() as stack:
        before = _memory(pid)
        start = time.perf_counter()
        readers = await crowd(stack, address, count)
        told = {"connects_per_s": count / (time.perf_counter() - start)}
        told["joins_per_s"] = count / await _timed(*(r.me.join(f"own{i}") for i, r in enumerate(readers)))
        told["memory_per_client_kib"] = (_memory(pid) - before) / count
        told["message_to_one_us"] = await _cost(pid, readers[:1], "own0", 1)
        told["message_to_one_in_batches_us"] = await _cost(pid, readers[:1], "own0", 100)
        told["leaves_per_s"] = count / await _timed(*(r.me.leave(f"own{i}") for i, r in enumerate(readers)))
        cpu = cpu_s(pid)
        told["joins_of_one_group_per_s"] = count / await _timed(*(r.me.join("crowd") for r in readers))
        told["join_of_one_group_us"] = (cpu_s(pid) - cpu) / count * 1e6
        told["message_to_all_us"] = await _cost(pid, readers, "crowd", 1)
        told["message_to_all_in_batches_us"] = await _cost(pid, readers, "crowd", 100)
        told["leaves_of_one_group_per_s"] = count / await _timed(*(r.me.leave("crowd") for r in readers))
    return told


async def _timed(*work: Any) -> float:
    start = time.perf_counter()
    await asyncio.gather(*work)
    return time.perf_counter() - start


async def _cost(pid: int, readers: list[Reader], group: str, batch: int) -> float:
    """CPU time of the daemon for a message of 100 bytes, in batches of so many."""
    sender = readers[0]
    rounds = max(1, min(MESSAGES, 100 * MESSAGES // batch // len(readers)))
    before = [reader.messages for reader in readers]
    cpu = cpu_s(pid)
    for _ in range(rounds):
        await sender.me.send_many(group, [bytes(100)] * batch)
    await asyncio.gather(*(r.has(old + rounds * batch) for r, old in zip(readers, before, strict=True)))
    return (cpu_s(pid) - cpu) / (rounds * batch) * 1e6


async def latency(sender: Reader, group: str) -> float:
    """Median of a message that comes back, in milliseconds; reliable, as in the paper's figures."""
    taken = []
    for _ in range(PINGS):
        start = time.perf_counter_ns()
        await sender.me.send(group, b"ping", ordercast.RELIABLE)
        await sender.has(sender.messages + 1)
        taken.append(time.perf_counter_ns() - start)
    return median(taken) / 1e6


async def against_groups(address: str, steps: tuple[int, ...]) -> list[tuple[int, float]]:
    """Figure 3.4: one client in many groups."""
    async with AsyncExitStack() as stack:
        (reader,) = await crowd(stack, address, 1)
        points = []
        joined = 0
        for step in steps:
            while joined < step:
                await reader.me.join(*(f"g{i}" for i in range(joined, min(step, joined + 100))))
                joined = min(step, joined + 100)
            points.append((step, await latency(reader, "g0")))
        return points


async def against_connections(address: str, steps: tuple[int, ...]) -> list[tuple[int, float]]:
    """Figure 3.5: as many connections as groups."""
    async with AsyncExitStack() as stack:
        readers: list[Reader] = []
        points = []
        for step in steps:
            for number in range(len(readers), step):
                me = await stack.enter_async_context(ordercast.connect(address, name=f"k{number}"))
                readers.append(Reader(me))
                await me.join(f"h{number}")
            points.append((step, await latency(readers[0], "h0")))
        return points


def _memory(pid: int) -> float:
    """Resident, in KiB."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return float(line.split()[1])
    return 0.0


async def work(clients: int, steps: tuple[int, ...]) -> dict[str, Any]:
    told: dict[str, Any] = {"clients": clients}
    with daemons(1) as ((program, address),):
        told |= await rates(program.pid, address, clients)
    for what, measure in (("groups", against_groups), ("connections", against_connections)):
        with daemons(2) as serving:
            told[f"latency_against_{what}_ms"] = await measure(serving[0][1], steps)
    return told


def plot(told: dict[str, Any], path: Path) -> None:
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, 2, figsize=(9, 3.4), sharey=True)
    for axis, what in zip(axes, ("groups", "connections"), strict=True):
        points = told[f"latency_against_{what}_ms"]
        axis.plot([x for x, _ in points], [y for _, y in points], marker="o", color="#2a6f97")
        axis.set_xlabel("groups of one client" if what == "groups" else "connections, each in a group of its own")
        axis.spines[["top", "right"]].set_visible(False)
        axis.grid(axis="y", alpha=0.3)
    axes[0].set_ylim(
        0, 2 * max(ms for what in ("groups", "connections") for _, ms in told[f"latency_against_{what}_ms"])
    )
    axes[0].set_ylabel("median latency, ms")
    figure.suptitle("Two daemons: latency of a reliable message", fontsize=11)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=int, default=1000)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw the two curves (.svg)")
    arguments = parser.parse_args()
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 65536), hard))
    steps = tuple(step for step in STEPS if step <= arguments.clients)
    told = asyncio.run(work(arguments.clients, steps))
    for name, value in told.items():
        shown = f"{value:,.1f}" if isinstance(value, float) else value
        if isinstance(value, list):
            shown = ", ".join(f"{count}: {ms:.2f}" for count, ms in value)
        print(f"{name.replace('_', ' '):32} {shown}")
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(told, indent=1) + "\n")
    if arguments.plot is not None:
        plot(told, arguments.plot)
    return 0


if __name__ == "__main__":
    sys.exit(main())
