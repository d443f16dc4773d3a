"""Chaos: a live cluster under load while everything fails that can fail, drawn from a seed, and judged at the end.

    python -m rig.chaos --seed 1 --seconds 60
    python -m rig.chaos --engine gateways --topology circle
    python -m rig.chaos --engine sites --topology three
    python -m rig.chaos --engine tree --nodes 6

The seed decides what happens and in which order; how the nodes meet it is up to the machine, so a seed is a kind of run
and not a replay. The traces are kept when the verdict is not VALID.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from collections.abc import Collection, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from rich.console import Console
from rich.text import Text

from ordercast.checker import Outcome, Verdict, combined
from ordercast.cli.documents import verdict_document, verdict_documents
from ordercast.cli.drawing import closing_line, draw_witnesses, verdict_table
from ordercast.cli.terminal import Meter, output, write_json
from ordercast.order.catalogue import DEFAULT, LIVE, entry_of
from rig.cluster import QUICK, Impatient, LiveCluster
from rig.faults import Fault, Faults, names
from rig.hosts import Hosts, why_not

CALM_CHANCE = 0.08  # that all faults end, and all must come together, in the middle of the run
GAP_S = 1.2  # between the beginnings of two faults, in the mean
SETTLE_PATIENCE_S = 120.0
INBOX_SIZE = 256 << 10
TOPICS = 5  # where messages go to those who want them alone

# Rings, by the numbers of their hosts; whoever is on several is a gateway.
TOPOLOGIES: dict[str, list[list[int]]] = {
    "pair": [[1, 2, 3], [3, 4, 5]],
    "parallel": [[1, 2, 5, 6], [3, 4, 5, 6]],
    "line": [[1, 2, 3], [3, 4, 5], [5, 6]],
    "circle": [[1, 4, 6], [2, 4, 5], [3, 5, 6]],
    "hub": [[1, 2, 7], [3, 4, 7], [5, 6, 7]],
}

# Sites, likewise; every host has a leg in the wide area between them, too.
PLACES: dict[str, list[list[int]]] = {
    "three": [[1, 2], [3, 4], [5, 6]],
    "uneven": [[1, 2, 3], [4, 5], [6]],
    "two": [[1, 2], [3, 4]],
}


@dataclass
class Happened:
    """What is told of a run."""

    at_s: float
    kind: str
    text: str
    lasts_s: float


@dataclass
class Chaos:
    cluster: LiveCluster
    rng: Random
    seconds: float
    console: Console | None  # None: silent
    log: list[Happened] = field(default_factory=list)
    active: list[tuple[float, Fault]] = field(default_factory=list)  # when it is over
    began: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        self.faults = Faults(self.cluster, self.rng)

    def run(self) -> None:
        hosts = list(self.cluster.hosts)
        self.cluster.start_all()
        self.tell("started", names(hosts))
        self.faults.traffic(hosts)
        self.began = time.monotonic()
        with Meter("chaos", int(self.seconds), shown_after_s=0) as meter:
            next_s = 0.0
            while True:
                next_s += self.rng.expovariate(1 / GAP_S)
                self._let_pass(min(next_s, self.seconds), meter)
                if next_s >= self.seconds:
                    break
                if self.rng.random() < CALM_CHANCE:
                    self._calm()
                else:
                    self._begin(self.faults.draw())
        self.tell("settling", "no more faults")
        self._end_all()
        self._come_together()
        self.cluster.settle(SETTLE_PATIENCE_S)

    def _begin(self, fault: Fault) -> None:
        self.tell(fault.kind, fault.text, fault.lasts_s)
        self.active.append((self._now() + fault.lasts_s, fault))

    def _let_pass(self, until_s: float, meter: Meter) -> None:
        """Faults end when their time has come."""
        while True:
            self.active.sort(key=lambda pair: pair[0])
            due_s = min([until_s, *(at for at, _ in self.active)])
            if due_s > self._now():
                self.cluster.watch(min(1.0, due_s - self._now()))
                done = f"{len(self.log)} faults, {len(self.active)} now, {self.cluster.views} views"
                meter.show(int(self._now()), done)
            elif self.active and self.active[0][0] <= due_s:
                self.active.pop(0)[1].end()
            else:
                return

    def _calm(self) -> None:
        self.tell("calm", "all faults end")
        self._end_all()
        self._come_together()

    def _come_together(self) -> None:
        began = time.monotonic()
        view = self.cluster.wait_for_view(self.cluster.hosts, patience_s=SETTLE_PATIENCE_S)
        self.tell("together", f"view {view.id} after {time.monotonic() - began:.1f} s")

    def _end_all(self) -> None:
        for _, fault in self.active:
            fault.end()
        self.active.clear()

    def _now(self) -> float:
        return time.monotonic() - self.began

    def tell(self, kind: str, text: str, lasts_s: float = 0.0) -> None:
        happened = Happened(round(self._now(), 3), kind, text, round(lasts_s, 3))
        self.log.append(happened)
        if self.console is not None:
            lasting = f"  for {lasts_s:.1f} s" if lasts_s else ""
            line = Text.assemble(
                (f"{happened.at_s:7.1f} s  ", "dim"), (f"{kind:<17}", "bold red" if lasts_s else "bold"), text
            )
            self.console.print(line.append(lasting, "dim"), soft_wrap=True)


@dataclass
class Result:
    seed: int
    world: dict[str, Any]
    folder: Path
    log: list[Happened] = field(default_factory=list)
    verdicts: list[Verdict] = field(default_factory=list)
    error: str | None = None
    delivered: int = 0
    keep: bool = False  # the traces of a VALID run, too

    @property
    def is_kept(self) -> bool:
        return self.keep or not self.is_valid

    @property
    def is_valid(self) -> bool:
        return self.error is None and combined(self.verdicts).outcome is Outcome.VALID

    def document(self) -> dict[str, Any]:
        return {
            "seed": self.seed,
            "valid": self.is_valid,
            "world": self.world,
            "error": self.error,
            "verdict": verdict_document(combined(self.verdicts)),
            "verdicts": verdict_documents(self.verdicts),
            "delivered": self.delivered,
            "log": [vars(happened) for happened in self.log],
            "folder": str(self.folder) if self.is_kept else None,
        }


def world_from(rng: Random, switch: bool) -> dict[str, Any]:
    """What the cluster is like, apart from faults."""
    return {
        "network": "switch" if switch else "bridge",
        "transport": rng.choice(("multicast", "multicast", "multicast", "unicast")),
        "segmentation": rng.choice((True, False)),
        "timeouts": rng.choice(("quick", "quick", "usual")),
        "accelerated": rng.choice((True, False)),
    }


def topics_from(rng: Random, nodes: int) -> dict[str, list[int]]:
    """Draw who wants what, for an engine whose messages go to those alone."""
    return {
        f"t{number}": sorted(rng.sample(range(1, nodes + 1), rng.randint(2, max(2, nodes - 1))))
        for number in range(TOPICS)
    }


def chaos(
    seed: int,
    seconds: float,
    nodes: int,
    switch: bool,
    folder: Path,
    console: Console | None,
    engine: str = DEFAULT,
    topology: str | None = None,
) -> Result:
    """`nodes`: of one ring; several have those of their topology, which is drawn unless it is given."""
    rng = Random(seed)
    world = world_from(rng, switch)
    segments: Sequence[Collection[int]] = ()
    entry = entry_of(engine)
    if entry.attachments_max > 1:
        known = PLACES if entry.has_sites else TOPOLOGIES
        world["topology"] = topology if topology in known else rng.choice(sorted(known))
        segments = known[world["topology"]]
        nodes = max(map(max, segments))
        segments = [*segments, range(1, nodes + 1)] if entry.has_sites else segments
    topics = topics_from(rng, nodes) if entry.has_links and not entry.has_sites else {}
    result = Result(seed, world, folder)
    ring = {**(QUICK if world["timeouts"] == "quick" else {}), "accelerated": world["accelerated"]}
    if console is not None:
        console.print(f"seed {seed}, {nodes} nodes, " + ", ".join(f"{key} {value}" for key, value in world.items()))
    with ExitStack() as stack:
        hosts = stack.enter_context(Hosts(nodes, switch=switch, seed=seed, segments=segments))
        hosts.segmentation(False)
        cluster = stack.enter_context(
            LiveCluster(
                hosts,
                folder,
                ring=ring,
                engine=engine,
                transport=world["transport"],
                segmentation=world["segmentation"],
                inbox_size_max=INBOX_SIZE,
                topics=topics,
            )
        )
        run = Chaos(cluster, rng, seconds, console)
        try:
            run.run()
            result.delivered = sum(report["delivered"] for report in cluster.reports.values())
        except Impatient as error:
            result.error = str(error)
        result.log = run.log
    cluster.verdict()
    result.verdicts = cluster.verdicts
    return result


def draw(console: Console, result: Result) -> None:
    console.print(verdict_table(result.verdicts))
    draw_witnesses(console, result.verdicts)
    if result.error is not None:
        console.print(Text(f"{result.error}\n", style="bold red"), soft_wrap=True)
    verdict = combined(result.verdicts)
    outcome = Outcome.INVALID if result.error is not None else verdict.outcome
    facts = [f"{len(result.log)} events", f"{result.delivered:,} deliveries by those who live at the end"]
    sentence = "it got stuck" if result.error is not None else verdict.sentence
    console.print(closing_line(outcome, sentence, facts), soft_wrap=True)
    if result.is_kept:
        console.print(f"traces   ordercast check {result.folder / 'traces'}", soft_wrap=True)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m rig.chaos", description=__doc__.partition("\n")[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--nodes", type=int, default=5)
    parser.add_argument("--engine", choices=LIVE, default=DEFAULT, help="of the nodes; gateways have several rings")
    parser.add_argument(
        "--topology", choices=sorted({**TOPOLOGIES, **PLACES}), help="of rings or sites; otherwise the seed draws one"
    )
    parser.add_argument("--bridge", action="store_true", help="the kernel's bridge instead of the switch program")
    parser.add_argument("--keep", action="store_true", help="keep the traces of a VALID run, too")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    options = parser.parse_args()
    switch = not options.bridge and why_not(switch=True) is None
    problem = why_not(switch)
    if problem is not None:
        sys.stderr.write(f"chaos needs hosts of its own, and {problem}\n")
        return 2
    folder = Path(tempfile.mkdtemp(prefix=f"ordercast-chaos-{options.seed}-"))
    console = output()
    told = None if options.json else console
    result = chaos(options.seed, options.seconds, options.nodes, switch, folder, told, options.engine, options.topology)
    result.keep = options.keep
    if options.json:
        write_json(result.document())
    else:
        draw(console, result)
    if not result.is_kept:
        shutil.rmtree(folder)
    return 0 if result.is_valid else 1


if __name__ == "__main__":
    sys.exit(main())
