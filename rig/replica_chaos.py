"""Chaos with replicas: daemons and replicas on hosts of their own are killed, stopped and cut off, and all is judged.

    python -m rig.replica_chaos --seeds 1..5 --seconds 60

Every host has a daemon, and a program with replicas of a dictionary, a counter and a lock, whose users write and read
all the time. The seed decides what happens and in which order. Never are so many killed that a majority has forgotten
the state: what is lost then is lost, and says nothing. At the end all replicas must be equal, and judges read what was
called, confirmed, refused, read and applied; the daemons' traces are judged, too. All is kept when a verdict is not
VALID.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
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
from ordercast.cli.quantities import seeds_from
from ordercast.cli.terminal import Meter, output, write_json
from ordercast.model.errors import UsageError
from ordercast.trace.evidence_folder import history_in
from ordercast.trace.replica_records import Applied, Called, ReplicaStarted, Returned
from ordercast.trace.replica_rows import REPLICAS
from rig.chaos import Happened
from rig.cluster import Impatient
from rig.faults import Fault, Faults, names
from rig.hosts import Host, Hosts, why_not
from rig.replica_cluster import ReplicaCluster
from rig.replica_worker import KINDS

GAP_S = 0.3  # between the beginnings of two faults, in the mean
BEGIN_PATIENCE_S = 60.0
FINISH_PATIENCE_S = 120.0


class ReplicaFaults(Faults):
    """Network faults as ever; processes are those of replicas and daemons."""

    def __init__(self, cluster: ReplicaCluster, rng: Random) -> None:
        super().__init__(cluster, rng)
        self._replicated = cluster
        self.kills = {"replica": 0, "daemon": 0}
        network = [self.partition, self.one_way_cut, self.loss]
        killing = [self.kill_replica] * 9 + [self.kill_daemon] * 3 + [self.kill_host] * 2
        self._catalogue = [*network, *killing, self.stop_replica, self.stop_daemon]

    def kill_replica(self) -> Fault:
        victim = self._victim()
        if victim is None:
            return Fault("spared", "too many have forgotten the state already")
        self._kill_replica(victim)
        self._replicated.start_replicas([victim])
        return Fault("kill -9 replica", names([victim]))

    def kill_daemon(self) -> Fault:
        """Its replicas live on, and find it again."""
        victim = self._victim()
        if victim is None:
            return Fault("spared", "too many have forgotten the state already")
        self._trouble([victim])
        self._kill_daemon(victim)
        return Fault("kill -9 daemon", names([victim]), self._some(0.0, 1.5), lambda: self._bring_back(victim))

    def kill_host(self) -> Fault:
        """Its daemon and its replicas at once."""
        victim = self._victim()
        if victim is None:
            return Fault("spared", "too many have forgotten the state already")
        self._trouble([victim])
        self._kill_replica(victim)
        self._kill_daemon(victim)

        def back() -> None:
            self._bring_back(victim)
            self._replicated.start_replicas([victim])

        return Fault("kill -9 both", names([victim]), self._some(0.0, 1.5), back)

    def stop_replica(self) -> Fault:
        victims = self._trouble(self._untroubled()[:1])
        for host in victims:
            self._replicated.pause_replica(host, True)

        def go_on() -> None:
            for host in victims:
                self._replicated.pause_replica(host, False)
            self._in_trouble.difference_update(victims)

        return Fault("SIGSTOP replica", names(victims), self._some(0.1, 3.0), go_on)

    def stop_daemon(self) -> Fault:
        return self.stop()

    def _victim(self) -> Host | None:
        """One whom the others can spare: most remember the state without it."""
        forgetful = self._replicated.forgetful()
        free = [host for host in self._untroubled_all() if host not in forgetful]
        if 2 * (len(forgetful) + 1) >= len(self._hosts) or not free:
            return None
        return self._rng.choice(free)

    def _untroubled_all(self) -> list[Host]:
        return [host for host in self._hosts if host not in self._in_trouble]

    def _kill_replica(self, victim: Host) -> None:
        self.kills["replica"] += 1
        self._replicated.kill_replica(victim)

    def _kill_daemon(self, victim: Host) -> None:
        self.kills["daemon"] += 1
        self._replicated.daemon_is_going(victim)
        self._cluster.kill(victim)

    def _bring_back(self, victim: Host) -> None:
        self._cluster.start(victim, forget=self._rng.random() < 0.5)  # a daemon may have no state folder at all
        self._in_trouble.discard(victim)


@dataclass
class ReplicaChaos:
    cluster: ReplicaCluster
    rng: Random
    seconds: float
    console: Console | None  # None: silent
    log: list[Happened] = field(default_factory=list)
    active: list[tuple[float, Fault]] = field(default_factory=list)  # when it is over
    began: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        self.faults = ReplicaFaults(self.cluster, self.rng)

    def run(self) -> None:
        self.cluster.start_all()
        self.cluster.start_replicas(self.cluster.hosts)
        self.cluster.wait_until_all_remember(BEGIN_PATIENCE_S)
        self.tell("started", "all replicas have the state")
        self.began = time.monotonic()
        with Meter("chaos", int(self.seconds), shown_after_s=0) as meter:
            next_s = 0.0
            while next_s < self.seconds:
                next_s += self.rng.expovariate(1 / GAP_S)
                self._let_pass(min(next_s, self.seconds), meter)
                if next_s < self.seconds:
                    self._begin(self.faults.draw())
        self.tell("settling", "no more faults")
        for _, fault in self.active:
            fault.end()
        self.active.clear()
        self.cluster.finish(FINISH_PATIENCE_S)
        self.tell("finished", "all replicas were equal")

    def _begin(self, fault: Fault) -> None:
        self.tell(fault.kind, fault.text, fault.lasts_s)
        if fault.lasts_s:
            self.active.append((self._now() + fault.lasts_s, fault))
        else:
            fault.end()

    def _let_pass(self, until_s: float, meter: Meter) -> None:
        """Faults end when their time has come."""
        while True:
            self.active.sort(key=lambda pair: pair[0])
            due_s = min([until_s, *(at for at, _ in self.active)])
            if due_s > self._now():
                self.cluster.watch(min(1.0, due_s - self._now()))
                meter.show(int(min(self._now(), self.seconds)), f"{self._kills()} kills, {len(self.active)} faults now")
            elif self.active and self.active[0][0] <= due_s:
                self.active.pop(0)[1].end()
            else:
                return

    def _kills(self) -> int:
        return sum(self.faults.kills.values())

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
    seconds: float
    nodes: int
    folder: Path
    log: list[Happened] = field(default_factory=list)
    kills: dict[str, int] = field(default_factory=dict)
    verdicts: list[Verdict] = field(default_factory=list)  # on daemons and replicas
    counts: dict[str, dict[str, int]] = field(default_factory=dict)  # by structure
    error: str | None = None

    @property
    def verdict(self) -> Verdict:
        return combined(self.verdicts)

    @property
    def is_valid(self) -> bool:
        return self.error is None and self.verdict.outcome is Outcome.VALID

    @property
    def replay(self) -> str:
        return f"python -m rig.replica_chaos --seeds {self.seed} --seconds {self.seconds:g} --nodes {self.nodes}"

    def document(self) -> dict[str, Any]:
        return {
            "seed": self.seed,
            "valid": self.is_valid,
            "replay": self.replay,
            "error": self.error,
            "verdict": verdict_document(self.verdict),
            "verdicts": verdict_documents(self.verdicts),
            "counts": self.counts,
            "kills": self.kills,
            "log": [vars(happened) for happened in self.log],
            "folder": None if self.is_valid else str(self.folder),
        }


def replica_chaos(seed: int, seconds: float, nodes: int, folder: Path, console: Console | None) -> Result:
    result = Result(seed, seconds, nodes, folder)
    with ExitStack() as stack:
        hosts = stack.enter_context(Hosts(nodes, seed=seed))
        hosts.segmentation(False)
        cluster = stack.enter_context(ReplicaCluster(hosts, folder, seed=seed))
        run = ReplicaChaos(cluster, Random(seed), seconds, console)
        try:
            run.run()
        except Impatient as error:
            result.error = str(error)
        result.log, result.kills = run.log, run.faults.kills
    cluster.verdict()
    result.verdicts, result.counts = cluster.verdicts, counts_in(cluster.folder)
    return result


def counts_in(traces: Path) -> dict[str, dict[str, int]]:
    """How much there was to judge, by structure."""
    kinds = {Called: "called", Returned: "confirmed", ReplicaStarted: "lives"}
    counts = {kind: dict.fromkeys(("lives", "called", "confirmed", "applied"), 0) for kind in KINDS}
    groups: dict[int, str] = {}
    for event in history_in(traces, REPLICAS):
        if isinstance(event, ReplicaStarted) and event.group is not None:
            groups[event.life] = event.group
        if isinstance(event, Called | Returned | ReplicaStarted):
            counts[groups[event.life]][kinds[type(event)]] += 1
        elif isinstance(event, Applied):
            found = counts[groups[event.life]]
            found["applied"] = max(found["applied"], event.position)
    return counts


def draw(console: Console, result: Result) -> None:
    for kind, counts in result.counts.items():
        told = ", ".join(f"{number:,} {what}" for what, number in counts.items())
        console.print(Text(f"{kind}: {told}", style="bold"))
    console.print(verdict_table(result.verdicts))
    draw_witnesses(console, result.verdicts)
    if result.error is not None:
        console.print(Text(f"{result.error}\n", style="bold red"), soft_wrap=True)
    outcome = Outcome.INVALID if result.error is not None else result.verdict.outcome
    facts = [f"seed {result.seed}", *(f"{number} kills of a {what}" for what, number in result.kills.items())]
    sentence = "it got stuck" if result.error is not None else result.verdict.sentence
    console.print(closing_line(outcome, sentence, facts), soft_wrap=True)
    console.print(f"again    {result.replay}", soft_wrap=True)
    if not result.is_valid:
        console.print(f"kept     {result.folder}", soft_wrap=True)


def summary(results: list[Result]) -> Text:
    """A line for each seed, when there were several."""
    lines = Text("\n")
    for result in results:
        outcome = "VALID" if result.is_valid else "FAILED"
        lines.append(f"{outcome:<7}", "green" if result.is_valid else "bold red")
        told = ", ".join(f"{number} kills of a {what}" for what, number in result.kills.items())
        confirmed = sum(counts["confirmed"] for counts in result.counts.values())
        lines.append(f" {told}, {confirmed:,} operations confirmed   {result.replay}\n")
    return lines.append(f"{sum(sum(result.kills.values()) for result in results)} kills in all\n")


def one(seed: int, options: argparse.Namespace, console: Console) -> Result:
    folder = Path(tempfile.mkdtemp(prefix=f"ordercast-chaos-{seed}-"))
    result = replica_chaos(seed, options.seconds, options.nodes, folder, None if options.json else console)
    if not options.json:
        draw(console, result)
    if result.is_valid and not options.keep:
        shutil.rmtree(folder)
    return result


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m rig.replica_chaos", description=__doc__.partition("\n")[0])
    parser.add_argument("--seeds", "--seed", default="1", metavar="A..B", help="one run for each (default: 1)")
    parser.add_argument("--seconds", type=float, default=60.0, help="of faults in each run (default: 60)")
    parser.add_argument("--nodes", type=int, default=5, help="hosts, at least three (default: 5)")
    parser.add_argument("--keep", action="store_true", help="keep the records of a VALID run, too")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    options = parser.parse_args()
    try:
        seeds = seeds_from(options.seeds)
    except UsageError as error:
        parser.error(str(error))
    problem = why_not() or (None if options.nodes >= 3 else "three hosts are the least that can lose one")
    if problem is not None:
        sys.stderr.write(f"chaos needs hosts of its own, and {problem}\n")
        return 2
    console = output()
    results = [one(seed, options, console) for seed in seeds]
    if options.json:
        write_json({"valid": all(result.is_valid for result in results), "runs": [each.document() for each in results]})
    elif len(results) > 1:
        console.print(summary(results), soft_wrap=True)
    return 0 if all(result.is_valid for result in results) else 1


if __name__ == "__main__":
    sys.exit(main())
