"""Daemons with a file: an operator adds and removes nodes, reloads, and makes mistakes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from ordercast import UsageError, connect
from ordercast.daemon.config.file import load_config
from ordercast.daemon.participant import NodeFailed
from ordercast.daemon.status.report import Meter, status_of
from ordercast.model.effects import AlarmKind, Enlisted
from ordercast.model.ids import NodeId
from ordercast.model.roster import Entry, Place, Roster
from tests.ports import free_ports

from .stage import Daemon, daemon, eventually, live

NAMES = {"alpha": 1, "beta": 2, "gamma": 3, "delta": 4}
UNKNOWN = AlarmKind.UNLISTED_NODE, AlarmKind.PACKETS_REFUSED
THREE = ("alpha", "beta", "gamma")


class Operator:
    """Writes files and starts daemons."""

    def __init__(self, folder: Path, transport: str) -> None:
        self.folder = folder
        self.transport = transport
        self.port = free_ports()

    def write(self, name: str, version: int, nodes: tuple[str, ...], extra: str = "") -> Path:
        """The cluster file of one host."""
        path = self.folder / f"{name}.toml"
        tables = [
            f'[nodes.{node}]\nid = {NAMES[node]}\naddress = "127.0.0.1"\n'
            f"token_port = {self.port + 2 * NAMES[node]}\ndata_port = {self.port + 2 * NAMES[node] + 1}\n"
            for node in nodes
        ]
        head = f'cluster = "lists {self.folder}"\nnodes_version = {version}\n[state]\nfolder = "state"\n'
        network = f'[network]\nport = {self.port}\ntransport = "{self.transport}"\n'
        ring = '[ring]\nannounce = "40ms"\nconsensus = "100ms"\n'
        path.write_text(head + network + ring + extra + "".join(tables))
        return path

    @asynccontextmanager
    async def running(self, name: str) -> AsyncIterator[Daemon]:
        async with daemon(self.folder / "run", load_config(self.folder / f"{name}.toml", name)) as started:
            yield started

    async def start(self, stack: AsyncExitStack, *names: str) -> list[Daemon]:
        return [await stack.enter_async_context(self.running(name)) for name in names]


async def ask(at: Daemon, **document: Any) -> dict[str, Any]:
    async with connect(at.unix) as me:
        return await me.manage(document)


async def together(daemons: list[Daemon], count: int) -> None:
    await eventually(lambda: all(len(each.host.members) == count for each in daemons))


@pytest.mark.parametrize("transport", ["multicast", "unicast"])
@live
async def test_a_node_is_added_and_removed_by_command(tmp_path: Path, transport: str) -> None:
    operator = Operator(tmp_path, transport)
    for name in THREE:
        operator.write(name, 1, THREE)
    operator.write("delta", 1, (*THREE, "delta"))
    async with AsyncExitStack() as stack:
        daemons = await operator.start(stack, *THREE)
        await together(daemons, 3)
        (delta,) = await operator.start(stack, "delta")
        ports = {"token_port": operator.port + 8, "data_port": operator.port + 9}
        added = await ask(daemons[1], do="add", name="delta", id=4, addresses=["127.0.0.1"], **ports)
        assert (added["version"], added["ordered"]) == (2, True)
        await together([*daemons, delta], 4)
        for name in THREE:
            assert (await ask(daemons[0], do="list"))["version"] == 2, name

        removed = await ask(daemons[2], do="remove", name="delta")
        assert [node["name"] for node in removed["nodes"]] == list(THREE)
        await together(daemons, 3)
        with pytest.raises(NodeFailed, match="does not have delta: it was removed"):
            await delta.host.wait_ended()
        await eventually(lambda: not delta.host.is_running)
        assert status_of(delta.host, Meter()).sockets.lanes, "it waits to be stopped, and tells its status meanwhile"
    async with AsyncExitStack() as stack:  # the stored list outranks the older file
        (alpha,) = await operator.start(stack, "alpha")
        assert (await ask(alpha, do="list"))["version"] == 3
        assert any("the stored node list is kept" in alarm.text for _, alarm in alpha.host.counters.alarms)


@pytest.mark.parametrize("transport", ["multicast", "unicast"])
@live
async def test_who_starts_too_early_ends_nobody_and_is_named(tmp_path: Path, transport: str) -> None:
    operator = Operator(tmp_path, transport)
    for name in THREE:
        operator.write(name, 1, THREE)
    operator.write("delta", 2, (*THREE, "delta"))
    async with AsyncExitStack() as stack:
        daemons = await operator.start(stack, *THREE)
        await together(daemons, 3)
        views = [len(each.host.counters.views) for each in daemons]
        (delta,) = await operator.start(stack, "delta")

        def is_named(each: Daemon) -> bool:
            """By name, or, where nobody sends to it and it cannot hear anybody, by what its seal tells."""
            told = [alarm.text for _, alarm in each.host.counters.alarms if alarm.kind in UNKNOWN]
            names = f"delta (node 4 at 127.0.0.1 port {operator.port + 8}", "node 4 has this cluster's key"
            return any(name in text for text in told for name in names)

        await eventually(lambda: all(map(is_named, daemons)))
        for each, name in zip(daemons[:2], THREE, strict=False):
            operator.write(name, 2, (*THREE, "delta"))
            assert (await ask(each, do="reload"))["changed"]
        assert [len(each.host.counters.views) for each in daemons] == views, "differing lists change no view"
        operator.write("gamma", 2, (*THREE, "delta"))
        await ask(daemons[2], do="reload")
        await together([*daemons, delta], 4)


@live
async def test_what_cannot_be_changed_is_refused_in_a_sentence_and_changes_nothing(tmp_path: Path) -> None:
    operator = Operator(tmp_path, "multicast")
    path = operator.write("alpha", 2, ("alpha", "beta"))
    async with operator.running("alpha") as alpha:
        for wrong, why in (
            ({"do": "add", "name": "beta", "id": 5, "addresses": ["127.0.0.1"]}, "beta is on the node list already"),
            ({"do": "add", "name": "new", "id": 2, "addresses": ["127.0.0.1"]}, "2 is the id of beta"),
            ({"do": "add", "name": "new", "id": 99999, "addresses": ["127.0.0.1"]}, "is a number within"),
            ({"do": "add", "name": "new", "id": 5, "addresses": ["nowhere"]}, "not an IP address"),
            ({"do": "add", "name": "new", "id": 5, "addresses": []}, "has one address"),
            ({"do": "add", "name": "a b", "id": 5, "addresses": ["127.0.0.1"]}, "has ' ' in it"),
            ({"do": "remove", "name": "nobody"}, "nobody is not on the node list, which has alpha, beta"),
            ({"do": "dance"}, "this daemon cannot do 'dance'"),
        ):
            with pytest.raises(UsageError, match=why):
                await ask(alpha, **wrong)
        async with connect(alpha.tcp) as remote:
            assert (await remote.manage({"do": "list"}))["version"] == 2
            with pytest.raises(UsageError, match="not over TCP"):
                await remote.manage({"do": "remove", "name": "beta"})

        operator.write("alpha", 2, ("alpha",))
        with pytest.raises(UsageError, match="raise nodes_version to 3"):
            await ask(alpha, do="reload")
        operator.write("alpha", 1, ("alpha",), '[[rights]]\nwho = ["cert:nobody"]\n')
        with pytest.raises(UsageError, match="has version 1 of the node list, this node has 2 already"):
            await ask(alpha, do="reload")
        async with connect(alpha.tcp) as remote:  # has the rights that it had
            await remote.join("orders")
        operator.write("alpha", 3, ("beta",))
        with pytest.raises(UsageError, match="there is no"):
            await ask(alpha, do="reload")
        path.write_text("cluster = ")
        with pytest.raises(UsageError, match="not TOML"):
            await ask(alpha, do="reload")
        assert (await ask(alpha, do="list"))["version"] == 2

        operator.write("alpha", 3, ("alpha",))
        assert [node["name"] for node in (await ask(alpha, do="reload"))["nodes"]] == ["alpha"]


@pytest.mark.parametrize("places", [("::1",), ("127.0.0.1", "127.0.0.1"), ("fe80::1", "::1")])
@live
async def test_nodes_that_cannot_be_reached_from_here_end_nobody(tmp_path: Path, places: tuple[str, ...]) -> None:
    """As a list that an earlier life stored, or that somebody forged, may have them."""
    operator = Operator(tmp_path, "unicast")
    for name in THREE:
        operator.write(name, 1, THREE)
    async with AsyncExitStack() as stack:
        daemons = await operator.start(stack, *THREE)
        await together(daemons, 3)
        odd = tuple(
            Entry(NodeId(node), name, tuple(Place(address, 9, 9) for address in places))
            for name, node in NAMES.items()
            if name != "delta"
        )
        delta = Entry(NodeId(NAMES["delta"]), "delta", odd[0].places)
        alpha = daemons[0].host
        roster = alpha.config.roster
        alpha.on_enlisted(Enlisted(roster, (delta,)))
        with pytest.raises(UsageError, match="has one address, of the same version of IP"):
            alpha.enlist(Roster(2, odd, is_ordered=True))
        async with connect(daemons[0].unix) as me:
            await me.send("g", b"still here", confirm=True)
        alpha.on_enlisted(Enlisted(Roster(2, odd)))
        assert [peer.name for peer in alpha.config.peers] == ["alpha"]
        alpha.on_enlisted(Enlisted(roster))
        await together(daemons, 3)
        alpha.check_running()


@live
async def test_two_operators_who_ask_for_the_same_change_at_once_are_both_told(tmp_path: Path) -> None:
    operator = Operator(tmp_path, "multicast")
    operator.write("alpha", 1, ("alpha", "beta"))
    async with operator.running("alpha") as alpha:
        asked = [ask(alpha, do="add", name="new", id=9, addresses=["127.0.0.1"]) for _ in range(2)]
        async with asyncio.timeout(100):
            answers = await asyncio.gather(*asked)
        assert [answer["version"] for answer in answers] == [2, 2]
