"""The adaptive engine in the simulator: calm and hostile runs, and scenes of single rules."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ordercast.model.configuration import ChangeReason
from ordercast.model.ids import MICROSECOND, MILLISECOND
from ordercast.model.notes import Occurrence
from ordercast.model.service import Service
from ordercast.order.adaptive.config import AdaptiveConfig
from ordercast.order.adaptive.flow import Pace
from ordercast.order.adaptive.repair import Repair
from ordercast.order.adaptive.states.operational import Direct
from ordercast.order.membership.states.recovery import Recovery
from ordercast.order.ring.config import RingConfig
from ordercast.sim.faults import Fault, FaultKind
from ordercast.sim.options import SIM_ADAPTIVE, SIM_RING, SimOptions
from ordercast.sim.run import Result, simulate
from ordercast.sim.swarm import SwarmKind, options_of
from ordercast.sim.topology import Rate
from ordercast.sim.world import World
from ordercast.trace.records import DeliveredBatch, Event, Installed, MessageId, Submitted
from ordercast.wire.head import KIND_AT
from ordercast.wire.header import MessageKind
from ordercast.wire.run import PacketRun

from .planted import THIRDS, TOKEN_DROPPED


@pytest.mark.parametrize(
    ("kind", "seed"),
    [
        *((SwarmKind.PLAIN, seed) for seed in (1, 7, 20)),
        (SwarmKind.PLAIN, 1209),  # a companion of an earlier view, dropped by some lists and not by all, comes back
        (SwarmKind.GROUPS, 3),
        (SwarmKind.GROUPS, 357),  # the run was over while its daemon had not heard yet that a client had crashed
        (SwarmKind.REPLICATED, 2),
        # A message followed from a view, which had come of a safe message; whoever had it knew nothing of that.
        (SwarmKind.REPLICATED, 524),
        (SwarmKind.NETWORKS, 2),
        (SwarmKind.NETWORKS, 11),
        (SwarmKind.NETWORKS, 239),  # acknowledgements came, and put off the request for the place that was waited for
        # The wait began with a packet of its own, after a while without any (the witness's fault).
        (SwarmKind.NETWORKS, 265),
    ],
)
def test_hostile_runs_are_valid(kind: SwarmKind, seed: int) -> None:
    result = simulate(options_of(seed, kind, "adaptive"), seed)
    assert result.settled and result.is_valid, f"{kind.value} {seed}: {result.verdict.sentence}"


def one_way_cut() -> Result:
    """Of four members one does not hear another for half a second, and all send."""
    cut = Fault(150 * MILLISECOND, FaultKind.CUT, links=((0, 1),))
    rates = tuple(Rate(node, 100) for node in range(4))
    options = SimOptions(nodes=4, engine="adaptive", messages=0, rates=rates, faults=(cut,))
    return simulate(replace(options, fault_time_ns=500 * MILLISECOND), 1)


def test_whom_only_some_hear_is_vouched_for() -> None:
    result = one_way_cut()
    assert result.is_valid and result.counts["regular views"] == 8  # alone, then together, and nothing since
    assert result.counts[Occurrence.MARK_RELAYED.value] and result.counts[Occurrence.THIRD_ANSWERED.value]
    with pytest.MonkeyPatch.context() as patch:
        THIRDS.plant(patch)
        assert one_way_cut().counts["regular views"] > 8


def token_lost_at_the_last() -> Result:
    """The token with which the last of three would install is lost, when both others have installed."""
    lost: list[bytes] = []
    installed: set[int] = set()

    def observe(event: Event) -> None:
        if isinstance(event, Installed) and len(event.configuration.members) == 3:
            installed.add(event.process >> 48)

    def rule(source: int, target: int, packet: bytes) -> bool:
        if packet[KIND_AT] != MessageKind.TOKEN or target != 2 or 1 not in installed or 2 in installed or lost:
            return True
        lost.append(packet)
        return False

    def script(world: World) -> None:
        world.rule = rule

    result = simulate(SimOptions(nodes=3, engine="adaptive", messages=20), 1, observer=observe, script=script)
    assert lost and result.is_valid, result.verdict.sentence
    return result


def test_the_token_is_served_until_everybody_has_installed() -> None:
    row = f"gather: {ChangeReason.RECOVERY_LOST.text}"
    assert not token_lost_at_the_last().counts[row]
    with pytest.MonkeyPatch.context() as patch:
        TOKEN_DROPPED.plant(patch)
        assert token_lost_at_the_last().counts[row]


def skewed_then_saturated() -> Result:
    """One member sends alone for a while, then all have more than they can send."""
    options = SimOptions(
        nodes=4,
        engine="adaptive",
        messages=0,
        rates=(Rate(0, 1500),),
        saturation=250,
        ring=replace(SIM_RING, window=300, backlog_max=600, visit_max=50),
        receive_buffer=5000,
        bandwidth=8_000_000,
        services=(Service.AGREED,),
        fault_time_ns=400 * MILLISECOND,
    )
    return simulate(options, 1)


def test_a_view_that_suits_one_sender_is_fair_when_all_send() -> None:
    result = skewed_then_saturated()
    assert result.settled and result.is_valid, result.verdict.sentence


def saturated(seed: int, options: SimOptions, **ring: int) -> Result:
    """Return a run with the engine's own times, in which all send all they can after one has sent for a while."""
    options = replace(options, engine="adaptive", adaptive=AdaptiveConfig(), messages=0, saturation_size=1300)
    options = replace(options, packet_ns=2 * MICROSECOND, fault_time_ns=300 * MILLISECOND, settle_ns=1000 * MILLISECOND)
    options = replace(options, services=(Service.SAFE,), ring=replace(RingConfig(), **ring))  # type: ignore[arg-type]
    return simulate(options, seed, verbose=False)


