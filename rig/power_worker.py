"""One host of a power cut: a node, a replica of a dictionary with a journal, and users who write without pause.

Started as `python -m rig.power_worker '<task>'`. It says, as JSON lines, when its copy is current, and how many of its
commands were confirmed. At the end of its input the users stop; then it records what it knows, and ends.
"""

from __future__ import annotations

import asyncio
import json
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

import ordercast
from ordercast.daemon.config.node import NetworkConfig
from ordercast.order.ring.config import RingConfig
from ordercast.replicated.arrival import Patience
from ordercast.replicated.chained import chained
from ordercast.replicated.quorum import Majority
from ordercast.replicated.recorded import RecordedReplica
from ordercast.replicated.replica import NotPrimary
from ordercast.replicated.structures.dictionary import Dictionary, DictionaryFront
from ordercast.trace.recording import Recorder
from rig.worker import protected, tell

USERS = 8
SETTLE_S = 0.2


@dataclass(frozen=True)
class PowerTask:
    node: int
    nodes: int
    cluster: str
    port: int
    folder: str  # of journals, states and records
    start: int  # which start of this host it is

    def text(self) -> str:
        return json.dumps(asdict(self))


async def work(task: PowerTask) -> None:
    folder = Path(task.folder)
    recorder = Recorder(folder / "records", f"n{task.node}-{task.start:04d}", survives_kill=True)
    network = NetworkConfig(port=task.port)
    state = folder / f"n{task.node}" / "state"
    state.mkdir(parents=True, exist_ok=True)
    config = ordercast.NodeConfig(
        name=f"n{task.node}", ring=RingConfig(cluster=task.cluster), network=network, state_folder=state
    )
    voices = {f"r@n{number}": 1 for number in range(1, task.nodes + 1)}
    async with ordercast.Node(config, name="r") as node:
        replica = RecordedReplica[DictionaryFront](
            recorder.replica,
            node,
            "accounts",
            chained(Dictionary),
            quorum=Majority(voices),
            journal=folder / f"n{task.node}" / "journal",
            patience=Patience(silence_s=2.0),
        )
        async with replica as front:
            await use(replica, front, task)
    recorder.close()


async def use(replica: RecordedReplica[DictionaryFront], front: DictionaryFront, task: PowerTask) -> None:
    lines = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    is_stopping = asyncio.Event()
    await front.ready()
    tell("current", commands=replica.age.commands)
    users = [asyncio.create_task(write(front, task, number, is_stopping)) for number in range(USERS)]
    await lines.readline()
    is_stopping.set()
    await asyncio.gather(*users)
    tell("stopped")
    await lines.readline()  # all have
    await settle(front)
    replica.say_known()
    tell("known", commands=replica.age.commands)
    await lines.readline()  # all have said so


async def settle(front: DictionaryFront) -> None:
    """On a busy machine views change by themselves."""
    while True:
        try:
            await front.ready()
            await front.synced()
            await asyncio.sleep(SETTLE_S)
        except NotPrimary:
            continue
        if front.age.is_current:
            return


async def write(front: DictionaryFront, task: PowerTask, user: int, is_stopping: asyncio.Event) -> None:
    number = 0
    while not is_stopping.is_set():
        number += 1
        try:
            await front.set(f"{task.node}/{user}", f"{task.start}/{number}")
        except NotPrimary:
            await asyncio.sleep(0.01)


def main() -> int:
    task = PowerTask(**json.loads(sys.argv[1]))
    return protected(lambda: work(task))


if __name__ == "__main__":
    sys.exit(main())
