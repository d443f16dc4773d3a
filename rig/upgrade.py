"""A cluster that works is brought from one version to another, host by host.

    python -m rig.upgrade --from COMMIT

COMMIT is installed in an environment of its own. Three daemons are of that version, and users at each, who send and add
without pause. One daemon after the other is stopped in order and started again from this checkout; then the users, one
host after the other. What was confirmed must have been read exactly once, in one order, by everybody who was connected;
what was unsure at most once; and the counter must be what was added.
"""

from __future__ import annotations

import argparse
import json
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

from ordercast.cli.status import Unanswered, fetch
from rig.programs import ROOT, Program, heard, kill, say, tell, worker

NAMES = ("alpha", "beta", "gamma")
PATIENCE_S = 60.0
UNDER_LOAD_S = 2.0  # between two steps
OLD, NEW = "old", "new"


class Upgrade:
    def __init__(self, folder: Path, pythons: dict[str, str], port: int) -> None:
        """`pythons`: the interpreters that have the old and the new version."""
        self._folder, self._pythons, self._port = folder, pythons, port
        self._keyed = [version for version, python in pythons.items() if knows_keys(python)]
        self._daemons: dict[str, subprocess.Popen[bytes]] = {}
        self._users: dict[str, Program] = {}
        self._lives: Counter[str] = Counter()  # of the users of each host
        self.told: list[dict[str, Any]] = []
        self.added = 0

    def run(self, *, only_daemons: bool) -> list[int]:
        """Do all of it. Return the counter as the last users see it."""
        try:
            for name in NAMES:
                self._start(name, OLD)
            self._wait_for_all()
            for name in NAMES:
                self._use(name, OLD)
            for name in NAMES:
                self._expect(name, "ready")
            for name in NAMES:
                time.sleep(UNDER_LOAD_S)
                begun = time.monotonic()
                self._daemons[name].send_signal(signal.SIGTERM)
                status = self._daemons[name].wait(PATIENCE_S)
                self._start(name, NEW)
                self._wait_for_all()
                say(f"{name}: left (exit status {status}), came back; all together after {since(begun)}")
            for name in () if only_daemons else NAMES:
                time.sleep(UNDER_LOAD_S)
                self._end(name)
                self._use(name, NEW)
                self._expect(name, "ready")
                say(f"{name}: its users are of the new version, too")
            time.sleep(UNDER_LOAD_S)
            return [each["value"] for each in self._end(*NAMES)]
        finally:
            kill([*self._users.values(), *self._daemons.values()])

    def _start(self, name: str, version: str) -> None:
        file = self._folder / f"{version}.toml"
        file.write_text(self._file(knows_keys=version in self._keyed), encoding="utf-8")
        command = str(Path(self._pythons[version]).with_name("ordercast"))
        with (self._folder / f"{name}.log").open("ab") as log:
            self._daemons[name] = subprocess.Popen(
                [command, "daemon", "--config", str(file), "--name", name], stderr=log
            )

    def _file(self, *, knows_keys: bool) -> str:
        nodes = "".join(
            f'[nodes.{name}]\nid = {number}\naddress = "127.0.0.{number}"\nstatus_port = {self._port + 10 + number}\n'
            for number, name in enumerate(NAMES, 1)
        )
        clear = "[security]\ninsecure = true\n" if knows_keys else ""
        network = f'[network]\ntransport = "unicast"\nport = {self._port}\n'
        state = f'[state]\nfolder = "{self._folder}/state"\n[clients]\nfolder = "{self._folder}"\n'
        return f'cluster = "upgrade {self._port}"\n{network}{state}{clear}{nodes}'

    def _wait_for_all(self) -> None:
        until = time.monotonic() + PATIENCE_S
        while time.monotonic() < until:
            if all(self._sees_all(number) for number in range(1, len(NAMES) + 1)):
                return
            time.sleep(0.05)
        raise SystemExit(f"not all daemons were in one view within {PATIENCE_S:.0f} s: see the logs in {self._folder}")

    def _sees_all(self, number: int) -> bool:
        try:
            document = fetch("127.0.0.1", self._port + 10 + number)
        except Unanswered:
            return False
        return len(document["configuration"]["members"]) == len(NAMES)

    def _use(self, name: str, version: str) -> None:
        number = NAMES.index(name)
        addresses = [f"unix://{self._folder}/{other}.sock" for other in (*NAMES[number:], *NAMES[:number])]
        task = json.dumps([number + 10 * self._lives[name], addresses, list(NAMES)])
        self._lives[name] += 1
        self._users[name] = worker([self._pythons[version], str(ROOT / "rig" / "upgrade_worker.py"), task])

    def _expect(self, name: str, event: str) -> dict[str, Any]:
        said = heard(self._users[name])
        if said["event"] != event:
            raise SystemExit(f"the users of {name} were to say {event!r}, and said {said['event']!r}")
        return said

    def _end(self, *names: str) -> list[dict[str, Any]]:
        """Make all of them stop sending, then return what each has to tell."""
        for name in names:
            tell(self._users[name], "stop")
        for name in names:
            self.added += self._expect(name, "stopped")["added"]
        for name in names:
            tell(self._users[name], "say")
        told = [self._expect(name, "told") for name in names]
        for name in names:
            self._users.pop(name).wait(PATIENCE_S)
        self.told += told
        return told


