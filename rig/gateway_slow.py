"""A slow consumer in a live network of rings: an application on the far ring reads nothing for a while, and all send.

    python -m rig.gateway_slow [--seconds 10] [--size 1350] [--json]

Told are the speed before, meanwhile and after (beside each other: machines differ), how much memory each process took
besides, what `ordercast topology explain` says at a node of the other ring, and whether anything was lost: traces are
judged.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from ordercast.checker import Outcome
from ordercast.cli.tables import new_table
from ordercast.cli.terminal import output, write_json
from ordercast.model.notes import Occurrence
from rig.chaos import TOPOLOGIES
from rig.cluster import LiveCluster
from rig.hosts import Host, Hosts, why_not

WATCHED_S = 2.0  # speed is told over so long, before and twice after
LOOKS = 8  # in that time
FULL = 0.95  # of the speed before counts as all of it
INBOX_SIZE = 4 << 20  # of an application, so that it is soon behind
MEMORY_MAX_MIB = 256


@dataclass(frozen=True)
class Slowed:
    """What one slow consumer cost a network."""

    before_per_s: float
    stopped_per_s: float
    after_per_s: list[float]
    back_s: float | None  # after the consumer goes on, until half of `LOOKS` have full speed; None: never
    grown_mib: float  # the process that took most memory besides, while the consumer stood still
    explained: list[str]  # at a node of the other ring
    is_named: bool
    holds: int  # how often somebody asked all others to stop
    verdict: str

    @property
    def is_sound(self) -> bool:
        return self.is_named and self.grown_mib <= MEMORY_MAX_MIB and self.verdict == Outcome.VALID.name


def slowed(folder: Path, seconds: float, size: int, watched_s: float = WATCHED_S) -> Slowed:
    """Let the application of the last node stand still for so long, while all send as much as is accepted."""
    segments = TOPOLOGIES["pair"]
    with (
        Hosts(5, segments=segments) as hosts,
        LiveCluster(hosts, folder, ring={}, inbox_size_max=INBOX_SIZE) as cluster,
    ):
        cluster.start_all()
        *_, slow = hosts
        near = hosts[0]
        cluster.send(rate=None, sizes=(size,))
        cluster.wait_for_more(100)
        before = speed(cluster, near, watched_s)
        memory = {host: cluster.report(host)["resident_mib"] for host in hosts}
        cluster.read(slow, False)
        cluster.wait_for_report(near, lambda report: bool(report["holds"]), "somebody asks all to stop")
        stopped = speed(cluster, near, seconds)
        cluster.wait_for_report(near, lambda report: is_named(slow, report["explained"]), "the slow one is named")
        reports = {host: cluster.report(host) for host in hosts}
        cluster.read(slow, True)
        looks = [speed(cluster, near, watched_s / LOOKS) for _ in range(2 * LOOKS)]
        after = [sum(some) / LOOKS for some in (looks[:LOOKS], looks[LOOKS:])]
        explained = reports[near]["explained"]
        cluster.settle()
        return Slowed(
            before,
            stopped,
            after,
            back_after(looks, FULL * before, watched_s / LOOKS),
            max(reports[host]["resident_mib"] - memory[host] for host in hosts),
            explained,
            is_named(slow, explained),
            sum(report["occurred"].get(Occurrence.NETWORK_HELD.value, 0) for report in reports.values()),
            cluster.verdict().outcome.name,
        )


def is_named(slow: Host, explained: list[str]) -> bool:
    return any(f"n{slow.number} " in sentence and "the application is behind" in sentence for sentence in explained)


def back_after(looks: list[float], full: float, each_s: float) -> float | None:
    """Return the time after which half of the looks of one stretch, in a row, have full speed in the mean."""
    some = LOOKS // 2
    found = (at for at in range(len(looks) - some + 1) if sum(looks[at : at + some]) / some >= full)
    return next((at * each_s for at in found), None)


def speed(cluster: LiveCluster, host: Host, seconds: float) -> float:
    """Return the messages that a node delivers in a second, over so many."""
    began, before = time.monotonic(), cluster.report(host)["delivered"]
    cluster.watch(seconds)
    return float((cluster.report(host)["delivered"] - before) / (time.monotonic() - began))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m rig.gateway_slow", description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=10.0, help="that the consumer stands still")
    parser.add_argument("--size", type=int, default=1350, help="of messages")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    options = parser.parse_args()
    if (problem := why_not()) is not None:
        sys.stderr.write(f"this needs hosts of its own, and {problem}\n")
        return 2
    with tempfile.TemporaryDirectory(prefix="ordercast-slow-") as folder:
        found = slowed(Path(folder), options.seconds, options.size)
    if options.json:
        write_json(asdict(found))
    else:
        _draw(found)
    return 0 if found.is_sound else 1


def _draw(found: Slowed) -> None:
    table = new_table("", "messages a second", "of before", right=("messages a second", "of before"))
    rows = {"before": found.before_per_s, "the consumer stands still": found.stopped_per_s}
    rows |= {f"{at * WATCHED_S:.0f} s after": value for at, value in enumerate(found.after_per_s, 1)}
    for what, value in rows.items():
        table.add_row(what, f"{value:,.0f}", f"{value / max(1.0, found.before_per_s):.2f}")
    console = output()
    console.print(table)
    back = "was not seen again" if found.back_s is None else f"was back after {found.back_s:.2f} s"
    console.print(f"full speed ({FULL:.0%} of before) {back}")
    console.print(f"memory: {found.grown_mib:.0f} MiB more at the process that took most; holds: {found.holds}")
    console.print(f"verdict: {found.verdict}; the slow one is {'named' if found.is_named else 'NOT named'}:")
    for sentence in found.explained:
        console.print(f"  {sentence}", soft_wrap=True)


if __name__ == "__main__":
    sys.exit(main())
