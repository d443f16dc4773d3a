"""No disk ends a daemon: three of them as processes, their disks full, refusing or gone, one of them killed."""

from __future__ import annotations

import asyncio
import resource
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import ordercast
from ordercast import connect
from ordercast.archive.reader import Archive
from ordercast.cli.daemons import ordercast_command
from ordercast.daemon.slots import found_in
from ordercast.daemon.storage import SMALL
from ordercast.model.events import Message
from ordercast.order.engine import CONFIGURATION_SEQ_KEY
from tests.runtime.cluster import NAMES, PATIENCE_S, Cluster

SURVIVORS = NAMES[:2]


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    made = Cluster(tmp_path, "unicast")
    try:
        yield made
    finally:
        for name in list(made.processes):
            made.stop(name, signal.SIGKILL)


@contextmanager
def small_disk(folder: Path, size: str = "512k") -> Iterator[None]:
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    made = subprocess.run(command, capture_output=True, text=True)
    if made.returncode:
        pytest.skip(f"a file system cannot be mounted here: {made.stderr.strip()}")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


def fill(folder: Path) -> Path:
    path = folder / "filler"
    with path.open("wb", buffering=0) as file, pytest.raises(OSError, match="No space"):
        while True:
            file.write(bytes(1 << 12))
    return path


def together(cluster: Cluster) -> None:
    for name in NAMES:
        cluster.start(name)
    for name in NAMES:
        cluster.status_when(name, is_of(3))


def is_of(count: int) -> Any:
    return lambda status: len(status["ring"]["members"]) == count and status["ring"]["state"] == "Operational"


def ring_seq(status: dict[str, Any]) -> int:
    return int(status["ring"]["id"].split(".")[0])


def stored(cluster: Cluster, name: str) -> int:
    """The ring seq on this one's disk."""
    data = (cluster.folder / "state" / name / f"{CONFIGURATION_SEQ_KEY}.slots").read_bytes()
    found = [slot for at in (0, SMALL) if (slot := found_in(CONFIGURATION_SEQ_KEY, data[at : at + SMALL]))]
    return int.from_bytes(max(found).value, "big")


def confirmed_over(cluster: Cluster, trouble: Any) -> None:
    """A client whose messages are confirmed before, during and after; it is never disconnected."""

    async def work() -> None:
        async with ordercast.connect(cluster.unix("alpha")) as me:
            await me.join("work")
            await me.send("work", b"before", confirm=True)
            during = asyncio.ensure_future(asyncio.to_thread(trouble))
            while not during.done():
                await me.send("work", b"during", confirm=True)
            await during
            await me.send("work", b"after", confirm=True)

    asyncio.run(asyncio.wait_for(work(), PATIENCE_S))


def kill_one(cluster: Cluster) -> dict[str, dict[str, Any]]:
    """What the others look like when they are by themselves."""
    cluster.stop("gamma", signal.SIGKILL)
    return {name: cluster.status_when(name, is_of(2)) for name in SURVIVORS}


def kinds(status: dict[str, Any]) -> list[str]:
    return [alarm["kind"] for alarm in status["alarms"] if "storage" in alarm["kind"]]


def is_written_on(cluster: Cluster, name: str) -> None:
    """Storage is in use, holds the newest ring, and never refused anything; a busy host may have been slow."""
    status = cluster.status_when(name, lambda status: is_of(2)(status) and status["storage"]["is_used"])
    assert stored(cluster, name) == ring_seq(status) and "storage failed" not in kinds(status)


def test_all_disks_are_full_and_one_host_is_killed(cluster: Cluster) -> None:
    """The room was set aside: storage stays in use."""
    with small_disk(cluster.folder / "state"):
        together(cluster)

        def trouble() -> None:
            fill(cluster.folder / "state")
            kill_one(cluster)
            for name in SURVIVORS:
                is_written_on(cluster, name)

        confirmed_over(cluster, trouble)
        for name in SURVIVORS:
            status = cluster.status_when(name, lambda status: any("0.0% free" in text for text in status["warnings"]))
            assert status["storage"]["free"] < 0.01
            assert cluster.stop(name, signal.SIGTERM) == 0


