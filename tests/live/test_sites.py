"""Sites on the loopback interface, joined by links: one order over all, whatever happens to a daemon or a link."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from ordercast import Node
from ordercast.checker import Checkers, Outcome
from ordercast.cli.daemons import start_daemon
from ordercast.cli.wide_area import LOCALHOST, WideArea, WidePort
from ordercast.daemon.config.file import load_config
from ordercast.daemon.config.node import TraceConfig, TraceLevel
from ordercast.daemon.status.report import status_of
from ordercast.daemon.status.sites_section import SitesSection
from ordercast.model.configuration import ChangeReason, Configuration
from ordercast.model.ids import MILLISECOND, NodeId
from ordercast.model.service import Service
from ordercast.order.catalogue import ENGINES
from ordercast.replicated import Dictionary, Majority, Replica
from ordercast.trace.cluster import append_cluster_event
from ordercast.trace.folder import read_live
from tests.live.site_files import site_file
from tests.live.stage import eventually, joined, live, messages_of
from tests.ports import free_ports

pytestmark = pytest.mark.skipif(not ENGINES["sites"].is_live, reason="daemons do not run the engine yet")

THREE = {"east": ("a", "b"), "west": ("c", "d"), "south": ("e",)}


class Watched:
    """An embedded node of a file, and the configurations that it went through."""

    def __init__(self, file: Path, name: str, trace: TraceConfig) -> None:
        self.configurations: list[Configuration] = []
        config = replace(load_config(file, name), trace=trace)
        self.node = Node(config, name=f"at-{name}", on_configuration=self.configurations.append)

    @property
    def names(self) -> str:
        return "".join(sorted(self.node.host.name_of(member) for member in self.node.host.members))

    @property
    def reasons(self) -> set[ChangeReason]:
        return {configuration.reason for configuration in self.configurations}

    @property
    def section(self) -> SitesSection:
        section = status_of(self.node.host).section
        assert isinstance(section, SitesSection)
        return section


async def started(stack: AsyncExitStack, file: Path, names: str, trace: TraceConfig) -> list[Watched]:
    watched = [Watched(file, name, trace) for name in names]
    for one in watched:
        await stack.enter_async_context(one.node)
    return watched


def are_together(watched: list[Watched], names: str) -> Callable[[], bool]:
    return lambda: all(one.names == names for one in watched)


def judged(folder: Path) -> None:
    """See that every promise was kept."""
    checkers = Checkers()
    for event in read_live(folder).events():
        checkers.observe(event)
    assert checkers.verdict().outcome is Outcome.VALID, checkers.verdict().sentence


@pytest.mark.parametrize("protocol", [pytest.param("udp", marks=pytest.mark.long), "tcp"])
@live
async def test_what_is_sent_anywhere_comes_in_one_order_everywhere(tmp_path: Path, protocol: str) -> None:
    """Over a line of links, of which one has the protocol."""
    links = [f'between = ["east", "west"]\nprotocol = "{protocol}"', 'between = ["west", "south"]']
    file, trace = site_file(tmp_path, THREE, links=links), TraceConfig(TraceLevel.FULL, tmp_path / "traces")
    async with AsyncExitStack() as stack:
        watched = await started(stack, file, "abcde", trace)
        await eventually(are_together(watched, "abcde"))
        nodes = [one.node for one in watched]
        await joined(nodes, "room")
        for number in range(50):
            await nodes[number % 5].send("room", f"{number}".encode())
        await nodes[4].send("room", b"large" * 1000, service=Service.SAFE)
        heard = [[message.data for message in await messages_of(node, 51)] for node in nodes]
        assert all(one == heard[0] for one in heard) and len(set(heard[0])) == 51
        section = watched[2].section
        assert section.is_representative and {link.site for link in section.links if link.state == "up"} == {
            *("east", "south"),
        }
        assert section.trees["east"] == {"west": "east", "south": "west"}
        assert not status_of(nodes[0].host).configuration.missing
        await eventually(lambda: all(node.host.engine.is_idle() for node in nodes))
        append_cluster_event(trace.folder, "healed")
        append_cluster_event(trace.folder, "ended")
    judged(trace.folder)


@live
async def test_a_daemon_is_killed_and_a_link_is_cut_and_mended(tmp_path: Path) -> None:
    first = free_ports()
    ports = {name: WidePort(NodeId(node), first + 2 * node, first + 2 * node + 1) for node, name in enumerate("acd", 1)}
    wide = {name: (port.reached, port.listens) for name, port in ports.items()}
    clear = "[security]\ninsecure = true"  # whoever cuts reads who sends
    file = site_file(tmp_path, {"east": ("a",), "west": ("c", "d")}, wide=wide, more=clear)
    trace = TraceConfig(TraceLevel.FULL, tmp_path / "traces")
    async with AsyncExitStack() as stack:
        area = await stack.enter_async_context(WideArea(ports.values(), 5 * MILLISECOND))
        watched = await started(stack, file, "ad", trace)
        arguments = ("--config", str(file), "--name", "c", "--trace", str(trace.folder), "--trace-level", "full")
        process = await start_daemon(*arguments)
        reading = asyncio.create_task(process.communicate())
        await eventually(are_together(watched, "acd"))
        a, d = (one.node for one in watched)
        await joined([a, d], "room")
        await a.send("room", b"before", confirm=True)
        process.kill()  # who spoke for west
        await reading
        append_cluster_event(trace.folder, "crashed", process="c")
        await eventually(are_together(watched, "ad"))
        assert all(ChangeReason.SITE_RING_CHANGED in one.reasons for one in watched)
        area.cut([NodeId(1)], [NodeId(3)])
        await eventually(lambda: [one.names for one in watched] == ["a", "d"])
        assert all(ChangeReason.SITE_LOST in one.reasons for one in watched)
        assert "nothing was heard" in watched[0].section.failed["west"]
        await asyncio.gather(a.send("room", b"alone", confirm=True), d.send("room", b"alone too", confirm=True))
        area.heal()
        await eventually(are_together(watched, "ad"))
        await d.send("room", b"after", confirm=True)
        await eventually(lambda: all(node.host.engine.is_idle() for node in (a, d)))
        append_cluster_event(trace.folder, "healed")
        append_cluster_event(trace.folder, "ended")
    judged(trace.folder)


@live
async def test_a_replicated_dictionary_over_sites(tmp_path: Path) -> None:
    file, trace = site_file(tmp_path, {"east": ("a",), "west": ("c",)}), TraceConfig()
    voters = Majority({"at-a@a": 1, "at-c@c": 1})
    async with AsyncExitStack() as stack:
        watched = await started(stack, file, "ac", trace)
        await eventually(are_together(watched, "ac"))
        one, two = [
            await stack.enter_async_context(Replica(each.node, "stock", Dictionary(), quorum=voters))
            for each in watched
        ]
        await asyncio.gather(one.ready(), two.ready())
        await asyncio.gather(one.set("east", "1"), two.set("west", "2"))
        assert (await one.latest("west"), await two.latest("east")) == ("2", "1")


class Overheard(WideArea):
    """A wide area that keeps whatever goes through it, over UDP and over TCP."""

    def __init__(self, ports: Sequence[WidePort]) -> None:
        super().__init__(ports)
        self.heard = bytearray()
        self._streams = [(port.reached, port.listens) for port in ports]
        self._writers: list[asyncio.StreamWriter] = []

    async def listen(self, stack: AsyncExitStack) -> None:
        """Take connections, too."""
        for reached, listens in self._streams:
            answer = partial(self._answer, listens=listens)
            await stack.enter_async_context(await asyncio.start_server(answer, LOCALHOST, reached))
        stack.push_async_callback(self._hang_up)

    def is_cut(self, packet: bytes, target: NodeId) -> bool:
        self.heard += packet
        return False

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, listens: int) -> None:
        self._writers.append(writer)
        try:
            behind, before = await asyncio.open_connection(LOCALHOST, listens)
        except OSError:
            writer.close()  # the node has not begun: whoever connected will try again
            return
        self._writers.append(before)
        await asyncio.gather(self._pass(reader, before), self._pass(behind, writer))

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(1 << 16):
            self.heard += data
            writer.write(data)
        writer.close()

    async def _hang_up(self) -> None:
        for writer in self._writers:
            writer.close()
        await asyncio.gather(*(writer.wait_closed() for writer in self._writers), return_exceptions=True)


@pytest.mark.parametrize("protocol", ["udp", "tcp"])
@pytest.mark.parametrize("is_clear", [pytest.param(True, marks=pytest.mark.long), False], ids=["clear", "sealed"])
@live
async def test_what_goes_between_sites_is_read_by_nobody_without_the_key(
    tmp_path: Path, protocol: str, is_clear: bool
) -> None:
    first, secret = free_ports(), b"for members only"
    ports = [WidePort(NodeId(node), first + 2 * node, first + 2 * node + 1) for node in (1, 2)]
    wide = {name: (port.reached, port.listens) for name, port in zip("ac", ports, strict=True)}
    links = [f'between = ["east", "west"]\nprotocol = "{protocol}"']
    more = "[security]\ninsecure = true" if is_clear else ""
    file = site_file(tmp_path, {"east": ("a",), "west": ("c",)}, wide=wide, links=links, more=more)
    async with AsyncExitStack() as stack:
        area = await stack.enter_async_context(Overheard(ports))
        await area.listen(stack)
        watched = await started(stack, file, "ac", TraceConfig())
        await eventually(are_together(watched, "ac"))
        nodes = [one.node for one in watched]
        await joined(nodes, "room")
        await nodes[0].send("room", secret * 20, confirm=True)
        assert [message.data for message in await messages_of(nodes[1], 1)] == [secret * 20]
    assert len(area.heard) > len(secret) * 20
    assert (secret in area.heard) is is_clear
