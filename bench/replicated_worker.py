"""One replica of `bench.replicated`: a process that writes when it is told to. It speaks JSON lines.

load     write for so many seconds, with so many commands that have no answer yet
ping     write one by one
digest   what the copy is like
"""

from __future__ import annotations

import asyncio
import json
import queue
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from hashlib import blake2b
from pathlib import Path
from typing import Any

VALUE = b"x" * 100
KEYS = 10_000
ANSWERS_S = 10.0
GROUP = "bench"
TICK_S = 0.005


def say(**told: object) -> None:
    print(json.dumps(told), flush=True)


def hear() -> dict[str, Any]:
    line = sys.stdin.readline()
    if not line:
        raise SystemExit
    told: dict[str, Any] = json.loads(line)
    return told


class Clock:
    """Of one load: confirmed commands, time and CPU time."""

    def __init__(self, seconds: float) -> None:
        self.confirmed = 0
        self.begun, self.cpu = time.monotonic(), time.process_time()
        self.end = self.begun + seconds

    @property
    def is_over(self) -> bool:
        return time.monotonic() >= self.end

    def tell(self) -> None:
        seconds = time.monotonic() - self.begun
        say(per_s=self.confirmed / seconds, cores=(time.process_time() - self.cpu) / seconds)


def tell_latencies(times: list[float]) -> None:
    say(times_ms=[round(1e3 * each, 3) for each in times])


def tell_digest(items: list[Any]) -> None:
    lines = sorted(map(str, items))
    say(digest=blake2b("\n".join(lines).encode()).hexdigest()[:16])


# Ordercast


async def ours(number: int, replicas: int, place: str, journal: str | None = None) -> None:
    """`place`: the address of a daemon, or cluster and port of an embedded node."""
    import ordercast
    from ordercast.daemon.config.node import NetworkConfig, SecurityConfig
    from ordercast.order.ring.config import RingConfig
    from ordercast.replicated import Dictionary, Majority, Replica

    weights = {f"r@n{each}": 1 for each in range(1, replicas + 1)}
    async with AsyncExitStack() as stack:
        if "://" in place:
            member: Any = await stack.enter_async_context(ordercast.connect(place, name="r"))
        else:
            cluster, port = place.split(",")
            network = NetworkConfig(port=int(port))
            config = ordercast.NodeConfig(
                name=f"n{number}",
                ring=RingConfig(cluster=cluster),
                network=network,
                security=SecurityConfig(insecure=True),
            )
            member = await stack.enter_async_context(ordercast.Node(config, name="r"))
        kept = None if journal is None else Path(journal) / f"{number}"
        replica = Replica(member, GROUP, Dictionary(), quorum=Majority(weights), journal=kept)
        entries = await stack.enter_async_context(replica)
        await entries.ready()
        say(ready=True)
        while True:
            task = await asyncio.to_thread(hear)
            if task["do"] == "load":
                await our_load(entries, number, task["seconds"], task["window"])
            elif task["do"] == "ping":
                await our_ping(entries, task["seconds"])
            else:
                await entries.synced()
                tell_digest(entries.items())


async def our_load(entries: Any, number: int, seconds: float, window: int) -> None:
    clock = Clock(seconds)

    async def write(at: int) -> None:
        while not clock.is_over:
            await entries.set(f"{number}.{at % KEYS}", VALUE)
            clock.confirmed += 1
            at += window

    await asyncio.gather(*(write(first) for first in range(window)))
    clock.tell()


async def our_ping(entries: Any, seconds: float) -> None:
    times: list[float] = []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        sent = time.perf_counter()
        await entries.set(f"{len(times) % KEYS}", VALUE)
        times.append(time.perf_counter() - sent)
    tell_latencies(times)


# etcd


