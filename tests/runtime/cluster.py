"""Daemons as processes of their own on loopback, described by one file, with their logs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Any

from rig.nursery import forked
from rig.programs import kill

from ordercast.cli.daemons import ordercast_command
from ordercast.cli.status import fetch
from ordercast.model.errors import UsageError
from tests.ports import free_ports

NAMES = ("alpha", "beta", "gamma")
PATIENCE_S = 150.0
QUICK = 'token_loss = "300ms"\nrest = "40ms"\npause = "100ms"\n'
CLIENTS = '[clients]\nfolder = "."\n'


def forked_command(*arguments: str, imports: Sequence[str], log: IO[bytes]) -> subprocess.Popen[bytes]:
    """Start the command `ordercast` without waiting for its imports; all that it says goes to the log."""
    fd = log.fileno()
    return forked("ordercast.cli.main", *arguments, imports=imports, stdout=fd, stderr=fd)


class Cluster:
    """Processes of `ordercast daemon`, one file, and their logs."""

    def __init__(self, folder: Path, transport: str, more: str = "", *, is_fresh: bool = False) -> None:
        """`more`: further lines of the file. `is_fresh`: daemons are started as users start them."""
        self.is_fresh = is_fresh
        self.folder = folder
        self.file = folder / "cluster.toml"
        port = free_ports()
        self.status_ports = {name: port + 100 + number for number, name in enumerate(NAMES)}
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        nodes = "".join(
            f'[nodes.{name}]\nid = {number}\naddress = "127.0.0.{number}"\nstatus_port = {self.status_ports[name]}\n'
            for number, name in enumerate(NAMES, 1)
        )
        network = f'[network]\ntransport = "{transport}"\nport = {port}\n'
        self.file.write_text(
            f'cluster = "test"\n{network}[ring]\n{QUICK}[state]\nfolder = "state"\n{CLIENTS}{more}{nodes}',
            encoding="utf-8",
        )

    def start(self, name: str, *, open_files: int | None = None, **environment: str) -> None:
        """`open_files`: the limit of them, soft and hard. Where nothing of the kind is asked for, and others have
        shown that the command starts (`is_fresh`), the daemon is forked: see `rig/nursery.py`."""
        arguments = ["daemon", "--config", str(self.file), "--name", name, "--log", "json"]
        limited = [] if open_files is None else ["sh", "-c", f'ulimit -n {open_files}; exec "$@"', "sh"]
        with self.log(name).open("ab") as log:
            if self.is_fresh or limited or environment:
                self.processes[name] = subprocess.Popen(
                    [*limited, *ordercast_command(*arguments)], stderr=log, env={**os.environ, **environment}
                )
            else:
                self.processes[name] = forked_command(*arguments, imports=["ordercast.daemon.run"], log=log)

    def unix(self, name: str) -> str:
        """Where clients find it."""
        return f"unix://{self.folder}/{name}.sock"

    def stop(self, name: str, number: signal.Signals) -> int:
        process = self.processes.pop(name)
        process.send_signal(number)
        return process.wait(PATIENCE_S)

    def log(self, name: str) -> Path:
        return self.folder / f"{name}.log"

    def lines(self, name: str) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.log(name).read_text(encoding="utf-8").splitlines()]

    def status_when(self, name: str, is_so: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """The status, as soon as it is as wanted."""
        end = time.monotonic() + PATIENCE_S
        document: dict[str, Any] = {}
        while time.monotonic() < end:
            try:
                document = fetch("127.0.0.1", self.status_ports[name])
                if is_so(document):
                    return document
            except UsageError:
                assert self.processes[name].poll() is None, self.log(name).read_text(encoding="utf-8")
            time.sleep(0.05)
        raise AssertionError(f"{name} is not as wanted: {document.get('ring')}")

    def has_members(self, name: str, *members: str) -> dict[str, Any]:
        return self.status_when(
            name, lambda status: [member["name"] for member in status["ring"]["members"]] == list(members)
        )

    def end(self) -> None:
        kill(self.processes.values())
