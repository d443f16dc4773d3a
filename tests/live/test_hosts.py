"""Live nodes on hosts of their own, with traffic all the time, while the network and the processes fail.

Every test ends the same way: the faults are over, all who live come together, everything that was sent is delivered,
and the checkers judge the traces: VALID, all promises, liveness among them. Nothing here depends on how fast the
machine is: tests wait for what must happen, and a busy machine may have more view changes than the test asks for. Where
there must be none, the timeouts are the usual ones.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

import pytest
from rig import Hosts, Link, why_not
from rig.cluster import PATIENT, LiveCluster

from ordercast.checker import Outcome
from ordercast.daemon.config.node import GROUP, PORT
from ordercast.model.ids import ConfigurationId, Incarnation, NodeId, Seq, process_id_from
from ordercast.model.promises import Promise
from ordercast.wire.codec import encode
from ordercast.wire.head import MAGIC, VERSION, cluster_id_from
from ordercast.wire.header import Heading
from ordercast.wire.messages import Announcement, Leave
from ordercast.wire.run import build_data

pytestmark = pytest.mark.skipif(why_not() is not None, reason=why_not() or "")
needs_switch = pytest.mark.skipif(why_not(switch=True) is not None, reason=why_not(switch=True) or "")

SIZES = (40, 700, 5000)  # the last takes several packets
USUAL: dict[str, Any] = {}  # timeouts as they come


@contextmanager
def live(
    folder: Path, count: int = 3, *, switch: bool = False, rate: float = 100, **task: Any
) -> Iterator[LiveCluster]:
    """A cluster under load; when the test is through, it must have kept every promise."""
    with Hosts(count, switch=switch) as hosts, LiveCluster(hosts, folder, **task) as cluster:
        cluster.start_all()
        cluster.send(rate=rate, sizes=SIZES)
        yield cluster
        cluster.settle()
        verdict = cluster.verdict()
        assert verdict.outcome is Outcome.VALID, f"{verdict.sentence}\n" + "\n".join(map(str, verdict.witnesses))
        untested = {each.promise for each in cluster.verdicts if each.outcome is Outcome.NOT_EXERCISED}
        assert untested <= {Promise.FAIRNESS, Promise.VIRTUAL_SYNCHRONY}, (
            "nobody is saturated, some tests change no view"
        )


def views_of(cluster: LiveCluster) -> list[int]:
    """How many each has had."""
    return [len(cluster.lives[host].views) for host in cluster.hosts]


# The network


@pytest.mark.long
def test_loss(tmp_path: Path) -> None:
    with live(tmp_path, 4, rate=200) as cluster:
        cluster.hosts.segmentation(False)
        cluster.hosts.loss(cluster.hosts, 0.05)
        cluster.wait_for_more(800)
        assert all(cluster.report(host)["retransmitted"] for host in cluster.hosts)


def test_partition_and_merge(tmp_path: Path) -> None:
    with live(tmp_path, 5) as cluster:
        hosts = cluster.hosts
        hosts.cut(hosts[:2], hosts[2:])
        for side in (hosts[:2], hosts[2:]):
            cluster.wait_for_view(side)
        cluster.wait_for_more(100)
        hosts.heal()
        cluster.wait_for_view(hosts)
        assert any(view.reason == "MERGE" for view in cluster.lives[hosts[0]].regular_views())
        cluster.wait_for_more(100, hosts[0])


def test_who_is_not_heard_is_left_out_while_it_hears_the_others(tmp_path: Path) -> None:
    with live(tmp_path) as cluster:
        hosts = cluster.hosts
        hosts.cut(hosts[0], hosts[1:], one_way=True)
        cluster.wait_for_view(hosts[1:])
        cluster.wait_for_view(hosts[:1])
        seen = views_of(cluster)
        cluster.wait_for_more(100)
        for host, count in zip(hosts, seen, strict=True):
            assert all(len(view.members) < 3 for view in cluster.lives[host].views[count:])
        hosts.heal()
        cluster.wait_for_view(hosts)


@pytest.mark.long
def test_a_narrow_link_slows_everybody_down_and_expels_nobody(tmp_path: Path) -> None:
    with live(tmp_path, ring=USUAL) as cluster:
        cluster.hosts.segmentation(False)
        cluster.hosts.bandwidth(cluster.hosts[1], "20mbit")
        cluster.send(total=1000, rate=None, sizes=(1400,))
        cluster.wait_for_more(2500)
        for host in cluster.hosts:
            assert "FAILED_TO_RECEIVE" not in {alarm.kind for alarm in cluster.lives[host].alarms}


@needs_switch
@pytest.mark.long
def test_delay_reordering_and_duplicates(tmp_path: Path) -> None:
    with live(tmp_path, switch=True) as cluster:
        cluster.hosts.disturb(Link(delay_ms=1, jitter_ms=2, reorder=0.1, duplicate=0.1))
        cluster.wait_for_more(300)
        counters = cluster.hosts.counters()
        assert counters["late"] and counters["duplicated"]


@needs_switch
@pytest.mark.long
def test_damaged_packets(tmp_path: Path) -> None:
    """UDP's checksum notices them, so that they are lost."""
    with live(tmp_path, switch=True) as cluster:
        cluster.hosts.disturb(Link(corrupt=0.03, loss=0.02))
        cluster.wait_for_more(300)
        assert cluster.hosts.counters()["corrupted"]


