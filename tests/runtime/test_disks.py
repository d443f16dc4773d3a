"""No disk ends a daemon: three of them as processes, their disks full, refusing or gone, one of them killed."""

from __future__ import annotations

import asyncio
import resource
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import ordercast
from ordercast.daemon.slots import found_in
from ordercast.daemon.storage import SMALL
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
def small_disk(folder: Path) -> Iterator[None]:
    folder.mkdir()
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs", folder], capture_output=True, text=True)
    if made.returncode:
        pytest.skip(f"a file system cannot be mounted here: {made.stderr.strip()}")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


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
    data = (cluster.folder / "state" / name / "ring_seq.slots").read_bytes()
    found = [slot for at in (0, SMALL) if (slot := found_in("ring_seq", data[at : at + SMALL]))]
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


def test_all_disks_are_full_and_one_host_is_killed(cluster: Cluster) -> None:
    """The room was set aside: storage stays in use."""
    with small_disk(cluster.folder / "state"):
        together(cluster)

        def trouble() -> None:
            with (cluster.folder / "state" / "filler").open("wb") as file, pytest.raises(OSError, match="No space"):
                while True:
                    file.write(bytes(1 << 16))
                    file.flush()
            for name, status in kill_one(cluster).items():
                assert stored(cluster, name) == ring_seq(status)
                assert status["storage"]["is_used"] and kinds(status) == []

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
        for name, status in kill_one(cluster).items():
            assert stored(cluster, name) == ring_seq(status), "the folder was made anew"
            assert status["storage"]["is_used"] and kinds(status) == []

    confirmed_over(cluster, trouble)
    assert all(cluster.stop(name, signal.SIGTERM) == 0 for name in SURVIVORS)
    for name in SURVIVORS:
        cluster.start(name)
        cluster.status_when(name, is_of(1 if name == "alpha" else 2))


def test_a_start_with_a_full_disk_is_told(cluster: Cluster) -> None:
    with small_disk(cluster.folder / "state"):
        with (cluster.folder / "state" / "filler").open("wb") as file, pytest.raises(OSError, match="No space"):
            while True:
                file.write(bytes(1 << 16))
                file.flush()
        cluster.start("alpha")
        assert cluster.processes.pop("alpha").wait(PATIENCE_S) == 2
    assert "cannot be used: No space left on device" in cluster.log("alpha").read_text()
