"""Flow control. (Paper, section 4.4, Figure 4.17)"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import cache, partial

from ordercast.model.ids import MILLISECOND, Instant, node_of
from ordercast.model.notes import Visited
from ordercast.sim.options import SIM_RING
from ordercast.trace.records import Event, Noted

from .play import Play, options
from .solo import ONE, SMALL, THREE, Solo, packet_of, seqs

BIG = SMALL.whole_size_max  # a message that fills a packet
WINDOW, VISIT = SMALL.window, SMALL.visit_max


def loaded() -> Solo:
    solo = Solo().to_operational()
    solo.submit(*map(str, range(40)), size=BIG)
    return solo


def test_a_visit_sends_at_most_each_time() -> None:
    """Section 4.4: `each_time` bounds what one member sends in a visit."""
    solo = loaded()
    assert seqs(solo.pass_token()) == [1, 2, 3, 4]
    assert len(seqs(solo.pass_token())) == VISIT


def test_a_rotation_that_fills_the_window_leaves_less() -> None:
    """Figure 4.17: the allowance is window_size + each_time less what was sent in the last rotation, my own included.
    E4: measured from the token's seq when it was last received."""
    solo = Solo().to_operational()
    solo.pass_token()
    solo.submit(*map(str, range(40)), size=BIG)
    sent_by_others = WINDOW + 1
    solo.give_packets(*(packet_of(seq) for seq in range(1, sent_by_others + 1)))
    assert len(seqs(solo.pass_token(seq=sent_by_others, aru=sent_by_others))) == VISIT - 1


def test_a_rotation_above_the_window_leaves_nothing() -> None:
    """Figure 4.17: the allowance never falls below zero."""
    solo = Solo().to_operational()
    solo.submit(*map(str, range(40)), size=BIG)
    seq = WINDOW + VISIT
    solo.give_packets(*(packet_of(one) for one in range(1, seq + 1)))
    assert seqs(solo.pass_token(seq=seq, aru=seq)) == []
    assert len(seqs(solo.pass_token())) == VISIT, "a quiet rotation opens the window again"


def test_retransmissions_come_first_and_do_not_take_my_share() -> None:
    """Section 4.4: retransmissions come before new messages. Deviation: they count against the rotation alone, so that
    who stands behind a member that misses packets can send too (seed 867)."""
    solo = loaded()
    solo.give_packets(packet_of(1), packet_of(2), packet_of(3))
    effects = solo.pass_token(seq=3, aru=0, aru_id=THREE, requests=(1, 2, 3))
    assert seqs(effects) == [1, 2, 3, 4, 5, 6, 7]


def test_the_token_counts_the_retransmissions_of_the_last_rotation() -> None:
    """Section 4.4: retrans_round grows by what I retransmit and shrinks by what I retransmitted last time."""
    solo = Solo().to_operational()
    solo.give_packets(packet_of(1), packet_of(2))
    solo.pass_token(seq=2, aru=0, aru_id=THREE, requests=(1, 2), retransmitted=5)
    assert solo.token_forwarded.retransmitted == 7
    solo.pass_token(requests=(1,))
    assert solo.token_forwarded.retransmitted == 6
    solo.pass_token(requests=())
    assert solo.token_forwarded.retransmitted == 5


def test_retransmissions_of_others_close_the_window() -> None:
    """Figure 4.17: retrans_round is part of what the last rotation sent."""
    solo = loaded()
    assert seqs(solo.pass_token(retransmitted=WINDOW + VISIT - 1)) == [1]


def test_what_is_not_received_by_all_is_bounded() -> None:
    """Deviation (backlog_max): the paper bounds a rotation only; here the representative's budget bounds what is not
    yet received by all too, so every store is bounded even while one member is deaf."""
    solo = loaded()
    seq = SMALL.backlog_max - 1
    for one in range(1, seq + 1):
        solo.give_packets(packet_of(one))
    solo.pass_token(seq=seq, aru=0, aru_id=ONE)
    solo.pass_token(budget=1)
    assert solo.token_forwarded.seq == SMALL.backlog_max
    solo.pass_token(budget=0)
    assert solo.token_forwarded.seq == SMALL.backlog_max
    assert solo.token_forwarded.aru == 0


