"""Daemons as processes of their own on loopback: they form a ring, notice a kill, see a leave, and say so."""

from __future__ import annotations

import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from ordercast.cli.daemons import ordercast_command
from tests.runtime.cluster import NAMES, PATIENCE_S, Cluster


@pytest.fixture(params=["unicast", "multicast"])
def cluster(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Cluster]:
    made = Cluster(tmp_path, request.param, is_fresh=True)
    yield made
    made.end()


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
    assert "not in the configuration: gamma" in status["warnings"]

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
    command = ordercast_command("daemon", "--config", str(cluster.file), "--name", "alpha")
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
