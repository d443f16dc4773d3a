"""Clients of daemon processes: a client that is killed, a daemon that is killed under its clients."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import ordercast
from ordercast import ConnectionLost, Message, Reason, Reconnected, Transition, UsageError, View
from ordercast.cli.main import run
from tests.live.stage import joined, live, messages_of, messages_until, until, view_because, view_with
from tests.runtime.cluster import Cluster

TWO = ("alpha", "beta")
SENDER = """
import sys, ordercast
with ordercast.connect(sys.argv[1], name="victim") as me:
    me.join("orders")
    print("ready", flush=True)
    while True:
        me.send_many("orders", [b"x" * 500] * 20, self_discard=True)
"""


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    made = Cluster(tmp_path, "unicast")
    for name in TWO:
        made.start(name)
    for name in TWO:
        made.has_members(name, *TWO)
    yield made
    made.end()


@live
async def test_a_client_that_is_killed_while_it_sends_is_gone_at_everybody(cluster: Cluster) -> None:
    async with ordercast.connect(cluster.unix("alpha")) as here, ordercast.connect(cluster.unix("beta")) as there:
        await joined((here, there), "orders")
        for _ in range(3):  # its name is free again each time
            victim = subprocess.Popen(  # noqa: ASYNC220 (it is only started)
                [sys.executable, "-c", SENDER, cluster.unix("alpha")], stdout=subprocess.PIPE
            )
            try:
                assert victim.stdout is not None
                with victim.stdout:
                    assert await asyncio.to_thread(victim.stdout.readline) == b"ready\n"
                await messages_of(here, 200)
                with pytest.raises(UsageError, match="the name 'victim' is in use at alpha"):
                    await ordercast.connect(cluster.unix("alpha"), name="victim").__aenter__()
            finally:
                victim.send_signal(signal.SIGKILL)
                await asyncio.to_thread(victim.wait)
            seen = [await until(member, is_disconnection) for member in (here, there)]
            views = [events[-1] for events in seen]
            assert views[0] == views[1] and isinstance(views[0], View)
            assert (views[0].who, views[0].members) == (("victim@alpha",), tuple(sorted((here.name, there.name))))
            await there.send("orders", b"end", confirm=True)
            for member in (here, there):
                assert len(await messages_until(member, b"end")) == 1  # nothing comes after the view


def is_disconnection(event: object) -> bool:
    return isinstance(event, View) and event.reason is Reason.DISCONNECT


@live
async def test_a_daemon_that_is_killed_under_its_clients(cluster: Cluster) -> None:
    beta = cluster.unix("beta")
    async with (
        ordercast.connect(cluster.unix("alpha"), name="witness") as witness,
        ordercast.connect(beta, name="once") as once,
        ordercast.connect(beta, name="again", reconnect=True) as again,
    ):
        await joined((witness, once, again), "orders")
        before = await witness.send("orders", b"before", confirm=True)
        for member in (once, again):
            await messages_until(member, b"before")
        await asyncio.to_thread(cluster.stop, "beta", signal.SIGKILL)
        assert (cluster.folder / "beta.sock").exists()  # nobody tidied up

        with pytest.raises(ConnectionLost, match="the connection to the daemon broke"):
            await until(once, lambda event: False)
        with pytest.raises(ConnectionLost, match="connect again"):
            await once.send("orders", b"nobody")

        seen = await until(witness, lambda event: isinstance(event, View))
        view = seen[-1]
        assert isinstance(seen[-2], Transition) and seen[-2].remaining == (witness.name,)
        assert isinstance(view, View) and (view.reason, view.members) == (Reason.NETWORK, (witness.name,))

        cluster.start("beta")
        sending = asyncio.create_task(again.send("orders", b"after", confirm=True))  # waits for the daemon
        event = (await until(again, lambda event: isinstance(event, Reconnected)))[-1]
        assert isinstance(event, Reconnected)
        assert (event.name, event.joined, event.last) == ("again@beta", ("orders",), before)
        assert "the connection to the daemon broke" in event.why
        view = await view_because(again, Reason.JOIN)
        assert view.who == ("again@beta",)
        if view.members == view.who:  # its daemon was not yet together with the other
            await view_with(again, "witness@alpha", "again@beta")
        await view_with(witness, "witness@alpha", "again@beta")
        await sending
        assert await witness.groups() == {"orders": 2}
        await witness.send("orders", b"together", confirm=True)
        for member in (witness, again):
            assert (await messages_until(member, b"together"))[-1].sender == "witness@alpha"


@live
async def test_a_daemon_that_ends_in_order_says_so_and_its_clients_are_gone_from_their_groups(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    assert await asyncio.to_thread(run, ["send", "orders", "one", "--confirm", "--at", cluster.unix("beta")]) == 0
    assert capsys.readouterr().out.endswith(" (n1 is alpha)\n")  # of the place that the cluster's file calls so
    async with ordercast.connect(cluster.unix("alpha")) as witness, ordercast.connect(cluster.unix("beta")) as client:
        await joined((witness, client), "orders")
        assert await asyncio.to_thread(cluster.stop, "beta", signal.SIGTERM) == 0
        with pytest.raises(ConnectionLost, match="the daemon beta is being shut down"):
            await until(client, lambda event: isinstance(event, Message))
        view = await view_with(witness, witness.name)
        assert view.reason in (Reason.DISCONNECT, Reason.NETWORK)
        assert not (cluster.folder / "beta.sock").exists()


@live
async def test_whoever_sends_again_at_once_does_not_keep_its_client_from_finding_a_daemon(cluster: Cluster) -> None:
    addresses = f"{cluster.unix('alpha')} {cluster.unix('beta')}"
    async with ordercast.connect(addresses, reconnect=True) as client:
        await client.send("orders", b"first", confirm=True)
        link = client._link
        assert link is not None and link._transport is not None
        link._transport.close()  # what the event loop is still to tell
        failures = 0
        while failures < 100:
            try:
                await client.send("orders", b"second", confirm=True)
                break
            except ConnectionLost:
                failures += 1
        assert failures <= 1
