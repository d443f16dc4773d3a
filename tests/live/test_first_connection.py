"""A client may be there before its daemon; and whoever handles broken connections handles ours."""

from __future__ import annotations

import asyncio
import math
import socket
import threading
from pathlib import Path

import pytest

import ordercast
from ordercast import connect
from ordercast.api import target
from ordercast.archive.archiver import Archiver, Options
from ordercast.replicated import NotPrimary, ReplicaEnded
from tests.live.local_daemons import daemons, live


@live
async def test_a_client_waits_for_its_daemon_to_come_up(tmp_path: Path) -> None:
    missing = asyncio.Event()
    told: list[str] = []

    def on_lost(why: str) -> None:
        told.append(why)
        missing.set()

    async def early() -> str:
        async with connect(f"unix://{tmp_path}/n1.sock", name="early", wait=60, on_lost=on_lost) as me:
            return me.name

    waiting = asyncio.create_task(early())
    await missing.wait()
    async with daemons(tmp_path, "n1"):
        assert await waiting == "early@n1"
    (why,) = told
    assert why.startswith("no daemon can be reached within 60 s (unix://") and "No such file or directory" in why


@live
async def test_a_blocking_client_waits_too(tmp_path: Path) -> None:
    missing = threading.Event()

    def early() -> str:
        address = f"unix://{tmp_path}/n1.sock"
        with connect(address, name="early", wait=60, on_lost=lambda why: missing.set()) as me:
            return me.name

    waiting = asyncio.create_task(asyncio.to_thread(early))
    await asyncio.to_thread(missing.wait)
    async with daemons(tmp_path, "n1"):
        assert await waiting == "early@n1"


@live
async def test_an_archiver_waits_unless_it_is_told_not_to(tmp_path: Path) -> None:
    address = f"unix://{tmp_path}/n1.sock"
    told: asyncio.Queue[str] = asyncio.Queue()

    async def archive() -> str:
        async with Archiver(tmp_path / "a", ["orders"], Options(at=address), told.put_nowait) as archiver:
            return archiver.name

    waiting = asyncio.create_task(archive())
    assert (await told.get()).endswith("; looking for a daemon …")
    async with daemons(tmp_path, "n1"):
        assert (await waiting).endswith("@n1")
    with pytest.raises(ordercast.Unreachable):
        async with Archiver(tmp_path / "b", ["orders"], Options(at=address, wait_s=0)):
            pass


@live
async def test_without_a_wait_a_daemon_that_is_not_there_is_told_at_once(tmp_path: Path) -> None:
    for options in ({}, {"reconnect": True}, {"wait": 0}, {"wait": 0.01}):
        with pytest.raises(ordercast.Unreachable, match="no daemon can be reached"):
            async with connect(f"unix://{tmp_path}/nobody.sock", **options):
                pass


@live
async def test_a_daemon_that_would_not_have_us_is_not_waited_for(tmp_path: Path) -> None:
    async with daemons(tmp_path, "n1") as at, connect(at["n1"], name="alice"):
        with pytest.raises(ordercast.UsageError, match="is in use"):
            async with connect(at["n1"], name="alice", wait=math.inf):
                pass


@pytest.mark.parametrize("wait", [-1, "30", math.nan])
def test_what_is_no_time_to_wait_is_refused(wait: float) -> None:
    with pytest.raises(ordercast.UsageError, match="is no time to wait: give seconds"):
        connect(wait=wait)


def test_everything_that_users_meet_has_one_base_and_broken_connections_are_connection_errors() -> None:
    met = (ordercast.UsageError, ordercast.Unreachable, ordercast.ConnectionLost, ordercast.NodeFailed)
    for error in (*met, NotPrimary, ReplicaEnded):
        assert issubclass(error, ordercast.Error)
    for error in (ordercast.Unreachable, ordercast.ConnectionLost):
        assert issubclass(error, ConnectionError)
        assert str(error("what, why, what to do")) == "what, why, what to do"
    for error in (ordercast.UsageError, ordercast.NodeFailed):
        assert not issubclass(error, OSError)
    assert {"Error", "Unreachable"} <= set(ordercast.__all__)


@live
async def test_a_daemon_that_hangs_keeps_nobody_from_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(target, "QUICK_GREETING_S", 0.05)
    with socket.socket(socket.AF_UNIX) as hung:
        hung.bind(f"{tmp_path}/hung.sock")
        hung.listen()
        async with daemons(tmp_path, "n1"):
            where = f"unix://{tmp_path}/hung.sock unix://{tmp_path}/n1.sock"
            async with connect(where, name="a") as me:
                assert me.name == "a@n1"

            def blocking() -> str:
                with connect(where, name="b") as other:
                    return other.name

            assert await asyncio.to_thread(blocking) == "b@n1"
        monkeypatch.setattr(target, "GREETING_S", 0.1)
        with pytest.raises(ordercast.Unreachable, match="it did not greet"):
            async with connect(where):
                pass
