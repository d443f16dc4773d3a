"""Every pair of state and message, and of state and timer: nothing raises, and every move is a legal one.

(Paper, Figure 4.3, whose image is lost; rebuilt in states/moves.py)
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace

import pytest

from ordercast.model.configuration import ChangeReason
from ordercast.model.effects import Effect
from ordercast.model.errors import UsageError
from ordercast.model.ids import NO_SEQ, NOBODY, ConfigurationId, Duration, Instant, ProcessId, Seq, TokenSeq
from ordercast.order.membership.admission import Admission
from ordercast.order.membership.bounds import Horizon
from ordercast.order.membership.consensus import Proposal
from ordercast.order.membership.hearing import Hearing
from ordercast.order.membership.ring import Ring, TokenMemory
from ordercast.order.membership.rosters import Rosters
from ordercast.order.membership.states.base import State
from ordercast.order.membership.states.commit import Commit
from ordercast.order.membership.states.gather import Gather
from ordercast.order.membership.states.gone import Gone
from ordercast.order.membership.states.moves import MOVES, STATES
from ordercast.order.membership.states.recovery import Recovery
from ordercast.order.membership.states.starting import Starting
from ordercast.order.membership.step import Facts, Step, StoredSeq
from ordercast.order.membership.timers import Timer
from ordercast.order.outbox import Outbox
from ordercast.order.ring.node import parts_of
from ordercast.order.ring.states.operational import Operational
from ordercast.wire.codec import encode
from ordercast.wire.messages import Announcement, CommitEntry, CommitToken, Join, Leave, Token, Wake, WireMessage
from ordercast.wire.pieces import Pieces

from .solo import CLUSTER, FOUR, ONE, RING, SMALL, THREE, TRIO, TWO, Solo, moves, packet_of, wrapped

NEXT = ConfigurationId(12, ONE)


def _waiting_for_disk(me: ProcessId) -> Solo:
    solo = Solo(me).to_commit()
    solo.give(solo.second_commit())
    return solo


def _promised(me: ProcessId) -> Solo:
    solo = Solo(me).to_operational().lose_ring().fail(FOUR)
    solo = solo if solo.node.state_name == "Gather" else Solo(me).to_operational().lose_ring()
    solo.recover(*(CommitEntry(one, True, RING) for one in TRIO if one != me))
    solo.begin_token()
    solo.pass_token()
    return solo


def _left(me: ProcessId) -> Solo:
    solo = Solo(me).to_operational()
    solo.leave()
    return solo


def _resting(me: ProcessId) -> Solo:
    solo = Solo(me).to_operational()
    for _ in range(5):
        solo.pass_token()
    return solo


# How a node comes to each situation.
SITUATIONS: dict[str, Callable[[ProcessId], Solo]] = {
    "Starting": lambda me: Solo(me),
    "Operational, alone": lambda me: Solo(me).to_ring_of_one(),
    "Operational": lambda me: Solo(me).to_operational(),
    "Operational, quiet": _resting,
    "Gather, merging": lambda me: Solo(me).to_gather(),
    "Gather, after a ring": lambda me: Solo(me).to_operational().lose_ring(),
    "Gather, one given up": lambda me: Solo(me).to_operational().lose_ring().fail(THREE if me != THREE else TWO),
    "Commit": lambda me: Solo(me).to_commit(),
    "Commit, waiting for the disk": _waiting_for_disk,
    "Recovery": lambda me: Solo(me).to_recovery(),
    "Recovery, promised": _promised,
    "Gone": _left,
}


def messages(solo: Solo) -> list[WireMessage]:
    """Of every kind: from members and strangers, of the old ring, the next one and another."""
    senders = ONE, TWO, THREE, FOUR
    found: list[WireMessage] = []
    for ring in (RING, NEXT, ConfigurationId(400, FOUR)):
        for hop in (0, 1, 2, 3, 4, 6, 7, 10, 13, 16, 17, 19):
            entries = tuple(CommitEntry(one, True, RING, Seq(1), NO_SEQ, hop % 2 == 0) for one in TRIO)
            found += [
                Token(ring, ONE, TokenSeq(hop), 3, Seq(2), Seq(1), THREE, (Seq(1),), 0, 8, 0, 0, hop % 2 == 0, 5),
                CommitToken(ring, ONE, TokenSeq(hop), ChangeReason.MERGE, entries, 0),
            ]
        for sender in senders:
            found += [Wake(ring, sender), Leave(ring, sender), Announcement(ring, sender, (sender,), (*TRIO, FOUR))]
    for sender in senders:
        for candidates in (TRIO, (*TRIO, FOUR)):
            for failed in ((), (THREE,), (solo.me,)):
                for ring_seq in (4, 12):
                    reason = ChangeReason.TOKEN_LOST
                    found.append(Join(RING, sender, 1000, ring_seq, candidates, failed, 0, reason, NOBODY, ()))
    return found


def packets(solo: Solo) -> list[bytes]:
    data = [packet_of(seq, ring=ring) for seq in (1, 2, 5) for ring in (RING, NEXT, ConfigurationId(4, FOUR))]
    exchanged = [wrapped(packet_of(seq), 1, ring, ONE) for seq in (1, 3) for ring in (RING, NEXT)]
    return [encode(CLUSTER, message) for message in messages(solo)] + data + exchanged


def judge(origin: str, effects: list[Effect], node_state: str) -> None:
    """The moves that were told form a legal path from where the node was to where it is."""
    at = origin
    for move in moves(effects):
        assert (move.origin, move.target) in MOVES
        assert move.origin == at
        at = move.target
    assert at == node_state


@pytest.mark.parametrize("me", TRIO, ids=["representative", "middle", "last"])
@pytest.mark.parametrize("situation", SITUATIONS)
def test_every_message_in_every_state(situation: str, me: ProcessId) -> None:
    solo = SITUATIONS[situation](me)
    origin = solo.node.state_name
    assert origin == situation.split(",")[0]
    solo.log.clear()
    before = deepcopy(solo)
    unchanged = True
    for packet in packets(solo):
        if not unchanged:
            solo = deepcopy(before)
        effects = solo.give_packets(packet)
        judge(origin, effects, solo.node.state_name)
        unchanged = not effects and solo.node.state_name == origin


@pytest.mark.parametrize("me", TRIO, ids=["representative", "middle", "last"])
@pytest.mark.parametrize("situation", SITUATIONS)
def test_every_other_input_in_every_state(situation: str, me: ProcessId) -> None:
    """Submissions, leaving, a confirmed write, time: as long as a whole attempt takes, and much longer."""
    before = SITUATIONS[situation](me)
    before.log.clear()
    origin = before.node.state_name

    def confirm(solo: Solo) -> list[Effect]:
        try:
            return solo.written()
        except UsageError:
            return []  # none was outstanding

    def submit(solo: Solo) -> list[Effect]:
        try:
            return solo.submit("a", "b") + solo.submit("c", size=20_000)
        except UsageError:
            return []  # it is leaving

    inputs: list[Callable[[Solo], list[Effect]]] = [
        submit,
        confirm,
        lambda solo: solo.leave(),
        lambda solo: solo.wait(SMALL.join_ns),
        lambda solo: solo.wait(SMALL.consensus_ns),
        lambda solo: solo.wait(4 * SMALL.token_loss_ns),
        lambda solo: solo.wake_late(10 * SMALL.token_loss_ns),
    ]
    for first in inputs:
        for second in inputs:
            solo = deepcopy(before)
            effects = first(solo) + second(solo)
            judge(origin, effects, solo.node.state_name)


# States without a node: every timer, also those that are never armed in that state


def made_state(name: str, me: ProcessId) -> tuple[State, Facts]:
    ring = Ring(RING, TRIO, me, CLUSTER, TokenMemory(TokenSeq(16)))
    parts = parts_of(SMALL)
    facts = Facts(
        me=me,
        config=SMALL,
        cluster=CLUSTER,
        storage=StoredSeq(8),
        proposal=Proposal(me, set(TRIO)),
        hearing=Hearing(me, SMALL),
        admission=Admission(me),
        rosters=Rosters(Admission(me)),
        horizon=Horizon(Duration(1)),
        outbox=Outbox(SMALL.body_size_max),
        digests=SMALL.digests(),
        ring_seq=8,
        installed=ring,
        past=parts.past_of(ring, NO_SEQ),
        parts=parts,
        pieces=Pieces(CLUSTER, SMALL.packet_size_max),
    )
    step = Step(Instant(0), facts)
    token = Token(RING, me, TokenSeq(16), 1, NO_SEQ, NO_SEQ, NOBODY, (), 0, 8, 0, 0, False, 0)
    ring.memory.copy = [encode(CLUSTER, token)]
    entries = tuple(CommitEntry(one, True, RING) for one in TRIO)
    commit_token = CommitToken(NEXT, ONE, TokenSeq(0), ChangeReason.MERGE, entries, 0)
    operational = Operational.enter(Starting(), step, "made")
    gather = (
        Gather.enter(operational, ChangeReason.TOKEN_LOST, step) if name not in ("Starting", "Operational") else None
    )
    if gather is None:
        return (Starting() if name == "Starting" else operational), facts
    if name == "Gather":
        return gather, facts
    if name == "Gone":
        return Gone.enter(operational, step), facts
    commit = Commit.enter(gather, commit_token, step)
    assert isinstance(commit, Commit)
    if name == "Commit":
        return commit, facts
    return Recovery.enter(commit, commit.ring, replace(commit_token, token_seq=TokenSeq(3)), step), facts


@pytest.mark.parametrize("me", TRIO, ids=["representative", "middle", "last"])
@pytest.mark.parametrize("name", STATES)
def test_every_timer_in_every_state(name: str, me: ProcessId) -> None:
    for timer in Timer:
        if timer is Timer.LOOP:
            continue  # the node itself serves it
        state, facts = made_state(name, me)
        assert state.name == name
        step = Step(Instant(SMALL.token_loss_ns), facts)
        after = state.on_timer(timer, step)
        judge(name, step.effects, after.name)


def test_every_legal_move_is_made_by_somebody_above() -> None:
    """The situations are worth what they meet."""
    made: set[tuple[str, str]] = set()
    for situation, build in SITUATIONS.items():
        for me in TRIO:
            solo = build(me)
            made |= {(move.origin, move.target) for move in moves(solo.log)}
            later = deepcopy(solo)
            later.wait(2 * SMALL.token_loss_ns)
            made |= {(move.origin, move.target) for move in moves(later.log)}
        assert situation
    assert made == MOVES
