"""Daemons on the hosts of a rig, and the replicas of each host in a program beside its daemon.

with Hosts(5) as hosts, ReplicaCluster(hosts, folder) as cluster:
    cluster.start_all()
    cluster.start_replicas(hosts)
    cluster.kill_replica(hosts[0])
    cluster.finish(patience_s=60)
"""

from __future__ import annotations

import json
import signal
import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ordercast.trace.cluster import append_cluster_event
from rig.cluster import PATIENCE_S, LiveCluster
from rig.daemon_worker import sockets_of
from rig.hosts import Host, Hosts
from rig.programs import Program, close_pipes, tell
from rig.replica_worker import KINDS, ReplicaTask


@dataclass(eq=False)
class ReplicaLife:
    """One life of the replicas of a host, and what they have said."""

    host: Host
    program: Program
    remembered: set[str] = field(default_factory=set)  # structures that it held, and has missed nothing of since
    answers: dict[int, dict[str, Any]] = field(default_factory=dict)
    failure: str | None = None
    is_stopped: bool = False  # its users have
    is_paused: bool = False
    has_ended: bool = False
    may_end: bool = False

    @property
    def has_all(self) -> bool:
        return len(self.remembered) == len(KINDS)

    @property
    def has_failed(self) -> bool:
        return self.failure is not None or (self.has_ended and not self.may_end)

    def hear(self, line: bytes) -> None:
        if not line.endswith(b"\n"):
            return  # it was killed in the middle
        said = json.loads(line)
        match said.pop("event"):
            case "remembers":
                (self.remembered.add if said["so"] else self.remembered.discard)(said["kind"])
            case "stopped":
                self.is_stopped = True
            case "answer":
                self.answers[said["to"]] = said["report"]
            case "failed":
                self.failure = said["why"]

    def __str__(self) -> str:
        how = self.failure or ("ended" if self.has_ended else "paused" if self.is_paused else "")
        return f"r@n{self.host.number}: has {sorted(self.remembered)} {how}".rstrip()


class ReplicaCluster(LiveCluster):
    program = "rig.daemon_worker"

    def __init__(self, hosts: Hosts, folder: Path, *, pause_s: float = 0.1, seed: int = 0, **task: Any) -> None:
        super().__init__(hosts, folder, **task)
        self.replicas: dict[Host, ReplicaLife] = {}
        sockets_of(self.folder / "n1").mkdir(mode=0o700)
        self._pause_s, self._seed = pause_s, seed
        self._starts = 0

    def __exit__(self, *how: object) -> None:
        for life in self.replicas.values():
            if life.program.poll() is None:
                life.program.kill()
        super().__exit__(*how)
        for life in self.replicas.values():
            life.program.wait()

    # Lives

    def start_replicas(self, hosts: Iterable[Host]) -> None:
        for host in hosts:
            before = self.replicas.get(host)
            assert before is None or before.has_ended, f"{before} still runs"
            self._starts += 1
            socket = sockets_of(self.folder / "n1") / f"n{host.number}.sock"
            task = ReplicaTask(
                host.number,
                len(self.hosts),
                f"unix://{socket}",
                host.address(),
                str(self.folder),
                1000 * self._seed + self._starts,
                self._pause_s,
            )
            life = self.replicas[host] = ReplicaLife(host, host.fork("rig.replica_worker", task.text()))
            reader = threading.Thread(target=self._read_replica, args=(life,), daemon=True)
            reader.start()
            self._readers.append(reader)

    def _read_replica(self, life: ReplicaLife) -> None:
        assert life.program.stdout is not None
        for line in life.program.stdout:
            with self._changed:
                life.hear(line)
                self._changed.notify_all()
        with self._changed:
            life.has_ended = True
            self._changed.notify_all()

    def kill_replica(self, host: Host) -> None:
        life = self.replicas[host]
        life.may_end = True
        life.program.send_signal(signal.SIGKILL)
        life.program.wait(PATIENCE_S)
        self.wait(lambda: life.has_ended, f"{life} dies")
        close_pipes(life.program)

    def pause_replica(self, host: Host, is_paused: bool) -> None:
        life = self.replicas[host]
        life.program.send_signal(signal.SIGSTOP if is_paused else signal.SIGCONT)
        life.is_paused = is_paused

    def forgetful(self) -> list[Host]:
        """Hosts whose replicas do not remember all structures: who begins again, or was cut off, is one until it has
        been loaded. As long as these are a minority nothing is lost."""
        with self._changed:
            return [host for host in self.hosts if host not in self.replicas or not self.replicas[host].has_all]

    def daemon_is_going(self, host: Host) -> None:
        """It will be killed: its replicas will find that out soon, and have forgotten from now on."""
        with self._changed:
            self.replicas[host].remembered.clear()

    def wait_until_all_remember(self, patience_s: float = PATIENCE_S) -> None:
        self.wait(
            lambda: all(life.has_all for life in self.replicas.values()), "all replicas have the state", patience_s
        )

    # The end

    def finish(self, patience_s: float) -> None:
        """No more faults: all get the state, users stop, everybody has the same; then replicas and daemons end."""
        self.calm()
        self.say_healed()
        for host, life in self.replicas.items():
            if life.is_paused:
                self.pause_replica(host, False)
        self.wait_for_view(self.hosts, patience_s=patience_s)
        self.wait_until_all_remember(patience_s)
        lives = list(self.replicas.values())
        for life in lives:
            self._order(life, "stop")
        self.wait(lambda: all(life.is_stopped for life in lives), "all users have their answers", patience_s)
        self._wait_until_equal(patience_s)
        self._ask("end")
        append_cluster_event(self.folder, "settled")
        for life in lives:
            life.may_end = True
            close_pipes(life.program, only_stdin=True)
        self.wait(lambda: all(life.has_ended for life in lives), "all replicas end")
        self.settle(patience_s)

    def _wait_until_equal(self, patience_s: float) -> None:
        """News of who is gone may still be underway: it is asked again until nothing is."""
        end = time.monotonic() + patience_s
        while True:
            states = self._ask("report")
            are_equal = all(len({tuple(state[kind]) for state in states}) == 1 for kind in KINDS)
            if are_equal and all(state[kind][2] == 0 and state[kind][3] for state in states for kind in KINDS):
                return
            if time.monotonic() > end:
                self.wait(lambda: False, f"all replicas are equal: {states}", 0.01)
            with self._changed:
                self._changed.wait(0.05)

    def _ask(self, what: str) -> list[dict[str, Any]]:
        lives = list(self.replicas.values())
        numbers = {life: next(self._numbers) for life in lives}
        for life, number in numbers.items():
            self._order(life, what, id=number)
        self.wait(lambda: all(number in life.answers for life, number in numbers.items()), f"{what} is answered")
        return [life.answers.pop(number) for life, number in numbers.items()]

    def _order(self, life: ReplicaLife, what: str, **details: Any) -> None:
        with suppress(BrokenPipeError):
            tell(life.program, {"do": what, **details})

    def _failed(self) -> object | None:
        failed = next((life for life in self.replicas.values() if life.has_failed), None)
        return super()._failed() if failed is None else failed

    def text(self) -> str:
        return "\n".join([super().text(), *(f"  {life}" for life in self.replicas.values())])
