"""Redundant networks, measured: what the layer costs, the paper's figures 6 to 9 (simulated and live), and how long it
takes from a cut to the alarm and from the repair to use.

Live nodes run in namespaces, joined by two or three bridges whose ports are limited with tbf, so that the networks are
the limit and not the processor. One network is measured in the same run: read ratios, not numbers.

    python -m bench.networks [--quick] [--rate 50mbit] [--seconds S] [--only cost|simulated|live|sealed|times]
        [--json FILE]

`sealed` has no limit but the processors: how much of one network's rate two networks keep, clear and sealed in turns.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rig.cluster import LiveCluster
from rig.hosts import Hosts, why_not

from bench import networks_cost, networks_model
from bench.live import ROOT, Nodes
from ordercast.daemon.key_file import new_key_file

HOSTS = 4
CASES = {
    "unreplicated": (1, "active"),
    "active, 2": (2, "active"),
    "passive, 2": (2, "passive"),
    "active-passive, 2 of 3": (3, "active-passive"),
}
SIZES = (100, 685, 1377, 1378, 8192)  # two fill a packet, one fills a packet, one more byte takes two


@dataclass(frozen=True)
class Throughput:
    case: str
    size: int
    per_s: float  # messages delivered at the slowest node
    mbit: float
    views: int  # that came during the run: there must be none
    alarms: int
    retransmitted: int


class Replicated(Nodes):
    """The processes of one case on several networks."""

    def __init__(
        self, hosts: Hosts, networks: int, style: str, size: int, seconds: float, key: Path | None = None
    ) -> None:
        self.programs = []
        for host in hosts:
            task = {
                "node": host.number,
                "members": len(hosts),
                "addresses": [other.address() for other in hosts],
                "more_addresses": [[other.address(n) for other in hosts] for n in range(1, networks)],
                "replication": style,
                "size": size,
                "service": "agreed",
                "delivery": "batches",
                "rate": 0,
                "sends": True,
                "accelerated": False,
                "segmentation": True,
                "seconds": seconds,
                "trace": "off",
                **({"key": str(key)} if key is not None else {}),
            }
            program = host.run(
                [sys.executable, str(ROOT / "bench" / "live_node.py")],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"},
            )
            self.programs.append(program)
            self.say(json.dumps(task), [program])


def throughput(case: str, size: int, rate: str | None, seconds: float, *, sealed: bool = False) -> Throughput:
    """Measure a case; without a rate the processors are the limit."""
    networks, style = CASES[case]
    with Hosts(HOSTS, networks) as hosts, tempfile.TemporaryDirectory() as folder:
        if rate is not None:
            hosts.segmentation(False)  # a wire carries single packets, and tbf counts them
            hosts.bandwidth(hosts, rate)
        key = Path(folder) / "key" if sealed else None
        if key is not None:
            new_key_file(key)
        nodes = Replicated(hosts, networks, style, size, seconds, key)
        try:
            results = _run(nodes)
        finally:
            nodes.end()
    per_s = min(result["delivered"] / result["seconds"] for result in results)
    return Throughput(
        case,
        size,
        per_s,
        per_s * size * 8 / 1e6,
        sum(result["new_views"] for result in results),
        sum(len(result["alarms"]) for result in results),
        sum(result["retransmitted"] for result in results),
    )


def _run(nodes: Nodes) -> list[dict[str, Any]]:
    nodes.hear()  # ready
    nodes.say("go")
    nodes.hear()  # measured
    nodes.say("stop")
    total = sum(answer["stopped"] for answer in nodes.hear())
    nodes.say(str(total))
    results = nodes.hear()
    nodes.say("end")
    return results


@dataclass(frozen=True)
class Times:
    """Seconds, at the slowest node."""

    style: str
    load: str
    cut_to_alarm: float
    repair_to_use: float


def times(style: str, rate: float) -> Times:
    networks = 3 if style == "active-passive" else 2
    with (
        tempfile.TemporaryDirectory() as folder,
        Hosts(HOSTS, networks) as hosts,
        LiveCluster(hosts, Path(folder), ring={}, replication=style) as cluster,
    ):
        cluster.start_all()
        if rate:
            cluster.send(rate=rate)
        cluster.watch(1.0)
        cut = _seconds(cluster, "NETWORK_FAULTY", lambda: hosts.cut(hosts, hosts, network=1))
        cluster.watch(2.0)
        repair = _seconds(cluster, "NETWORK_REPAIRED", lambda: hosts.heal(1))
        cluster.settle()
    return Times(style, f"{rate:g}/s each" if rate else "idle", cut, repair)


def _seconds(cluster: LiveCluster, kind: str, act: Callable[[], None]) -> float:
    began = time.monotonic()
    act()
    lives = cluster.lives.values()
    cluster.wait(lambda: all(any(alarm.kind == kind for alarm in life.alarms) for life in lives), kind)
    return time.monotonic() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer sizes, shorter runs")
    parser.add_argument("--rate", default="50mbit", help="of every host on every network")
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--only", choices=("cost", "simulated", "live", "sealed", "times"))
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    document: dict[str, Any] = {"load_average": os.getloadavg(), "rate": arguments.rate}
    print(f"load average {os.getloadavg()[0]:.1f}: the machine should be idle otherwise")
    if arguments.only in (None, "cost"):
        networks_cost.main()
        document["cost"] = [asdict(cost) for cost in networks_cost.costs()]
    if arguments.only in (None, "simulated"):
        networks_model.main(arguments.quick)
    if arguments.only in (None, "live", "sealed", "times") and (reason := why_not()) is not None:
        sys.exit(f"no live measurements: {reason}")
    if arguments.only in (None, "live"):
        document["live"] = [asdict(row) for row in _live(arguments)]
    if arguments.only in (None, "sealed"):
        document["sealed"] = _sealed(arguments.seconds)
    if arguments.only in (None, "times"):
        document["times"] = [asdict(row) for row in _times()]
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(document, indent=1), encoding="utf-8")


def _live(arguments: argparse.Namespace) -> list[Throughput]:
    print(f"live, {HOSTS} nodes, {arguments.rate} each way for every host on every network")
    rows: list[Throughput] = []
    for size in (1377,) if arguments.quick else SIZES:
        base = 0.0
        for case in CASES:
            row = throughput(case, size, arguments.rate, arguments.seconds)
            rows.append(row)
            base = base or row.mbit
            ratio = row.mbit / base if base else 0.0
            print(
                f"  {size:>5} B {case:24} {row.per_s:>10,.0f} messages/s {row.mbit:>8,.1f} Mbit/s  {ratio:.2f} of one  "
                f"(views {row.views}, alarms {row.alarms}, sent again {row.retransmitted})",
                flush=True,
            )
    return rows


def _sealed(seconds: float) -> dict[str, float]:
    """Return what sealed nodes keep of one network's rate on two, as a ratio to what clear ones keep."""
    print(f"live, {HOSTS} nodes, no limit but the processors: two networks, active, against one; medians of three")
    kept: dict[str, float] = {}
    for size in (1350, 100):
        shares: dict[bool, list[float]] = {False: [], True: []}
        for _ in range(3):
            for sealed in shares:
                one, two = (
                    throughput(case, size, None, seconds, sealed=sealed) for case in ("unreplicated", "active, 2")
                )
                shares[sealed].append(two.per_s / one.per_s)
        clear, sealed_share = statistics.median(shares[False]), statistics.median(shares[True])
        kept[str(size)] = sealed_share / clear
        print(
            f"  {size:>5} B: clear nodes keep {clear:.2f}, sealed ones {sealed_share:.2f}, "
            f"{sealed_share / clear:.2f} of that",
            flush=True,
        )
    return kept


def _times() -> list[Times]:
    print("seconds from a cut of a whole network to the last alarm, and from its repair to its use everywhere")
    rows = []
    for style in ("active", "passive", "active-passive"):
        for rate in (200.0, 0.0):
            row = times(style, rate)
            rows.append(row)
            print(
                f"  {style:15} {row.load:12} alarm {row.cut_to_alarm:6.2f}   use {row.repair_to_use:6.2f}", flush=True
            )
    return rows


if __name__ == "__main__":
    main()
