"""Replicas in blocking form: the same names as in asyncio, for threads."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

from ordercast import UsageError, connect
from ordercast.replicated import (
    BlockingBarrier,
    BlockingCounter,
    BlockingDictionary,
    BlockingLeader,
    BlockingLock,
    BlockingQueue,
    BlockingReplica,
    Counter,
    Dictionary,
    EverySide,
    Lock,
    Majority,
    Queue,
)
from ordercast.replicated.structures.barrier import BarrierFront
from ordercast.replicated.structures.counter import CounterFront
from ordercast.replicated.structures.dictionary import DictionaryFront
from ordercast.replicated.structures.leader import LeaderFront
from ordercast.replicated.structures.lock import LockFront
from ordercast.replicated.structures.queue import QueueFront
from tests.live.local_daemons import daemons, live

VOTERS = Majority({"a@n1": 1, "b@n1": 1})


@pytest.mark.parametrize(
    ("blocking", "front"),
    [
        (BlockingBarrier, BarrierFront),
        (BlockingCounter, CounterFront),
        (BlockingDictionary, DictionaryFront),
        (BlockingLeader, LeaderFront),
        (BlockingLock, LockFront),
        (BlockingQueue, QueueFront),
    ],
)
def test_every_name_of_a_front_is_there(blocking: type, front: type) -> None:
    special = {"__len__", "__contains__", "__iter__", "__getitem__"}

    def names(of: type) -> set[str]:
        return {name for name in dir(of) if not name.startswith("_") or (name in special and hasattr(of, name))}

    assert names(blocking) == names(front)


def test_a_structure_without_a_blocking_front_is_refused() -> None:
    class Own(Counter): ...

    connecting: Any = None
    with pytest.raises(UsageError, match="Own has no blocking front: give one with front="):
        BlockingReplica(connecting, "g", Own(), quorum=VOTERS)


@live
async def test_threads_share_what_is_replicated(tmp_path: Path) -> None:
    async with daemons(tmp_path, "n1") as at:
        await asyncio.to_thread(_share, at["n1"])


def _share(address: str) -> None:
    with (
        connect(address, name="a") as a,
        connect(address, name="b") as b,
        BlockingReplica(a, "accounts", Dictionary(), quorum=VOTERS) as one,
        BlockingReplica(b, "accounts", Dictionary(), quorum=VOTERS) as two,
        BlockingReplica(a, "turn", Lock(), quorum=VOTERS) as lock,
        BlockingReplica(b, "turn", Lock(), quorum=VOTERS) as other,
        BlockingReplica(a, "jobs", Queue(), quorum=EverySide(lambda sides: sides[0].state)) as jobs,
    ):
        for front in (one, two, lock, other, jobs):
            front.ready(timeout=20)
        changes = two.changes()
        one.set("alice", b"100")
        assert two.latest("alice") == b"100" and "alice" in two and len(two) == 1
        change: Any = next(changes)
        assert (change.key, change.value, change.by) == ("alice", b"100", "a@n1")
        assert not two.compare_and_set("alice", b"1", b"2").succeeded
        with lock.hold(timeout=20) as held:
            assert held.is_held and lock.holder is not None
            with pytest.raises(TimeoutError):
                other.acquire(timeout=0.01)
        with pytest.raises(ValueError, match="mine"), lock.hold():
            raise ValueError("mine")
        assert other.release(other.acquire(timeout=20))
        number = jobs.put("work")
        taking = threading.Thread(target=lambda: jobs.acknowledge(jobs.take(timeout=20)))
        taking.start()
        taking.join(20)
        assert (len(jobs), jobs.taken, number) == (0, 0, 2)  # 1 is the replica's own word that it is there