def installed(commit: str, folder: Path) -> str:
    """Return an interpreter that has the version in a commit."""
    tree, home = folder / "tree", folder / "old"
    subprocess.run(["git", "worktree", "add", "--quiet", "--detach", str(tree), commit], cwd=ROOT, check=True)
    try:
        subprocess.run([sys.executable, "-m", "venv", str(home)], check=True)
        subprocess.run([str(home / "bin" / "pip"), "install", "--quiet", "--quiet", str(tree)], check=True)
    finally:
        subprocess.run(["git", "worktree", "remove", "--force", str(tree)], cwd=ROOT, check=True)
    return str(home / "bin" / "python")


def knows_keys(python: str) -> bool:
    """Tell whether its version seals packets unless the file says otherwise."""
    return subprocess.run([python, "-c", "import ordercast.sealing"], stderr=subprocess.DEVNULL).returncode == 0


def problems(told: list[dict[str, Any]]) -> list[str]:
    """What is wrong with what was sent and read, in words."""
    found: list[str] = []
    order = in_one_order([read for each in told for read in stretches(each["read"])])
    if order is None:
        return ["two readers read in different orders, or one of them lacks what another read between two messages"]
    times = Counter(order.values())
    sure = {text for each in told for text in each["sure"]}
    unsure = {text for each in told for text in each["unsure"]}
    found += [f"{text} was confirmed, and was read {times[text]} times" for text in sure if times[text] != 1]
    found += [f"{text} was unsure, and was read {times[text]} times" for text in unsure if times[text] > 1]
    found += [f"{text} was never sent" for text in times.keys() - sure - unsure]
    return found


def stretches(read: list[list[str] | None]) -> list[list[tuple[str, str]]]:
    """Return what one reader read, cut where there may be gaps."""
    found: list[list[tuple[str, str]]] = [[]]
    for each in read:
        if each is None:
            found.append([])
        else:
            found[-1].append((each[0], each[1]))
    return [stretch for stretch in found if stretch]


def in_one_order(stretches: list[list[tuple[str, str]]]) -> dict[str, str] | None:
    """Return texts by position, in the order that all stretches have; None when there is no such order, or when one of
    them leaves out what another has between two of its messages."""
    after: dict[str, str] = {}  # the position that comes next, by position
    texts: dict[str, str] = {}
    for stretch in stretches:
        for position, text in stretch:
            if texts.setdefault(position, text) != text:
                return None
        for (position, _), (following, _) in pairwise(stretch):
            if after.setdefault(position, following) != following:
                return None
    return texts if len(set(after.values())) == len(after) else None


def since(begun: float) -> str:
    return f"{time.monotonic() - begun:.1f} s"


def main() -> int:
    parser = argparse.ArgumentParser(
        description="Upgrade a cluster that works, host by host, and look for every message."
    )
    parser.add_argument("--from", dest="commit", required=True, help="the version to begin with")
    parser.add_argument("--daemons", action="store_true", help="leave the users as they are: see the changelog")
    parser.add_argument("--port", type=int, default=47330)
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="upgrade-"))
    upgrade = Upgrade(folder, {OLD: installed(options.commit, folder), NEW: sys.executable}, options.port)
    values = upgrade.run(only_daemons=options.daemons)
    found = problems(upgrade.told)
    found += [f"{upgrade.added} were added, and a counter is {value}" for value in values if value != upgrade.added]
    for text in found[:10]:
        say(text)
    sure, unsure = (sum(len(each[kind]) for each in upgrade.told) for kind in ("sure", "unsure"))
    verdict = "INVALID" if found else "VALID"
    say(f"{verdict}: {sure:,} messages confirmed, {unsure:,} unsure, {upgrade.added:,} added to the counter")
    if found:
        say(f"kept {folder}")
    else:
        shutil.rmtree(folder)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
