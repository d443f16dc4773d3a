"""The comparison engines: each keeps its promises and costs what the papers say; a fault planted in it is caught."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from ordercast.checker import Outcome
from ordercast.model.errors import UsageError
from ordercast.model.ids import MICROSECOND, MILLISECOND, SECOND
from ordercast.model.promises import Promise
from ordercast.order.baselines.atop import Atop
from ordercast.order.baselines.causal import Causal
from ordercast.order.baselines.config import BaselineConfig
from ordercast.order.baselines.distribution import Owners
from ordercast.order.baselines.timestamps import Timestamps
from ordercast.order.baselines.two_phase import TwoPhase
from ordercast.order.catalogue import ENGINES
from ordercast.pipeline.campaign.gauge import Gauge, Measure
from ordercast.sim.calm_swarm import usual_options
from ordercast.sim.options import SimOptions
from ordercast.sim.run import PACKETS, Result, simulate
from ordercast.sim.swarm import outline
from ordercast.sim.topology import Rate

STATIC = [name for name, entry in ENGINES.items() if entry.is_static]
P, L = 50 * MICROSECOND, 2 * MILLISECOND  # the paper's: putting a packet on the network, and the way of it


def broken(result: Result) -> set[Any]:
    return {verdict.promise for verdict in result.verdicts if verdict.outcome is Outcome.INVALID}


@pytest.mark.parametrize("engine", STATIC)
@pytest.mark.parametrize("seed", [2, 7])
def test_it_keeps_what_it_promises_and_nothing_else_is_asked_of_it(engine: str, seed: int) -> None:
    one = outline(seed, engine=engine)
    assert one.is_valid, one.sentence
    result = simulate(usual_options(engine), seed)
    judged = {verdict.promise for verdict in result.verdicts if verdict.outcome is not Outcome.NOT_PROMISED}
    assert judged == ENGINES[engine].promises


@pytest.mark.parametrize("dummies", ["none", "weight", "slot"])
@pytest.mark.parametrize("sequence", ["drawn", "even"])
def test_atop_keeps_its_promises_with_every_kind_of_dummies(dummies: str, sequence: str) -> None:
    baseline = BaselineConfig(dummies=dummies, sequence=sequence, window=5, adapt_ns=20 * MILLISECOND)
    result = simulate(replace(usual_options("atop"), baseline=baseline), 1)
    assert result.is_valid, result.verdict.sentence


def alone(engine: str, nodes: int, fanout: str) -> tuple[float, float]:
    """Return packets for each message, and the time until all have it, when member 1 sends now and then."""
    options = replace(
        usual_options(engine),
        nodes=nodes,
        messages=0,
        rates=(Rate(1, 20),),
        baseline=BaselineConfig(fanout=fanout, rest_ns=SECOND),  # nobody says what it has delivered before the end
        delay_min_ns=L,
        delay_max_ns=L,
        packet_ns=0,
        token_ns=0,
        send_ns=P,
        fault_time_ns=5 * SECOND,
    )
    gauge = Gauge(Measure(0, options.fault_time_ns))
    result = simulate(options, 1, observer=gauge.observe)
    assert result.is_valid, result.verdict.sentence
    said_at_the_end = nodes * (nodes - 1 if fanout == "unicast" else 1)
    packets = (result.counts[PACKETS] - said_at_the_end) / options.submissions
    return packets, gauge.measures()["latency_last_us"] * MICROSECOND


@pytest.mark.parametrize("nodes", [4, 7])
def test_two_phase_costs_what_the_paper_says(nodes: int) -> None:
    """Paper 001, Tables 4.1 and 4.2: the source sends to n others."""
    n = nodes - 1
    assert alone("two-phase", nodes, "unicast") == pytest.approx((3 * n, 3 * L + (2 * n + 1) * P), rel=0.01)
    assert alone("two-phase", nodes, "multicast") == pytest.approx((n + 2, 3 * (L + P)), rel=0.01)


@pytest.mark.parametrize("nodes", [4, 7])
def test_the_sequencer_costs_what_the_paper_says_of_the_centralized_method(nodes: int) -> None:
    """Paper 001, Tables 4.1 and 4.2: the source is one of n members."""
    assert alone("sequencer", nodes, "unicast") == pytest.approx((nodes, 2 * L + nodes * P), rel=0.01)
    assert alone("sequencer", nodes, "multicast") == pytest.approx((2, 2 * (L + P)), rel=0.01)


def test_causal_takes_one_hop_and_all_ack_waits_for_the_slowest_sender() -> None:
    def latency(engine: str) -> float:
        rates = (Rate(0, 20), Rate(1, 10), Rate(2, 1))
        options = replace(usual_options(engine), nodes=3, messages=0, rates=rates, delay_min_ns=L, delay_max_ns=L)
        options = replace(options, packet_ns=0, token_ns=0, fault_time_ns=10 * SECOND)
        gauge = Gauge(Measure(0, options.fault_time_ns))
        assert simulate(options, 1, observer=gauge.observe).is_valid
        return gauge.measures()["latency_last_us"] * MICROSECOND

    assert latency("causal") == L
    assert latency("two-phase") == pytest.approx(3 * L, rel=0.01)
    assert latency("atop") < 5 * L and latency("timestamps") < 15 * L
    assert latency("all-ack") > 200 * L


def test_slots_are_drawn_in_proportion_to_weights() -> None:
    owners = Owners(3, (6, 3, 1), "drawn")
    drawn = [owners.owner(slot) for slot in range(10_000)]
    assert [round(drawn.count(member) / 1000) for member in range(3)] == [6, 3, 1]
    assert drawn != [Owners(4, (6, 3, 1), "drawn").owner(slot) for slot in range(10_000)]
    even = Owners(3, (6, 3, 1), "even")
    assert [even.owner(slot) for slot in range(10)].count(0) == 6


def _delivered_unordered(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Causal, "_is_next", lambda self, sender, before: True)


def _not_waited_for_all(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Timestamps, "_is_later", lambda self, process: True)


def _first_proposal_counts(patch: pytest.MonkeyPatch) -> None:
    """A sender does not wait for the others' proposals."""
    right = TwoPhase._conclude

    def conclude(self: TwoPhase, name: int) -> None:
        proposals = self._proposals[name]
        if len(proposals) == 2:
            self._proposals[name] = proposals * len(self.members)
            del self._proposals[name][len(self.members) :]
            right(self, name)
            self._proposals[name] = proposals

    patch.setattr(TwoPhase, "_conclude", conclude)


