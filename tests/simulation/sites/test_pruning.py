"""Pruning by interest: what nobody at a site wants costs it little, and nobody misses what it wants."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from ordercast.model.effects import Burst
from ordercast.model.ids import MILLISECOND, Instant, node_of
from ordercast.model.notes import Occurrence
from ordercast.order.links.link import Link
from ordercast.sim.faults import Fault, FaultKind
from ordercast.sim.host import topic_name
from ordercast.sim.options import SIM_RING
from ordercast.sim.run import Result, simulate
from ordercast.sim.topology import Rate
from ordercast.sim.world import World
from ordercast.trace.records import Wanted

from .scenes import PRUNING, apart, joining


@pytest.mark.parametrize(
    ("topics", "changes", "least"), [(160, 280, 200), pytest.param(800, 1400, 1_000, marks=pytest.mark.long)]
)
def test_first_joins_amid_traffic_miss_nothing(topics: int, changes: int, least: int) -> None:
    result = simulate(joining(topics, changes), 1, keep_events=True)
    assert result.settled and result.is_valid, result.verdict.sentence
    joins = {
        (event.process, destination)
        for event in result.events
        if isinstance(event, Wanted) and event.begins
        for destination in event.destinations
    }
    assert len(joins) >= least
    assert result.counts[Occurrence.SITES_PRUNED.value] > 50


def test_a_branch_without_members_gets_an_eighth_of_the_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: Counter[tuple[int, int]] = Counter()
    right = Link.flush

    def flush(self: Link, now: Instant) -> list[Burst]:
        bursts = right(self, now)
        if 400 * MILLISECOND < now < 900 * MILLISECOND:
            sent[node_of(self._me), node_of(self.peer)] += sum(len(data) for data, _ in bursts)
        return bursts

    monkeypatch.setattr(Link, "flush", flush)
    monkeypatch.setattr(World, "_destinations", lambda *_: (topic_name(0),))
    ring = replace(SIM_RING, packet_size_max=1472)
    options = apart(3, 1, messages=0, topics=((0, 1), (2,)), size_min=1200, size_max=1200, ring=ring)
    rates = (Rate(0, 400, start_ns=300 * MILLISECOND, end_ns=900 * MILLISECOND),)
    links = replace(PRUNING.links, packet_size=1472)
    sites = replace(PRUNING, links=links, hello_ns=200 * MILLISECOND, record_ns=1_000 * MILLISECOND)
    sites = replace(sites, links=replace(links, silence_ns=500 * MILLISECOND))
    options = replace(options, sites=sites, rates=rates, fault_time_ns=1_000 * MILLISECOND)
    result = simulate(options, 1)
    assert result.settled and result.is_valid, result.verdict.sentence
    assert sent[0, 1] > 200_000
    assert sent[0, 2] <= 0.12 * sent[0, 1], (sent[0, 2], sent[0, 1])


def rerouted(seed: int) -> Result:
    """0 sends for 1 alone, over a link that fails; the other way leads over 2, which has had the units hollow."""
    links = ((0, 1), (1, 0))
    times = range(500, 1_400, 300)
    faults = [Fault(at * MILLISECOND, FaultKind.CUT, links=links, segment=3) for at in times]
    faults += [Fault((at + 150) * MILLISECOND, FaultKind.MEND, segment=3) for at in times]
    rates = (Rate(0, 100, start_ns=300 * MILLISECOND, end_ns=1_400 * MILLISECOND),)
    options = apart(3, 1, messages=0, topics=((0, 1), (2,)), rates=rates, size_max=200, loss=0.02)
    ordered = tuple(sorted(faults, key=lambda fault: fault.at))
    options = replace(options, sites=PRUNING, faults=ordered, fault_time_ns=1_500 * MILLISECOND)
    return simulate(options, seed)


def test_who_has_a_unit_hollow_that_somebody_behind_it_needs_asks_for_it() -> None:
    result = rerouted(1)
    assert result.settled and result.is_valid, result.verdict.sentence
    assert result.counts[Occurrence.SITES_REROUTED.value] > 0
    assert result.counts[Occurrence.SITES_ASKED_WHOLE.value] > 0
