"""Daemons as processes of their own on loopback: they form a ring, notice a kill, see a leave, and say so."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ordercast.cli.status import fetch
from ordercast.model.errors import UsageError

NAMES = ("alpha", "beta", "gamma")
PATIENCE_S = 60.0
QUICK = 'token_loss = "300ms"\nrest = "40ms"\npause = "100ms"\n'
CLIENTS = '[clients]\nfolder = "."\n'


def free_port(kind: socket.SocketKind) -> int:
    with socket.socket(socket.AF_INET, kind) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Cluster:
    """Processes of `ordercast daemon`, one file, and their logs."""

    def __init__(self, folder: Path, transport: str) -> None:
        self.folder = folder
        self.file = folder / "cluster.toml"
        self.status_ports = {name: free_port(socket.SOCK_STREAM) for name in NAMES}
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        nodes = "".join(
            f'[nodes.{name}]\nid = {number}\naddress = "127.0.0.{number}"\nstatus_port = {self.status_ports[name]}\n'
            for number, name in enumerate(NAMES, 1)
        )
        port = free_port(socket.SOCK_DGRAM) & ~1
        network = f'[network]\ntransport = "{transport}"\nport = {port}\n'
        self.file.write_text(
            f'cluster = "test"\n{network}[ring]\n{QUICK}[state]\nfolder = "state"\n{CLIENTS}{nodes}', encoding="utf-8"
        )

    def start(self, name: str, **environment: str) -> None:
        with self.log(name).open("ab") as log:
            self.processes[name] = subprocess.Popen(
                [sys.executable, "-m", "ordercast.cli.main", "daemon", "--config", str(self.file), "--name", name,
                 "--log", "json"],
                stderr=log,
                env={**os.environ, **environment},
            )  # fmt: skip

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


@pytest.fixture(params=["unicast", "multicast"])
def cluster(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Cluster]:
    made = Cluster(tmp_path, request.param)
    yield made
    for process in made.processes.values():
        process.kill()
        process.wait()


def test_daemons_form_a_ring_and_tell_a_crash_from_a_leave(cluster: Cluster) -> None:
    for name in NAMES:
        cluster.start(name)
    for name in NAMES:
        status = cluster.has_members(name, *NAMES)
        assert status["ring"]["missing"] == []

    cluster.stop("gamma", signal.SIGKILL)
    status = cluster.has_members("alpha", "alpha", "beta")
    assert status["views"][-1]["gone"] == ["gamma"]
    assert status["views"][-1]["reason"].startswith("the token was lost")
    assert "not in the ring: gamma" in status["warnings"]

    cluster.start("gamma")
    cluster.has_members("beta", *NAMES)

    assert cluster.stop("beta", signal.SIGTERM) == 0
    status = cluster.has_members("alpha", "alpha", "gamma")
    assert status["views"][-1]["is_leave"]
    assert cluster.lines("beta")[-1]["text"] == "left: the others were told"
    assert {line["node"] for line in cluster.lines("beta")} == {"beta"}


def test_a_second_daemon_of_the_same_name_is_refused_with_one_sentence(cluster: Cluster) -> None:
    cluster.start("alpha")
    cluster.has_members("alpha", "alpha")
    command = [sys.executable, "-m", "ordercast.cli.main", "daemon", "--config", str(cluster.file), "--name", "alpha"]
    second = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert second.returncode == 2
    assert second.stderr.startswith("ordercast: ")
    assert "is taken by another process" in second.stderr
    assert second.stderr.count("\n") == 1


def test_systemd_hears_that_it_is_ready_alive_and_stopping(cluster: Cluster, tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind(str(tmp_path / "notify"))
        listener.settimeout(PATIENCE_S)
        cluster.start("alpha", NOTIFY_SOCKET=str(tmp_path / "notify"), WATCHDOG_USEC="300000")
        assert listener.recv(4096).startswith(b"READY=1\nSTATUS=")
        assert listener.recv(4096).startswith(b"WATCHDOG=1\nSTATUS=")
        assert cluster.stop("alpha", signal.SIGINT) == 0
        heard = b""
        while not heard.startswith(b"STOPPING=1"):
            heard = listener.recv(4096)
