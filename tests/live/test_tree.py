"""The tree engine live: groups over links, whoever dies or is cut off, replicas and the archive on it."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path

import pytest
from rig import Hosts, why_not
from rig.cluster import Life, LiveCluster

from ordercast import Node
from ordercast.checker import Checkers, Outcome
from ordercast.daemon.config.node import TraceConfig, TraceLevel
from ordercast.daemon.status.report import status_of
from ordercast.daemon.status.tree_section import TreeSection
from ordercast.model.service import Service
from ordercast.replicated import Counter, Majority, Replica
from ordercast.trace.cluster import append_cluster_event
from ordercast.trace.folder import read_live
from tests.live.stage import entered, eventually, joined, live, messages_of, quick_ring

TOPICS = {"all": [1, 2, 3, 4], "left": [1, 2, 3], "right": [3, 4], "ends": [1, 4]}
needs_hosts = pytest.mark.skipif(why_not() is not None, reason=why_not() or "")


def section_of(node: Node) -> TreeSection:
    section = status_of(node.host).section
    assert isinstance(section, TreeSection)
    return section


def judged(folder: Path) -> None:
    """See that every promise was kept."""
    checkers = Checkers()
    for event in read_live(folder).events():
        checkers.observe(event)
    assert checkers.verdict().outcome is Outcome.VALID, checkers.verdict().sentence


@live
async def test_messages_touch_those_concerned_and_come_in_one_order(tmp_path: Path) -> None:
    trace = TraceConfig(TraceLevel.FULL, tmp_path)
    async with AsyncExitStack() as stack:
        nodes = await entered(stack, quick_ring(), *"abcd", engine="tree", trace=trace)
        await joined(nodes[:3], "room")
        await joined(nodes[2:], "pair")
        for number in range(30):
            await nodes[number % 3].send("room", f"{number}".encode())
        await nodes[3].send("pair", b"of d")
        await nodes[3].send("room", b"large" * 4000, service=Service.SAFE, confirm=True)  # it is not in the group
        counts = dict(zip(nodes, (31, 31, 32, 1), strict=True))
        heard = [[one.data for one in await messages_of(node, count)] for node, count in counts.items()]
        assert heard[0] == heard[1] == [data for data in heard[2] if data != b"of d"] and heard[3] == [b"of d"]
        section = section_of(nodes[0])
        assert {node.name for node in section.forest} == {f"n{number}" for number in range(1, 5)}
        assert section.pauses and section.changes and not list(section.warnings(4))
        await eventually(lambda: all(node.host.engine.is_idle() for node in nodes))
        append_cluster_event(trace.folder, "healed")
        append_cluster_event(trace.folder, "ended")
    judged(trace.folder)


@live
async def test_a_replicated_counter_on_trees() -> None:
    voters = Majority({"a@n1": 1, "b@n2": 1})
    async with AsyncExitStack() as stack:
        nodes = await entered(stack, quick_ring(), "a", "b", engine="tree")
        one, two = [await stack.enter_async_context(Replica(node, "count", Counter(), quorum=voters)) for node in nodes]
        await asyncio.gather(one.ready(), two.ready())
        await asyncio.gather(*(each.add(1) for each in (one, two) for _ in range(5)))
        assert (await one.latest(), await two.latest()) == (10, 10)


@needs_hosts
def test_whoever_dies_or_is_cut_off_nothing_is_lost_doubled_or_reordered(tmp_path: Path) -> None:
    """The manager, which is a root, and another die under load; the rest are in two, and heal."""
    with Hosts(4) as hosts, LiveCluster(hosts, tmp_path, ring={}, engine="tree", topics=TOPICS) as cluster:
        cluster.start_all()
        cluster.send(rate=40, sizes=(40, 700, 5000), services=("AGREED", "SAFE"))
        cluster.wait_for_more(20)
        for victim in (hosts[0], hosts[2]):
            others = [host for host in hosts if host is not victim]
            cluster.kill(victim)
            cluster.wait_for_view(others)
            cluster.wait_for_more(20, others)
            cluster.start(victim)
            cluster.wait_for_view(hosts)
        hosts.cut(hosts[:2], hosts[2:])
        cluster.wait_for_view(hosts[:2])
        cluster.wait_for_view(hosts[2:])
        hosts.heal()
        cluster.wait_for_view(hosts)
        cluster.settle()
        assert cluster.verdict().outcome is Outcome.VALID, cluster.verdict().sentence


def _is_named(life: Life, other: str) -> bool:
    return any(other in alarm.text for alarm in life.alarms)


@needs_hosts
def test_nodes_of_other_engines_stay_apart_and_are_named(tmp_path: Path) -> None:
    with Hosts(2) as hosts, LiveCluster(hosts, tmp_path, engine="tree") as cluster:
        cluster.start(hosts[0])
        cluster.start(hosts[1], engine="ring")
        for at, other in ((0, "'ring'"), (1, "'tree'")):
            cluster.wait(partial(_is_named, cluster.lives[hosts[at]], other), "the other is named")
            cluster.wait_for_view([hosts[at]])
