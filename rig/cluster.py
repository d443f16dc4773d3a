"""A live cluster on the hosts of a rig: a node on each in a process of its own, told what to do, watched, and judged.

    with Hosts(5) as hosts, LiveCluster(hosts, folder) as cluster:
        cluster.start_all()
        cluster.send(rate=200)
        hosts.cut(hosts[:2], hosts[2:])
        cluster.wait_for_view(hosts[2:])
        cluster.settle()
        assert cluster.verdict().outcome is Outcome.VALID

Where the hosts are on several segments, each segment is a ring, and whoever has a leg in several is a gateway. With the
engine `sites` each is a site, but for the last one, which is the wide area between them.

Nodes record into `traces/n1`, `traces/n2`, … of the folder, and what only the harness knows goes to
`traces/cluster.jsonl`: give `traces` to `ordercast check`. A thread for each worker reads what it says, and whoever
waits is woken by that, or gives up with what everybody said last.
"""

from __future__ import annotations

import json
import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, Self

from ordercast.checker import Verdict, combined
from ordercast.cli.check import judge
from ordercast.model.ids import MILLISECOND, ProcessId, incarnation_of
from ordercast.order.catalogue import DEFAULT, entry_of
from ordercast.trace.cluster import append_cluster_event
from rig.hosts import Host, Hosts
from rig.programs import Program, close_pipes, tell
from rig.switch import Link
from rig.worker import Task

PATIENCE_S = 150.0
LOOK_S = 0.05  # between two questions, where nobody tells

# Timeouts for tests that are not about the usual ones.
QUICK = {
    "token_retransmit_ns": 30 * MILLISECOND,
    "token_loss_ns": 300 * MILLISECOND,
    "join_ns": 25 * MILLISECOND,
    "consensus_ns": 150 * MILLISECOND,
    "announce_ns": 80 * MILLISECOND,
    "rest_ns": 40 * MILLISECOND,
    "hold_down_ns": 200 * MILLISECOND,
    "pause_ns": 150 * MILLISECOND,
}
# For tests that say that no view changes: who waits for a processor, on a busy machine, is not missed.
PATIENT = {"token_loss_ns": 4_000 * MILLISECOND, "consensus_ns": 2_000 * MILLISECOND}


class Impatient(Exception):
    """Something did not come about in time. It says what, and what everybody said last."""


@dataclass(frozen=True)
class ViewSeen:
    kind: str
    id: str
    members: tuple[int, ...]  # node numbers
    reason: str  # name of a ChangeReason

    @property
    def is_regular(self) -> bool:
        return self.kind == "regular"


@dataclass(frozen=True)
class AlarmSeen:
    kind: str  # name of an AlarmKind
    text: str
    about: int | None  # node number
    network: int | None = None
    evidence: str | None = None  # name of an Evidence


@dataclass(eq=False)
class Life:
    """One life of a node, and all that it has said."""

    host: Host
    program: Program
    process: ProcessId | None = None  # None: not started yet
    views: list[ViewSeen] = field(default_factory=list)
    alarms: list[AlarmSeen] = field(default_factory=list)
    answers: dict[int, dict[str, Any]] = field(default_factory=dict)
    failure: str | None = None
    has_left: bool = False
    has_ended: bool = False  # its output has
    is_stopped: bool = False
    may_end: bool = False  # it was killed, or asked to end

    @property
    def name(self) -> str:
        return f"n{self.host.number}"

    @property
    def is_alive(self) -> bool:
        return not self.has_ended and not self.has_left

    @property
    def view(self) -> ViewSeen | None:
        """The last one, regular or not."""
        return self.views[-1] if self.views else None

    def regular_views(self) -> list[ViewSeen]:
        return [view for view in self.views if view.is_regular]

    @property
    def has_failed(self) -> bool:
        return self.failure is not None or (self.has_ended and not self.may_end)

    def hear(self, line: bytes) -> None:
        if not line.endswith(b"\n"):
            return  # it was killed in the middle
        said = json.loads(line)
        match said.pop("event"):
            case "started":
                self.process = ProcessId(said["process"])
            case "view":
                self.views.append(ViewSeen(said["kind"], said["id"], tuple(said["members"]), said["reason"]))
            case "alarm":
                self.alarms.append(AlarmSeen(**said))
            case "answer":
                self.answers[said["to"]] = said["report"]
            case "failed":
                self.failure = said["why"]
            case "left":
                self.has_left = True

    def __str__(self) -> str:
        where = "none" if self.view is None else f"{self.view.kind} {self.view.id} {list(self.view.members)}"
        how = self.failure or ("left" if self.has_left else "ended" if self.has_ended else "")
        return f"{self.name}: view {where}{' stopped' if self.is_stopped else ''} {how}".rstrip()


