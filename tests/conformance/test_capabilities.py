"""What the paper's single ring can do, shown on whole rings: what no other file has."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ordercast.model.configuration import ChangeReason
from ordercast.model.ids import MILLISECOND, Position, ProcessId, Seq, node_of
from ordercast.model.notes import Occurrence
from ordercast.model.service import Service
from ordercast.sim.faults import Fault, FaultKind
from ordercast.sim.options import SIM_RING
from ordercast.trace.records import DeliveredBatch, Installed
from ordercast.wire.header import MessageKind

from .play import Play, has_installed, is_token, kind_of, options


@pytest.mark.parametrize("victim", range(4))
def test_survivors_of_a_crash_form_a_ring_in_bounded_time(victim: int) -> None:
    """Section 4.2 Operational and section 4.5: one token loss timeout, one consensus timeout, and a few rotations."""
    play = Play(options(nodes=4))
    play.at(100, lambda: play.crash(victim))
    play.run()
    survivors = [node for node in range(4) if node != victim]
    times = [event.at for event in play.events if has_installed(event, survivors)]
    assert len(times) == 3
    bound = SIM_RING.token_loss_ns + SIM_RING.rest_ns + SIM_RING.consensus_ns + 10 * MILLISECOND
    assert max(times) < 100 * MILLISECOND + bound
    reasons = {view.reason for node in survivors for view in play.views(node)[3:5]}
    assert reasons == {ChangeReason.TOKEN_LOST}


def test_a_process_that_starts_later_is_taken_in_and_the_order_is_kept() -> None:
    """Section 4.2 and section 4.2 Operational. Deviation: it announces itself, and the representative proposes it."""
    play = Play(options(nodes=3, fault_time_ns=300 * MILLISECOND))
    play.at(0.1, lambda: play.crash(2))
    for moment in range(50, 250, 10):
        play.at(moment, lambda: play.submit(0))
    play.at(150, lambda: play.world.hosts[2].start())
    assert play.run().is_valid
    assert play.memberships(0) == [[0], [0, 1], [0, 1, 2]]
    whole, late = play.deliveries(0), play.deliveries(2)
    assert 0 < len(late) < len(whole)
    assert [message.message for message in late] == [message.message for message in whole[-len(late) :]]


@pytest.mark.parametrize("groups", [((0, 1), (2, 3)), ((0,), (1, 2, 3)), ((0, 2), (1,), (3,))])
def test_partitions_go_on_and_merge(groups: tuple[tuple[int, ...], ...]) -> None:
    """Section 4.3: split and healed under load; every component works, then there is one ring again."""
    faults = (
        Fault(100 * MILLISECOND, FaultKind.PARTITION, groups=groups),
        Fault(300 * MILLISECOND, FaultKind.HEAL),
    )
    play = Play(options(nodes=4, messages=150, faults=faults, fault_time_ns=500 * MILLISECOND)).run()
    assert play.is_valid
    for group in groups:
        for node in group:
            assert list(group) in play.memberships(node)
            assert play.memberships(node)[-1] == [0, 1, 2, 3]


@pytest.mark.parametrize("every", [2, 3, 5])
def test_lost_joins_do_not_keep_anybody_from_agreeing(every: int) -> None:
    """Section 4.2 Gather: one in so many Joins is lost, on each link by itself; all who install agree."""
    play = Play(options(nodes=5))
    numbers = iter(range(10**6))
    play.rule = lambda source, target, packet: kind_of(packet) != MessageKind.JOIN or next(numbers) % every != 0
    play.at(100, lambda: play.crash(3))
    assert play.run().is_valid
    memberships = {
        event.configuration.id: event.configuration.members for event in play.events if isinstance(event, Installed)
    }
    assert all(
        event.configuration.members == memberships[event.configuration.id]
        for event in play.events
        if isinstance(event, Installed)
    )


def test_old_joins_do_not_break_a_ring() -> None:
    """Section 4.2 Operational: every Join ever sent is replayed to everybody later."""
    play = Play()
    joins: list[tuple[int, int, bytes]] = []

    def rule(source: int, target: int, packet: bytes) -> bool:
        if kind_of(packet) == MessageKind.JOIN and play.world.now < 150 * MILLISECOND:
            joins.append((source, target, packet))
        return True

    def replay() -> None:
        for source, target, packet in joins:
            play.world.network.broadcast(source, [target], [packet], play.world.now)

    play.rule = rule
    play.at(150, replay)
    play.at(200, lambda: play.submit(0, Service.SAFE))
    assert play.run().is_valid
    assert joins
    assert [play.memberships(node)[1:] for node in range(3)] == [[[0, 1, 2]]] * 3


def test_duplicated_and_delayed_commit_tokens_never_give_a_partial_list() -> None:
    """Section 4.2 Gather and section 4.2 Commit: each Commit token comes again, at once and much later, on every
    hop."""
    play = Play(options(nodes=4, is_fifo=False, fault_time_ns=400 * MILLISECOND))
    copies: set[bytes] = set()

    def rule(source: int, target: int, packet: bytes) -> bool:
        if kind_of(packet) == MessageKind.COMMIT and packet not in copies:
            copies.add(packet)
            for later in (0, 100_000, 400_000, 2 * MILLISECOND, 60 * MILLISECOND):
                play.world.network.unicast(source, target, packet, play.world.now + later)
        return True

    play.rule = rule
    play.at(100, lambda: play.crash(3))
    play.at(250, lambda: play.world.hosts[3].start())
    assert play.run().is_valid
    assert play.memberships(0) == [[0], [0, 1, 2, 3], [0, 1, 2], [0, 1, 2, 3]]
    assert play.count(Occurrence.DUPLICATE_TOKEN) > 0


@pytest.mark.parametrize("seed", range(3))
def test_identities_strictly_increase_at_every_process(seed: int) -> None:
    """Section 4.5 (extended virtual synchrony): messages and views, ordered by (ring, seq, place), are
    delivered in strictly increasing order at each process, over all its views."""
    play = Play(options(nodes=4, messages=150, random_faults=6, loss=0.03, fault_time_ns=500 * MILLISECOND), seed)
    assert play.run().is_valid
    last: dict[ProcessId, Position] = {}
    for event in play.events:
        if isinstance(event, Installed):
            positions = [event.configuration.position]
        elif isinstance(event, DeliveredBatch):
            positions = [Position(event.origin, Seq(message.number), message.slot) for message in event.messages]
        else:
            continue
        for position in positions:
            assert event.process not in last or last[event.process] < position
            last[event.process] = position
    assert {node_of(process) for process in last} == {0, 1, 2, 3}


def reconfigured(has_retransmission: bool) -> tuple[Play, int]:
    """One token is lost on purpose; without retransmission its copies are, too. When was n0 served again?"""
    play = Play()
    lost: list[bytes] = []

    def rule(source: int, target: int, packet: bytes) -> bool:
        if is_token(packet) and play.world.now > 100 * MILLISECOND and (not lost or packet == lost[0]):
            if lost and has_retransmission:
                return True
            lost.append(packet)
            return False
        return True

    play.rule = rule
    play.at(100.5, lambda: play.submit(0))
    play.at(100.5, lambda: play.submit(1))
    play.run()
    return play, max(event.at for event in play.events if isinstance(event, DeliveredBatch))


def test_token_retransmission_spares_a_reconfiguration() -> None:
    """Section 4.4: 16 ms against 40 ms and the Token Loss timeout in the paper; here the same relation."""
    (with_copy, soon), (without, late) = reconfigured(True), reconfigured(False)
    assert with_copy.is_valid and without.is_valid
    assert with_copy.memberships(0) == [[0], [0, 1, 2]]
    assert len(without.memberships(0)) > 2
    assert soon < 100 * MILLISECOND + 4 * SIM_RING.token_retransmit_ns
    assert late > 100 * MILLISECOND + SIM_RING.token_loss_ns - 2 * SIM_RING.rest_ns


def test_the_store_is_bounded_in_steady_state() -> None:
    """Under saturation nobody holds more than what two rotations bring (section 4.1)."""
    ring = replace(SIM_RING, window=20, visit_max=8)
    play = Play(options(ring=ring))
    for _ in range(200):
        play.at(100, lambda: play.submit(0, size=500))
    assert play.run().is_valid
    gaps = [visited.seq - visited.aru for _, visited in play.visits()]
    assert max(gaps) <= 2 * (ring.window + ring.visit_max)
