"""Hosts are added to a loaded cluster and removed again, round after round, and the traces are judged.

    python -m rig.enlist --rounds 20 --transport unicast --seed 1

Three hosts stay. In each round three more are put on the node list and started, and the list is reloaded host by host,
in an order drawn from the seed; then they are taken off again in another order, and stopped. A view of the three that
stay which does not take somebody in or let somebody go is an error.

It is one on a quiet machine. Where processes wait for a processor, a member may be missed, and a merge may have to be
given up and begun anew: two hosts that start are taken in while they take each other in. So tests let views alone.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from random import Random

from ordercast.checker import Outcome
from ordercast.cli.terminal import complain, output
from rig.cluster import LiveCluster
from rig.hosts import Host, Hosts, why_not

STAYING, ALL = 3, 6
MESSAGES = 30  # that everybody delivers between two steps


@dataclass
class Rounds:
    cluster: LiveCluster
    rng: Random
    are_views_judged: bool = True
    version: int = 1
    seen: dict[Host, int] = field(default_factory=dict)  # views that were looked at

    @property
    def staying(self) -> list[Host]:
        return list(self.cluster.hosts[:STAYING])

    @property
    def coming(self) -> list[Host]:
        return list(self.cluster.hosts[STAYING:])

    def begin(self) -> None:
        listed = [host.number for host in self.staying]
        self.cluster.start(*self.staying, listed=listed)
        self.cluster.wait_for_view(self.staying)
        self.cluster.send(self.staying, rate=200)
        for host in self.staying:
            self.seen[host] = len(self.cluster.lives[host].regular_views())

    def round(self) -> None:
        self._add()
        self._remove()
        if self.are_views_judged:
            self._look_at_views()

    def _add(self) -> None:
        """Reloads and starts, in any order; all are together only when all of it is done."""
        cluster, everybody = self.cluster, list(self.cluster.hosts)
        self.version += 1
        steps: list[Callable[[], None]] = [
            *(lambda host=host: cluster.enlist(host, self.version, everybody) for host in self.staying),
            *(lambda host=host: cluster.start(host, version=self.version) for host in self.coming),
        ]
        self.rng.shuffle(steps)
        for step in steps:
            step()
            cluster.wait_for_more(MESSAGES, self.staying)
        cluster.wait_for_view(everybody)
        cluster.send(self.coming, rate=100)
        cluster.wait_for_more(MESSAGES)

    def _remove(self) -> None:
        """Those who go are quiet first, so that nothing of theirs is under way, and are stopped last."""
        cluster = self.cluster
        cluster.hush(self.coming)
        for host in self.coming:
            cluster.wait_for_report(host, lambda report: not report["sending"], "it has stopped sending")
        self.version += 1
        for host in self.rng.sample(self.staying, STAYING):
            cluster.wait_for_more(MESSAGES, self.staying)
            cluster.enlist(host, self.version, self.staying)
        cluster.wait_for_view(self.staying)
        cluster.wait_for_more(MESSAGES, self.staying)
        cluster.leave(*self.coming)

    def _look_at_views(self) -> None:
        for host in self.staying:
            views = self.cluster.lives[host].regular_views()
            fresh = views[self.seen[host] - 1 :]
            self.seen[host] = len(views)
            stay = {other.number for other in self.staying}
            for before, after in pairwise(fresh):
                assert stay <= set(after.members), f"n{host.number} was parted from those who stay: {after}"
                assert set(before.members) != set(after.members), f"n{host.number} has a needless view: {after}"


def run(
    rounds: int,
    transport: str,
    seed: int,
    folder: Path,
    tell: Callable[[str], None],
    *,
    are_views_judged: bool = True,
) -> str:
    """What the checkers say. AssertionError for a needless view, if views are judged."""
    with Hosts(ALL) as hosts, LiveCluster(hosts, folder, transport=transport, ring={}) as cluster:
        work = Rounds(cluster, Random(seed), are_views_judged)
        work.begin()
        for number in range(1, rounds + 1):
            work.round()
            tell(f"round {number} of {rounds}: version {work.version} of the node list")
        cluster.settle()
        verdict = cluster.verdict()
        return f"{verdict.outcome.value}: {verdict.sentence}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--transport", choices=("multicast", "unicast"), default="multicast")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    if (reason := why_not()) is not None:
        complain(reason)
        return 2
    console = output()
    with tempfile.TemporaryDirectory() as folder:
        outcome = run(options.rounds, options.transport, options.seed, Path(folder), console.print)
    console.print(outcome)
    return 0 if outcome.startswith(Outcome.VALID.value) else 1


if __name__ == "__main__":
    sys.exit(main())
