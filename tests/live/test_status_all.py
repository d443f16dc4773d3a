"""`ordercast status --all` while one host is cut off, one daemon stopped and one dead: what it says of each."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from rig import Hosts, why_not
from rig.programs import Program

pytestmark = pytest.mark.skipif(why_not() is not None, reason=why_not() or "")

NAMES = ("alpha", "beta", "gamma", "delta", "epsilon")
COMMAND = [sys.executable, "-m", "ordercast"]
FILE = """
cluster = "all of them"
[security]
insecure = true
[status]
address = "0.0.0.0"
[ring]
token_loss = "1500ms"
"""


class Daemons:
    def __init__(self, hosts: Hosts, folder: Path) -> None:
        self.hosts = hosts
        nodes = [f'[nodes.{name}]\nid = {n}\naddress = "10.77.0.{n}"\n' for n, name in enumerate(NAMES, 1)]
        self._file = folder / "cluster.toml"
        self._folder = folder
        self._file.write_text(FILE + "".join(nodes), encoding="utf-8")
        self.programs: dict[str, Program] = {}
        for name in NAMES:
            self.start(name)

    def start(self, name: str) -> None:
        environment = {"ORDERCAST_FOLDER": str(self._folder / name), "PYTHONPATH": ":".join(sys.path)}
        words = [*COMMAND, "daemon", "--config", str(self._file), "--name", name]
        host = self.hosts[NAMES.index(name)]
        self.programs[name] = host.run(words, env=environment, stderr=subprocess.DEVNULL)

    def status(self, *options: str) -> str:
        words = [*COMMAND, "status", "--all", *options]
        environment = {"PYTHONPATH": ":".join(sys.path), "COLUMNS": "200"}
        told = self.hosts[0].run(words, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        return str(told.communicate()[0], "utf-8")

    def rows(self) -> dict[str, dict[str, Any]]:
        text = self.status("--json")
        return {row["name"]: row for row in json.loads(text)["nodes"]} if text else {}

    def until(self, holds: Callable[[dict[str, dict[str, Any]]], bool]) -> dict[str, dict[str, Any]]:
        """What is said once this holds; the test's time limit bounds the wait."""
        while not (rows := self.rows()) or not holds(rows):
            pass
        return rows

    def together(self) -> dict[str, dict[str, Any]]:
        return self.until(lambda rows: all(row["members"] == len(NAMES) for row in rows.values()))


@contextmanager
def running(folder: Path) -> Iterator[Daemons]:
    with Hosts(len(NAMES)) as hosts:
        yield Daemons(hosts, folder)


def test_each_is_told_as_it_is_and_whoever_was_paused_from_who_was_started_again(tmp_path: Path) -> None:
    with running(tmp_path) as daemons:
        rows = daemons.together()
        assert {row["state"] for row in rows.values()} == {"operational"}
        hosts, programs = daemons.hosts, daemons.programs
        hosts.cut(hosts[1:2], [hosts[0], *hosts[2:]])
        programs["gamma"].send_signal(signal.SIGSTOP)
        programs["delta"].kill()
        programs["delta"].wait()
        rows = daemons.until(lambda rows: rows["epsilon"]["members"] == rows["alpha"]["members"] == 2)
        silent = {name: row["state"] for name, row in rows.items() if not row["is_heard"]}
        assert silent == {"beta": "not reached", "gamma": "hangs", "delta": "ended"}
        for name in silent:
            assert rows[name]["away_ns"] > 0 and "last in view" in rows[name]["last_words"], rows[name]
        table = daemons.status()
        assert "cluster all of them: 2 of 5 answer" in table

        hosts.heal()
        programs["gamma"].send_signal(signal.SIGCONT)
        daemons.start("delta")
        rows = daemons.together()
        assert "did not run for up to" in rows["gamma"]["last_words"]
        reasons = " ".join(view["reason"] for view in _status(daemons)["views"])
        assert "gamma is back after" in reasons and "beta is back after" in reasons
        assert "it had not crashed, it was paused or cut off" in reasons
        assert "delta is back in a new life after" in reasons


def _status(daemons: Daemons) -> Any:
    words = [*COMMAND, "status", "--json"]
    told = daemons.hosts[0].run(words, env={"PYTHONPATH": ":".join(sys.path)}, stdout=subprocess.PIPE)
    return json.loads(told.communicate()[0])
