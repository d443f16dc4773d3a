"""A load of messages on daemons that run already, Ordercast's or Spread's: a client at each, one group, one order.

    ordercast up --sites east=2,west=2,north=2 --delay 40ms
    python -m bench.load ADDRESS ADDRESS …          of Ordercast, as `ordercast up` prints them
    python -m bench.load spread://HOST:PORT …       of Spread, with a segment for each site
        [--service agreed] [--size 1024] [--rate 100] [--seconds 10] [--only latency|throughput] [--json]

Two rows: how long messages take to all receivers while all clients together send `--rate` a second, in turns; and how
many come to every client when all send what they can. Every client is a process of its own on this machine, so that
one clock times them all.
"""

from __future__ import annotations

import argparse
from contextlib import ExitStack
from dataclasses import asdict, dataclass

from bench.clients import Clients
from ordercast.cli.tables import new_table
from ordercast.cli.terminal import output, write_json
from ordercast.model.service import SERVED, Service

ROWS = {"latency": "rate", "throughput": "load"}  # and how clients send


@dataclass(frozen=True)
class LoadRow:
    name: str
    per_s: float  # messages that came to every client
    p50_ms: float = 0.0  # over all messages and receivers, and the next two
    p95_ms: float = 0.0
    p99_ms: float = 0.0


def measure(name: str, options: argparse.Namespace) -> LoadRow:
    """Run one row; clients that did not see one order end it."""
    task = {
        "size": options.size,
        "service": options.service,
        "one_by_one": False,
        "mode": ROWS[name],
        "rate": options.rate,
        "seconds": options.seconds,
    }
    with ExitStack() as stack:
        clients = Clients(stack, options.addresses, task)
        clients.hear()
        clients.say("go")
        total = sum(told["sent"] for told in clients.hear())
        clients.say({"total": total})
        results = clients.hear()
        clients.say("end")
    is_ordered = Service[options.service.upper()] >= Service.AGREED
    if is_ordered and len({(result["hash"], result["delivered"]) for result in results}) != 1:
        raise SystemExit("clients have seen messages in different orders")
    per_s = total / max(result["elapsed"] for result in results)
    latencies = sorted(value for result in results for value in result["latencies"])
    if not latencies:
        return LoadRow(name, per_s)
    return LoadRow(name, per_s, *(latencies[int(part * (len(latencies) - 1))] / 1e6 for part in (0.5, 0.95, 0.99)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("addresses", nargs="+", metavar="ADDRESS")
    parser.add_argument("--service", default="agreed", choices=[one.name.lower() for one in sorted(SERVED)])
    parser.add_argument("--size", type=int, default=1024)
    parser.add_argument("--rate", type=float, default=100.0)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--only", choices=tuple(ROWS))
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rows = [measure(name, options) for name in ROWS if options.only in (None, name)]
    if options.json:
        write_json({"rows": [asdict(row) for row in rows]})
        return
    columns = ("messages/s", "median", "95th", "99th")
    table = new_table("", *columns, right=columns)
    for row in rows:
        times = [f"{value:.1f} ms" if value else "" for value in (row.p50_ms, row.p95_ms, row.p99_ms)]
        table.add_row(row.name, f"{row.per_s:,.0f}", *times)
    output().print(table)


if __name__ == "__main__":
    main()
