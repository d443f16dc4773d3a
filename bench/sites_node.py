"""One daemon of `bench/sites_live.py`, in a process and a network namespace of its own.

Reads one JSON line with what it is, then one with each thing to do; answers each with a JSON line when it is done.
Payloads begin with (node, kind, time of sending); all namespaces have one clock.
"""

from __future__ import annotations

import asyncio
import gc
import json
import resource
import struct
import sys
import time
from collections import Counter
from dataclasses import replace
from typing import Any

from rig.worker import Task

from bench.live_node import tell
from ordercast.api.raw import RawNode
from ordercast.daemon.config.node import LinkProtocol, NodeConfig, SiteLink
from ordercast.model.configuration import ConfigurationKind
from ordercast.model.effects import Deliver
from ordercast.model.service import Service
from ordercast.order.sites.node import SitesNode

HEAD = struct.Struct("=IBq")  # node, kind, monotonic time in ns
LOAD, ASKED, ANSWERED = range(3)
BATCH = 32  # messages that are sent at once


class SiteNode:
    """Sends, answers, and notes how long messages took."""

    def __init__(self, task: dict[str, Any]) -> None:
        self.number = int(task["node"])
        self.echoes = bool(task["echoes"])
        self.node = RawNode(config_from(task))
        self.took_ms: dict[int, list[float]] = {LOAD: [], ANSWERED: []}  # by kind: until they were delivered here
        self.delivered: Counter[int] = Counter()  # bytes, by the node that sent them
        self.answers: set[asyncio.Task[None]] = set()
        self.views = 0
        self.reasons: list[str] = []  # of the views

    async def listen(self) -> None:
        async for batch in self.node.batches():
            if not isinstance(batch, Deliver):
                if batch.kind is ConfigurationKind.REGULAR:
                    self.views += 1
                    self.reasons.append(f"{len(batch.members)}: {batch.reason.name.lower()}")
                continue
            now = time.monotonic_ns()
            for _, _, _, _, payloads, *_ in batch.parcels:
                for data in payloads:
                    self._take(data, now)

    def _take(self, data: bytes, now: int) -> None:
        sender, kind, at = HEAD.unpack_from(data)
        self.delivered[sender] += len(data)
        if kind == LOAD and sender != self.number:
            self.took_ms[LOAD].append((now - at) / 1e6)
        elif kind == ANSWERED and sender == self.number:
            pass  # the own answer, on its way back to oneself
        elif kind == ANSWERED:
            self.took_ms[ANSWERED].append((now - at) / 1e6)
        elif kind == ASKED and sender != self.number and self.echoes:
            answer = HEAD.pack(self.number, ANSWERED, at).ljust(len(data))
            task = asyncio.create_task(self.node.submit(answer, Service.RELIABLE))
            self.answers.add(task)
            task.add_done_callback(self.answers.discard)

    async def ask(self, order: dict[str, Any]) -> dict[str, Any]:
        """Send questions, one after the other at a distance, and wait a little for the last answers."""
        self.took_ms[ANSWERED].clear()
        for _ in range(order["count"]):
            await self.node.submit(self._payload(ASKED, order["size"]), Service.RELIABLE)
            await asyncio.sleep(order["gap_s"])
        await asyncio.sleep(order["patience_s"])
        return {"took_ms": self.took_ms[ANSWERED]}

    async def load(self, order: dict[str, Any]) -> dict[str, Any]:
        """Send at a rate, or as much as is taken, for some seconds. Few at a time: those in hand wait here."""
        service, size, end = Service[order["service"]], order["size"], time.monotonic() + order["seconds"]
        rate, sent, began = order.get("rate"), 0, time.monotonic()
        while time.monotonic() < end:
            due = BATCH if rate is None else min(BATCH, int((time.monotonic() - began) * rate) - sent)
            if due > 0:
                await self.node.submit_many([self._payload(LOAD, size) for _ in range(due)], service)
                sent += due
            await asyncio.sleep(0.002 if rate is not None and due < BATCH else 0)
        return {"sent": sent}

    def _payload(self, kind: int, size: int) -> bytes:
        return HEAD.pack(self.number, kind, time.monotonic_ns()).ljust(size)

    def report(self) -> dict[str, Any]:
        took, self.took_ms[LOAD] = self.took_ms[LOAD], []
        engine, wide = self.node.engine, self.node.wide
        assert isinstance(engine, SitesNode)
        return {
            "at": time.monotonic(),
            "members": len(self.node.members),
            "ring": len(engine.ring_configuration.members),
            "views": self.views,
            "reasons": self.reasons,
            "delivered": dict(self.delivered),
            "took_ms": took,
            "packets": 0 if wide is None else wide.link.counters.packets_sent,
            "is_idle": engine.is_idle(),
            "rss_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        }


def config_from(task: dict[str, Any]) -> NodeConfig:
    made = Task(
        node=task["node"],
        addresses=task["addresses"],
        trace="",
        state=None,
        cluster="bench",
        rings=task["rings"],
        wide=task["wide"],
        engine="sites",
    ).config()
    pairs = [(f"r{a}", f"r{b}") for a, b in task["links"]]
    return replace(
        made,
        trace=type(made.trace)(),
        sites=replace(made.sites, rate=task["rate"]),
        site_links=tuple(SiteLink(*pair, LinkProtocol(task["protocol"])) for pair in pairs),
    )


async def work(task: dict[str, Any]) -> None:
    lines = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    site = SiteNode(task)
    await site.node.start()
    listening = asyncio.create_task(site.listen())
    while len(site.node.members) < task["members"]:  # noqa: ASYNC110 (nobody tells)
        await asyncio.sleep(0.02)
    tell({"ready": task["node"]})
    while line := await lines.readline():
        order = json.loads(line)
        match order["do"]:
            case "ask":
                tell(await site.ask(order))
            case "load":
                tell(await site.load(order))
            case "report":
                tell(site.report())
    listening.cancel()


def main() -> None:
    task = json.loads(sys.stdin.readline())
    gc.freeze()
    asyncio.run(work(task))


if __name__ == "__main__":
    main()
