"""Rings on hosts of their own: gateways die, LANs are cut, and what is left stays one network where it can."""

from __future__ import annotations

from pathlib import Path

import pytest
from rig import why_not
from rig.chaos import TOPOLOGIES, chaos
from rig.cluster import LiveCluster
from rig.gateway_slow import slowed
from rig.hosts import Hosts

from ordercast.checker import Outcome, combined
from ordercast.model.ids import SECOND

pytestmark = pytest.mark.skipif(why_not() is not None, reason=why_not() or "")
LONG = {"token_loss_ns": 2 * SECOND, "consensus_ns": 1 * SECOND}


def test_a_gateway_dies_and_a_ring_is_cut_and_nobody_else_leaves(tmp_path: Path) -> None:
    """Two gateways join two rings: one is killed and returns; then one ring is cut with a gateway on each side. Timers
    are long ones: with quick ones a busy machine makes members leave."""
    with Hosts(6, segments=TOPOLOGIES["parallel"]) as hosts, LiveCluster(hosts, tmp_path, ring=LONG) as cluster:
        cluster.start_all()
        n1, n2, n3, n4, g5, g6 = hosts
        cluster.send(rate=40)
        cluster.wait_for_more(50)
        begun = {host: len(cluster.lives[host].views) for host in hosts}
        cluster.kill(g6)
        cluster.wait_for_view([n1, n2, n3, n4, g5])
        cluster.wait_for_more(50, [n1, n2, n3, n4, g5])
        cluster.start(g6)
        cluster.wait_for_view(hosts)
        returned = {host: len(cluster.lives[host].views) for host in hosts}
        hosts.cut([n1, g5], [n2, g6], segment=0)
        cluster.wait(
            lambda: all(len(cluster.lives[host].views) > returned[host] for host in hosts), "the cut is noticed"
        )
        cluster.wait_for_view(hosts)
        cluster.wait_for_more(50)
        for host in (n1, n2, n3, n4, g5):
            later = cluster.lives[host].views[begun[host] :]
            members = [set(view.members) for view in later if view.is_regular]
            assert all(one >= {1, 2, 3, 4, 5} for one in members), members
        cluster.settle()
        assert cluster.verdict().outcome is Outcome.VALID, cluster.verdict().sentence


@pytest.mark.long
def test_a_slow_consumer_on_the_far_ring_is_named_and_nothing_is_lost(tmp_path: Path) -> None:
    found = slowed(tmp_path, 0.2, 1350, watched_s=0.1)
    assert found.is_sound, found


@pytest.mark.long
def test_every_promise_is_kept_under_chaos(tmp_path: Path) -> None:
    result = chaos(3, 4.0, 0, False, tmp_path, None, "gateways", "circle")
    assert result.is_valid, f"{result.error or combined(result.verdicts).sentence}\n{result.log}"
