"""One daemon in a process of its own: as `worker.py`, with groups, and clients at a unix socket in place of traffic."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

from ordercast.daemon.clients.server import ClientServer
from ordercast.daemon.config.node import ClientsConfig
from ordercast.daemon.host import GroupHost
from rig.worker import LOOK_S, Order, Task, Telling, nodes_of, protected, tell


class ToldHost(Telling, GroupHost):
    pass


def sockets_of(trace: Path) -> Path:
    """Where the daemon that records here has its socket."""
    return trace.parent.parent / "sockets"


class DaemonWorker:
    def __init__(self, task: Task) -> None:
        self.host = ToldHost(task.config())
        self._sockets = sockets_of(Path(task.trace))

    def _is_idle(self) -> bool:
        return self.host.engine.is_idle() and not self.host.requests_waiting

    def _report(self) -> dict[str, Any]:
        host, counters = self.host, self.host.counters
        return {
            "state": host.engine.state_name,
            "ring": str(host.engine.configuration.id),
            "members": nodes_of(host.members),
            "sending": 0,
            "idle": self._is_idle(),
            "delivered": counters.messages_delivered,
            "trace_error": host.trace_error,
        }

    async def obey(self, order: Order) -> None:
        """Clients make the traffic, so most of what other workers do is nothing here."""
        if order["do"] == "drain":
            while not self._is_idle():  # noqa: ASYNC110 (the engine tells nobody that it has become quiet)
                await asyncio.sleep(LOOK_S)
        if "id" in order:
            tell("answer", to=order["id"], report=self._report())

    async def run(self) -> None:
        lines = asyncio.StreamReader()
        await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
        async with self.host, ClientServer(self.host, ClientsConfig(folder=self._sockets)):
            tell("started", process=self.host.process, pid=os.getpid())
            while line := await lines.readline():
                await self.obey(json.loads(line))


def main() -> int:
    task = Task(**json.loads(sys.argv[1]))

    async def work() -> None:
        await DaemonWorker(task).run()

    return protected(work)


if __name__ == "__main__":
    sys.exit(main())
