"""Daemons as processes of this one: started together, watched, and ended in order.

They log JSON, which is read here: so their names, and where they serve, are known. Each holds the end of a pipe, and
ends when this process does, however that comes. They are in process groups of their own: Ctrl-C is for us alone.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from ordercast.cli import INTERRUPTED
from ordercast.cli.event_text import counted, listed, verb
from ordercast.cli.log_lines import LogLine, LogStream, line_from
from ordercast.cli.terminal import wipe

RING_S = 5.0  # for which the first view of all is waited for
LEAVE_S = 10.0  # that a daemon has for an orderly leave
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
LINE_SIZE_MAX = 1 << 20


def ordercast_command(*arguments: str) -> list[str]:
    """Return the command `ordercast` with these arguments, for the interpreter that runs this."""
    return [sys.executable, "-m", "ordercast", *arguments]


async def start_daemon(*arguments: str) -> Process:
    """Start a daemon that logs JSON to a pipe, and ends when this process does."""
    command = ordercast_command("daemon", "--log", "json", "--until-eof", *arguments)
    return await asyncio.create_subprocess_exec(
        *command, stdin=PIPE, stdout=DEVNULL, stderr=PIPE, process_group=0, limit=LINE_SIZE_MAX
    )


@dataclass(slots=True, eq=False)
class Daemon:
    number: int
    process: Process
    name: str
    clients: list[str] = field(default_factory=list)  # where it serves them, once it does
    status: str | None = None
    members: frozenset[str] = frozenset()  # of its view
    held: list[LogLine] = field(default_factory=list)  # lines from before it was known to have started

    @property
    def has_ended(self) -> bool:
        return self.process.returncode is not None

    def learn(self, line: LogLine) -> None:
        self.name = line.fields.get("node") or self.name
        self.clients = line.fields.get("clients") or self.clients
        self.status = line.fields.get("status") or self.status
        if "view" in line.fields:
            self.members = frozenset(line.fields["members"])


@dataclass(slots=True)
class Cluster:
    """`run` returns the exit status."""

    log: LogStream
    on_started: Callable[[list[Daemon]], None]  # with those that run
    on_killed: Callable[[Daemon], None] | None = None
    daemons: list[Daemon] = field(default_factory=list)
    _is_started: bool = False
    _changed: asyncio.Event = field(default_factory=asyncio.Event)
    _signals: list[signal.Signals] = field(default_factory=list)  # that came
    _failures: int = 0  # daemons that ended otherwise than in order

    async def run(self, daemons: Iterable[Sequence[str]], *, one_by_one: bool = False) -> int:
        """`daemons`: the arguments of each."""
        loop = asyncio.get_running_loop()
        for number in SIGNALS:
            loop.add_signal_handler(number, self._on_signal, number)
        tasks = []
        try:
            for arguments in daemons:
                daemon = await self._start(arguments)
                tasks.append(asyncio.create_task(self._look_after(daemon)))
                if one_by_one:
                    await self._until(self._is_settled)
            await self._until_started()
            running = self.running
            if running and not self._signals:
                self._is_started = True
                self.on_started(running)
                self._release()
            await self._until(lambda: bool(self._signals) or not self.running)
            if self.running:
                await self._end_all()
        finally:
            self._kill_all()
            await asyncio.gather(*tasks)
            self._release()
            for number in SIGNALS:
                loop.remove_signal_handler(number)
        return self._outcome()

    @property
    def running(self) -> list[Daemon]:
        """By name, n2 before n10."""
        running = [daemon for daemon in self.daemons if not daemon.has_ended]
        return sorted(running, key=lambda daemon: (len(daemon.name), daemon.name))

    # One daemon

    async def _start(self, arguments: Sequence[str]) -> Daemon:
        number = len(self.daemons) + 1
        daemon = Daemon(number, await start_daemon(*arguments), f"#{number}")
        self.daemons.append(daemon)
        return daemon

    async def _look_after(self, daemon: Daemon) -> None:
        """Reads its log to the end, then tells how it ended."""
        assert daemon.process.stderr is not None and daemon.process.stdin is not None
        async for text in daemon.process.stderr:
            line = line_from(text)
            daemon.learn(line)
            if self._is_started:
                if not line.is_place:
                    self.log.write(daemon.name, line)
            else:
                daemon.held.append(line)
            self._changed.set()
        status = await daemon.process.wait()
        daemon.process.stdin.close()
        if not self._signals or status not in (0, -signal.SIGTERM):
            self._release(daemon)
            self._tell_end(daemon, status)
        self._changed.set()

    def _tell_end(self, daemon: Daemon, status: int) -> None:
        self._failures += 1
        self._remove_socket(daemon)
        if status == 0:
            how = "has left by itself"
        elif not daemon.clients:
            how = f"could not start (exit status {status})"
        elif status > 0:
            how = f"has failed (exit status {status})"
        else:
            how = f"was ended by {signal.Signals(-status).name}"
            if self.on_killed is not None:
                self.on_killed(daemon)
        rest = [other.name for other in self.running]
        others = "" if self._signals else f"; {listed(rest)} {'goes' if len(rest) == 1 else 'go'} on" if rest else ""
        self.log.say(f"{daemon.name} {how}{others}", "warning")

    def _release(self, one: Daemon | None = None) -> None:
        """Shows what was held: of a daemon that has started well only what is new to the reader."""
        held = []
        for daemon in self.daemons if one is None else (one,):
            held += [(line, daemon.name) for line in daemon.held if line.is_news or not daemon.clients]
            daemon.held.clear()
        for line, name in sorted(held, key=lambda pair: pair[0].at):
            self.log.write(name, line)

    # All of them

    async def _until_started(self) -> None:
        """All that can start serve clients, and know one another; or a signal came."""
        await self._until(self._is_settled)
        with suppress(TimeoutError):
            async with asyncio.timeout(RING_S):
                await self._until(self._is_together)

    def _is_settled(self) -> bool:
        return bool(self._signals) or all(daemon.clients or daemon.has_ended for daemon in self.daemons)

    def _is_together(self) -> bool:
        names = {daemon.name for daemon in self.running}
        return bool(self._signals) or all(names <= daemon.members for daemon in self.running)

    async def _until(self, is_so: Callable[[], bool]) -> None:
        while not is_so():
            self._changed.clear()
            await self._changed.wait()

    def _on_signal(self, number: signal.Signals) -> None:
        if number is signal.SIGINT:
            wipe()
        self._signals.append(number)
        self._changed.set()
        if len(self._signals) > 1:
            self._kill_all()

    async def _end_all(self) -> None:
        """One after the other, the last first: each tells the others that it leaves."""
        names = [daemon.name for daemon in self.running]
        self._is_started = True
        self._release()
        leave = f"{listed(names)} {verb(names, 'leaves', 'leave')} in order"
        self.log.say(f"{self._signals[0].name}: {leave}; once more ends them at once")
        for daemon in reversed(self.running):
            await self._end(daemon)

    async def _end(self, daemon: Daemon) -> None:
        with suppress(ProcessLookupError):  # it may have ended since it was looked at
            daemon.process.terminate()
        with suppress(TimeoutError):
            async with asyncio.timeout(LEAVE_S):
                await self._until(lambda: daemon.has_ended)
        if not daemon.has_ended:
            self.log.say(f"{daemon.name} did not leave within {LEAVE_S:.0f} s and is killed", "warning")
            with suppress(ProcessLookupError):
                daemon.process.kill()

    def _kill_all(self) -> None:
        for daemon in self.running:
            with suppress(ProcessLookupError):
                daemon.process.kill()

    def _remove_socket(self, daemon: Daemon) -> None:
        """A daemon that is killed cannot do it itself."""
        for address in daemon.clients:
            if address.startswith("unix://"):
                Path(address.removeprefix("unix://")).unlink(missing_ok=True)

    def _outcome(self) -> int:
        if len(self._signals) > 1:
            self.log.say("nothing runs any more: all were ended at once", "warning")
            return INTERRUPTED
        whole, failures = counted(len(self.daemons), "daemon"), self._failures
        sentence = f"nothing runs any more: {len(self.daemons) - failures} of {whole} left in order"
        self.log.say(sentence, "warning" if failures else "info")
        return 1 if failures else 0
