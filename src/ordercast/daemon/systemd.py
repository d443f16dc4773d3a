"""What systemd is told of a daemon: `sd_notify`, written by hand because it is one datagram."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping


class Notifier:
    """Says nothing when nobody listens."""

    def __init__(self, environment: Mapping[str, str] | None = None) -> None:
        environment = os.environ if environment is None else environment
        address = environment.get("NOTIFY_SOCKET", "")
        self._address = "\0" + address[1:] if address.startswith("@") else address
        is_mine = environment.get("WATCHDOG_PID", str(os.getpid())) == str(os.getpid())
        watchdog_us = environment.get("WATCHDOG_USEC", "")
        self.watchdog_s = int(watchdog_us) / 1e6 if is_mine and watchdog_us.isdecimal() else None

    def tell(self, **values: str) -> None:
        """`tell(READY="1", STATUS="…")`."""
        if not self._address:
            return
        text = "\n".join(f"{name}={value}" for name, value in values.items())
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as notify:
                notify.setblocking(False)
                notify.sendto(text.encode(), self._address)
        except OSError:
            pass  # a supervisor that does not listen must not end the node