# Saturated rings


@cache
def saturated() -> Play:
    """Five members that always have something to send, and N x each_time is more than the window."""
    ring = replace(SIM_RING, window=20, visit_max=8)
    return Play(options(nodes=5, ring=ring, saturation=150, settle_ns=400 * MILLISECOND)).run()


def busy_rounds(play: Play) -> dict[int, list[tuple[int, Visited]]]:
    rounds: dict[int, list[tuple[int, Visited]]] = {}
    for node, visited in play.visits(300):
        rounds.setdefault(visited.round, []).append((node, visited))
    return {number: visits for number, visits in rounds.items() if sum(visited.sent for _, visited in visits)}


def test_a_rotation_sends_at_most_window_and_each_time() -> None:
    """Section 4.4 claims window_size; what Figure 4.17 bounds, in either reading of E4, is window_size + each_time. It
    holds for any five successive visits."""
    play = saturated()
    assert play.is_valid
    visits = [visited for _, visited in play.visits(300)]
    rotations = [sum(one.sent + one.retransmitted for one in visits[i : i + 5]) for i in range(len(visits) - 4)]
    assert max(rotations) <= 28
    assert max(rotations) > 20


def test_all_get_an_equal_share() -> None:
    """Section 4.4 and also when N x each_time exceeds the window nobody starves (E4)."""
    counts: Counter[int] = Counter()
    rounds = list(busy_rounds(saturated()).values())
    for visits in rounds[2:20]:
        counts.update({node: visited.sent for node, visited in visits})
    assert len(counts) == 5
    assert min(counts.values()) > 0.8 * max(counts.values())


def slow(duration_ns: int) -> tuple[Play, int]:
    """The same load; after each token visit n1 reads nothing for so long. Returns when all was delivered, too."""
    ring = replace(SIM_RING, window=20, visit_max=8)
    receive_buffer = ring.window + ring.visit_max
    play = Play(options(ring=ring, receive_buffer=receive_buffer))
    last = [0]

    def watch(event: Event) -> None:
        if isinstance(event, Noted) and isinstance(event.note, Visited):
            life = play.world.hosts[1].life
            if node_of(event.process) == 1 and life is not None and event.at > 100 * MILLISECOND:
                life.busy_until = Instant(event.at + duration_ns)
            if event.note.sent:
                last[0] = event.at

    play.watch = watch
    for node in range(3):
        for _ in range(100):
            play.at(101, partial(play.submit, node, size=500))
    play.run()
    return play, last[0]


def test_a_slow_receiver_lowers_the_rate_and_nothing_is_lost() -> None:
    """Section 4.4: the token waits behind what a slow receiver has to read, so everybody sends more slowly; with a
    buffer of window_size + each_time packets none overflows."""
    (quick, soon), (sluggish, late) = slow(0), slow(1 * MILLISECOND)
    for play in (quick, sluggish):
        assert play.is_valid
        assert play.result.counts["retransmissions"] == 0
        assert [len(play.deliveries(node)) for node in range(3)] == [300] * 3
        assert play.memberships(0) == [[0], [0, 1, 2]]
    assert late - 101 * MILLISECOND > 2 * (soon - 101 * MILLISECOND)


# Applications that are behind


def test_while_an_application_is_behind_nobody_sends() -> None:
    """Deviation (behind): the token counts the members whose applications cannot take more; the budget is zero."""
    solo = loaded()
    assert seqs(solo.pass_token(behind=1)) == []
    assert (solo.token_forwarded.budget, solo.token_forwarded.behind) == (0, 1)
    assert len(seqs(solo.pass_token(behind=0, budget=WINDOW))) == VISIT


def test_a_process_says_once_that_it_is_behind_and_once_that_it_is_not() -> None:
    """Deviation (behind): each member adds itself once and takes itself away once."""
    solo = Solo().to_operational()
    solo.behind(True)
    solo.pass_token(behind=1)
    assert solo.token_forwarded.behind == 2
    solo.pass_token()
    assert solo.token_forwarded.behind == 2
    solo.behind(False)
    solo.pass_token()
    assert solo.token_forwarded.behind == 1
