"""The sites engine in the simulator: calm and hostile runs, and scenes of single rules."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ordercast.model.configuration import ChangeReason, ConfigurationKind
from ordercast.model.ids import MILLISECOND
from ordercast.model.notes import Occurrence
from ordercast.model.service import Service
from ordercast.sim.faults import Fault, FaultKind
from ordercast.sim.options import SIM_RING
from ordercast.sim.run import Result, simulate
from ordercast.sim.swarm import SwarmKind, options_of
from ordercast.sim.topology import Rate
from ordercast.trace.records import DeliveredBatch, Installed, Submitted

from .scenes import DISTANCE, apart, cut_and_mended


def views_of(result: Result) -> list[tuple[tuple[int, ...], ChangeReason]]:
    """Return members and reason of each regular view of more than one host, once."""
    views = {
        event.configuration.id: (tuple(one >> 48 for one in event.configuration.members), event.configuration.reason)
        for event in result.events
        if isinstance(event, Installed) and event.configuration.kind is ConfigurationKind.REGULAR
    }
    return [view for _, view in sorted(views.items()) if len(view[0]) > 1]


@pytest.mark.parametrize(
    ("kind", "seed"),
    [
        *((SwarmKind.PLAIN, seed) for seed in (1, 5, 11, 14)),
        (SwarmKind.PLAIN, 140),  # lines of other sites' streams moved beyond a gap of the own ring
        (SwarmKind.GROUPS, 2),
        (SwarmKind.GROUPS, 40043),  # a ring changed when lines of companions were taken over (the witness's fault)
        (SwarmKind.GROUPS, 446),  # a parent held hollow what its child needed whole (the witness's fault)
        (SwarmKind.REPLICATED, 3),
    ],
)
def test_hostile_runs_are_valid(kind: SwarmKind, seed: int) -> None:
    result = simulate(options_of(seed, kind, "sites"), seed)
    assert result.settled and result.is_valid, f"{kind.value} {seed}: {result.verdict.sentence}"


@pytest.mark.parametrize(("largest", "queue"), [(500, 64 << 20), (3_000, 3_064)])
def test_messages_as_large_as_may_be_go_on_the_ring_with_their_heads(largest: int, queue: int) -> None:
    ring = replace(SIM_RING, message_size_max=largest, queue_size_max=queue)
    options = apart(2, 2, size_min=largest, size_max=largest, ring=ring)
    result = simulate(options, 1)
    assert result.settled and result.is_valid, result.verdict.sentence


def test_sites_come_together_in_one_view_and_are_silent_when_nothing_is_sent() -> None:
    result = simulate(apart(3, 2, messages=0, rates=(Rate(0, 5),)), 1, keep_events=True)
    assert result.is_valid, result.verdict.sentence
    assert views_of(result)[-1][0] == (0, 1, 2, 3, 4, 5)
    # Five messages in a second, far apart: for each a site says that it is past it, and that all its daemons have it.
    assert result.counts[Occurrence.SITES_UPDATE.value] <= 5 * 3 * 4


def test_a_site_that_is_cut_off_and_comes_back() -> None:
    cut = Fault(300 * MILLISECOND, FaultKind.PARTITION, groups=((0, 2), (1, 3)), segment=2)
    back = Fault(600 * MILLISECOND, FaultKind.MEND, segment=2)
    result = simulate(apart(2, 2, faults=(cut, back)), 1, keep_events=True)
    assert result.is_valid, result.verdict.sentence
    views = views_of(result)
    assert ((0, 2), ChangeReason.SITE_LOST) in views and ((1, 3), ChangeReason.SITE_LOST) in views
    assert views[-1] == ((0, 1, 2, 3), ChangeReason.SITE_HEARD)


def test_who_leaves_in_order_is_told_so_and_the_last_of_a_site_is_not_waited_for() -> None:
    first, last = (Fault(at * MILLISECOND, FaultKind.LEAVE, node=node) for at, node in ((300, 3), (600, 1)))
    options = apart(2, 2, faults=(first, last), fault_time_ns=900 * MILLISECOND)
    result = simulate(options, 1, keep_events=True)
    assert result.is_valid, result.verdict.sentence
    views = views_of(result)
    assert ((0, 1, 2), ChangeReason.LEFT) in views and ((0, 2), ChangeReason.LEFT) in views
    lost = [event.at for event in result.events if isinstance(event, Installed) and _members(event) == (0, 2)]
    assert lost and min(lost) - 600 * MILLISECOND < options.sites.links.silence_ns


def _members(event: Installed) -> tuple[int, ...]:
    return tuple(member >> 48 for member in event.configuration.members)


def test_a_site_that_splits_is_two_fragments_of_one_view() -> None:
    split = Fault(300 * MILLISECOND, FaultKind.PARTITION, groups=((0,), (2,)), segment=0)
    result = simulate(apart(2, 2, faults=(split,), fault_time_ns=900 * MILLISECOND), 1, keep_events=True)
    assert result.is_valid, result.verdict.sentence
    apart_for = range(500 * MILLISECOND, 900 * MILLISECOND)  # the ring is in two all the time
    views = [event.configuration for event in result.events if isinstance(event, Installed) and event.at in apart_for]
    assert [len(view.members) for view in views if view.kind is ConfigurationKind.REGULAR] == [4] * 4


def test_a_link_that_fails_with_another_path_left_changes_routes_and_not_the_view() -> None:
    options = cut_and_mended()
    result = simulate(options, 1, keep_events=True)
    assert result.settled and result.is_valid, result.verdict.sentence
    assert [len(members) for members, _ in views_of(result)].count(6) == 1, views_of(result)
    assert result.counts[Occurrence.SITES_REROUTED.value] >= 3 * len(options.faults)
    assert result.counts[Occurrence.SITES_SENT_ANEW.value] > 0


def test_reliable_messages_take_one_distance_and_agreed_ones_wait_for_the_others() -> None:
    for service, least, most in ((Service.RELIABLE, 1.0, 1.5), (Service.AGREED, 2.0, 4.5)):
        options = apart(2, 1, messages=0, rates=(Rate(0, 10),), services=(service,), fault_time_ns=900 * MILLISECOND)
        result = simulate(options, 1, keep_events=True)
        assert result.is_valid, result.verdict.sentence
        delays = _delays(result)
        assert least * DISTANCE <= max(delays) <= most * DISTANCE + options.sites.delta_ns, service


def _delays(result: Result) -> list[int]:
    """Return how long messages took to both sites, once these were in one view."""
    begun = {
        event.process: event.at
        for event in result.events
        if isinstance(event, Installed) and len(event.configuration.members) == 2
    }
    since = max(begun.values())
    sent = {
        message.message: event.at
        for event in result.events
        if isinstance(event, Submitted) and event.at > since
        for message in event.messages
    }
    return [
        event.at - sent[message.message]
        for event in result.events
        if isinstance(event, DeliveredBatch)
        for message in event.messages
        if message.message in sent
    ]
