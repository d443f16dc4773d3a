"""Power cuts: all hosts of a replicated state with journals are killed at once, and come back in every order.

    python -m rig.power_cut --rounds 200

Three processes, each a node, a replica and its users. In every round all are killed with `kill -9` while commands are
underway, and started again in one of the six orders. In every other round the third comes only when the first two have
gone on without it, in the others at any moment. At the end all must be equal, and the judges of replicas read what was
called, confirmed and applied in all lives: nothing confirmed is lost, nothing is applied twice.
"""

from __future__ import annotations

import argparse
import json
import selectors
import shutil
import subprocess
import sys
import tempfile
import time
from itertools import permutations
from pathlib import Path
from random import Random

from ordercast.checker import Outcome, combined
from ordercast.checker.replicated import check_replicas
from ordercast.trace.cluster import append_cluster_event
from ordercast.trace.evidence_folder import history_in
from ordercast.trace.replica_records import Returned
from ordercast.trace.replica_rows import REPLICAS
from rig.power_worker import PowerTask
from rig.programs import say

HOSTS = 3
PATIENCE_S = 90.0
GAP_S = 0.3  # at most, between two that come back
RUN_S = (0.1, 0.8)  # until all are killed


class PowerHost:
    """One host, over its lives."""

    def __init__(self, number: int, folder: Path, cluster: str, port: int) -> None:
        self.number = number
        self._task = (cluster, port, str(folder))
        self._starts = 0
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self._starts += 1
        task = PowerTask(self.number, HOSTS, *self._task, self._starts)
        arguments = [sys.executable, "-m", "rig.power_worker", task.text()]
        self._process = subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()

    def bury(self) -> None:
        if self._process is not None:
            self._process.communicate()
            self._process = None

    def tell(self) -> None:
        assert self._process is not None and self._process.stdin is not None
        self._process.stdin.write(b"\n")
        self._process.stdin.flush()

    def hear(self, event: str) -> dict[str, object]:
        """What it says next, which must be this."""
        assert self._process is not None and self._process.stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            if not selector.select(PATIENCE_S):
                raise TimeoutError(f"n{self.number} has not said {event!r} within {PATIENCE_S:.0f} s")
        said: dict[str, object] = json.loads(self._process.stdout.readline() or b"{}")
        if said.get("event") != event:
            raise RuntimeError(f"n{self.number} was to say {event!r}, and said {said}")
        return said


def play(folder: Path, rounds: int, seed: int, port: int) -> int:
    """All rounds. Return how often the first two went on without the third."""
    rng, alone = Random(f"power cuts {seed}"), 0
    (folder / "records").mkdir(parents=True)
    hosts = [PowerHost(number, folder, f"power-{seed}-{port}", port) for number in range(1, HOSTS + 1)]
    orders = list(permutations(hosts))
    try:
        for number in range(rounds + 1):
            order = orders[number % len(orders)]
            is_alone = number > 0 and number % 2 == 1  # to begin for the first time all are needed
            alone += is_alone
            come_back(order, rng, is_alone=is_alone)
            if number < rounds:
                time.sleep(rng.uniform(*RUN_S))
                for host in hosts:
                    host.kill()
                for host in hosts:
                    host.bury()
        append_cluster_event(folder / "records", "healed", alive=[])
        for event in ("stopped", "known"):
            for host in hosts:
                host.tell()
            for host in hosts:
                host.hear(event)
        append_cluster_event(folder / "records", "settled")
        for host in hosts:
            host.tell()
        for host in hosts:
            host.bury()
    finally:
        for host in hosts:
            host.kill()
            host.bury()
    return alone


def come_back(order: tuple[PowerHost, ...], rng: Random, *, is_alone: bool) -> None:
    *most, last = order
    for host in most:
        host.start()
        time.sleep(rng.uniform(0, GAP_S))
    if is_alone:
        for host in most:
            host.hear("current")
    last.start()
    for host in order if not is_alone else (last,):
        host.hear("current")


def main() -> int:
    parser = argparse.ArgumentParser(description="Kill all replicas at once, again and again, and judge what is left.")
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--port", type=int, default=47130)
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="power-cut-"))
    begun = time.monotonic()
    alone = play(folder, options.rounds, options.seed, options.port)
    events = history_in(folder / "records", REPLICAS)
    verdicts = check_replicas(events)
    confirmed = sum(isinstance(event, Returned) for event in events)
    for verdict in verdicts:
        say(f"{verdict.outcome.name:10} {verdict.promise.value if verdict.promise else ''}: {verdict.sentence}")
        for witness in verdict.witnesses[:3]:
            say(f"           {witness}")
    say(
        f"{options.rounds} power cuts of {HOSTS} hosts, {alone} times two went on without the third; "
        f"{confirmed:,} commands confirmed; {time.monotonic() - begun:.0f} s"
    )
    is_valid = combined(verdicts).outcome is Outcome.VALID
    if is_valid:
        shutil.rmtree(folder)
    else:
        say(f"kept {folder}")
    return 0 if is_valid else 1


if __name__ == "__main__":
    sys.exit(main())
