"""The adaptive engine live: hosts that die and do not hear each other, several networks, clients and replicas."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from rig import Hosts, why_not
from rig.cluster import PATIENT, AlarmSeen, LiveCluster
from rig.hosts import Host

import ordercast
from ordercast.checker import Outcome
from ordercast.replicated import Counter, Majority, Replica
from tests.live.local_daemons import daemons, live

needs_hosts = pytest.mark.skipif(why_not() is not None, reason=why_not() or "")
VOTERS = Majority({"a@n1": 1, "b@n2": 1})


def _wait_for_alarm(cluster: LiveCluster, host: Host, is_it: Callable[[AlarmSeen], bool], what: str) -> None:
    cluster.wait(lambda: any(map(is_it, cluster.lives[host].alarms)), what)


def _is_about(node: int, word: str, alarm: AlarmSeen) -> bool:
    return alarm.about == node and word in alarm.text


@needs_hosts
def test_who_dies_is_missed_and_who_is_not_heard_by_one_is_vouched_for(tmp_path: Path) -> None:
    """A one-way cut between two of four changes no view. Timers are the usual ones: a busy machine is not a fault."""
    with Hosts(4) as hosts, LiveCluster(hosts, tmp_path, ring={}, engine="adaptive") as cluster:
        cluster.start_all()
        cluster.send(rate=100, sizes=(40, 700, 5000))
        cluster.wait_for_more(50)
        views = {host: len(cluster.lives[host].views) for host in hosts}
        hosts.cut(hosts[1], hosts[2], one_way=True)
        cluster.wait_for_more(100)
        assert views == {host: len(cluster.lives[host].views) for host in hosts}
        hosts.heal()
        cluster.kill(hosts[3])
        cluster.wait_for_view(hosts[:3])
        cluster.start(hosts[3])
        cluster.wait_for_view(hosts)
        cluster.settle()
        assert cluster.verdict().outcome is Outcome.VALID, cluster.verdict().sentence


@needs_hosts
def test_nodes_with_other_places_or_another_engine_stay_apart_and_are_named(tmp_path: Path) -> None:
    with Hosts(4) as hosts, LiveCluster(hosts, tmp_path, engine="adaptive") as cluster:
        cluster.start(*hosts[:2])
        cluster.start(hosts[2], adaptive={"block": 16})
        cluster.start(hosts[3], engine="ring")
        for at, other, word in ((0, 3, "adaptive.block"), (2, 1, "adaptive.block"), (0, 4, "'ring'")):
            _wait_for_alarm(cluster, hosts[at], partial(_is_about, other, word), f"n{at + 1} is told of n{other}")
        cluster.wait_for_view(hosts[:2])
        for host in hosts[2:]:
            cluster.wait_for_view([host])


@needs_hosts
def test_a_network_that_fails_changes_no_view(tmp_path: Path) -> None:
    with Hosts(3, 2) as hosts, LiveCluster(hosts, tmp_path, ring=PATIENT, engine="adaptive") as cluster:
        cluster.start_all()
        cluster.send(rate=200)
        cluster.wait_for_more(100)
        views = {host: len(cluster.lives[host].views) for host in hosts}
        hosts.cut(hosts, hosts, network=1)
        for host in hosts:
            _wait_for_alarm(cluster, host, lambda alarm: alarm.network == 1, "the network is missed")
        cluster.wait_for_more(100)
        hosts.heal(1)
        assert views == {host: len(cluster.lives[host].views) for host in hosts}
        cluster.settle()
        assert cluster.verdict().outcome is Outcome.VALID, cluster.verdict().sentence


@live
async def test_clients_groups_and_replicas_are_served(tmp_path: Path) -> None:
    async with (
        daemons(tmp_path, "n1", "n2", engine="adaptive") as addresses,
        ordercast.connect(addresses["n1"], name="a") as a,
        ordercast.connect(addresses["n2"], name="b") as b,
        Replica(a, "count", Counter(), quorum=VOTERS) as one,
        Replica(b, "count", Counter(), quorum=VOTERS) as two,
    ):
        await asyncio.gather(one.ready(), two.ready())
        numbers = await asyncio.gather(*(each.add() for each in (one, two) for _ in range(50)))
        assert sorted(numbers) == list(range(1, 101))
        assert await one.latest() == await two.latest() == 100