@pytest.mark.long
def test_ipv6_multicast(tmp_path: Path) -> None:
    with live(tmp_path, ipv6=True, group="ff15::4f02") as cluster:
        cluster.wait_for_more(100, cluster.hosts[0])


@pytest.mark.long
def test_unicast(tmp_path: Path) -> None:
    with live(tmp_path, transport="unicast") as cluster:
        hosts = cluster.hosts
        hosts.cut(hosts[:1], hosts[1:])
        cluster.wait_for_view(hosts[1:])
        hosts.heal()
        cluster.wait_for_view(hosts)


@pytest.mark.long
def test_all_who_have_much_to_send_get_their_share(tmp_path: Path) -> None:
    with live(tmp_path, ring=USUAL) as cluster:
        cluster.send(rate=None, sizes=(8000,))
        for host in cluster.hosts:
            cluster.wait_for_report(host, lambda report: report["room"] < 100_000, "it has more than it can send")
        cluster.saturated(True)
        cluster.wait_for_more(600)
        cluster.saturated(False)
        cluster.hush()
    (fairness,) = (each for each in cluster.verdicts if each.promise is Promise.FAIRNESS)
    assert "not exercised" not in fairness.sentence


# The processes


@pytest.mark.parametrize(
    "forget", [False, pytest.param(True, marks=pytest.mark.long)], ids=["storage kept", "storage lost"]
)
def test_kill_and_restart(tmp_path: Path, forget: bool) -> None:
    with live(tmp_path) as cluster:
        hosts = cluster.hosts
        first = cluster.lives[hosts[0]]
        cluster.wait_for_more(50, hosts[0])
        cluster.kill(hosts[0])
        cluster.wait_for_view(hosts[1:])
        assert any(view.reason == "TOKEN_LOST" for view in cluster.lives[hosts[1]].regular_views())
        cluster.wait_for_more(50, hosts[1])
        cluster.start(hosts[0], forget=forget)
        cluster.wait_for_view(hosts)
        cluster.send(hosts[0])
        cluster.wait_for_more(50, hosts[0])
        second = cluster.lives[hosts[0]]
        assert first.process is not None and second.process is not None
        assert first.process < second.process


@pytest.mark.long
def test_a_restart_that_nobody_notices_in_time(tmp_path: Path) -> None:
    """Down and up again before the token is missed: a new process, with nothing of the old one's."""
    with live(tmp_path, ring=USUAL) as cluster:
        hosts = cluster.hosts
        cluster.restart(hosts[1])
        cluster.wait_for_view(hosts)
        cluster.wait_for_more(50, hosts[1])


def test_everybody_is_killed_and_restarted_at_once(tmp_path: Path) -> None:
    with live(tmp_path, 4) as cluster:
        cluster.wait_for_more(50)
        before = cluster.wait_for_view(cluster.hosts)
        cluster.restart(*cluster.hosts)
        after = cluster.wait_for_view(cluster.hosts)
        assert int(after.id.split(".")[0]) > int(before.id.split(".")[0])
        cluster.send(sizes=SIZES)
        cluster.wait_for_more(100, cluster.hosts[0])


def test_a_stopped_process_is_left_out_and_says_that_it_was_paused(tmp_path: Path) -> None:
    with live(tmp_path, ring=USUAL) as cluster:
        hosts = cluster.hosts
        cluster.stop(hosts[2])
        cluster.wait_for_view(hosts[:2])
        cluster.wait_for_more(400, hosts[0])  # two seconds at the rate of two senders
        cluster.go_on(hosts[2])
        paused = cluster.lives[hosts[2]]
        cluster.wait(lambda: bool(paused.alarms), "the pause is told")
        assert {(alarm.kind, alarm.about) for alarm in paused.alarms} == {("PAUSED", 3)}
        cluster.wait_for_view(hosts)
        cluster.wait_for_more(50, hosts[2])
        assert cluster.report(hosts[2])["longest_pause_ns"] > 800_000_000


def test_a_loop_that_is_blocked_for_less_than_a_token_may_take_costs_no_view(tmp_path: Path) -> None:
    with live(tmp_path, ring=PATIENT) as cluster:
        hosts = cluster.hosts
        before = views_of(cluster)
        cluster.block(hosts[1], 2.0)
        report = cluster.wait_for_report(hosts[1], lambda report: bool(report["pauses"]), "the pause is counted")
        cluster.wait_for_more(100)
        assert report["longest_pause_ns"] >= 1_000_000_000
        assert views_of(cluster) == before