class LiveCluster:
    """`task` are fields of `worker.Task` that are the same for all nodes; `program` is what runs on each."""

    program = "rig.worker"

    def __init__(self, hosts: Hosts, folder: Path, *, ipv6: bool = False, **task: Any) -> None:
        self.hosts = hosts
        self.folder = folder / "traces"
        self._is_healed = False  # and the judge was told
        self.lives: dict[Host, Life] = {}  # the present, or last, one of each host
        self._views_before = 0  # those of lives that are over and were followed by others
        self.verdicts: list[Verdict] = []
        self.reports: dict[Host, dict[str, Any]] = {}  # the last ones, when all is settled
        self._state = folder / "state"
        more = [[host.address(network) for host in hosts] for network in range(1, hosts.networks)]
        rings = rings_of(hosts)
        several: dict[str, Any] = {"rings": rings, "engine": "gateways"} if rings else {}
        if rings and entry_of(task.get("engine", DEFAULT)).has_sites:  # the last segment is between the sites
            several = {"rings": rings[:-1], "wide": [host.address(segment=hosts.segments - 1) for host in hosts]}
        self._task = {"ring": QUICK, "more_addresses": more, **several, **task}
        self._addresses = [host.address6() if ipv6 else host.address() for host in hosts]
        self._changed = threading.Condition()
        self._numbers = count(1)
        self._readers: list[threading.Thread] = []
        self.folder.mkdir(parents=True, exist_ok=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *how: object) -> None:
        for life in self.lives.values():
            if life.program.poll() is None:
                life.program.kill()
        for reader in self._readers:
            reader.join()  # at the end of what the worker said
        for life in self.lives.values():
            life.program.wait()
            close_pipes(life.program)

    # Lives

    def start(self, *hosts: Host, forget: bool = False, **more: Any) -> None:
        """Begins a life on each; with `forget`, its stable storage was lost. `more` are fields of its task. Does not
        wait: see `wait_for_view`."""
        for host in hosts:
            before = self.lives.get(host)
            assert before is None or before.has_ended, f"{before} still runs"
            self._views_before += 0 if before is None else len(before.views)
            state = self._state / f"n{host.number}"
            if forget and state.exists():
                shutil.rmtree(state)
            task = Task(
                host.number, self._addresses, str(self.folder / f"n{host.number}"), str(state), **{**self._task, **more}
            )
            life = self.lives[host] = Life(host, host.fork(self.program, task.text()))
            reader = threading.Thread(target=self._read, args=(life,), daemon=True)
            reader.start()
            self._readers.append(reader)

    def start_all(self) -> None:
        """Everybody, and waits until they are together."""
        self.start(*self.hosts)
        self.wait_for_view(self.hosts)

    def _read(self, life: Life) -> None:
        assert life.program.stdout is not None
        for line in life.program.stdout:
            with self._changed:
                life.hear(line)
                self._changed.notify_all()
        with self._changed:
            life.has_ended = True
            self._changed.notify_all()

    def kill(self, *hosts: Host) -> None:
        """SIGKILL, all at once as nearly as can be, and known to the judge. Returns when they are dead."""
        for host in hosts:
            self.lives[host].may_end = True
            self.lives[host].program.send_signal(signal.SIGKILL)
        for host in hosts:
            self._bury(self.lives[host])

    def _bury(self, life: Life) -> None:
        life.program.wait(PATIENCE_S)
        self.wait(lambda: life.has_ended, f"{life.name} dies")
        close_pipes(life.program)
        if life.process is not None and not life.has_left:
            append_cluster_event(self.folder, "crashed", process=f"{life.name}'{incarnation_of(life.process)}")

    def restart(self, *hosts: Host, forget: bool = False) -> None:
        """Killed and started at once."""
        self.kill(*(host for host in hosts if not self.lives[host].has_ended))
        self.start(*hosts, forget=forget)

    def stop(self, *hosts: Host) -> None:
        """SIGSTOP: it runs no more until it is continued, and its sockets fill."""
        for host in hosts:
            self.lives[host].program.send_signal(signal.SIGSTOP)
            self.lives[host].is_stopped = True

    def go_on(self, *hosts: Host) -> None:
        for host in hosts:
            self.lives[host].program.send_signal(signal.SIGCONT)
            self.lives[host].is_stopped = False

    def leave(self, *hosts: Host) -> None:
        """Orderly. Returns when they have left and their programs have ended."""
        for host in hosts:
            self.lives[host].may_end = True
            self.order(host, "leave")
        leaving = [self.lives[host] for host in hosts]
        self.wait(lambda: all(life.has_ended for life in leaving), f"{[life.name for life in leaving]} leave")
        for life in leaving:
            life.program.wait(PATIENCE_S)
            close_pipes(life.program)

    @property
    def views(self) -> int:
        """How many views all lives together have installed."""
        return self._views_before + sum(len(life.views) for life in self.lives.values())

    def alive(self) -> list[Host]:
        return [host for host in self.hosts if host in self.lives and self.lives[host].is_alive]

    # Orders

    def send(
        self,
        hosts: Host | Iterable[Host] | None = None,
        *,
        total: int | None = None,
        rate: float | None = 100,
        sizes: Sequence[int] = (100,),
        services: Sequence[str] = ("AGREED", "SAFE"),
        batch: int = 64,
    ) -> None:
        """Each of the hosts (None: all alive) begins to send: `total` messages or without end, `rate` in a second or
        as many as are accepted."""
        for host in self._several(hosts):
            self.order(
                host,
                "send",
                count=total,
                rate=rate,
                sizes=list(sizes),
                services=list(services),
                batch=batch,
            )

    def hush(self, hosts: Host | Iterable[Host] | None = None) -> None:
        """They send nothing more. What was submitted is not taken back."""
        for host in self._several(hosts):
            self.order(host, "hush")

    def block(self, host: Host, seconds: float) -> None:
        """Its event loop does nothing for so long. Returns when that is over."""
        self.ask(host, "block", seconds=seconds)

    def enlist(self, host: Host, version: int, nodes: Iterable[Host]) -> None:
        """Its file has another node list now, and is reloaded."""
        self.ask(host, "enlist", version=version, nodes=[node.number for node in nodes])

    def read(self, host: Host, on: bool) -> None:
        """Whether its application takes what is delivered."""
        self.ask(host, "read", on=on)

    def report(self, host: Host) -> dict[str, Any]:
        """Its state and counters, see `worker.Worker`."""
        return self.ask(host, "report")

    def ask(self, host: Host, what: str, **details: Any) -> dict[str, Any]:
        """Returns its report when the order is carried out."""
        return self._answers([host], what, PATIENCE_S, **details)[host]

    def _answers(
        self, hosts: Sequence[Host], what: str, patience_s: float, **details: Any
    ) -> dict[Host, dict[str, Any]]:
        numbers = {host: next(self._numbers) for host in hosts}
        for host, number in numbers.items():
            self.order(host, what, id=number, **details)

        def is_answered() -> bool:
            return all(self.lives[host].has_ended or n in self.lives[host].answers for host, n in numbers.items())

        self.wait(is_answered, f"{what} is answered", patience_s)
        for host, number in numbers.items():
            if number not in self.lives[host].answers:
                raise Impatient(f"asked to {what}, it ended: {self.lives[host]}")
        return {host: self.lives[host].answers.pop(number) for host, number in numbers.items()}

    def order(self, host: Host, what: str, **details: Any) -> None:
        """Tells it to do something, see `worker.Worker`, and does not wait."""
        life = self.lives[host]
        with suppress(BrokenPipeError):  # whoever waits for an answer will be told
            tell(life.program, {"do": what, **details})

    def _several(self, hosts: Host | Iterable[Host] | None) -> list[Host]:
        if hosts is None:
            return self.alive()
        return [hosts] if isinstance(hosts, Host) else list(hosts)

    # Waiting

    def wait(self, is_so: Callable[[], bool], what: str, patience_s: float = PATIENCE_S) -> None:
        """Until something that the workers say makes it so. A worker that failed ends the wait."""
        with self._changed:
            if not self._changed.wait_for(lambda: is_so() or self._failed() is not None, patience_s):
                raise Impatient(f"waited {patience_s:.0f} s until {what}:\n{self.text()}")
            if not is_so():
                raise Impatient(f"waited until {what}, and {self._failed()}")

    def _failed(self) -> object | None:
        return next((life for life in self.lives.values() if life.has_failed), None)

    def wait_for_view(
        self, members: Iterable[Host], hosts: Iterable[Host] | None = None, patience_s: float = PATIENCE_S
    ) -> ViewSeen:
        """Until `hosts` (None: the members) are in one regular view of exactly the members, in their present lives."""
        wanted = tuple(sorted(host.number for host in members))
        watched = [self.lives[host] for host in ([self.hosts[n - 1] for n in wanted] if hosts is None else hosts)]

        def is_there() -> bool:
            views = [life.view for life in watched]
            first = views[0]
            return (
                first is not None and first.is_regular and first.members == wanted and views.count(first) == len(views)
            )

        self.wait(is_there, f"{[life.name for life in watched]} are in a view of {list(wanted)}", patience_s)
        with self._changed:
            view = watched[0].view
            assert view is not None
            return view

    def watch(self, seconds: float) -> None:
        """Time passes. A worker that fails meanwhile is an error."""
        with self._changed:
            if self._changed.wait_for(lambda: self._failed() is not None, seconds):
                raise Impatient(f"a worker failed: {self._failed()}\n{self.text()}")

    def wait_for_more(
        self, messages: int, hosts: Host | Iterable[Host] | None = None, patience_s: float = PATIENCE_S
    ) -> None:
        """Until each of the hosts (None: all alive) has delivered so many more messages than now: traffic flows."""
        self._answers(self._several(hosts), "hear", patience_s, messages=messages)

    def wait_for_report(self, host: Host, is_so: Callable[[dict[str, Any]], bool], what: str) -> dict[str, Any]:
        """Asks a host until its report is as wanted."""
        end = time.monotonic() + PATIENCE_S
        while not is_so(report := self.report(host)):
            if time.monotonic() > end:
                raise Impatient(f"waited {PATIENCE_S:.0f} s until {what}: {report}")
            with self._changed:
                self._changed.wait(LOOK_S)
        return report

    def text(self) -> str:
        return "\n".join(f"  {life}" for life in self.lives.values())

    # The end

    def saturated(self, begins: bool) -> None:
        """Tells the judge that all who live have more to send than they can, from now on or up to now."""
        senders = [self._process_text(host) for host in self.alive()]
        append_cluster_event(self.folder, "saturated", senders=senders, begins=begins)

    def calm(self) -> None:
        """Everything that the rig did to the network, and pauses of processes, are over."""
        self.go_on(*(host for host in self.alive() if self.lives[host].is_stopped))
        self.hosts.heal()
        self.hosts.loss(self.hosts, 0)
        self.hosts.bandwidth(self.hosts, None)
        if self.hosts.has_switch:
            self.hosts.disturb(Link())

    def settle(self, patience_s: float = PATIENCE_S) -> None:
        """No more faults: all who live come together, send a little more, and have nothing left to do. Then the run is
        over for the judge, and the workers end."""
        self.calm()
        alive = self.alive()
        for host in alive:
            self.read(host, True)
        self.say_healed()
        end = time.monotonic() + patience_s
        self.wait_for_view(alive, patience_s=patience_s)
        self.hush()
        self.send(total=20, rate=None)
        while True:
            left_s = max(1.0, end - time.monotonic())
            reports = self._answers(alive, "drain", left_s)
            ended_at = time.time_ns()
            again = self._answers(alive, "report", left_s)
            if _is_quiet(reports) and _is_quiet(again):
                break
            if time.monotonic() > end:
                raise Impatient(f"it never became quiet: {again}")
        self.reports = again
        append_cluster_event(self.folder, "ended", at=ended_at)
        self._end_all()

    def say_healed(self) -> None:
        """Tells the judge, once, that no more faults come."""
        if not self._is_healed:
            self._is_healed = True
            append_cluster_event(self.folder, "healed", alive=[self._process_text(host) for host in self.alive()])

    def _end_all(self) -> None:
        """Orderly, and without mercy for who does not."""
        alive = [self.lives[host] for host in self.alive()]
        for life in alive:
            life.may_end = True
            close_pipes(life.program, only_stdin=True)
        self.wait(lambda: all(life.has_ended for life in alive), "all workers end")
        for life in alive:
            life.program.wait(PATIENCE_S)

    def _process_text(self, host: Host) -> str:
        life = self.lives[host]
        assert life.process is not None
        return f"{life.name}'{incarnation_of(life.process)}"

    def verdict(self) -> Verdict:
        """What the checkers say of the traces, all promises in one; `verdicts` has them one by one."""
        self.verdicts = judge(self.folder).verdicts
        return combined(self.verdicts)


def rings_of(hosts: Hosts) -> list[dict[str, list[str]]]:
    """Of each segment: its hosts, and where each receives on its networks; nothing where there is one segment alone."""
    segments = range(hosts.segments) if hosts.segments > 1 else ()
    return [
        {
            str(host.number): [host.address(network, segment) for network in range(hosts.networks)]
            for host in hosts
            if segment in host.segments
        }
        for segment in segments
    ]


def _is_quiet(reports: dict[Host, dict[str, Any]]) -> bool:
    """Nobody has anything to do, in one configuration."""
    return all(report["idle"] and not report["sending"] for report in reports.values()) and (
        len({report["ring"] for report in reports.values()}) == 1
    )