def _changed_too_early(patch: pytest.MonkeyPatch) -> None:
    right = Atop._change

    def change(self: Atop) -> bool:
        """Not everybody has shown a later distribution."""
        queues = self._messages
        self._messages = [queue for queue in queues if queue]
        try:
            return bool(self._messages) and right(self)
        finally:
            self._messages = queues

    patch.setattr(Atop, "_change", change)


@pytest.mark.parametrize(
    ("engine", "plant", "promise"),
    [
        ("causal", _delivered_unordered, Promise.CAUSAL),
        ("timestamps", _not_waited_for_all, Promise.TOTAL_ORDER),
        ("all-ack", _not_waited_for_all, Promise.TOTAL_ORDER),
        ("two-phase", _first_proposal_counts, Promise.TOTAL_ORDER),
        ("atop", _changed_too_early, None),
    ],
)
def test_a_fault_planted_in_one_is_caught(
    engine: str, plant: Callable[[pytest.MonkeyPatch], None], promise: Promise | None
) -> None:
    """A message that comes too late for its distribution is never delivered, or not in order."""
    wanted = {promise} if promise is not None else {Promise.TOTAL_ORDER, Promise.LIVENESS}
    baseline = BaselineConfig(window=5, adapt_ns=20 * MILLISECOND)
    options = replace(usual_options(engine), baseline=baseline, delay_max_ns=5 * MILLISECOND, settle_ns=SECOND)
    with pytest.MonkeyPatch.context() as patch:
        plant(patch)
        assert any(broken(simulate(options, seed)) & wanted for seed in range(1, 6))


def test_what_cannot_be_is_refused_in_a_sentence() -> None:
    with pytest.raises(UsageError, match="there is no fanout 'both'; there are: multicast, unicast; null_ns must be"):
        simulate(replace(usual_options("causal"), baseline=BaselineConfig(fanout="both", null_ns=0)), 1)
    with pytest.raises(UsageError, match="saturation is of agreed messages, which the engine 'causal' does not serve"):
        replace(usual_options("causal"), saturation=10).validate()
    with pytest.raises(UsageError, match="the engine 'causal' does not serve agreed or safe messages"):
        replace(SimOptions(engine="causal")).validate()
