"""What a command does not need is not imported: whoever starts a daemon does not wait for it."""

from __future__ import annotations

import subprocess
import sys

UNNEEDED = (
    "ordercast.sim",
    "ordercast.checker",
    *(f"ordercast.order.{e}.node" for e in ("gateways", "sites", "adaptive", "tree")),
)


def test_a_daemon_starts_without_the_simulator_and_before_any_engine_is_chosen() -> None:
    code = "import sys, ordercast.cli.daemon; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert [name for name in done.stdout.split() if name in UNNEEDED] == []
