"""What faults of gateways and of their rings cost a live network: how long delivery stops, who leaves, what is said.

    python -m rig.gateway_faults --rounds 3

Each fault is measured beside the crash of a member of one plain ring with as many nodes, timers and messages, in turns:
ratios are what counts. Silences are the longest time between two deliveries at a node that lives, the worst of all
nodes. Traces of every round are judged.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median

from ordercast.checker import Outcome
from ordercast.cli.tables import new_table
from ordercast.cli.terminal import output, write_json
from rig.chaos import TOPOLOGIES
from rig.cluster import LiveCluster
from rig.hosts import Host, Hosts, why_not

RATE = 100  # messages in a second, of each node
CALM = 200  # messages that each has delivered before and after a fault


@dataclass
class Measured:
    """One fault, in one round."""

    fault: str
    silence_s: float  # the longest between two deliveries at those who live
    gone: list[int] = field(default_factory=list)  # nodes that were missing in some view of those who live
    reasons: list[str] = field(default_factory=list)  # of their views since
    back_s: float | None = None  # from the start of a process that returned to the view of all
    verdict: str = ""


@contextmanager
def loaded(segments: Sequence[Collection[int]], nodes: int) -> Iterator[LiveCluster]:
    """A cluster with the usual timers, under load."""
    with (
        tempfile.TemporaryDirectory(prefix="ordercast-faults-") as folder,
        Hosts(nodes, segments=segments) as hosts,
        LiveCluster(hosts, Path(folder), ring={}) as cluster,
    ):
        cluster.start_all()
        cluster.send(rate=RATE)
        cluster.wait_for_more(CALM)
        yield cluster


def measured(cluster: LiveCluster, fault: str, happens: Callable[[], None], over: Callable[[], None]) -> Measured:
    """Let a fault happen, wait until it is over for those who live, and tell what they saw."""
    seen = {host: len(cluster.lives[host].views) for host in cluster.alive()}
    for host in cluster.alive():
        cluster.ask(host, "time")
    happens()
    over()
    alive = cluster.alive()
    cluster.wait_for_more(CALM, alive)
    silences = [cluster.report(host)["silence_s"] for host in alive]
    views = [view for host in alive for view in cluster.lives[host].views[seen[host] :] if view.is_regular]
    everybody = {host.number for host in cluster.hosts}
    gone = sorted(everybody - everybody.intersection(*(view.members for view in views)))
    return Measured(fault, max(silences), gone, sorted({view.reason for view in views}))


def killed(cluster: LiveCluster, victim: Host, fault: str, sides: Sequence[Sequence[Host]]) -> Measured:
    """`sides`: who is together without it."""

    def over() -> None:
        for side in sides:
            cluster.wait_for_view(side)

    return measured(cluster, fault, lambda: cluster.kill(victim), over)


def back(cluster: LiveCluster, host: Host) -> float:
    """How long a process that returns takes to be in the view of all."""
    cluster.start(host)
    cluster.wait(lambda: cluster.lives[host].process is not None, "it starts")
    began = time.monotonic()
    cluster.wait_for_view(cluster.hosts)
    return time.monotonic() - began


def judged(cluster: LiveCluster, results: list[Measured]) -> list[Measured]:
    cluster.settle()
    verdict = cluster.verdict()
    for one in results:
        one.verdict = verdict.outcome.name
    return results


def plain_ring() -> list[Measured]:
    """A member of one ring crashes."""
    with loaded((), 6) as cluster:
        *others, victim = cluster.hosts
        return judged(cluster, [killed(cluster, victim, "one ring: a member is killed", [others])])


def parallel() -> list[Measured]:
    """One of two gateways crashes; then a ring is cut in the middle, with a gateway on each side."""
    with loaded(TOPOLOGIES["parallel"], 6) as cluster:
        n1, n2, n3, n4, g5, g6 = cluster.hosts
        found = [killed(cluster, g6, "one of two gateways is killed", [[n1, n2, n3, n4, g5]])]
        found[0].back_s = back(cluster, g6)
        cluster.send(g6, rate=RATE)
        cluster.wait_for_more(CALM)

        def is_noticed() -> None:
            before = {host: len(cluster.lives[host].views) for host in (n1, n2)}
            cluster.wait(
                lambda: all(len(cluster.lives[host].views) > many for host, many in before.items()),
                "the halves of the ring are noticed",
            )

        cut = measured(
            cluster,
            "a ring is cut, with a gateway on each side",
            lambda: cluster.hosts.cut([n1, g5], [n2, g6], segment=0),
            is_noticed,
        )
        cluster.hosts.heal()
        return judged(cluster, [*found, cut])


def only_one() -> list[Measured]:
    """The only gateway crashes, and returns."""
    with loaded(TOPOLOGIES["pair"], 5) as cluster:
        n1, n2, gateway, n4, n5 = cluster.hosts
        found = killed(cluster, gateway, "the only gateway is killed", [[n1, n2], [n4, n5]])
        found.back_s = back(cluster, gateway)
        return judged(cluster, [found])


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m rig.gateway_faults", description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    options = parser.parse_args()
    if (problem := why_not()) is not None:
        sys.stderr.write(f"this needs hosts of its own, and {problem}\n")
        return 2
    found = [one for _ in range(options.rounds) for run in (plain_ring, parallel, only_one) for one in run()]
    if options.json:
        write_json([asdict(one) for one in found])
    else:
        _draw(found)
    return 0 if all(one.verdict == Outcome.VALID.name for one in found) else 1


def _draw(found: list[Measured]) -> None:
    faults = list(dict.fromkeys(one.fault for one in found))
    usual = median(one.silence_s for one in found if one.fault == faults[0])
    numbers = ("silence", "of one ring's", "back after")
    table = new_table("fault", *numbers, "left", "why", "verdict", right=numbers)
    for fault in faults:
        rounds = [one for one in found if one.fault == fault]
        silence = median(one.silence_s for one in rounds)
        backs = [one.back_s for one in rounds if one.back_s is not None]
        table.add_row(
            fault,
            f"{silence:.2f} s",
            f"{silence / usual:.2f}",
            f"{max(backs):.2f} s" if backs else "",
            " ".join(sorted({f"n{node}" for one in rounds for node in one.gone})) or "nobody",
            ", ".join(sorted({reason for one in rounds for reason in one.reasons})).lower(),
            " ".join(sorted({one.verdict for one in rounds})),
        )
    output().print(table)


if __name__ == "__main__":
    sys.exit(main())