def test_all_disks_refuse_and_one_host_is_killed_and_the_disks_are_mended(cluster: Cluster) -> None:
    together(cluster)
    before = {name: stored(cluster, name) for name in SURVIVORS}

    def trouble() -> None:
        for name in NAMES:
            refuse_writes(cluster, name)
        for name in kill_one(cluster):
            status = cluster.status_when(name, lambda status: not status["storage"]["is_used"])
            assert stored(cluster, name) == before[name] < ring_seq(status)
            assert status["storage"]["error"] == "File too large"
            assert set(kinds(status)) == {"storage failed", "without storage"}
            assert any("goes on without stable storage" in text for text in status["warnings"])
        for name in SURVIVORS:
            refuse_writes(cluster, name, are_refused=False)
        for name in SURVIVORS:
            status = cluster.status_when(name, lambda status: status["storage"]["is_used"])
            assert stored(cluster, name) == ring_seq(status) > before[name]
            assert status["storage"]["error"] is None and kinds(status)[-1] == "storage repaired"

    confirmed_over(cluster, trouble)
    assert all(cluster.stop(name, signal.SIGTERM) == 0 for name in SURVIVORS)


def refuse_writes(cluster: Cluster, name: str, *, are_refused: bool = True) -> None:
    """Every write to a file fails, wherever it lies."""
    limit = 0 if are_refused else resource.RLIM_INFINITY
    resource.prlimit(cluster.processes[name].pid, resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))


def test_the_state_folders_are_removed_and_one_host_is_killed(cluster: Cluster) -> None:
    together(cluster)

    def trouble() -> None:
        shutil.rmtree(cluster.folder / "state")
        kill_one(cluster)
        for name in SURVIVORS:
            is_written_on(cluster, name)  # the folder was made anew

    confirmed_over(cluster, trouble)
    assert all(cluster.stop(name, signal.SIGTERM) == 0 for name in SURVIVORS)
    for name in SURVIVORS:
        cluster.start(name)
        cluster.status_when(name, is_of(1 if name == "alpha" else 2))


def test_a_start_with_a_full_disk_is_told(cluster: Cluster) -> None:
    with small_disk(cluster.folder / "state"):
        fill(cluster.folder / "state")
        cluster.start("alpha")
        assert cluster.processes.pop("alpha").wait(PATIENCE_S) == 2
    assert "cannot be used: No space left on device" in cluster.log("alpha").read_text()


# The archiver


class Archiver:
    """A process of `ordercast archive`."""

    def __init__(self, cluster: Cluster, folder: Path, *more: str) -> None:
        self.folder = folder
        self._log = cluster.folder / "archiver.log"
        command = ordercast_command("archive", "orders", "--dir", str(folder))
        with self._log.open("wb") as log:
            self.process = subprocess.Popen([*command, "--at", cluster.unix("alpha"), *more], stdout=log, stderr=log)

    def says(self) -> str:
        return self._log.read_text()

    def numbers(self) -> list[int]:
        try:
            found = [entry.entry for entry in Archive(self.folder).read("orders")]
        except (ordercast.UsageError, FileNotFoundError):
            return []
        return [int(entry.data[:8]) for entry in found if isinstance(entry, Message)]

    def end(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(PATIENCE_S)


def until(is_so: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < end, what
        time.sleep(0.02)


def test_an_archiver_waits_for_room_and_loses_nothing(cluster: Cluster) -> None:
    with small_disk(cluster.folder / "archive", "8m"):
        cluster.start("alpha")
        cluster.has_members("alpha", "alpha")
        archiver = Archiver(cluster, cluster.folder / "archive")
        try:
            with connect(cluster.unix("alpha")) as me:

                def send(first: int, count: int) -> None:
                    payloads = [b"%08d" % number * 125 for number in range(first, first + count)]
                    me.send_many("orders", payloads, confirm=True)

                until(lambda: "orders" in me.groups(), "the archiver does not join")
                send(0, 100)
                until(lambda: archiver.numbers() == list(range(100)), "nothing is archived")
                filler = fill(archiver.folder)
                send(100, 1000)
                until(lambda: "No space left on device" in archiver.says(), "it does not say that the disk is full")
                assert archiver.process.poll() is None
                send(1100, 1000)
                filler.unlink()
                until(lambda: archiver.numbers() == list(range(2100)), "not everything is archived")
            until(lambda: "the disk writes again" in archiver.says(), "it does not say that all is well")
            assert "Traceback" not in archiver.says() and archiver.says().count("No space") == 1
            fill(archiver.folder)
            assert archiver.end() == 0
        finally:
            archiver.process.kill()
            archiver.process.wait(PATIENCE_S)


def test_an_archiver_whose_folder_cannot_be_made_says_so(cluster: Cluster) -> None:
    (cluster.folder / "file").write_bytes(b"")
    archiver = Archiver(cluster, cluster.folder / "file" / "archive")
    assert archiver.process.wait(PATIENCE_S) == 2
    assert "cannot be used: Not a directory; make room there, or choose another" in " ".join(archiver.says().split())
    assert "Traceback" not in archiver.says()
