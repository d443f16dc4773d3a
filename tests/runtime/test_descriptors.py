"""Silent connections up to the limit of open files, then a member is killed: the daemon goes on."""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

import ordercast
from ordercast import UsageError
from tests.runtime.cluster import PATIENCE_S, Cluster

LIMIT = 160


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    made = Cluster(tmp_path, "unicast", "")
    try:
        yield made
    finally:
        made.end()


def test_silent_connections_do_not_take_what_the_ring_needs(cluster: Cluster) -> None:
    for name in ("alpha", "beta"):
        cluster.start(name, open_files=LIMIT)
    cluster.has_members("alpha", "alpha", "beta")
    with ExitStack() as stack:
        for _ in range(2 * LIMIT):
            silent = stack.enter_context(socket.socket(socket.AF_UNIX))
            silent.setblocking(False)
            if silent.connect_ex(str(cluster.folder / "alpha.sock")):
                break  # the backlog is full
        cluster.has_members("alpha", "alpha", "beta")
        cluster.stop("beta", signal.SIGKILL)
        status = cluster.has_members("alpha", "alpha")
        assert status["storage"]["is_used"] and status["storage"]["error"] is None

    async def served() -> None:
        """As soon as the silent ones are gone."""
        while True:
            with suppress(UsageError):
                async with ordercast.connect(cluster.unix("alpha")) as me:
                    await me.join("work")
                    await me.send("work", b"here", confirm=True)
                    return
            await asyncio.sleep(0.05)

    asyncio.run(asyncio.wait_for(served(), PATIENCE_S))
    assert cluster.stop("alpha", signal.SIGTERM) == 0
    texts = [line["text"] for line in cluster.lines("alpha")]  # every line is JSON
    assert any("room for 48 clients, and for 16 connections" in text for text in texts)
    assert any(f"a limit of {LIMIT} open files leaves room for 48 clients" in text for text in texts)