def test_a_slow_network_that_suited_one_sender_is_soon_fair() -> None:
    """Seed 4 of a hunt: what the queues held was little beside what one had sent, and moved few slots."""
    options = SimOptions(nodes=3, rates=(Rate(0, 300),), saturation=200, receive_buffer=60, bandwidth=20_000_000)
    result = saturated(4, options, window=100, visit_max=10, backlog_max=110)
    assert result.settled and result.is_valid, result.verdict.sentence


def test_room_in_the_window_is_used_when_it_is_made() -> None:
    """Seed 14: own deliveries made room when nothing more came, and of a run whose last packet alone was not
    acknowledged nobody asked for the acknowledgement. Both waited for the next sign of life."""
    options = SimOptions(nodes=2, rates=(Rate(1, 300),), saturation=1000, receive_buffer=5000, bandwidth=100_000_000)
    result = saturated(14, options, window=40, visit_max=20, backlog_max=60)
    assert result.settled and result.is_valid, result.verdict.sentence


def longest_wait() -> int:
    """Return how long a safe message took at most, when one packet in ten is lost and signs of life are rare."""
    ring = replace(SIM_RING, rest_ns=250 * MILLISECOND, token_loss_ns=2000 * MILLISECOND)
    options = SimOptions(
        nodes=3, engine="adaptive", messages=0, rates=(Rate(1, 10),), services=(Service.SAFE,), loss=0.1, ring=ring
    )
    sent: dict[MessageId, int] = {}
    longest = 0

    def observe(event: Event) -> None:
        nonlocal longest
        if isinstance(event, Submitted):
            sent.update({one.message: event.at for one in event.messages})
        elif isinstance(event, DeliveredBatch):
            waits = [event.at - sent[one.message] for one in event.messages if one.message in sent]
            longest = max([longest, *waits])

    adaptive = replace(SIM_ADAPTIVE, ack_ns=100 * MILLISECOND)
    options = replace(options, adaptive=adaptive, fault_time_ns=1500 * MILLISECOND)
    assert simulate(options, 1, observer=observe, verbose=False).settled
    return longest


def test_a_lost_acknowledgement_stops_nobody_until_the_next_sign_of_life() -> None:
    assert longest_wait() < 40 * MILLISECOND
    with pytest.MonkeyPatch.context() as patch:
        right = Repair.review
        patch.setattr(Repair, "review", lambda self, merge, awaited, now: right(self, merge, 0, now))
        assert longest_wait() > 60 * MILLISECOND


def exchanged_after_a_crash() -> int:
    """Return how many packets recovery sends when one of four members crashes and the others go on."""
    rates = tuple(Rate(node, 300) for node in range(4))
    crash = Fault(150 * MILLISECOND, FaultKind.CRASH, 3)
    options = SimOptions(
        nodes=4, engine="adaptive", messages=0, rates=rates, services=(Service.AGREED,), faults=(crash,)
    )
    count, take = 0, Recovery._take

    def counted(self: Recovery, *limits: int) -> list[PacketRun]:
        nonlocal count
        packets = take(self, *limits)  # type: ignore[arg-type]
        count += len(packets)
        return packets

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Recovery, "_take", counted)
        result = simulate(replace(options, fault_time_ns=300 * MILLISECOND), 1, verbose=False)
    assert result.settled and result.is_valid, result.verdict.sentence
    return count


def test_what_cannot_be_delivered_waits_and_is_not_exchanged_when_a_member_is_gone() -> None:
    count = exchanged_after_a_crash()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Repair, "is_blocked", lambda *_: False)
        assert exchanged_after_a_crash() > 2 * count


def packets_of_busy_hosts() -> int:
    """Return how many packets four members make of their messages when packets keep hosts busy."""
    rates = tuple(Rate(node, 1_500) for node in range(4))
    options = SimOptions(nodes=4, engine="adaptive", messages=0, rates=rates, services=(Service.AGREED,), size_max=100)
    options = replace(options, adaptive=AdaptiveConfig(), ring=RingConfig(), packet_ns=200 * MICROSECOND)
    count, build = 0, Direct._built

    def counted(self: Direct, *arguments: object) -> list[PacketRun]:
        nonlocal count
        runs = build(self, *arguments)  # type: ignore[arg-type]
        count += sum(run.count for run in runs)
        return runs

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Direct, "_built", counted)
        result = simulate(replace(options, fault_time_ns=200 * MILLISECOND), 1, verbose=False)
    assert result.settled and result.is_valid, result.verdict.sentence
    return count


def test_messages_share_packets_while_hosts_are_busy() -> None:
    count = packets_of_busy_hosts()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Pace, "is_slow", False)
        at_once = packets_of_busy_hosts()
    assert at_once > 1.15 * count
