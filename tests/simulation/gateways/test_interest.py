"""Filtering in the shipped engine: what nobody wants stays on its ring, and the promises of groups stay whole."""

from __future__ import annotations

import pytest

from ordercast.model.notes import Occurrence
from ordercast.order.gateways.interest import Subscriptions
from ordercast.order.gateways.items import EVERYTHING
from ordercast.sim.options import SimOptions
from ordercast.sim.run import simulate
from ordercast.sim.swarm import SwarmKind, options_of
from ordercast.trace.records import Started, Submitted, Wanted

LINE = ((0,), (0,), (0, 1), (1,), (1,))  # two rings, one gateway
CALM = SimOptions(nodes=5, engine="gateways", attachments=LINE, messages=60, clients=1, groups=3)
EARLY = 19  # a seed at which a join before its interest is seen


def test_a_network_filters_for_groups_and_says_so() -> None:
    result = simulate(CALM, 2, keep_events=True)
    assert result.is_valid, result.verdict.sentence
    assert result.counts[Occurrence.NETWORK_FILTERED.value] > 0
    assert all(event.promises.prunes for event in result.events if isinstance(event, Started))
    assert any(event.destinations for event in result.events if isinstance(event, Submitted))
    assert any(event.begins for event in result.events if isinstance(event, Wanted))


def test_the_raw_stream_is_not_filtered() -> None:
    raw = SimOptions(nodes=5, engine="gateways", attachments=LINE, messages=20)
    result = simulate(raw, 2, keep_events=True)
    assert result.is_valid and not result.counts[Occurrence.NETWORK_FILTERED.value]
    assert not any(event.promises.prunes for event in result.events if isinstance(event, Started))


def test_a_join_before_its_interest_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """A planted fault: users are told that a group is subscribed before the interest in it is in force."""
    right = Subscriptions.granted
    monkeypatch.setattr(Subscriptions, "granted", lambda self, in_force: right(self, EVERYTHING))
    assert not simulate(options_of(EARLY, SwarmKind.GROUPS, "gateways"), EARLY).is_valid


def test_the_same_run_without_the_fault_is_valid() -> None:
    result = simulate(options_of(EARLY, SwarmKind.GROUPS, "gateways"), EARLY)
    assert result.is_valid, result.verdict.sentence
    assert result.counts[Occurrence.NETWORK_INTEREST_RAISED.value] > 0
