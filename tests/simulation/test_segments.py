"""Who hears whom: segments, links and rates of a simulation, and faults that name them."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from ordercast.model.ids import MILLISECOND, SECOND, node_of
from ordercast.model.inputs import Lane
from ordercast.sim.fault_text import fault_from
from ordercast.sim.network_swarm import SIM_NETWORKS
from ordercast.sim.options import SimOptions
from ordercast.sim.run import simulate
from ordercast.sim.topology import Line, Link, Rate
from ordercast.sim.world import World
from ordercast.trace.records import Started, Submitted
from tests.simulation.speaker import ENGINE, Heard, speak

# Hosts 0 1 2 on segment 0, 2 3 4 on segment 1: host 2 is on both, with segment 1 as its attachment 1.
TWO = SimOptions(
    engine=ENGINE,
    nodes=5,
    messages=0,
    attachments=((0,), (0,), (0, 1), (1,), (1,)),
    fault_time_ns=200 * MILLISECOND,
)
SEGMENTS = ({0, 1, 2}, {2, 3, 4})
LATE = 5 * MILLISECOND  # what was on its way when a fault struck has arrived


def pairs(log: list[Heard], lane: Lane | None = None, after: int = 0, until: int = SECOND) -> set[tuple[int, int]]:
    """Who heard whom: (source, receiver)."""
    chosen = [heard for heard in log if after <= heard.at < until and lane in (None, heard.lane)]
    return {(heard.source, heard.node) for heard in chosen}


def among(*groups: set[int]) -> set[tuple[int, int]]:
    return {(a, b) for group in groups for a in group for b in group if a != b}


def reached(world: World, one: int) -> set[int]:
    return {other for other in range(5) if other != one and world.can_talk(one, other)}


def test_connections_are_routed_over_live_hosts_that_join_segments() -> None:
    """What is multicast stays on its segment, and what is routed does not."""
    found: list[set[int]] = []

    def look(world: World) -> None:
        found.append(reached(world, 0))

    def script(world: World) -> None:
        for at in (20, 60, 100, 140):
            world.schedule(at * MILLISECOND, look, world)

    faults = ("50ms crash n2", "90ms restart n2", "130ms detach n2 seg1")
    speak(replace(TWO, faults=tuple(map(fault_from, faults))), script=script)
    assert found == [{1, 2, 3, 4}, {1, 2}, {1, 2, 3, 4}, {1, 2}]


@pytest.mark.parametrize("lane", Lane)
def test_a_segment_is_heard_by_those_attached_and_nobody_else(lane: Lane) -> None:
    result, log = speak(TWO)
    assert result.settled
    assert pairs(log, lane) == among(*SEGMENTS)


def test_a_packet_names_the_attachment_that_brought_it() -> None:
    _, log = speak(TWO)
    attachments = {(heard.node, heard.source): heard.attachment for heard in log}
    assert attachments[2, 0] == attachments[0, 2] == attachments[3, 2] == 0
    assert attachments[2, 3] == 1
    assert {heard.spoken_on for heard in log if heard.source == 2 and heard.node == 4} == {1}
    assert {heard.spoken_on for heard in log if heard.source == 2 and heard.node == 0} == {0}


def test_attachments_are_numbered_as_the_host_lists_its_segments() -> None:
    turned = replace(TWO, attachments=((0,), (0,), (1, 0), (1,), (1,)))
    _, log = speak(turned)
    assert {heard.attachment for heard in log if (heard.node, heard.source) == (2, 0)} == {1}
    assert {heard.attachment for heard in log if (heard.node, heard.source) == (2, 3)} == {0}


def test_each_segment_may_have_several_networks_unlike_each_other() -> None:
    lines = (Line(), Line(), Line(delay_min_ns=4 * MILLISECOND, delay_max_ns=4 * MILLISECOND))
    options = replace(TWO, networks=replace(SIM_NETWORKS, count=2), lines=lines)
    _, log = speak(options)  # a speaker uses the first network of each segment
    assert min(heard.at for heard in log if heard.node == 1) < 4 * MILLISECOND
    assert min(heard.at for heard in log if heard.node == 4) > 4 * MILLISECOND


def test_a_wide_area_carries_no_multicast() -> None:
    options = replace(TWO, lines=(Line(), Line(multicast=False)))
    _, log = speak(options)
    assert pairs(log, Lane.DATA) == among({0, 1, 2})
    assert pairs(log, Lane.TOKEN) == pairs(log, Lane.LINK) == among(*SEGMENTS)


@pytest.mark.parametrize(
    ("fault", "struck"),
    [
        ("50ms down seg1", among({2, 3, 4})),
        ("50ms partition n2 | n3 n4 seg1", {(2, 3), (3, 2), (2, 4), (4, 2)}),
        ("50ms partition n0 n1 | n2 n3 n4 seg0", {(0, 2), (2, 0), (1, 2), (2, 1)}),
        ("50ms cut n2>n3 seg1", {(2, 3)}),
        ("50ms cut n2>n3 seg0", set()),
        ("50ms detach n2 seg0", {(0, 2), (2, 0), (1, 2), (2, 1)}),
        ("50ms detach n2", {pair for pair in among(*SEGMENTS) if 2 in pair}),
        ("50ms lossy 99.9999999% n0>n1", {(0, 1)}),
        ("50ms slow 1s n0<>n1", {(0, 1), (1, 0)}),
        ("50ms slow 1s seg1", among({2, 3, 4})),
    ],
)
def test_a_fault_strikes_what_it_names_and_leaves_the_rest_alone(fault: str, struck: set[tuple[int, int]]) -> None:
    _, log = speak(replace(TWO, faults=(fault_from(fault),)))
    begins, ends = 50 * MILLISECOND + LATE, TWO.fault_time_ns
    assert pairs(log, until=50 * MILLISECOND) == among(*SEGMENTS)
    assert pairs(log, after=begins, until=ends) == among(*SEGMENTS) - struck


@pytest.mark.parametrize(
    ("fault", "repair"),
    [
        ("50ms detach n2 seg0", "100ms attach n2 seg0"),
        ("50ms detach n2 seg0", "100ms heal seg0"),
        ("50ms cut n2>n3", "100ms mend n2>n3"),
        ("50ms lossy 99.9999999% n0>n1", "100ms mend n0>n1 seg0"),
        ("50ms slow 1s n0>n1", "100ms mend seg0"),
        ("50ms down seg1", "100ms mend seg1"),
    ],
)
def test_a_repair_undoes_the_fault(fault: str, repair: str) -> None:
    options = replace(TWO, is_fifo=False, faults=(fault_from(fault), fault_from(repair)))
    _, log = speak(options)
    assert pairs(log, after=100 * MILLISECOND + LATE, until=TWO.fault_time_ns) == among(*SEGMENTS)


def test_a_repair_of_one_segment_leaves_the_fault_of_another() -> None:
    faults = ("50ms down seg0", "60ms down seg1", "100ms heal seg0")
    _, log = speak(replace(TWO, faults=tuple(map(fault_from, faults))))
    assert pairs(log, after=100 * MILLISECOND + LATE, until=TWO.fault_time_ns) == among({0, 1, 2})


def test_a_flood_narrows_the_buffer_of_one_attachment() -> None:
    """Six packets come at once on each segment, and a narrow buffer holds four."""
    attachments = ((0, 1), *((0,) for _ in range(6)), *((1,) for _ in range(6)))
    options = replace(TWO, nodes=13, attachments=attachments, delay_max_ns=TWO.delay_min_ns)

    def heard_by_first(*faults: str) -> Counter[int]:
        _, log = speak(replace(options, faults=tuple(map(fault_from, faults))))
        return Counter(heard.attachment for heard in log if heard.node == 0 and heard.lane is Lane.DATA)

    usual, flooded = heard_by_first(), heard_by_first("1ms flood n0 190ms seg1")
    assert flooded[0] == usual[0] == usual[1] > flooded[1]


# Links


def test_a_link_delays_by_what_it_says() -> None:
    far = Link(0, 1, delay_min_ns=30 * MILLISECOND, delay_max_ns=40 * MILLISECOND)
    _, log = speak(replace(TWO, links=(far,)))
    first = {(heard.source, heard.node): heard for heard in reversed(log)}
    assert 32 * MILLISECOND <= first[0, 1].at <= 44 * MILLISECOND
    assert first[1, 0].at < 4 * MILLISECOND


def test_a_link_is_of_one_segment_where_it_says_so() -> None:
    both = ((0, 1), (0, 1), (0, 1))
    lossy = Link(0, 1, loss=0.999999, segment=1)
    _, log = speak(replace(TWO, nodes=3, attachments=both, links=(lossy,)))
    assert {heard.attachment for heard in log if (heard.source, heard.node) == (0, 1)} == {0}
    assert {heard.attachment for heard in log if (heard.source, heard.node) == (1, 0)} == {0, 1}


def test_a_link_with_a_rate_spreads_a_burst_and_loses_what_its_queue_cannot_hold() -> None:
    """Four packets of 600 bytes every 2 ms: at 1.2 Mbit/s each takes 4 ms, and the queue holds two."""
    narrow = Link(0, 1, rate=1_200_000, queue=1200)
    _, log = speak(replace(TWO, links=(narrow,)), size=600)
    times = [heard.at for heard in log if (heard.source, heard.node) == (0, 1)]
    beats = max(heard.number for heard in log if heard.source == 0)
    assert len(times) < beats  # of four times as many
    span = (times[-1] - times[0]) / (len(times) - 1)
    assert 3.9 * MILLISECOND <= span <= 4.1 * MILLISECOND
    assert Counter(heard.node for heard in log if heard.source == 0)[2] > 3.9 * beats


def test_a_link_without_a_rate_keeps_a_burst_together() -> None:
    _, log = speak(TWO)
    bursts = Counter((heard.at, heard.number) for heard in log if heard.lane is Lane.LINK and heard.node == 0)
    assert set(bursts.values()) == {2}


# Everything together


@pytest.mark.parametrize("seed", range(5))
def test_random_faults_strike_segments_and_a_run_is_repeatable(seed: int) -> None:
    kinds = ("partition", "cut", "detach", "down", "lossy", "slow", "flood", "lose token")
    options = replace(TWO, random_faults=20)
    struck: list[str] = []
    result, log = speak(options, seed, on_fault=lambda at, fault: struck.append(str(fault)))
    assert any(text.startswith(kinds) and "seg" in text for text in struck)
    assert result.digest == speak(options, seed)[0].digest
    assert log


def test_more_than_64_hosts_where_the_engine_allows_it() -> None:
    options = replace(TWO, nodes=70, attachments=(), fault_time_ns=6 * MILLISECOND, receive_buffer=2000)
    result, log = speak(options)
    assert result.settled
    assert len({heard.node for heard in log}) == 70


# Rates, with the real engine


def test_hosts_send_at_their_rates() -> None:
    options = SimOptions(messages=0, rates=(Rate(1, 50), Rate(3, 200, is_poisson=True)), fault_time_ns=2 * SECOND)
    result = simulate(options, 3, keep_events=True)
    assert result.is_valid, result.verdict.sentence
    sent = [event for event in result.events if isinstance(event, Submitted)]
    times = {node: [event.at for event in sent if node_of(event.process) == node] for node in range(5)}
    assert [node for node in times if times[node]] == [1, 3]
    gaps = [later - earlier for earlier, later in zip(times[1], times[1][1:], strict=False)]
    assert set(gaps) == {20 * MILLISECOND} and len(times[1]) in (100, 99)
    assert 340 < len(times[3]) < 460
    irregular = {later - earlier for earlier, later in zip(times[3], times[3][1:], strict=False)}
    assert len(irregular) > 300
    assert options.submissions == 500


def test_a_host_sends_the_same_whatever_rates_the_others_have() -> None:
    def times(*rates: Rate) -> list[int]:
        options = SimOptions(messages=0, rates=rates, fault_time_ns=SECOND // 2)
        events = simulate(options, 5, keep_events=True).events
        return [event.at for event in events if isinstance(event, Submitted) and node_of(event.process) == 0]

    one = Rate(0, 100, is_poisson=True)
    assert times(one) == times(one, Rate(1, 40)) != []


@pytest.mark.parametrize("moment", ["50ms", "199ms"], ids=["before healing", "when the network heals"])
def test_hosts_that_join_segments_run_in_the_end(moment: str) -> None:
    faults = tuple(fault_from(text) for text in (f"{moment} leave n2", "100ms leave n0"))
    lives: list[Counter[int]] = []
    for seed in range(8):
        result, _ = speak(replace(TWO, faults=faults), seed, keep_events=True)
        lives.append(Counter(node_of(event.process) for event in result.events if isinstance(event, Started)))
    assert {each[2] for each in lives} == {2}
    assert {each[0] for each in lives} == {1, 2}
