"""Rings on the loopback interface, joined by gateways: one order, whatever happens to a gateway."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from ordercast import Node
from ordercast.checker import Checkers, Outcome
from ordercast.cli.daemons import start_daemon
from ordercast.daemon import management
from ordercast.daemon.config.file import load_config
from ordercast.daemon.config.node import TraceConfig, TraceLevel
from ordercast.daemon.status.report import status_of
from ordercast.model.configuration import ChangeReason, Configuration
from ordercast.model.effects import AlarmKind
from ordercast.model.errors import UsageError
from ordercast.model.ids import Position, node_of
from ordercast.trace.cluster import append_cluster_event
from ordercast.trace.folder import read_live
from tests.live.ring_files import ring_file
from tests.live.stage import eventually, joined, live, messages_of
from tests.ports import free_ports

TWO = {"office": ("a", "b", "g"), "lab": ("c", "d", "g")}


class Watched:
    """An embedded node of a file, and the configurations that it went through."""

    def __init__(self, file: Path, name: str, trace: TraceConfig | None = None) -> None:
        self.configurations: list[Configuration] = []
        config = load_config(file, name)
        config = config if trace is None else replace(config, trace=trace)
        self.node = Node(config, name=f"at-{name}", on_configuration=self.configurations.append)

    @property
    def names(self) -> list[str]:
        return sorted(self.node.host.name_of(member) for member in self.node.host.members)


async def together(stack: AsyncExitStack, file: Path, *names: str, trace: TraceConfig | None = None) -> list[Watched]:
    watched = [Watched(file, name, trace) for name in names]
    for one in watched:
        await stack.enter_async_context(one.node)
    await eventually(lambda: all(one.names == sorted(names) for one in watched))
    return watched


@pytest.mark.parametrize(
    ("transport", "networks"), [("multicast", {}), ("unicast", {}), ("multicast", {"lab": 2})], ids=str
)
@live
async def test_what_is_sent_anywhere_comes_in_one_order_everywhere(
    tmp_path: Path, transport: str, networks: Mapping[str, int]
) -> None:
    file = ring_file(tmp_path, TWO, transport=transport, networks=networks)
    trace = TraceConfig(TraceLevel.FULL, tmp_path / "traces")
    async with AsyncExitStack() as stack:
        watched = await together(stack, file, *"abcdg", trace=trace)
        nodes = [one.node for one in watched]
        await joined(nodes, "room")
        for number in range(100):
            await nodes[number % 5].send("room", f"{number}".encode())
        await nodes[0].send("room", b"large" * 1000)
        heard = [[message.data for message in await messages_of(node, 101)] for node in nodes]
        assert all(one == heard[0] for one in heard) and len(set(heard[0])) == 101
        status = status_of(nodes[4].host)
        assert status.engine == "gateways" and not status.configuration.missing
        assert [network.state for network in status.networks] == ["good"] * networks.get("lab", 0)
        await eventually(lambda: all(node.host.engine.is_idle() for node in nodes))
        append_cluster_event(trace.folder, "healed")
        append_cluster_event(trace.folder, "ended")
    checkers = Checkers()
    for event in read_live(trace.folder).events():
        checkers.observe(event)
    assert checkers.verdict().outcome is Outcome.VALID, checkers.verdict().sentence


@live
async def test_rings_on_one_multicast_group_are_crossed(tmp_path: Path) -> None:
    """They work, as each refuses the packets of the other, and a person is told, by name where packets are clear."""
    file = ring_file(tmp_path, TWO, crossed=True, more="[security]\ninsecure = true")
    async with AsyncExitStack() as stack:
        watched = await together(stack, file, "a", "c", "g")
        alarms = [alarm for one in watched for _, alarm in one.node.host.counters.alarms]
        crossed = [alarm.text for alarm in alarms if alarm.kind is AlarmKind.CONFIGURATION_MISMATCH]
        assert any("domains are crossed" in text and "'office'" in text and "'lab'" in text for text in crossed), alarms


@live
async def test_a_gateway_is_killed_and_comes_back(tmp_path: Path) -> None:
    """Without it there are two networks, and each says why; with it there is one again."""
    file = ring_file(tmp_path, TWO, more='[state]\nfolder = "state"')
    async with AsyncExitStack() as stack:
        watched = [Watched(file, name) for name in "abcd"]
        for one in watched:
            await stack.enter_async_context(one.node)
        for is_back in (False, True):
            process = await start_daemon("--config", str(file), "--name", "g")
            reading = asyncio.create_task(process.communicate())
            await eventually(lambda: all(one.names == list("abcdg") for one in watched))
            before = [one.configurations[-1] for one in watched]
            reasons = [{configuration.reason for configuration in one.configurations} for one in watched]
            assert all(ChangeReason.RINGS_MERGED in each for each in reasons)
            process.kill()
            await reading
            if is_back:
                break
            await eventually(lambda: [one.names for one in watched] == [["a", "b"]] * 2 + [["c", "d"]] * 2)
            for one, last in zip(watched, before, strict=True):
                later = one.configurations[one.configurations.index(last) + 1 :]
                assert ChangeReason.RING_CUT_OFF in {configuration.reason for configuration in later}
                assert all(after.id > last.id for after in later)
    assert {node_of(member) for member in before[0].members} == {1, 2, 3, 4, 5}


@live
async def test_ids_rise_over_a_restart_of_all(tmp_path: Path) -> None:
    """Each ring stores its own, and all share the clock."""
    file = ring_file(tmp_path, {"office": ("a", "g"), "lab": ("c", "g")}, more='[state]\nfolder = "state"')
    last: Configuration | None = None
    for _ in range(2):
        async with AsyncExitStack() as stack:
            watched = await together(stack, file, "a", "c", "g")
            configuration = watched[0].configurations[0]
            assert last is None or configuration.id > last.id
            last = watched[0].configurations[-1]
    stored = {path.stem for path in (tmp_path / "state" / "g").iterdir() if path.name != "lock"}
    assert stored >= {"office.configuration_seq", "lab.configuration_seq", "clock", "incarnation"}


@live
async def test_a_node_is_added_to_a_ring_by_a_reload_of_the_file(tmp_path: Path) -> None:
    """Each ring has a node list of its own; all nodes are shown, and changed in the file alone."""
    before = {"office": ("a", "g"), "lab": ("c", "g")}
    after = {"office": ("a", "g"), "lab": ("c", "g", "z")}
    port, name = free_ports(), f"reloaded {os.getpid()}"
    file = ring_file(tmp_path, before, port=port, cluster=name)
    async with AsyncExitStack() as stack:
        watched = await together(stack, file, "a", "c", "g")
        hosts = [one.node.host for one in watched]
        for host in hosts:
            host.as_loaded = load_config(file, host.config.name)
        ring_file(tmp_path, after, port=port, cluster=name, more="nodes_version = 2")
        for host in hosts:
            document = await management.reload(host)
            assert document["changed"] and document["version"] == 2
            assert document["restart"] == [] and ("z", 0) in host.config.status.ports
        new = Watched(file, "z")
        await stack.enter_async_context(new.node)
        await eventually(lambda: all(one.names == ["a", "c", "g", "z"] for one in (*watched, new)))
        rings = {node["name"]: list(node["rings"]) for node in management.listing(hosts[0])["nodes"]}
        assert rings == {"a": ["office"], "c": ["lab"], "g": ["office", "lab"], "z": ["lab"]}
        with pytest.raises(UsageError, match="each ring of a network has a node list of its own: change the file"):
            await management.manage(hosts[0], {"do": "remove", "name": "z"})
        places = await management.manage(hosts[0], {"do": "places"})
        assert places == {"daemon": "a", "status": None, "nodes": dict.fromkeys("acgz")}


@live
async def test_a_cluster_goes_from_one_ring_to_several_and_back(tmp_path: Path) -> None:
    """Places of messages rise, whichever engine runs."""
    file = ring_file(tmp_path, {"office": ("a", "g"), "lab": ("c", "g")}, more='[state]\nfolder = "state"')
    plain = tmp_path / "plain.toml"
    text = file.read_text(encoding="utf-8").partition("[rings.")[0]
    port = free_ports()
    text += f"[network]\nport = {port}\n"
    text += "".join(
        f'[nodes.{name}]\nid = {node}\naddress = "127.0.9.{node}"\nstatus_port = 0\n'
        for node, name in enumerate("acg", 1)
    )
    plain.write_text(text, encoding="utf-8")
    places: list[Position] = []
    for chosen in (plain, file, plain, file):
        async with AsyncExitStack() as stack:
            watched = await together(stack, chosen, "a", "c", "g")
            await watched[0].node.join("room")
            place = await watched[0].node.send("room", b"here", confirm=True)
            assert place is not None
            places.append(place)
    assert places == sorted(places) and len(set(places)) == 4


def test_an_engine_of_one_ring_is_refused(tmp_path: Path) -> None:
    config = load_config(ring_file(tmp_path, {"office": ("a", "g"), "lab": ("c", "g")}), "g")
    with pytest.raises(UsageError, match="the engine 'ring' is for one ring, and the file has"):
        Node(replace(config, engine="ring"))
