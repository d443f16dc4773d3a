"""The accelerated ring: the token leaves before the last packets.

(Not in the paper: Babay and Amir, Fast Total Ordering for Modern Data Centers. Membership and recovery are as there.)
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from ordercast.model.effects import Broadcast, SendTo
from ordercast.model.ids import ProcessId, Seq
from ordercast.model.inputs import Lane
from ordercast.model.service import Service
from ordercast.sim.options import SIM_RING
from ordercast.wire.header import Heading
from ordercast.wire.messages import CommitEntry
from ordercast.wire.run import build_data
from tests.packets import seq_of

from .play import Play, options
from .solo import CLUSTER, ONE, RING, SMALL, THREE, TRIO, Solo, data_of, packet_of, seqs

FAST = replace(SMALL, accelerated=True, accelerated_window=2)
BIG = FAST.whole_size_max


def packet_in_round(seq: int, number: int, sender: ProcessId = ONE) -> bytes:
    heading = Heading(CLUSTER, RING, TRIO)
    return build_data(heading, 0, [(0, 1, 4, b"x")], sender, Seq(seq), number, seq).packet(Seq(seq))


def test_the_token_leaves_before_the_last_packets() -> None:
    solo = Solo(config=FAST).to_operational()
    solo.submit("a", "b", "c", "d", size=BIG)
    outward = [effect for effect in solo.pass_token() if isinstance(effect, Broadcast | SendTo)]
    assert [type(effect) for effect in outward] == [Broadcast, SendTo, Broadcast]
    assert [[seq_of(packet) for packet in data_of([effect])] for effect in outward] == [[1, 2], [], [3, 4]]
    assert solo.token_forwarded.seq == 4, "the token counts them all the same"


def test_few_packets_all_follow_the_token() -> None:
    solo = Solo(config=FAST).to_operational()
    solo.submit("a")
    outward = [effect for effect in solo.pass_token() if isinstance(effect, Broadcast | SendTo)]
    assert [type(effect) for effect in outward] == [SendTo, Broadcast]


def test_a_plain_ring_sends_everything_before_the_token() -> None:
    """Section 4.1."""
    solo = Solo().to_operational()
    solo.submit("a", "b", "c", "d", size=BIG)
    outward = [effect for effect in solo.pass_token() if isinstance(effect, Broadcast | SendTo)]
    assert [type(effect) for effect in outward] == [Broadcast, SendTo]


def test_retransmissions_go_first() -> None:
    solo = Solo(config=FAST).to_operational()
    solo.submit("a", "b", "c", size=BIG)
    solo.give_packets(packet_of(1))
    effects = solo.pass_token(seq=1, aru=0, aru_id=THREE, requests=(1,))
    assert seqs(effects) == [1, 2, 3, 4]


def test_in_recovery_nothing_follows_the_token() -> None:
    """The exchange counts visits on which the flag was down: its packets must not be behind the token."""
    solo = Solo(config=FAST).to_operational()
    solo.give_packets(packet_of(1), packet_of(2))
    solo.lose_ring().recover(CommitEntry(ONE, True, RING), CommitEntry(THREE, True, RING))
    outward = [effect for effect in solo.begin_token() if isinstance(effect, Broadcast | SendTo)]
    assert [type(effect) for effect in outward] == [Broadcast, SendTo]


def test_what_may_still_be_behind_the_token_is_not_asked_for() -> None:
    """Requests lag one rotation."""
    solo = Solo(config=FAST).to_operational()
    solo.pass_token(seq=2, aru=2)
    assert list(solo.token_forwarded.requests) == []
    solo.pass_token()
    assert list(solo.token_forwarded.requests) == [1, 2]


# Which lane is read first


def next_round(solo: Solo) -> int:
    return solo.token_forwarded.round + (solo.me != ONE)


def test_the_token_lane_comes_first_once_the_predecessor_sends_packets_of_the_next_round() -> None:
    solo = Solo(config=FAST).to_operational()
    assert solo.node.first_lane() is Lane.DATA
    solo.give_packets(packet_in_round(1, next_round(solo)))
    assert solo.node.first_lane() is Lane.TOKEN


def test_packets_of_the_current_round_or_of_others_do_not_change_the_lane() -> None:
    solo = Solo(config=FAST).to_operational()
    solo.give_packets(packet_in_round(1, next_round(solo) - 1))
    solo.give_packets(packet_in_round(2, next_round(solo), THREE))
    assert solo.node.first_lane() is Lane.DATA


def test_the_data_lane_comes_first_again_after_the_token() -> None:
    solo = Solo(config=FAST).to_operational()
    solo.give_packets(packet_in_round(1, next_round(solo)))
    solo.pass_token(seq=1, aru=1, round=next_round(solo))
    assert solo.node.first_lane() is Lane.DATA


def test_the_representative_counts_the_rounds_itself() -> None:
    """Its predecessor, the last on the ring, still sends packets of the round that the representative began."""
    solo = Solo(ONE, FAST).to_operational()
    solo.give_packets(packet_in_round(1, solo.token_forwarded.round, THREE))
    assert solo.node.first_lane() is Lane.TOKEN


def test_a_plain_ring_always_reads_data_first() -> None:
    """Section 4.1."""
    solo = Solo().to_operational()
    solo.give_packets(packet_in_round(1, next_round(solo)))
    assert solo.node.first_lane() is Lane.DATA


# Both modes do the same


def delivered_by(accelerated: bool) -> list[list[tuple[int, int, int]]]:
    ring = replace(SIM_RING, accelerated=accelerated, accelerated_window=4)
    play = Play(options(ring=ring, bandwidth=100_000_000))
    for moment in range(30):
        for node in range(3):
            service = Service.SAFE if moment % 3 == 0 else Service.AGREED
            play.at(100 + moment / 10, partial(play.submit, node, service, 400))
    assert play.run().is_valid
    assert play.result.counts["retransmissions"] == 0, "without loss nothing is sent twice, in either mode"
    assert play.memberships(0) == [[0], [0, 1, 2]]
    return [
        [(m.message.process, m.message.counter, m.service) for m in play.deliveries(node) if m.message is not None]
        for node in range(3)
    ]


def test_both_modes_deliver_the_same_messages_in_one_order_each() -> None:
    plain, fast = delivered_by(False), delivered_by(True)
    for sequences in (plain, fast):
        assert sequences[0] == sequences[1] == sequences[2]
        assert len(sequences[0]) == 90
    assert sorted(plain[0]) == sorted(fast[0])


def test_an_accelerated_ring_repairs_losses() -> None:
    """Loss is mended in this mode too."""
    play = Play(options(ring=replace(SIM_RING, accelerated=True), messages=60, loss=0.05))
    assert play.run().is_valid
    assert play.result.counts["retransmissions"] > 0
