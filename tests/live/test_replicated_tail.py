"""A joiner whose state takes its time: what comes meanwhile waits on disk, and is applied in slices."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from ordercast.replicated import replica as replica_module
from ordercast.replicated.core import Core
from ordercast.replicated.effects import Dial
from ordercast.replicated.replica import Replica, ReplicaEnded
from ordercast.replicated.spill import Spill
from ordercast.replicated.structures.dictionary import Dictionary, DictionaryFront
from ordercast.replicated.track import Held
from ordercast.replicated.transfer import Line
from tests.live.test_replicated import cluster, live, majority

COMMANDS = 300
BLOCK_SIZE = 2000


class Gate:
    """Transfers begin when it is opened."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self._is_open = False
        self._waiting: dict[Line, Dial] = {}
        self._right = Line.dial

        def dial(line: Line, dial: Dial) -> None:
            if self._is_open:
                self._right(line, dial)
            else:
                self._waiting[line] = dial

        patch.setattr(Line, "dial", dial)

    def open(self) -> None:
        self._is_open = True
        for line, dial in self._waiting.items():
            self._right(line, dial)


def core_of(front: DictionaryFront) -> Core:
    caller = front._caller
    assert isinstance(caller, Replica)
    return caller._desk.core


class Tails:
    """Makes tails of small blocks, and tells when one has got longer."""

    def __init__(self) -> None:
        self._longer = asyncio.Event()

    def __call__(self, folder: Path | None) -> Spill:
        tail = Spill(folder, BLOCK_SIZE)
        append = tail.append

        def append_and_tell(held: Held) -> None:
            append(held)
            self._longer.set()

        setattr(tail, "append", append_and_tell)  # noqa: B010 (a method of this one alone)
        return tail

    async def of(self, front: DictionaryFront, count: int) -> Spill:
        """What it is kept in, when there is so much."""
        while True:
            track = core_of(front)._exchange.track
            if track is not None and len(track.held) >= count:
                assert isinstance(track.held, Spill)
                return track.held
            self._longer.clear()
            await self._longer.wait()


def is_current(front: DictionaryFront) -> bool:
    return front.age.is_current


async def write(front: DictionaryFront, first: int = 0) -> None:
    for at in range(first, first + COMMANDS):
        await front.set(f"{at}", b"x" * 100)


@live
async def test_it_waits_on_disk_and_nothing_is_missing_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    tails = Tails()
    monkeypatch.setattr(replica_module, "Spill", tails)
    defaults = Core.__init__.__kwdefaults__
    assert defaults is not None
    monkeypatch.setitem(defaults, "slice_size", BLOCK_SIZE)
    gate = Gate(monkeypatch)
    async with cluster() as nodes:
        one, two = await nodes.replicas(Dictionary, "ab")
        await write(one)
        late = await nodes.replica("c", Dictionary(), majority("ab"))
        await asyncio.gather(write(one, 1000), write(two, 2000))
        tail = await tails.of(late, COMMANDS)
        assert tail.file_size > tail.memory_size
        assert not is_current(late)
        gate.open()
        await late.ready()
        assert is_current(late) and len(late) == 3 * COMMANDS
        await asyncio.gather(late.synced(), one.synced())
        assert late.items() == one.items()
        assert len(tail) == tail.file_size == 0


@live
async def test_its_file_goes_with_the_replica(monkeypatch: pytest.MonkeyPatch) -> None:
    tails = Tails()
    monkeypatch.setattr(replica_module, "Spill", tails)
    Gate(monkeypatch)
    async with cluster() as nodes:
        one, _ = await nodes.replicas(Dictionary, "ab")
        late = await nodes.replica("c", Dictionary(), majority("ab"))
        await write(one)
        tail = await tails.of(late, COMMANDS // 2)
        assert tail.file_size
        await nodes.stop("c")
        assert (len(tail), tail.file_size, tail._file) == (0, 0, None)


@live
async def test_a_disk_that_takes_nothing_ends_the_replica_with_the_reason(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    folder = tmp_path / "gone"
    monkeypatch.setattr(replica_module, "Spill", lambda _: Spill(folder, BLOCK_SIZE))
    Gate(monkeypatch)
    async with cluster() as nodes:
        one, _ = await nodes.replicas(Dictionary, "ab")
        late = await nodes.replica("c", Dictionary(), majority("ab"))
        waiting = asyncio.ensure_future(late.ready())
        await write(one)
        with pytest.raises(ReplicaEnded, match="No such file"):
            await waiting
        assert await one.latest("1") == b"x" * 100, "the others go on"
    assert not os.listdir(tmp_path)