async def etcd(number: int, port: int) -> None:
    from bench.etcd_peer import CONNECTIONS_MAX, EtcdWriter

    say(ready=True)
    while True:
        task = await asyncio.to_thread(hear)
        if task["do"] == "digest":
            say(digest="its members agree")  # by their own word: it is not read back
            continue
        async with AsyncExitStack() as stack:
            count = min(task["window"], CONNECTIONS_MAX) if task["do"] == "load" else 1
            writers = [await stack.enter_async_context(EtcdWriter(port)) for _ in range(count)]
            if task["do"] == "ping":
                await our_ping(writers[0], task["seconds"])
            else:
                await etcd_load(writers, number, task["seconds"])


async def etcd_load(writers: Sequence[Any], number: int, seconds: float) -> None:
    clock = Clock(seconds)

    async def write(writer: Any, at: int) -> None:
        while not clock.is_over:
            await writer.set(f"{number}.{at % KEYS}", VALUE)
            clock.confirmed += 1
            at += len(writers)

    await asyncio.gather(*(write(writer, first) for first, writer in enumerate(writers)))
    clock.tell()


# PySyncObj


class Theirs:
    """With a thread of its own (`autoTick`), or driven by this one, which saves it the switches between threads."""

    def __init__(self, number: int, ports: Sequence[int], settings: dict[str, Any]) -> None:
        from pysyncobj import SyncObj, SyncObjConf
        from pysyncobj.batteries import ReplDict

        places = [f"127.0.0.1:{port}" for port in ports]
        me = places.pop(number - 1)
        self.number = number
        self.has_thread = settings.get("autoTick", True)
        self.entries = ReplDict()
        self.node = SyncObj(me, places, conf=SyncObjConf(**settings), consumers=[self.entries])
        self.tasks: queue.Queue[dict[str, Any] | None] = queue.Queue()
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        while True:
            try:
                self.tasks.put(hear())
            except SystemExit:
                self.tasks.put(None)
                return

    def turn(self) -> None:
        if self.has_thread:
            time.sleep(TICK_S)
        else:
            self.node.doTick(TICK_S)

    def until(self, is_done: Callable[[], bool], seconds: float) -> None:
        end = time.monotonic() + seconds
        while not is_done() and time.monotonic() < end:
            self.turn()

    def run(self) -> None:
        self.until(lambda: self.node.isReady() and self.node._getLeader() is not None, 60.0)
        say(ready=True)
        while True:
            self.until(lambda: not self.tasks.empty(), 3600.0)
            task = self.tasks.get()
            if task is None:
                return
            if task["do"] == "load":
                self.load(task["seconds"], task["window"])
            elif task["do"] == "ping":
                self.ping(task["seconds"])
            else:
                self.until(lambda: False, 1.5)  # it has no way to ask for what the others have confirmed
                tell_digest(list(self.entries.rawData().items()))

    def load(self, seconds: float, window: int) -> None:
        """The next command is submitted where the answer to the last one comes."""
        clock, sent, open_ = Clock(seconds), 0, window

        def answered(result: object, error: object) -> None:
            nonlocal open_
            clock.confirmed += not error
            if clock.is_over:
                open_ -= 1
            else:
                submit()

        def submit() -> None:
            nonlocal sent
            sent += 1
            self.entries.set(f"{self.number}.{sent % KEYS}", VALUE, callback=answered)

        for _ in range(window):
            submit()
        self.until(lambda: clock.is_over and not open_, seconds + 2.0)  # it forgets some when its leader changes
        clock.tell()

    def ping(self, seconds: float) -> None:
        times: list[float] = []
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            answer = threading.Event()
            sent = time.perf_counter()
            self.entries.set(f"{len(times) % KEYS}", VALUE, callback=lambda result, error, answer=answer: answer.set())
            if self.has_thread:
                answer.wait(ANSWERS_S)
            else:
                self.until(answer.is_set, ANSWERS_S)
            times.append(time.perf_counter() - sent)
        tell_latencies(times)


def main() -> None:
    task = json.loads(sys.argv[1])
    if task["system"] == "pysyncobj":
        Theirs(task["number"], task["ports"], task["settings"]).run()
    elif task["system"] == "etcd":
        asyncio.run(etcd(task["number"], task["port"]))
    else:
        asyncio.run(ours(task["number"], task["replicas"], task["place"], task.get("journal")))


if __name__ == "__main__":
    main()
