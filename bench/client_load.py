"""One client of `bench/clients.py` and `bench/load.py`, in a process of its own.

Reads one JSON line with what to do, answers with JSON lines: `ready` when all clients are in the group, and after `go`
the result. The order hash covers sender and counter of every message in the order of delivery: equal at all clients
exactly if the order was.
"""

from __future__ import annotations

import asyncio
import gc
import json
import resource
import struct
import sys
import time
import zlib
from collections.abc import Coroutine
from contextlib import AbstractAsyncContextManager
from typing import Any

import ordercast
from bench.spread_client import SCHEME, SpreadBatch, SpreadClient, SpreadError, SpreadView, connected
from ordercast.api.client import Client

STAMP = struct.Struct("=IIq")  # sender, counter, monotonic time in ns
IDENTITY_SIZE = 8
GROUP = "bench"


class Load:
    def __init__(self, task: dict[str, Any], me: Client | SpreadClient) -> None:
        self.task, self.me = task, me
        self.size = max(int(task["size"]), STAMP.size)
        self.service = ordercast.Service[task["service"].upper()]
        self.delivered = self.hash = self.counter = 0
        self.total = -1
        self.last = 0.0
        self.latencies: list[int] = []
        self.changed = asyncio.Event()
        self.complete = asyncio.Event()
        self.members = 0

    async def receive(self) -> None:
        if self.task["one_by_one"]:
            await self._receive_events()
        else:
            await self._receive_batches()

    async def _receive_batches(self) -> None:
        async for piece in self.me.batches():
            if isinstance(piece, ordercast.Batch | SpreadBatch):
                self._count(piece.data)
            elif isinstance(piece, ordercast.View | SpreadView):
                self.members = len(piece.members)
                self.changed.set()

    async def _receive_events(self) -> None:
        assert isinstance(self.me, Client)
        async for event in self.me:
            if isinstance(event, ordercast.Message):
                self._count((event.data,))
            elif isinstance(event, ordercast.View):
                self.members = len(event.members)
                self.changed.set()

    def _count(self, data: Any) -> None:
        self.delivered += len(data)
        self.hash = zlib.crc32(b"".join([one[:IDENTITY_SIZE] for one in data]), self.hash)
        if self.task["mode"] == "rate":
            now = time.monotonic_ns()
            self.latencies += [now - STAMP.unpack_from(one)[2] for one in data]
        if self.delivered == self.total:
            self.last = time.monotonic()
            self.complete.set()

    async def send(self, until: float) -> None:
        batch = 1 if self.task["one_by_one"] else max(1, min(256, 65536 // self.size))
        filler = bytes(self.size - STAMP.size)
        me, pack = int(self.task["number"]), STAMP.pack
        while time.monotonic() < until:
            now, counter = time.monotonic_ns(), self.counter
            self.counter += batch
            data = [pack(me, counter + i, now) + filler for i in range(batch)]
            await self.me.send_many(GROUP, data, self.service)

    async def send_at_a_rate(self, start: float, until: float) -> None:
        """Clients in turns: each sends at equal intervals, and all of them together at equal ones."""
        clients, filler = int(self.task["clients"]), bytes(self.size - STAMP.size)
        gap = clients / float(self.task["rate"])
        due = start + gap * (int(self.task["number"]) - 1) / clients
        while due < until:
            await asyncio.sleep(due - time.monotonic())
            stamp = STAMP.pack(int(self.task["number"]), self.counter, time.monotonic_ns())
            await self.me.send(GROUP, stamp + filler, self.service)
            self.counter += 1
            due += gap

    async def ping(self, until: float) -> None:
        """One at a time: the next is sent when the last has come back in order."""
        filler = bytes(self.size - STAMP.size)
        while time.monotonic() < until:
            before, start = self.delivered, time.perf_counter_ns()
            await self.me.send(GROUP, STAMP.pack(int(self.task["number"]), self.counter, 0) + filler, self.service)
            self.counter += 1
            self.total = before + 1
            if self.delivered == before:
                self.complete.clear()
                await self.complete.wait()
            self.latencies.append(time.perf_counter_ns() - start)
            await asyncio.sleep(float(self.task["pause"]))


async def work(task: dict[str, Any]) -> None:
    loop = asyncio.get_running_loop()
    async with _connection(task) as me:
        load = Load(task, me)
        receiving = asyncio.create_task(load.receive())
        await me.join(GROUP)
        while load.members < task["clients"]:
            load.changed.clear()
            await load.changed.wait()
        _say(ready=True)
        await loop.run_in_executor(None, sys.stdin.readline)
        gc.freeze()
        cpu, start = _cpu(), time.monotonic()
        if task["mode"] == "ping":
            if task["number"] == task["pinger"]:
                await load.ping(start + task["seconds"])
        elif task["mode"] == "rate":
            await load.send_at_a_rate(start, start + task["seconds"])
        else:
            await load.send(start + task["seconds"])
        _say(sent=load.counter)
        load.total = json.loads(await loop.run_in_executor(None, sys.stdin.readline))["total"]
        if load.delivered < load.total:
            load.complete.clear()
            await _unless_ended(receiving, load.complete.wait())
        end = load.last or time.monotonic()
        _say(
            delivered=load.delivered,
            hash=load.hash,
            elapsed=end - start,
            cpu=_cpu() - cpu,
            latencies=sorted(load.latencies),
            memory=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss,
        )
        await loop.run_in_executor(None, sys.stdin.readline)
        receiving.cancel()


def _connection(task: dict[str, Any]) -> AbstractAsyncContextManager[Client | SpreadClient]:
    name = f"c{task['number']}"
    if task["address"].startswith(SCHEME):
        return connected(task["address"], name, task["clients"])
    return ordercast.connect(task["address"], name=name)


def work_blocking(task: dict[str, Any]) -> None:
    """The same for the client that sends one at a time, in blocking form: one thread sends and reads."""
    filler = bytes(max(int(task["size"]), STAMP.size) - STAMP.size)
    me_id, service = int(task["number"]), ordercast.Service[task["service"].upper()]
    counter, order, latencies = 0, 0, []
    with ordercast.connect(task["address"], name=f"c{me_id}") as me:
        me.join(GROUP)
        for event in me:
            if isinstance(event, ordercast.View) and len(event.members) == task["clients"]:
                break
        _say(ready=True)
        sys.stdin.readline()
        gc.freeze()
        cpu, start = _cpu(), time.monotonic()
        end = start + task["seconds"]
        while time.monotonic() < end:
            before = time.perf_counter_ns()
            me.send(GROUP, STAMP.pack(me_id, counter, 0) + filler, service)
            counter += 1
            message = me.receive()
            assert isinstance(message, ordercast.Message)
            latencies.append(time.perf_counter_ns() - before)
            order = zlib.crc32(message.data[:IDENTITY_SIZE], order)
            time.sleep(float(task["pause"]))
        elapsed, used = time.monotonic() - start, _cpu() - cpu
        _say(sent=counter)
        sys.stdin.readline()
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        told = {"elapsed": elapsed, "cpu": used, "latencies": sorted(latencies), "memory": memory}
        _say(delivered=counter, hash=order, **told)
        sys.stdin.readline()


async def _unless_ended(receiving: asyncio.Task[None], waiting: Coroutine[Any, Any, object]) -> None:
    """Wait, unless the stream ends first: a client that was too slow will never see all that was sent."""
    waiter = asyncio.create_task(waiting)
    await asyncio.wait((receiving, waiter), return_when=asyncio.FIRST_COMPLETED)
    if receiving.done():
        receiving.result()
        raise SystemExit("the stream has ended before everything came")


def _cpu() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def _say(**fields: object) -> None:
    print(json.dumps(fields), flush=True)


if __name__ == "__main__":
    given = json.loads(sys.stdin.readline())
    if given.get("form") == "blocking" and given["number"] == given["pinger"]:
        work_blocking(given)
    else:
        try:
            asyncio.run(work(given))
        except (ordercast.Error, SpreadError, OSError, EOFError) as error:
            sys.exit(f"{given['address']}: {error}")
