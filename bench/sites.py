"""Several sites, live, on the loopback interface: latency of each service along a chain, and packets when idle.

    python -m bench.sites                     the paper's chain: 4 sites, 30 ms, an UPDATE every 100 ms at most
    python -m bench.sites --sites 6 --delay 10ms --count 50
    python -m bench.sites --alone             one site alone beside a plain ring (root)

All nodes and the wide area are in this process: clocks need not be compared, and a busy machine shows in every figure.
D is the way from one end of the chain to the other.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import struct
import sys
import tempfile
import time
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median, quantiles

from bench.live import Case, measure
from ordercast.api.raw import RawNode
from ordercast.cli.circle import Placed
from ordercast.cli.quantities import duration_from
from ordercast.cli.tables import new_table
from ordercast.cli.terminal import output, write_json
from ordercast.cli.wide_area import WideArea, sites_file, wide_ports
from ordercast.daemon.config.file import load_config
from ordercast.model.effects import Deliver
from ordercast.model.ids import SECOND
from ordercast.model.service import Service

SERVICES = (Service.RELIABLE, Service.FIFO, Service.AGREED, Service.SAFE)
STAMP = struct.Struct("=q")
SIZE = 200
IDLE_S = 5.0
PORT = 31_000  # away from clusters of this machine


@dataclass(frozen=True)
class Row:
    service: str
    near_ms: float  # median until the sender's own delivery
    far_ms: float  # until that of the other end
    far_p95_ms: float
    of_distance: float  # the far median, in units of D


class Hearing:
    """Takes what a node delivers, and notes how long each message took."""

    def __init__(self, node: RawNode) -> None:
        self.node = node
        self.took_ms: list[float] = []
        self.changed = asyncio.Event()

    async def listen(self) -> None:
        async for batch in self.node.batches():
            if isinstance(batch, Deliver):
                now = time.monotonic_ns()
                for _, _, _, _, payloads, *_ in batch.parcels:
                    self.took_ms += [(now - STAMP.unpack_from(data)[0]) / 1e6 for data in payloads]
                self.changed.set()

    async def until(self, count: int) -> list[float]:
        """Wait for so many messages, and forget them."""
        while len(self.took_ms) < count:
            self.changed.clear()
            await self.changed.wait()
        found, self.took_ms = self.took_ms, []
        return found


async def chain(sites: int, delay_ns: int, count: int, gap_s: float) -> tuple[list[Row], float]:
    """Measure each service from one end of a chain to the other; return the rows, and the packets of a link in an idle
    second."""
    placed = [Placed(f"n{number}", (f"s{number}",)) for number in range(1, sites + 1)]
    links = "".join(f'[[links]]\nbetween = ["s{at}", "s{at + 1}"]\n' for at in range(1, sites))
    async with AsyncExitStack() as stack:
        file = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "cluster.toml"
        text = sites_file(placed, PORT, PORT + 90).replace(f'"sites-{PORT}"', f'"bench {os.getpid()}"', 1)
        file.write_text(text + links, encoding="utf-8")
        await stack.enter_async_context(WideArea(wide_ports(placed, PORT), delay_ns))
        nodes = [await stack.enter_async_context(RawNode(load_config(file, one.name))) for one in placed]
        while any(len(node.members) < sites for node in nodes):  # noqa: ASYNC110
            await asyncio.sleep(0.05)
        hearing = [Hearing(node) for node in nodes]
        tasks = [asyncio.create_task(one.listen()) for one in hearing]
        distance_ms = delay_ns * (sites - 1) / 1e6
        rows = [await _measured(hearing, service, count, gap_s, distance_ms) for service in SERVICES]
        idle = await _idle(nodes)
        for task in tasks:
            task.cancel()
        return rows, idle / (2 * (sites - 1))


async def _measured(hearing: list[Hearing], service: Service, count: int, gap_s: float, distance_ms: float) -> Row:
    for _ in range(count):
        await hearing[0].node.submit(STAMP.pack(time.monotonic_ns()).ljust(SIZE), service)
        await asyncio.sleep(gap_s)
    took = await asyncio.gather(*(one.until(count) for one in hearing))
    near, far = took[0], took[-1]
    p95 = quantiles(far, n=20)[-1]
    return Row(service.name.lower(), median(near), median(far), p95, median(far) / distance_ms if distance_ms else 0.0)


async def _idle(nodes: list[RawNode]) -> float:
    """Return the packets that all ends of links send in a second in which nobody sends anything."""
    await asyncio.sleep(2.0)
    before, began = _sent(nodes), time.monotonic()
    await asyncio.sleep(IDLE_S)
    return (_sent(nodes) - before) / (time.monotonic() - began)


def _sent(nodes: list[RawNode]) -> int:
    return sum(node.wide.link.counters.packets_sent for node in nodes if node.wide is not None)


def alone(seconds: float) -> list[dict[str, float]]:
    """One site alone beside a plain ring, in turns."""
    from rig.hosts import Hosts, why_not

    if (problem := why_not()) is not None:
        raise SystemExit(f"this needs hosts of its own, and {problem}")
    found = []
    with Hosts(4) as hosts:
        for size in (8192, 1350, 1200, 100):
            rates = [
                measure(hosts, Case(size=size, engine=engine), seconds, sys.executable) for engine in ("ring", "sites")
            ]
            ring, site = (outcome.per_s for outcome in rates)
            found.append({"size": size, "ring_per_s": ring, "site_per_s": site, "ratio": site / ring})
    return found


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.sites", description=__doc__.partition("\n")[0])
    parser.add_argument("--sites", type=int, default=4, help="of the chain, one daemon each")
    parser.add_argument("--delay", default="30ms", help="of each link, one way")
    parser.add_argument("--count", type=int, default=40, help="messages of each service")
    parser.add_argument("--gap", default="250ms", help="between two messages")
    parser.add_argument("--alone", action="store_true", help="one site alone beside a plain ring, instead")
    parser.add_argument("--seconds", type=float, default=3.0, help="with --alone: of each row")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    options = parser.parse_args()
    if options.alone:
        rates = alone(options.seconds)
        write_json(rates) if options.json else _draw_alone(rates)
        return 0
    delay_ns, gap_ns = duration_from(options.delay), duration_from(options.gap)
    rows, idle = asyncio.run(chain(options.sites, delay_ns, options.count, gap_ns / SECOND))
    if options.json:
        write_json({"rows": [asdict(row) for row in rows], "idle_packets_per_link_end": idle})
    else:
        _draw(rows, idle)
    return 0


def _draw(rows: list[Row], idle: float) -> None:
    numbers = ("own site", "far end", "95 %", "in D")
    table = new_table("service", *numbers, right=numbers)
    for row in rows:
        table.add_row(
            row.service,
            f"{row.near_ms:.0f} ms",
            f"{row.far_ms:.0f} ms",
            f"{row.far_p95_ms:.0f} ms",
            f"{row.of_distance:.2f}",
        )
    console = output()
    console.print(table)
    console.print(f"idle: {idle:.1f} packets a second from each end of a link")


def _draw_alone(rates: list[dict[str, float]]) -> None:
    table = new_table("size", "ring", "one site", "ratio", right=("size", "ring", "one site", "ratio"))
    for row in rates:
        table.add_row(
            f"{row['size']} B", f"{row['ring_per_s']:,.0f}/s", f"{row['site_per_s']:,.0f}/s", f"{row['ratio']:.2f}"
        )
    output().print(table)


if __name__ == "__main__":
    sys.exit(main())
