"""The replicas of one host in a process of their own: a dictionary, a counter and a lock, used without pause.

Started as `python -m rig.replica_worker '<task>'`. It is a client of the daemon of its host, which it finds again when
that was killed. It says, as JSON lines, what it remembers of each structure, and does what it is told: `stop` ends its
users, `report` tells counts and digests, `end` records what is known at last.
"""

from __future__ import annotations

import asyncio
import json
import sys
from contextlib import AsyncExitStack, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random
from typing import Any

import ordercast
from ordercast.api.member import Member
from ordercast.model.errors import UsageError
from ordercast.replicated.arrival import Patience
from ordercast.replicated.chained import chained
from ordercast.replicated.effects import Changed, Reason, Standing
from ordercast.replicated.quorum import Majority
from ordercast.replicated.recorded import RecordedReplica
from ordercast.replicated.replica import NotPrimary, ReplicaEnded
from ordercast.sim.users import User, kind_of, user_of
from ordercast.trace.recording import Recorder
from rig.worker import Order, protected, tell

KINDS = ("dictionary", "counter", "lock")
RETRY_S = 0.05
SILENCE_S = 1.0  # shorter than the longest pause of a replica: some are excluded by the others


@dataclass(frozen=True)
class ReplicaTask:
    node: int
    nodes: int
    daemon: str  # address of the daemon of this host
    host: str  # where others fetch a state from
    folder: str  # of what is recorded
    seed: int
    pause_s: float = 0.1  # of a user between two operations, in the mean

    def text(self) -> str:
        return json.dumps(asdict(self))


class Used:
    """A replica of one structure, and those who use it."""

    def __init__(self, kind: str, task: ReplicaTask, member: Member, recorder: Recorder) -> None:
        self.kind = kind
        self._rng = Random(f"{kind} {task.seed}")
        self._pause_s = task.pause_s
        voices = tuple(f"r@n{number}" for number in range(1, task.nodes + 1))
        structure, arguments = kind_of(kind)
        self.replica: RecordedReplica[Any] = RecordedReplica(
            recorder.replica,
            member,
            kind,
            chained(structure, *arguments),
            quorum=Majority(dict.fromkeys(voices, 1)),
            on_changed=self._hear,
            host=task.host,
            patience=Patience(silence_s=SILENCE_S),
        )
        self.remembers = False
        self.is_stopping = asyncio.Event()
        self.is_over = asyncio.Event()

    def state(self) -> list[int]:
        """Its commands, the digest of its state, and what is still underway."""
        known = self.replica.known()
        return [known.count, known.chain, known.waiting, known.is_primary and known.is_holder]

    def _hear(self, event: Changed) -> None:
        is_current = event.is_primary and event.standing is Standing.HOLDER
        remembers = is_current or (self.remembers and event.reason not in (Reason.CUT_OFF, Reason.LOST))
        if remembers != self.remembers:
            self.remembers = remembers
            tell("remembers", kind=self.kind, so=remembers)

    async def use(self) -> None:
        user = user_of(self.replica.structure, self.replica.me)
        while not self.is_stopping.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(self.is_stopping.wait(), self._rng.expovariate(1 / self._pause_s))
            if self.is_stopping.is_set():
                return
            chance = self._rng.random()
            with suppress(NotPrimary):
                if chance < 0.7:
                    await self.replica.submit(user.operation(self._rng))
                elif chance < 0.85:  # a linearised read: of the copy, in the same breath as its place is known
                    await self.replica.synced()
                    self._look(user)
                else:
                    self._look(user)

    def _look(self, user: User) -> None:
        question = user.question(self._rng)
        self.replica.look(question, user.answer(question))


class ReplicaWorker:
    def __init__(self, task: ReplicaTask) -> None:
        self._task = task
        self._used: list[Used] = []
        self._recorder = Recorder(Path(task.folder), f"r-n{task.node}", survives_kill=True)

    async def run(self) -> None:
        lines = asyncio.StreamReader()
        await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
        async with AsyncExitStack() as stack:
            member = await self._connected(stack)
            tell("started")
            self._used = [Used(kind, self._task, member, self._recorder) for kind in KINDS]
            async with asyncio.TaskGroup() as tasks:
                users = tasks.create_task(self._serve())
                await self._obey_all(lines, users)
        self._recorder.close()

    async def _connected(self, stack: AsyncExitStack) -> Member:
        """The daemon may be down, or may not know yet that the last life of this process is over."""
        while True:
            connecting = ordercast.connect(self._task.daemon, name="r", reconnect=True)
            try:
                return await stack.enter_async_context(connecting)
            except (UsageError, OSError, ordercast.ConnectionLost):
                await asyncio.sleep(RETRY_S)

    async def _serve(self) -> None:
        """Enter all, use them, and leave them when everybody has stopped."""
        async with AsyncExitStack() as stack:
            for used in self._used:
                await stack.enter_async_context(used.replica)
            await asyncio.gather(*(used.use() for used in self._used for _ in range(2)))
            tell("stopped")
            await asyncio.gather(*(used.is_over.wait() for used in self._used))

    async def _obey_all(self, lines: asyncio.StreamReader, users: asyncio.Task[None]) -> None:
        while line := await lines.readline():
            self._obey(json.loads(line))
        for used in self._used:
            used.is_stopping.set()
            used.is_over.set()
        await users

    def _obey(self, order: Order) -> None:
        match order["do"]:
            case "stop":
                for used in self._used:
                    used.is_stopping.set()
            case "report":
                tell("answer", to=order["id"], report={used.kind: used.state() for used in self._used})
            case "end":
                for used in self._used:
                    used.replica.say_known()
                tell("answer", to=order["id"], report={})
            case unknown:
                raise ValueError(f"what is {unknown}?")


def main() -> int:
    task = ReplicaTask(**json.loads(sys.argv[1]))

    async def work() -> None:
        try:
            await ReplicaWorker(task).run()
        except* ReplicaEnded as group:
            tell("failed", why=str(group.exceptions[0]))

    return protected(work)


if __name__ == "__main__":
    sys.exit(main())
