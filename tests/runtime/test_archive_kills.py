"""Archivers as processes, killed with -9 while messages come, and their daemons too: what is left is readable, and goes
on without gap or duplicate."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import pytest

from ordercast import connect
from ordercast.archive.entries import record_bytes
from ordercast.archive.reader import Archive
from ordercast.model.errors import UsageError
from ordercast.model.events import Message
from tests.runtime.cluster import NAMES, PATIENCE_S, Cluster, forked_command

KILLS = int(os.environ.get("ORDERCAST_KILLS", "3"))
PAUSE_S = 0.05  # between what is sent: there is always something under way, and not more than is needed
LOOK_S = 0.1  # between two looks, each of which reads a whole archive


class Archivers:
    """Processes of `ordercast archive`."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.processes: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, name: str, *daemons: str) -> None:
        at = " ".join(self._cluster.unix(daemon) for daemon in daemons)
        folder = self._cluster.folder / name
        arguments = ("archive", "orders", "--dir", str(folder), "--at", at, "--segment-size", "64KiB", "--json")
        with (self._cluster.folder / f"{name}.archiver.log").open("ab") as log:
            self.processes[name] = forked_command(*arguments, imports=["ordercast.archive.archiver"], log=log)

    def kill(self, name: str) -> None:
        process = self.processes.pop(name)
        process.kill()
        process.wait(PATIENCE_S)

    def end(self) -> None:
        for name in list(self.processes):
            self.kill(name)


class Sender(threading.Thread):
    """Sends numbers, and knows which were confirmed."""

    def __init__(self, at: str) -> None:
        super().__init__(daemon=True)
        self._at = at
        self.confirmed = 0
        self.is_over = threading.Event()

    def run(self) -> None:
        with connect(self._at, name="sender") as me:
            while not self.is_over.wait(PAUSE_S):
                payloads = [b"%d" % number for number in range(self.confirmed, self.confirmed + 20)]
                me.send_many("orders", payloads, confirm=True)
                self.confirmed += 20


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[tuple[Cluster, Archivers]]:
    cluster = Cluster(tmp_path, "unicast")
    archivers = Archivers(cluster)
    try:
        for name in NAMES:
            cluster.start(name)
        cluster.has_members("alpha", *NAMES)
        yield cluster, archivers
    finally:
        archivers.end()
        cluster.end()


def until(is_so: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < end, what
        time.sleep(LOOK_S)


def numbers(archive: Archive) -> list[int]:
    return [int(entry.entry.data) for entry in archive.read("orders") if isinstance(entry.entry, Message)]


def has(archive: Archive, number: int) -> bool:
    try:
        return any(found >= number for found in numbers(archive))
    except (UsageError, FileNotFoundError):
        return False


def records(archive: Archive) -> dict[object, bytes]:
    return {entry.place: record_bytes(entry.place, entry.entry) for entry in archive.read("orders")}


def test_archivers_and_daemons_that_are_killed(stage: tuple[Cluster, Archivers]) -> None:
    cluster, archivers = stage
    draw = Random(4)
    one, other = Archive(cluster.folder / "one"), Archive(cluster.folder / "other")
    archivers.start("other", "gamma")
    until(lambda: (cluster.folder / "other" / "orders" / "tip").exists(), "the first archiver does not begin")
    until(lambda: other.tip("orders") is not None, "the first archiver writes nothing")
    sender = Sender(cluster.unix("gamma"))
    sender.start()
    archivers.start("one", "alpha", "beta")
    for turn in range(KILLS):
        mark = sender.confirmed
        until(lambda mark=mark: has(one, mark), "the archiver does not come along")  # type: ignore[misc]
        if turn % 3 == 2:
            cluster.stop("alpha", signal.SIGKILL)  # the archiver finds another daemon
            cluster.start("alpha")
        else:
            archivers.kill("one")
            before = sender.confirmed
            until(lambda before=before: sender.confirmed > before + draw.randrange(100), "nothing is sent")  # type: ignore[misc]
            archivers.start("one", "alpha", "beta")
    sender.is_over.set()
    sender.join(PATIENCE_S)
    last = sender.confirmed - 1
    until(lambda: has(one, last) and has(other, last), "the end does not come")
    assert numbers(other) == list(range(sender.confirmed))
    assert numbers(one) == list(range(sender.confirmed))
    ours, theirs = records(one), records(other)
    assert len(ours.keys() & theirs.keys()) > sender.confirmed
    assert all(theirs[place] == ours[place] for place in ours.keys() & theirs.keys())


def test_a_side_that_was_away_is_a_branch_and_then_all_go_on_together(stage: tuple[Cluster, Archivers]) -> None:
    cluster, archivers = stage
    one, other = Archive(cluster.folder / "one"), Archive(cluster.folder / "other")
    archivers.start("one", "alpha")
    until(lambda: exists(one), "the first archiver does not begin")
    archivers.start("other", "gamma")
    until(lambda: exists(other) and one.tip("orders") == other.tip("orders"), "the second archiver does not begin")
    with connect(cluster.unix("gamma")) as me:
        me.send("orders", b"0", confirm=True)
        cluster.processes["alpha"].send_signal(signal.SIGSTOP)
        cluster.has_members("gamma", "beta", "gamma")
        me.send("orders", b"1", confirm=True)
        cluster.processes["alpha"].send_signal(signal.SIGCONT)
        cluster.has_members("gamma", *NAMES)
        until(lambda: one.tip("orders") == other.tip("orders"), "the archivers do not come together")
        me.send("orders", b"2", confirm=True)
        until(lambda: has(one, 2) and has(other, 2), "the last message is not written")
    assert numbers(other) == [0, 1, 2]
    until(lambda: same_branches(one, other), "the other side's branch is not fetched")
    causes = sorted(branch.cause.value for branch in other.group("orders").tree().values())
    assert causes == ["fork", "fork", "merge", "root"]
    assert numbers(one) == [0, 2], "what the other side had is a branch beside its own history"
    ours, theirs = records(one), records(other)
    assert all(theirs[place] == ours[place] for place in ours.keys() & theirs.keys())
    tip = other.tip("orders")
    assert tip is not None and tip in ours and tip in theirs


def exists(archive: Archive) -> bool:
    try:
        return archive.tip("orders") is not None
    except UsageError:
        return False


def same_branches(one: Archive, other: Archive) -> bool:
    return set(one.group("orders").tree()) == set(other.group("orders").tree())
