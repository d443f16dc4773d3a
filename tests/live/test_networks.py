"""Live nodes on hosts with two or three networks, with traffic all the time, while a network fails in every way that
the paper lists, and in some more.

Every test ends the same way: no view has changed, everybody has raised its alarm about the network that failed, and
none about another; the network is repaired and used again; everything was delivered, and the checkers say VALID.
Timeouts of networks are the usual ones, those of membership are long: a busy machine changes no view either.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from rig import Hosts, Link, why_not
from rig.cluster import PATIENT, LiveCluster

from ordercast.checker import Outcome
from ordercast.cli.networks import _episodes
from ordercast.model.ids import node_of

pytestmark = pytest.mark.skipif(why_not() is not None, reason=why_not() or "")
needs_switch = pytest.mark.skipif(why_not(switch=True) is not None, reason=why_not(switch=True) or "")

HOSTS = 4
BAD = 1  # the network that fails
STYLES = {"active": 2, "passive": 2, "active-passive": 3}
Fault = Callable[[Hosts], None]


def whole(hosts: Hosts) -> None:
    hosts.cut(hosts, hosts, network=BAD)


def cannot_send(hosts: Hosts) -> None:
    hosts.cut(hosts[2], [hosts[0], hosts[1], hosts[3]], one_way=True, network=BAD)


def cannot_receive(hosts: Hosts) -> None:
    hosts.cut([hosts[0], hosts[1], hosts[3]], hosts[2], one_way=True, network=BAD)


def subsets(hosts: Hosts) -> None:
    hosts.cut(hosts[:2], hosts[2:], network=BAD)


def lossy(hosts: Hosts) -> None:
    hosts.segmentation(False)
    hosts.loss(hosts, 0.2, network=BAD)


def mend(hosts: Hosts) -> None:
    hosts.heal(BAD)
    hosts.loss(hosts, 0, network=BAD)


@contextmanager
def live(folder: Path, style: str, *, switch: bool = False, **task: Any) -> Iterator[LiveCluster]:
    """A cluster under load; when the test is through, no view has changed and every promise was kept."""
    networks = STYLES[style]
    with (
        Hosts(HOSTS, networks, switch=switch) as hosts,
        LiveCluster(hosts, folder, ring=PATIENT, replication=style, **task) as cluster,
    ):
        cluster.start_all()
        cluster.send(rate=100, sizes=(40, 700, 5000))
        cluster.wait_for_more(200)
        before = views(cluster)
        yield cluster
        assert views(cluster) == before, "a fault of a network is no change of view"
        cluster.settle()
        verdict = cluster.verdict()
        assert verdict.outcome is Outcome.VALID, f"{verdict.sentence}\n" + "\n".join(map(str, verdict.witnesses))


def views(cluster: LiveCluster) -> list[int]:
    return [len(cluster.lives[host].views) for host in cluster.hosts]


def alarmed(cluster: LiveCluster, kind: str) -> list[set[int | None]]:
    """By host: the networks of its alarms of this kind."""
    return [{a.network for a in cluster.lives[host].alarms if a.kind == kind} for host in cluster.hosts]


def wait_for_alarms(cluster: LiveCluster, kind: str, times: int = 1) -> None:
    def is_so() -> bool:
        return all(
            sum(alarm.kind == kind and alarm.network == BAD for alarm in cluster.lives[host].alarms) >= times
            for host in cluster.hosts
        )

    cluster.wait(is_so, f"all have raised {kind} about network {BAD}")


@pytest.mark.parametrize(
    ("style", "fault"),
    [
        ("passive", cannot_send),
        *(
            pytest.param("active", fault, marks=pytest.mark.long)
            for fault in (whole, cannot_send, cannot_receive, subsets, lossy)
        ),
        *(pytest.param("passive", fault, marks=pytest.mark.long) for fault in (whole, cannot_receive, subsets, lossy)),
        *(pytest.param("active-passive", fault, marks=pytest.mark.long) for fault in (whole, cannot_receive, lossy)),
    ],
    ids=lambda value: value if isinstance(value, str) else value.__name__,
)
def test_a_network_fails_and_is_repaired(tmp_path: Path, style: str, fault: Fault) -> None:
    with live(tmp_path, style) as cluster:
        fault(cluster.hosts)
        wait_for_alarms(cluster, "NETWORK_FAULTY")
        cluster.wait_for_more(100)
        mend(cluster.hosts)
        wait_for_alarms(cluster, "NETWORK_REPAIRED")
        cluster.wait_for_more(100)
    assert alarmed(cluster, "NETWORK_FAULTY") == [{BAD}] * HOSTS


@pytest.mark.parametrize(
    ("fault", "conclusion"),
    [
        pytest.param(whole, "nobody hears anybody there: the network as a whole is down", marks=pytest.mark.long),
        (cannot_send, "nobody hears n3 there, and the others hear each other: it cannot send"),
        pytest.param(
            cannot_receive,
            "n3 hears nobody there, and the others hear each other: it cannot receive",
            marks=pytest.mark.long,
        ),
        pytest.param(
            subsets,
            "some do not reach some others there: n1 does not hear n3, n4; n2 does not hear n3, n4; "
            "n3 does not hear n1, n2; n4 does not hear n1, n2",
            marks=pytest.mark.long,
        ),
    ],
    ids=["whole", "cannot send", "cannot receive", "subsets"],
)
def test_the_records_tell_what_broke(tmp_path: Path, fault: Fault, conclusion: str) -> None:
    with live(tmp_path, "active") as cluster:
        fault(cluster.hosts)
        wait_for_alarms(cluster, "NETWORK_FAULTY")
        cluster.watch(2.0)  # everybody has probed often enough to tell whom it hears
        mend(cluster.hosts)
        wait_for_alarms(cluster, "NETWORK_REPAIRED")
    (episode, *_) = _episodes(cluster.folder)
    assert episode.conclusion(lambda process: f"n{node_of(process)}") == conclusion
    assert episode.repaired_at is not None


@needs_switch
@pytest.mark.parametrize(
    "style", [style if style == "passive" else pytest.param(style, marks=pytest.mark.long) for style in STYLES]
)
def test_a_slow_network_beside_a_fast_one(tmp_path: Path, style: str) -> None:
    with live(tmp_path, style, switch=True) as cluster:
        cluster.hosts.disturb(Link(delay_ms=3), network=BAD)
        cluster.wait_for_more(400)


@pytest.mark.long
def test_a_network_that_flaps(tmp_path: Path) -> None:
    with live(tmp_path, "active") as cluster:
        for times in (1, 2):
            whole(cluster.hosts)
            wait_for_alarms(cluster, "NETWORK_FAULTY", times)
            mend(cluster.hosts)
            wait_for_alarms(cluster, "NETWORK_REPAIRED", times)
        cluster.wait_for_more(100)


def test_one_network_by_multicast_and_one_by_unicast(tmp_path: Path) -> None:
    with live(tmp_path, "passive", transports=["unicast"]) as cluster:
        whole(cluster.hosts)
        wait_for_alarms(cluster, "NETWORK_FAULTY")
        mend(cluster.hosts)
        wait_for_alarms(cluster, "NETWORK_REPAIRED")


def test_a_member_that_is_killed_is_a_change_of_view_and_no_fault_of_a_network(tmp_path: Path) -> None:
    with (
        Hosts(HOSTS, 2) as hosts,
        LiveCluster(hosts, tmp_path, ring={}, replication="active") as cluster,
    ):
        cluster.start_all()
        cluster.send(rate=100)
        cluster.kill(hosts[1])
        rest = [host for host in hosts if host is not hosts[1]]
        cluster.wait_for_view(rest)
        cluster.start(hosts[1])
        cluster.wait_for_view(hosts)
        cluster.settle()
        assert cluster.verdict().outcome is Outcome.VALID
    assert alarmed(cluster, "NETWORK_FAULTY") == [set()] * HOSTS