def test_an_orderly_leave_is_told_from_a_failure(tmp_path: Path) -> None:
    with live(tmp_path, ring=USUAL) as cluster:
        hosts = cluster.hosts
        cluster.leave(hosts[1])
        cluster.wait_for_view([hosts[0], hosts[2]])
        for host in (hosts[0], hosts[2]):
            assert cluster.lives[host].regular_views()[-1].reason == "LEFT"
        cluster.start(hosts[1])
        cluster.wait_for_view(hosts)


def test_a_slow_application_makes_senders_wait_and_loses_nobody(tmp_path: Path) -> None:
    with live(tmp_path, ring=PATIENT, inbox_size_max=64 << 10) as cluster:
        hosts = cluster.hosts
        before = views_of(cluster)
        cluster.read(hosts[2], False)
        cluster.send(hosts[:2], total=3000, rate=None, sizes=(1000,))
        for host in hosts[:2]:
            cluster.wait_for_report(host, lambda report: report["room"] < 100_000, "the queue of senders is full")
        delivered = cluster.report(hosts[0])["delivered"]
        assert delivered < 3000
        assert cluster.report(hosts[2])["taken"] < delivered
        assert views_of(cluster) == before
        cluster.read(hosts[2], True)
        for host in hosts:
            cluster.wait_for_report(host, lambda report: report["taken"] > 6000, "everything is delivered")
        assert views_of(cluster) == before


# Strangers


@contextmanager
def stranger(cluster: LiveCluster) -> Iterator[socket.socket]:
    """A socket on the last host."""
    with cluster.hosts[-1].inside():
        sending = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    with sending:
        yield sending


def ports_of(cluster: LiveCluster) -> list[tuple[str, int]]:
    """Where nodes listen: the group, and each one's port for tokens."""
    return [(GROUP, PORT), *((host.address(), PORT + 1) for host in cluster.hosts)]


SAMPLED = 200  # packets, of which at least one is let through


def test_packets_of_strangers_are_counted_and_change_nothing(tmp_path: Path) -> None:
    ring = ConfigurationId(1000, process_id_from(NodeId(1), Incarnation(1)))
    ghost = process_id_from(NodeId(9), Incarnation(1))
    other_cluster, ours = cluster_id_from("others"), cluster_id_from("chaos")
    other_version = bytearray(encode(ours, Announcement(ring, ghost, (ghost,), ())))
    assert other_version[2] == VERSION
    other_version[2] += 1
    packets = {
        "another cluster's packet": [
            encode(other_cluster, Announcement(ring, ghost, (ghost,), ())),
            encode(other_cluster, Leave(ring, ghost)),
            build_data(Heading(other_cluster, ring, (ghost,)), 0, [(0, 1, 4, b"x")], ghost, Seq(1), 1, 1).packet(
                Seq(1)
            ),
        ],
        "wire version": [bytes(other_version)],
        "shorter than a head": [MAGIC],
    }
    sampled = {  # the kernel lets few of them through
        "not an Ordercast packet": b"GET / HTTP/1.1\r\nHost: somebody else's\r\n".ljust(200),
        "an empty datagram": b"",
    }
    with live(tmp_path, ring=PATIENT) as cluster, stranger(cluster) as sending:
        before = views_of(cluster)
        for target in ports_of(cluster):
            for several in packets.values():
                for packet in several:
                    sending.sendto(packet, target)
            for packet in sampled.values():
                for _ in range(SAMPLED):
                    sending.sendto(packet, target)
        cluster.wait_for_more(100)
        for host in cluster.hosts:
            for why, several in packets.items():
                cluster.wait_for_report(
                    host,
                    lambda report, why=why, several=several: (  # type: ignore[misc]
                        sum(n for text, n in report["refused"].items() if text.startswith(why)) == 2 * len(several)
                    ),
                    f"two of each {why} are counted",
                )
            for why in sampled:
                cluster.wait_for_report(
                    host,
                    lambda report, why=why: any(text.startswith(why) for text in report["refused"]),  # type: ignore[misc]
                    f"some of {why} are counted",
                )
        assert views_of(cluster) == before


def test_a_flood_of_garbage(tmp_path: Path) -> None:
    rng = Random(7)
    is_over = threading.Event()

    def flood(sending: socket.socket, targets: list[tuple[str, int]]) -> None:
        while not is_over.wait(0.001):  # a machine that does nothing else would be another test
            for _ in range(10):
                packet = rng.randbytes(rng.choice((0, 1, 30, 72, 500, 1472)))
                sending.sendto(packet if rng.random() < 0.5 else MAGIC + packet, rng.choice(targets))

    with live(tmp_path) as cluster, stranger(cluster) as sending:
        flooding = threading.Thread(target=flood, args=(sending, ports_of(cluster)))
        flooding.start()
        try:
            cluster.wait_for_more(300)
        finally:
            is_over.set()
            flooding.join()
        assert all(sum(cluster.report(host)["refused"].values()) > 100 for host in cluster.hosts)
