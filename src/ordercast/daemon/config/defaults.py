"""What holds where nobody says otherwise, and is shown before anything runs. It imports nothing of a daemon."""

from __future__ import annotations

from enum import Enum

LOOPBACK = "127.0.0.1"
PORT = 4700  # data by multicast; a node's own ports are above it, see `local_peer`
STATUS_PORT = 4790
LOCAL_NODES_MAX = 48
LOCAL_PORT_MAX = 65535 - 2 * LOCAL_NODES_MAX - 1  # so that all nodes of a machine find room above it


class TraceLevel(Enum):
    OFF = "off"
    CONTROL = "control"  # views, state changes, alarms: a few rows a day
    FULL = "full"  # every message too: what `ordercast check` needs for a verdict


def host_and_port(address: str, port: int) -> str:
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
