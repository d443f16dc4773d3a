"""What systemd hears."""

from __future__ import annotations

import os
import socket
from pathlib import Path

from ordercast.daemon.systemd import Notifier


def test_values_arrive_as_one_datagram(tmp_path: Path) -> None:
    path = str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind(path)
        notifier = Notifier({"NOTIFY_SOCKET": path, "WATCHDOG_USEC": "3000000", "WATCHDOG_PID": str(os.getpid())})
        notifier.tell(READY="1", STATUS="operational")
        assert listener.recv(1000) == b"READY=1\nSTATUS=operational"
    assert notifier.watchdog_s == 3.0
    notifier.tell(STOPPING="1")  # nobody listens any more: nothing happens


def test_an_abstract_socket() -> None:
    name = f"ordercast-test-{os.getpid()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind("\0" + name)
        Notifier({"NOTIFY_SOCKET": "@" + name}).tell(READY="1")
        assert listener.recv(1000) == b"READY=1"


def test_without_systemd_nothing_is_said_and_another_process_has_the_watchdog() -> None:
    notifier = Notifier({})
    notifier.tell(READY="1")
    assert notifier.watchdog_s is None
    assert Notifier({"WATCHDOG_USEC": "3000000", "WATCHDOG_PID": "1"}).watchdog_s is None
