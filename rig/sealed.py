"""A loaded cluster on hosts of its own is sealed, changes its key again and again, and is clear at the end; or it is
flooded by somebody without the key. No view changes, and the traces are judged.

    python -m rig.sealed --rotations 5
    python -m rig.sealed --flood --seconds 10

Key files are given host by host, in an order drawn from the seed, while everybody sends. In one rotation a host is
away: the others wait for it, and it comes back with the new file. In another nobody waits: the host comes back with the
old file, stays outside, and is given the new one. Floods: 70,000 packets a second with a wrong head, then 10,000 with a
right one and a wrong tag.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from ordercast.checker import Outcome
from ordercast.cli.terminal import complain, output
from ordercast.daemon.key_file import (
    KeyFile,
    new_key_file,
    read_key_file,
    with_clear,
    with_new_key,
    with_used,
    without_key,
    write_key_file,
)
from ordercast.sealing.keys import KeyRing
from ordercast.wire.head import CLEAR
from rig.cluster import PATIENT, LiveCluster
from rig.hosts import Host, Hosts, why_not

COUNT = 4
MESSAGES = 200  # that everybody delivers between two steps
RATE = 2000  # messages of each host a second
FLOODS = (("wrong", 70_000), ("right", 10_000))
CLEAR_FILE = KeyFile(KeyRing((), CLEAR, CLEAR, accepts_clear=True), ())


@dataclass
class Rotations:
    cluster: LiveCluster
    folder: Path
    rng: Random
    tell: Callable[[str], None]
    file: KeyFile = CLEAR_FILE
    views: list[int] = field(default_factory=list)

    @property
    def hosts(self) -> list[Host]:
        return list(self.cluster.hosts)

    def path(self, host: Host) -> Path:
        return self.folder / f"key-{host.number}"

    def begin(self) -> None:
        for host in self.hosts:
            write_key_file(self.path(host), self.file)
            self.cluster.start(host, key=str(self.path(host)))
        self.cluster.wait_for_view(self.hosts)
        self.cluster.send(rate=RATE, sizes=(100, 1350))
        self.cluster.wait_for_more(MESSAGES)
        self.views = self._views()

    def _views(self) -> list[int]:
        return [len(self.cluster.lives[host].regular_views()) for host in self.hosts]

    def give(self, file: KeyFile, hosts: Sequence[Host], *, at_once: bool = False) -> None:
        """Copy a file to hosts and have it read there, one after the other, while messages go on."""
        self.file = file
        for host in self.rng.sample(list(hosts), len(hosts)):
            write_key_file(self.path(host), file)
            self.cluster.ask(host, "rekey", at_once=at_once)
            self.cluster.wait_for_more(MESSAGES, list(hosts))

    def is_used(self, hosts: Sequence[Host]) -> None:
        wanted = self.file.ring.wanted
        for host in hosts:
            self.cluster.wait_for_report(host, lambda report: report["key"] == wanted, f"key {wanted} is used")

    def rotate(self, file: KeyFile) -> None:
        """All the steps of a change, with everybody there: no view changes."""
        before = self._views()
        self.give(file, self.hosts)
        self.is_used(self.hosts)
        self.give(with_used(file), self.hosts)
        self.give(without_key(self.file), self.hosts)
        assert self._views() == before, "a change of keys has changed a view"
        self.tell(f"key {self.file.ring.used or 'none: clear'} is used by all, and no view has changed")

    def rotate_and_await(self) -> None:
        """One is away, and is waited for."""
        away, *here = self.rng.sample(self.hosts, len(self.hosts))
        old = self.file.ring.used
        self.cluster.kill(away)
        self.cluster.wait_for_view(here)
        self.give(with_new_key(self.file), here)
        assert all(self.cluster.report(host)["key"] == old for host in here), "nobody waits for who is away"
        write_key_file(self.path(away), self.file)
        self._back(away)
        self.is_used(self.hosts)
        self.give(without_key(with_used(self.file)), self.hosts)
        self.tell(f"n{away.number} was away and was awaited: key {self.file.ring.used} is used by all")

    def rotate_at_once(self) -> None:
        """One is away, and is not waited for: it comes back with the old file, and is outside until it has the new."""
        away, *here = self.rng.sample(self.hosts, len(self.hosts))
        self.cluster.kill(away)
        self.cluster.wait_for_view(here)
        self.give(with_new_key(self.file), here, at_once=True)
        self.is_used(here)
        self.give(without_key(with_used(self.file)), here)
        before = [len(self.cluster.lives[host].regular_views()) for host in here]
        self.cluster.start(away, key=str(self.path(away)))
        self.cluster.wait_for_view([away])
        self.cluster.wait_for_report(here[0], lambda report: report["refused"]["unknown key"] > 0, "it is refused")
        assert before == [len(self.cluster.lives[host].regular_views()) for host in here], "a stranger changed a view"
        write_key_file(self.path(away), self.file)
        self.cluster.ask(away, "rekey", at_once=False)
        self.cluster.wait_for_view(self.hosts)
        self.cluster.send([away], rate=RATE, sizes=(100, 1350))
        self.cluster.wait_for_more(MESSAGES)
        self.tell(f"n{away.number} came back with the old key, and stayed outside until it had the new one")

    def _back(self, host: Host) -> None:
        self.cluster.start(host, key=str(self.path(host)))
        self.cluster.wait_for_view(self.hosts)
        self.cluster.send([host], rate=RATE, sizes=(100, 1350))
        self.cluster.wait_for_more(MESSAGES)


def rotations(count: int, seed: int, folder: Path, tell: Callable[[str], None]) -> str:
    """From clear to sealed, so many rotations, two with a host away, and back; return what the checkers say."""
    with Hosts(COUNT) as hosts, LiveCluster(hosts, folder, ring=PATIENT) as cluster:
        work = Rotations(cluster, folder, Random(seed), tell)
        work.begin()
        for _ in range(count + 1):  # the first is from clear to sealed
            work.rotate(with_new_key(work.file))
        work.rotate_and_await()
        work.rotate_at_once()
        work.rotate(with_clear(work.file))
        cluster.settle()
        verdict = cluster.verdict()
        return f"{verdict.outcome.value}: {verdict.sentence}"


@contextmanager
def flooding(
    host: Host, targets: Sequence[Host], head: str, rate: int, seconds: float
) -> Iterator[subprocess.Popen[bytes]]:
    """Somebody at this host floods the others."""
    argv = [sys.executable, "-m", "rig.flood", "--from", host.address(), "--head", head]
    argv += ["--rate", str(rate), "--seconds", str(seconds)]
    argv += [word for target in targets for word in ("--to", target.address())]
    process = host.run(argv, stdout=subprocess.PIPE, env=dict(os.environ))
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def floods(seconds: float, folder: Path, tell: Callable[[str], None]) -> str:
    """Floods on sealed hosts that send; return what the checkers say. AssertionError when a view changes."""
    with Hosts(COUNT) as hosts, LiveCluster(hosts, folder, ring={}) as cluster:
        *members, stranger = hosts
        new_key_file(folder / "key")
        assert read_key_file(folder / "key").ring.keys
        cluster.start(*members, key=str(folder / "key"))
        cluster.wait_for_view(members)
        cluster.send(members, rate=100, sizes=(100,))
        cluster.wait_for_more(MESSAGES, members)
        for head, rate in FLOODS:
            before = [len(cluster.lives[host].regular_views()) for host in members]
            heard = sum(cluster.report(host)["delivered"] for host in members)
            with flooding(stranger, members, head, rate, seconds) as process:
                sent = int(process.communicate(timeout=10 * seconds + 60)[0])
            after = [len(cluster.lives[host].regular_views()) for host in members]
            reports = [cluster.report(host) for host in members]
            refused = {why: sum(report["refused"][why] for report in reports) for why in reports[0]["refused"]}
            delivered = sum(report["delivered"] for report in reports) - heard
            tell(
                f"{sent / seconds:,.0f} packets/s with a {head} head for {seconds:g} s: {delivered:,} messages came "
                f"meanwhile, views {before} and {after}, refused so far: "
                + ", ".join(f"{count:,} {why}" for why, count in refused.items() if count)
            )
            assert before == after, "a flood has changed a view"
        cluster.settle()
        verdict = cluster.verdict()
        return f"{verdict.outcome.value}: {verdict.sentence}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--rotations", type=int, default=5)
    parser.add_argument("--flood", action="store_true")
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    if (reason := why_not()) is not None:
        complain(reason)
        return 2
    console = output()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if options.flood:
            outcome = floods(options.seconds, folder, console.print)
        else:
            outcome = rotations(options.rotations, options.seed, folder, console.print)
    console.print(outcome)
    return 0 if outcome.startswith(Outcome.VALID.value) else 1


if __name__ == "__main__":
    sys.exit(main())
