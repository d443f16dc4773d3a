"""The daemons of the demo: real processes on loopback, joined by a relay that can cut one off.

Each daemon stands for a host, with an address of its own in 127.0.0.0/8, where it listens. In its file the others are
at the relay's doors (`relay.py`), so that every datagram between two daemons goes through the relay.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from ordercast.cli.daemons import LEAVE_S, start_daemon
from ordercast.cli.log_lines import LogLine, line_from
from ordercast.demo import relay
from ordercast.demo.waiting import News, NotSettled
from ordercast.model.ids import Incarnation, NodeId, ProcessId, process_id_from
from ordercast.trace.cluster import append_cluster_event
from ordercast.trace.live_file import LIVE, file_name_from

TOKEN_PORT, DATA_PORT = 4701, 4700


@dataclass(frozen=True, slots=True)
class ViewSeen:
    """A view as a daemon logged it."""

    at: float  # wall clock
    id: str
    members: tuple[str, ...]
    text: str
    is_first: bool  # of a life: of itself alone


@dataclass(slots=True, eq=False)
class DemoHost:
    """One daemon, over all its lives."""

    number: int
    address: str
    file: Path
    socket: Path  # where its clients find it
    process: Process | None = None
    views: list[ViewSeen] = field(default_factory=list)  # of this life
    serves: bool = False
    is_cut: bool = False
    may_end: bool = False  # it was told to, or killed
    was_killed: bool = False
    said: str = ""  # its last words

    @property
    def name(self) -> str:
        return f"n{self.number}"

    @property
    def clients(self) -> str:
        return f"unix://{self.socket}"

    @property
    def runs(self) -> bool:
        return self.process is not None and self.process.returncode is None

    @property
    def view(self) -> ViewSeen | None:
        return self.views[-1] if self.views and self.runs else None

    @property
    def members(self) -> tuple[str, ...]:
        return () if self.view is None else self.view.members


class Hosts:
    """`on_view` and `on_warning` are told what daemons log."""

    def __init__(
        self,
        folder: Path,
        traces: Path,
        count: int,
        news: News,
        on_view: Callable[[DemoHost, ViewSeen], None],
        on_warning: Callable[[DemoHost, str], None],
    ) -> None:
        """`folder`: for files and sockets, a short path."""
        self.traces = traces
        self.dropped = self.carried = 0  # datagrams, as of the last change of the network
        self._folder, self._news = folder, news
        self._on_view, self._on_warning = on_view, on_warning
        rng = Random()
        network = f"127.{rng.randrange(16, 240)}.{rng.randrange(1, 255)}"
        self.all = [
            DemoHost(number, f"{network}.{number}", folder / f"n{number}.toml", folder / f"n{number}.sock")
            for number in range(1, count + 1)
        ]
        self._relay: Process | None = None
        self._readers: list[asyncio.Task[None]] = []

    def __getitem__(self, name: str) -> DemoHost:
        return next(host for host in self.all if host.name == name)

    @property
    def running(self) -> list[DemoHost]:
        return [host for host in self.all if host.runs]

    @property
    def views(self) -> list[ViewSeen | None]:
        """The last views of the hosts that run."""
        return [host.view for host in self.running]

    def process_of(self, name: str) -> ProcessId:
        """The life of a daemon that runs: its trace, which begins before it serves anybody, has it in its name."""
        files = [
            found
            for path in self.traces.iterdir()
            if (found := file_name_from(path)) and (found.name, found.table) == (name, LIVE)
        ]
        return process_id_from(NodeId(self[name].number), Incarnation(max(found.incarnation for found in files)))

    # The network

    async def open_network(self) -> None:
        self._relay = await asyncio.create_subprocess_exec(
            sys.executable, relay.__file__, stdin=PIPE, stdout=PIPE, process_group=0
        )
        links = [
            {"pair": (one.number, other.number), "host": other.address, "data": DATA_PORT, "token": TOKEN_PORT}
            for one in self.all
            for other in self.all
            if one is not other
        ]
        doors = {tuple(door["pair"]): door for door in await self._ask_relay(links)}
        for host in self.all:
            host.file.write_text(self._file(host, doors), encoding="utf-8")

    def _file(self, me: DemoHost, doors: dict[tuple[int, int], dict[str, Any]]) -> str:
        lines = [
            f'cluster = "demo {os.getpid()}"',
            f'network = {{transport = "unicast", port = {DATA_PORT}}}',
            "status = {port = 0}",
            f"clients = {{folder = {json.dumps(str(self._folder))}}}",
            f'trace = {{level = "full", folder = {json.dumps(str(self.traces))}}}',
        ]
        for host in self.all:
            door = doors.get((me.number, host.number), {"token": TOKEN_PORT, "data": DATA_PORT})
            address = me.address if host is me else relay.HOST
            lines += [f"[nodes.{host.name}]", f"id = {host.number}", f'address = "{address}"']
            lines += [f"token_port = {door['token']}", f"data_port = {door['data']}"]
        return "\n".join(lines) + "\n"

    async def cut_off(self, host: DemoHost) -> None:
        """From now on nothing comes to it from the others, and nothing from it to them."""
        host.is_cut = True
        pairs = [(host.number, other.number) for other in self.all if other is not host]
        await self._set_cuts([*pairs, *((other, one) for one, other in pairs)])

    async def heal(self) -> None:
        await self._set_cuts([])
        for host in self.all:
            host.is_cut = False

    async def _set_cuts(self, pairs: list[tuple[int, int]]) -> None:
        counters = await self._ask_relay(pairs)
        self.carried, self.dropped = counters["carried"], counters["dropped"]

    async def _ask_relay(self, request: Any) -> Any:
        assert self._relay is not None and self._relay.stdin is not None and self._relay.stdout is not None
        async with self._news.bounded("the relay answers"):
            self._relay.stdin.write(json.dumps(request).encode() + b"\n")
            answer = await self._relay.stdout.readline()
        if not answer:
            raise NotSettled("the relay between the daemons has ended, see above")
        return json.loads(answer)

    # Daemons

    async def start(self, *hosts: DemoHost) -> None:
        for host in hosts:
            host.views, host.serves, host.may_end, host.was_killed = [], False, False, False
            host.process = await start_daemon("--config", str(host.file), "--name", host.name)
            self._readers.append(asyncio.create_task(self._read(host, host.process)))

    async def _read(self, host: DemoHost, process: Process) -> None:
        assert process.stderr is not None
        async for line in process.stderr:
            self._learn(host, line_from(line))
            self._news.wake()
        status = await process.wait()
        if not host.may_end:
            how = f"exit status {status}" if status >= 0 else signal.Signals(-status).name
            self._news.fail(f"the daemon {host.name} has ended by itself ({how}): {host.said}")
        self._news.wake()

    def _learn(self, host: DemoHost, line: LogLine) -> None:
        host.said = line.text
        fields = line.fields
        if "clients" in fields:
            host.serves = True
        elif "view" in fields:
            seen = ViewSeen(line.at.timestamp(), fields["view"], tuple(fields["members"]), line.text, not host.views)
            host.views.append(seen)
            self._on_view(host, seen)
        elif line.level != "info" and host.serves:  # before that, remarks on the configuration
            self._on_warning(host, line.text)

    async def kill(self, host: DemoHost) -> float:
        """Kill it with SIGKILL, and return when, by the wall clock."""
        assert host.process is not None
        host.may_end = host.was_killed = True
        at = time.time()
        host.process.kill()
        await host.process.wait()
        append_cluster_event(self.traces, "crashed", process=host.name)
        host.socket.unlink(missing_ok=True)  # it cannot do it itself any more
        return at

    async def leave(self, hosts: Iterable[DemoHost]) -> None:
        """One after the other, in order."""
        for host in hosts:
            assert host.process is not None
            host.may_end = True
            host.process.terminate()
            try:
                async with asyncio.timeout(LEAVE_S):
                    await host.process.wait()
            except TimeoutError:
                raise NotSettled(f"the daemon {host.name} did not leave within {LEAVE_S:.0f} s") from None
        await asyncio.gather(*self._readers)

    async def close(self) -> None:
        """Whatever still runs is ended at once."""
        processes = [host.process for host in self.running if host.process is not None]
        for host in self.all:
            host.may_end = True
        if self._relay is not None and self._relay.returncode is None:
            processes.append(self._relay)
        for process in processes:
            with suppress(ProcessLookupError):
                process.kill()
        await asyncio.gather(*(process.wait() for process in processes))
        await asyncio.gather(*self._readers, return_exceptions=True)
