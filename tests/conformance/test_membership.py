"""The membership algorithm: what each state does with each event. (Paper, section 4.2, Figures 4.4 to 4.11)"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from ordercast.model.configuration import ChangeReason, ConfigurationKind
from ordercast.model.effects import Broadcast, Install, Persist, SendTo
from ordercast.model.ids import MILLISECOND, NO_SEQ, NOBODY, ConfigurationId, ProcessId, Seq, TokenSeq, node_of
from ordercast.model.notes import Occurrence
from ordercast.sim.faults import Fault, FaultKind
from ordercast.trace.records import Installed
from ordercast.wire.codec import decode
from ordercast.wire.header import MessageKind
from ordercast.wire.messages import Announcement, CommitToken, Join, Token

from .play import Play, kind_of, options
from .solo import (
    CLUSTER,
    FIVE,
    FOUR,
    ONE,
    RING,
    SMALL,
    THREE,
    TRIO,
    TWO,
    Solo,
    delivered,
    ignored,
    moves,
    occurred,
    packet_of,
    packets_of,
    reasons,
    sent,
    story,
    views,
)

NEXT = ConfigurationId(12, ONE)
KEEP, LOSS = SMALL.token_retransmit_ns, SMALL.token_loss_ns
JOIN, CONSENSUS = SMALL.join_ns, SMALL.consensus_ns


def stored(seq: int) -> dict[str, bytes]:
    return {"ring_seq": seq.to_bytes(8, "big")}


def operational(me: ProcessId = TWO) -> Solo:
    return Solo(me).to_operational()


def gathering(me: ProcessId = TWO) -> Solo:
    """It lost the token of its ring of three and proposes the same three."""
    return operational(me).lose_ring()


def committed(me: ProcessId = TWO) -> Solo:
    """It has forwarded the Commit token of ring 12 once, coming from a ring of the same three."""
    solo = gathering(me).agree()
    if me != ONE:
        solo.give(solo.first_commit(TRIO, NEXT))
    assert solo.node.state_name == "Commit"
    return solo


def recovering(me: ProcessId = TWO) -> Solo:
    solo = committed(me)
    solo.written()
    solo.give(solo.second_commit())
    assert solo.node.state_name == "Recovery"
    return solo


def sets(solo: Solo) -> tuple[tuple[ProcessId, ...], tuple[ProcessId, ...]]:
    """What the node's last Join says."""
    return solo.join.candidates, solo.join.failed


# Start-up


def test_a_life_begins_on_a_ring_of_one_once_its_seq_is_stored() -> None:
    """Section 4.2 and E7: the ring seq is raised and stored before it is used. Deviation: the node is Operational on
    its ring of one and announces itself; the paper broadcasts a Join and enters Gather."""
    solo = Solo(stored=stored(8))
    assert solo.log == [Persist("configuration_seq", (12).to_bytes(8, "big"))]
    effects = solo.written()
    assert [view.id for view in views(effects)] == [ConfigurationId(12, TWO)]
    assert solo.node.state_name == "Operational"
    effects = solo.wait(0)
    assert sent(effects, Join) == []
    assert [one.members for one in sent(effects, Announcement)] == [(TWO,)]


@pytest.mark.parametrize("seq", [0, 4, 5, 6, 7, 8, 4000])
def test_every_start_uses_a_higher_seq_than_the_one_stored(seq: int) -> None:
    """Chapter 3 and E7: also when the last life stored a value and died before using it."""
    (view,) = views(Solo(stored=stored(seq)).written())
    assert view.id.seq > seq
    assert view.id.seq % 4 == 0


def test_nothing_is_heard_before_the_seq_is_stored() -> None:
    solo = Solo()
    assert packets_of(solo.give(*solo.announcements(), solo.join_of(ONE, TRIO))) == []
    assert solo.node.state_name == "Starting"


# Operational (section 3.5 of our map; Figure 4.4)


def test_token_loss_leads_to_gather() -> None:
    """Figure 4.4, Token Loss timeout: Shift_to_Gather with the members as candidates."""
    solo = operational()
    assert solo.wait(LOSS - 1) and solo.node.state_name == "Operational"
    effects = solo.wait(1)
    assert reasons(effects) == [ChangeReason.TOKEN_LOST]
    (join,) = sent(effects, Join)
    assert (join.candidates, join.failed, join.ring_seq, join.ring) == (TRIO, (), 8, RING)


def test_foreign_data_is_evidence_of_life_and_nothing_else() -> None:
    """Section 4.2 Operational: a foreign message leads to Gather. Deviation: it is noted as evidence that its sender
    lives; rings merge by announcements."""
    solo = operational()
    assert packets_of(solo.give_packets(packet_of(1, originator=FOUR, ring=ConfigurationId(8, FOUR)))) == []
    assert solo.node.state_name == "Operational"
    announced = sent(solo.wait(SMALL.announce_ns), Announcement)
    assert FOUR in announced[-1].heard


def test_a_recovery_rebroadcast_of_another_ring_does_not_disturb() -> None:
    """Section 4.2 Operational: messages that are rebroadcast in recovery are no foreign messages."""
    solo = operational()
    assert moves(solo.give_packets(packet_of(1, originator=THREE, ring=ConfigurationId(4, THREE)))) == []


def test_a_commit_token_is_discarded_in_operational() -> None:
    """Figure 4.4, Commit token: discard."""
    solo = operational()
    effects = solo.give(solo.first_commit(TRIO, NEXT))
    assert packets_of(effects) == [] and solo.node.state_name == "Operational"


@pytest.mark.parametrize(
    ("sender", "failed", "ring_seq", "why"),
    [
        (ONE, {TWO}, 8, "it counts me as failed"),
        (ONE, (), 4, "stale: sent before this ring was formed"),
        (FOUR, {TWO}, 100, "it counts me as failed"),
        (FOUR, (), 100, "not everybody here and there hear each other"),
    ],
)
def test_joins_that_operational_ignores(
    sender: ProcessId, failed: Collection[ProcessId], ring_seq: int, why: str
) -> None:
    """Section 4.2 Operational (E6, the figure has neither rule): a Join is ignored that counts me as failed, or that a
    member sent before this ring was formed. Deviation: an outsider's also unless everybody is known to hear
    everybody."""
    solo = operational()
    effects = solo.give(solo.join_of(sender, {*TRIO, sender}, failed, ring_seq=ring_seq))
    assert ignored(effects) == [why]
    assert packets_of(effects) == [] and solo.node.state_name == "Operational"


def test_a_fresh_join_of_a_member_leads_to_gather() -> None:
    """Section 4.2 Operational: its sets are merged, and the reason it gives goes on."""
    solo = operational()
    effects = solo.give(solo.join_of(ONE, TRIO, {THREE}, ring_seq=8, reason=ChangeReason.TOKEN_LOST))
    assert reasons(effects) == [ChangeReason.TOKEN_LOST]
    assert sets(solo) == (TRIO, (THREE,))


def test_a_join_of_an_outsider_whom_all_hear_leads_to_gather() -> None:
    """Section 4.2 Operational, with the evidence that the deviation asks for: a newcomer, and every member, hear each
    other."""
    solo = operational()
    everybody = (*TRIO, FOUR)
    solo.give(*(Announcement(RING, one, TRIO, everybody) for one in (ONE, THREE)))
    solo.give(Announcement(ConfigurationId(4, FOUR), FOUR, (FOUR,), everybody))
    effects = solo.give(solo.join_of(FOUR, everybody, (), ring_seq=4))
    assert reasons(effects) == [ChangeReason.MERGE]
    assert sets(solo) == (everybody, ())


def test_the_representative_proposes_the_merge() -> None:
    """Deviation (hearing): rings are merged by the representative that has heard announcements of all of both."""
    for me in (ONE, TWO):
        solo = operational(me)
        everybody = (*TRIO, FOUR)
        solo.give(*(Announcement(RING, one, TRIO, everybody) for one in TRIO if one != me))
        solo.give(Announcement(ConfigurationId(4, FOUR), FOUR, (FOUR,), everybody))
        effects = solo.wait(SMALL.announce_ns // 4)
        assert reasons(effects) == ([ChangeReason.MERGE] if me == ONE else [])


def test_an_older_opinion_that_arrives_late_is_ignored() -> None:
    """Section 4.2 Operational: replaying old Joins does not break a ring. Here by the number that each Join carries."""
    solo = operational()
    newer = solo.join_of(ONE, TRIO, {TWO}, ring_seq=8, number=50)
    older = solo.join_of(ONE, TRIO, (), ring_seq=8, number=49)
    assert ignored(solo.give(newer, older)) == ["it counts me as failed", "an older opinion of its sender"]
    assert solo.node.state_name == "Operational"


def test_join_and_consensus_timeouts_do_not_occur_in_operational() -> None:
    """Figure 4.4."""
    solo = operational()
    for _ in range(10):
        effects = solo.wait(CONSENSUS) + solo.pass_token()
        assert sent(effects, Join) == [] and moves(effects) == []


# Gather (Figures 4.5 to 4.8)


def test_entering_gather_cancels_the_tokens_timers() -> None:
    """Figure 4.5: Token Loss and Token Retransmission are cancelled, regular tokens dropped."""
    solo = gathering()
    assert sent(solo.wait(CONSENSUS - 1), Token) == []
    assert packets_of(solo.pass_token()) == []
    assert solo.node.state_name == "Gather"


def test_old_ring_data_is_still_received_and_delivered_in_gather() -> None:
    """Figure 4.7, regular message."""
    assert delivered(gathering().give_packets(packet_of(1))) == ["1"]


def test_a_foreign_message_adds_nobody_in_gather() -> None:
    """Figure 4.7 adds its sender. Deviation: evidence of life only."""
    solo = gathering()
    solo.give_packets(packet_of(1, originator=FOUR, ring=ConfigurationId(8, FOUR)))
    assert sets(solo) == (TRIO, ())


def test_the_join_is_repeated_unchanged() -> None:
    """Figure 4.7, Join timeout."""
    solo = gathering()
    first = solo.join
    assert sent(solo.wait(2 * JOIN), Join) == [first, first]


def test_equal_joins_of_everybody_are_consensus() -> None:
    """Figure 4.7, Join with sets equal to mine; section 4.2 Gather: who is not representative waits for the Commit
    token, and the Consensus timer is cancelled."""
    solo = gathering().agree()
    assert solo.node.state_name == "Gather"
    effects = solo.wait(LOSS - 1)
    assert moves(effects) == []
    assert reasons(solo.wait(1)) == [ChangeReason.COMMIT_LOST]


def test_joins_of_all_but_one_are_no_consensus() -> None:
    solo = gathering(ONE)
    solo.give(*(join for join in solo.agreement() if join.sender == TWO))
    assert solo.node.state_name == "Gather"


def test_the_representative_sends_the_commit_token_at_consensus() -> None:
    """Figure 4.8: the lowest id of candidates less failed; it lists itself first, its own entry filled."""
    solo = gathering(ONE)
    effects = solo.give(*solo.agreement())
    (token,) = sent(effects, CommitToken)
    assert token.ring == NEXT
    assert [(one.process, one.filled) for one in token.members] == [(ONE, True), (TWO, False), (THREE, False)]
    assert (token.members[0].old_ring, token.token_seq) == (RING, 1)
    assert solo.node.state_name == "Commit"


def test_a_join_with_nothing_new_is_ignored() -> None:
    """Figure 4.7: both its sets are subsets of mine."""
    solo = gathering().fail(ONE)
    before = solo.join
    assert sent(solo.give(solo.join_of(THREE, TRIO, ())), Join) == []
    assert solo.join == before


def test_a_join_of_one_that_i_count_as_failed_is_ignored() -> None:
    """Figure 4.7: a processor that is in my_fail_set has no say."""
    solo = gathering().fail(THREE)
    effects = solo.give(solo.join_of(THREE, {*TRIO, FIVE}, ()))
    assert ignored(effects) == ["from one I count as failed"]
    assert sets(solo) == (TRIO, (THREE,))


def test_who_counts_me_as_failed_is_failed_for_me() -> None:
    """Section 4.2 Gather: the two can never agree. And a processor never declares itself failed."""
    solo = gathering()
    solo.give(solo.join_of(THREE, TRIO, {TWO}))
    assert sets(solo) == (TRIO, (THREE,))


def test_a_ring_mates_opinion_is_taken_over_whole() -> None:
    """Section 4.2 Gather: its fail_set is added to mine."""
    solo = gathering()
    effects = solo.give(solo.join_of(THREE, {*TRIO, FOUR}, {ONE, FOUR}))
    assert sets(solo) == ((*TRIO, FOUR), (ONE, FOUR))
    assert len(sent(effects, Join)) == 1, "a change is told at once"
    assert solo.join.number > 0


def with_outsider() -> Solo:
    """In Gather, FOUR is a candidate from another ring."""
    solo = operational()
    solo.give(solo.join_of(ONE, {*TRIO, FOUR}, (), ring_seq=8, reason=ChangeReason.MERGE))
    assert sets(solo) == ((*TRIO, FOUR), ())
    return solo


def test_an_outsider_may_not_break_up_my_ring() -> None:
    """Section 4.2 Gather: of an outsider's fail_set those are taken that are not on my ring."""
    solo = with_outsider()
    solo.give(solo.join_of(FOUR, {*TRIO, FOUR, FIVE}, {ONE, FIVE}))
    assert sets(solo) == ((*TRIO, FOUR, FIVE), (FIVE,))


def test_an_outsider_without_evidence_is_not_even_a_candidate() -> None:
    """Deviation (hearing): Gather too admits only those whom everybody is known to hear."""
    solo = gathering()
    effects = solo.give(solo.join_of(FOUR, {*TRIO, FOUR}, ()))
    assert ignored(effects) == ["not everybody here and there hear each other"]


def test_the_consensus_timeout_fails_the_silent() -> None:
    """Figure 4.7, Consensus timeout: who has not sent a Join equal to mine."""
    solo = gathering()
    solo.give(*(join for join in solo.agreement() if join.sender == ONE))
    effects = solo.wait(CONSENSUS)
    assert ChangeReason.NO_CONSENSUS in reasons(effects)
    assert sets(solo) == (TRIO, (THREE,))


def test_who_agreed_with_an_earlier_opinion_is_silent_on_this_one() -> None:
    """Figure 4.5: consensus is cleared with every change of my sets, except for Joins that equal the new ones."""
    solo = gathering()
    solo.give(solo.join_of(ONE))
    solo.give(solo.join_of(THREE, {*TRIO, FOUR}, {FOUR}))
    solo.wait(CONSENSUS)
    assert sets(solo) == ((*TRIO, FOUR), (ONE, FOUR)), "THREE's Join equals the new sets, ONE's does not"


def test_who_withdraws_its_agreement_does_not_agree() -> None:
    """Figure 4.7: what counts is a processor's newest Join."""
    solo = gathering().fail(ONE)
    solo.give(solo.join_of(THREE, TRIO, ()))
    assert solo.node.state_name == "Gather"
    solo.wait(CONSENSUS)
    assert sets(solo) == (TRIO, (ONE, THREE))


def test_a_change_of_the_sets_starts_the_consensus_timer_anew() -> None:
    """Figure 4.5."""
    solo = gathering()
    solo.wait(CONSENSUS - 1)
    solo.give(solo.join_of(THREE, {*TRIO, FOUR}, {FOUR}))
    solo.wait(CONSENSUS - 1)
    assert sets(solo) == ((*TRIO, FOUR), (FOUR,))
    solo.wait(1)
    assert ONE in sets(solo)[1]


@pytest.mark.parametrize("case", ["nothing new", "what an outsider may not say"])
def test_a_join_that_adds_nothing_does_not_restart_the_consensus_timer(case: str) -> None:
    """Figure 4.7 shifts to Gather for every such Join. Deviation (seed 291): Gather starts over only if its sets
    changed, or two that repeat their Joins for ever would keep each other from the timeout."""
    solo = with_outsider()
    failed = () if case == "nothing new" else {ONE}
    for _ in range(4):
        solo.wait(CONSENSUS // 4 - 1)
        effects = solo.give(solo.join_of(FOUR, {*TRIO, FOUR}, failed, number=1000 + solo.now))
        assert moves(effects) == []
    assert ChangeReason.NO_CONSENSUS in reasons(solo.wait(4))


def test_an_agreement_counts_until_my_own_sets_change() -> None:
    """Figures 4.5 and 4.7: consensus[q] is set by an equal Join and cleared only at Shift_to_Gather. FOUR agreed, like
    ONE; then its own consensus timeout, a moment before mine, fails THREE, who is silent. At my timeout THREE alone is
    silent, and we all agree again. If FOUR is failed too, every crash during a merge breaks the merge."""
    solo = with_outsider()
    solo.wait(CONSENSUS - 1)
    solo.give(solo.join_of(ONE), solo.join_of(FOUR))
    solo.give(solo.join_of(FOUR, {*TRIO, FOUR}, {THREE}))
    solo.wait(1)
    assert sets(solo) == ((*TRIO, FOUR), (THREE,))


# The Commit token in Gather


def waiting() -> Solo:
    return gathering().agree()


def test_a_commit_token_that_agrees_with_me_is_accepted() -> None:
    """Section 4.2 Gather: higher ring seq, my membership, first rotation. Figure 4.9: my entry is filled in and the
    hop counted."""
    solo = waiting()
    effects = solo.give(solo.first_commit(TRIO, NEXT))
    assert solo.node.state_name == "Commit"
    (token,) = sent(effects, CommitToken)
    assert [one.filled for one in token.members] == [True, True, False]
    assert token.members[1].old_ring == RING
    assert token.token_seq == 2
    (send,) = [effect for effect in effects if isinstance(effect, SendTo)]
    assert send.process == THREE


def test_a_commit_token_alone_is_consensus() -> None:
    """Section 4.2 Gather: a Commit token with exactly my membership stands for the Joins that I have not seen."""
    solo = gathering()
    solo.give(solo.first_commit(TRIO, NEXT))
    assert solo.node.state_name == "Commit"


@pytest.mark.parametrize(
    "changes",
    [
        {"ring": RING},
        {"ring": ConfigurationId(4, ONE)},
        {"token_seq": 0},
        {"token_seq": 2},
        {"token_seq": 4},
        {"token_seq": 7},
    ],
)
def test_commit_tokens_that_gather_refuses(changes: dict[str, Any]) -> None:
    """Section 4.2 Gather: the ring seq must be above mine and it must be the first rotation. Deviation: the hop is
    exactly my place on the ring, where the paper asks for one below the number of members."""
    solo = waiting()
    effects = solo.give(replace(solo.first_commit(TRIO, NEXT), **changes))
    assert packets_of(effects) == [] and solo.node.state_name == "Gather"


def test_a_commit_token_with_other_members_is_refused() -> None:
    """Section 4.2 Gather."""
    solo = waiting()
    for members in ((ONE, TWO), (ONE, TWO, THREE, FOUR), (TWO, THREE)):
        assert packets_of(solo.give(solo.first_commit(members, ConfigurationId(12, members[0])))) == []
    assert solo.node.state_name == "Gather"


def test_a_commit_token_that_nobody_filled_in_before_me_is_refused() -> None:
    """No duplicate or damaged Commit token gives a half-filled list."""
    solo = waiting()
    token = solo.first_commit(TRIO, NEXT)
    empty = tuple(replace(one, filled=False) for one in token.members)
    assert packets_of(solo.give(replace(token, members=empty))) == []


def test_a_commit_token_of_an_attempt_that_i_gave_up_is_refused() -> None:
    """Section 4.2 Gather: after the failure of ring 12 its Commit token is void, for the ring seq I committed to is
    not below it."""
    solo = committed().lose_ring()
    assert packets_of(solo.give(solo.first_commit(TRIO, NEXT))) == []


# No proposal is repeated


@pytest.mark.parametrize(
    ("forwards", "given_up"),
    [({ONE: 0, THREE: 1}, (ONE,)), ({ONE: 0, THREE: 0}, (ONE,)), ({ONE: 2, THREE: 0}, (THREE,))],
)
def test_the_second_consensus_on_the_same_sets_gives_up_the_least_forwarder(
    forwards: dict[ProcessId, int], given_up: tuple[ProcessId, ...]
) -> None:
    """Section 4.2 Gather: who forwarded the token fewest times, the first such in ring order. `forwards` counts since
    consensus. The node itself forwarded the Commit token once."""
    solo = committed().lose_ring()
    assert solo.join.forwards == 1
    effects = solo.give(*(replace(join, forwards=forwards[join.sender]) for join in solo.agreement()))
    assert Occurrence.SAME_PROPOSAL in occurred(effects)
    assert sets(solo) == (TRIO, given_up)


def test_the_least_forwarder_itself_goes_alone() -> None:
    """Section 4.2 Gather: if it is I who forwarded least, I form a ring of one; and a singleton always installs."""
    solo = gathering().agree()
    solo.wait(LOSS)
    assert reasons(solo.log)[-1] is ChangeReason.COMMIT_LOST
    effects = solo.give(*(replace(join, forwards=1) for join in solo.agreement()))
    assert sets(solo) == (TRIO, (ONE, THREE))
    assert solo.node.state_name == "Commit"
    effects = solo.wait(0)
    effects += solo.written()
    effects += solo.wait(0)
    assert story(effects) == ["(2)", "[2]"]
    assert solo.node.state_name == "Operational"


def test_failures_are_remembered_until_a_ring_is_installed() -> None:
    """Section 4.2: my_fail_set is emptied only at installation; section 4.2 Gather: so is the memory of what was
    agreed."""
    solo = gathering().fail(THREE)
    assert sets(solo) == (TRIO, (THREE,))
    solo.recover().wait(LOSS)
    assert solo.node.state_name == "Gather"
    assert sets(solo)[1][-1] == THREE
    solo = gathering().fail(THREE).recover().install().lose_ring()
    assert sets(solo) == ((ONE, TWO), ())


def test_when_no_ring_can_form_the_sets_grow_at_most_2n_minus_2_times_and_each_ends_alone() -> None:
    """Section 4.5: every Commit token and every token is lost; only the loops of rings of one remain."""
    nodes = 4
    play = Play(options(nodes=nodes, fault_time_ns=1500 * MILLISECOND))
    lossy: set[int] = set()
    opinions: dict[int, list[tuple[int, int]]] = {node: [] for node in range(nodes)}

    def rule(source: int, target: int, packet: bytes) -> bool:
        if not lossy:
            return True
        if kind_of(packet) == MessageKind.JOIN and len(play.memberships(source)) == 2:
            join = decode(packet, CLUSTER)
            assert isinstance(join, Join)
            size = len(join.candidates), len(join.failed)
            if size not in opinions[source]:
                opinions[source].append(size)
        return kind_of(packet) not in (MessageKind.TOKEN, MessageKind.COMMIT)

    play.rule = rule
    play.at(100, lambda: lossy.add(1))
    play.at(1400, lossy.clear)
    assert play.run().is_valid
    for node in range(nodes):
        steps = opinions[node]
        assert all(a <= c and b <= d for (a, b), (c, d) in pairwise(steps)), "sets only grow"
        assert 1 < len(steps) <= 2 * nodes - 2
        assert play.memberships(node)[2] == [node]
    assert play.count(Occurrence.SAME_PROPOSAL) > 0


# Ring sequence numbers


def test_a_new_rings_seq_is_four_above_the_highest_known() -> None:
    """Section 4.2 Gather and E8: max of my own and of all Joins used, plus four."""
    solo = gathering(ONE)
    first, second = solo.agreement()
    solo.give(first, replace(second, ring_seq=40))
    assert solo.commit_forwarded.ring == ConfigurationId(44, ONE)


def test_the_transitional_configuration_is_two_below_the_new_ring() -> None:
    """Section 4.3: its representative is the lowest that comes along."""
    solo = operational()
    transitional, regular = views(solo.log)[1:]
    assert transitional.id == ConfigurationId(regular.id.seq - 2, TWO)
    assert regular.id == RING


# Commit (Figure 4.10)


def test_the_ring_seq_is_asked_to_be_stored_on_the_first_rotation() -> None:
    """Figure 4.11 writes on the second. Deviation: the write begins on the first, so that all disks work at once."""
    effects = committed().log
    assert Persist("configuration_seq", (12).to_bytes(8, "big")) in effects


def test_the_second_forwarding_waits_for_the_disk() -> None:
    """Section 4.2 Commit and E10: the ring seq is on stable storage before the Commit token is forwarded the second
    time. (How long it waits: `test_storage.py`)"""
    solo = committed()
    effects = solo.give(solo.second_commit())
    assert packets_of(effects) == [] and solo.node.state_name == "Commit"
    assert packets_of(solo.wait(SMALL.storage_patience_ns - 1)) == [], "a slow disk is nobody's fault"
    effects = solo.written()
    assert [token.token_seq for token in sent(effects, CommitToken)] == [5]
    assert solo.node.state_name == "Recovery"


def test_a_write_without_the_token_does_not_suffice() -> None:
    solo = committed()
    assert packets_of(solo.written()) == [] and solo.node.state_name == "Commit"


def test_copies_of_the_first_rotation_are_not_taken_for_the_second() -> None:
    """Errata to Figure 4.10: any Commit token of the same ring would do there. The hop number tells the rotation."""
    solo = committed()
    solo.written()
    for hop in (0, 1, 2, 3, 5, 6):
        token = replace(solo.second_commit(), token_seq=TokenSeq(hop))
        assert occurred(solo.give(token)) == [Occurrence.DUPLICATE_TOKEN]
    assert solo.node.state_name == "Commit"


def test_a_second_rotation_with_an_empty_entry_is_ignored() -> None:
    solo = committed()
    solo.written()
    token = solo.second_commit()
    members = (*token.members[:2], replace(token.members[2], filled=False))
    assert packets_of(solo.give(replace(token, members=members))) == []
    assert solo.node.state_name == "Commit"


def test_a_second_rotation_that_says_other_of_me_than_i_wrote_is_ignored() -> None:
    solo = committed()
    solo.written()
    token = solo.second_commit()
    members = (token.members[0], replace(token.members[1], old_aru=Seq(7)), token.members[2])
    assert packets_of(solo.give(replace(token, members=members))) == []
    assert solo.node.state_name == "Commit"


def test_another_rings_commit_token_is_discarded_in_commit() -> None:
    """Section 4.2 Commit."""
    solo = committed()
    solo.written()
    for ring in (ConfigurationId(16, ONE), ConfigurationId(8, ONE)):
        assert packets_of(solo.give(replace(solo.second_commit(), ring=ring))) == []


def test_regular_tokens_and_foreign_messages_are_discarded_in_commit() -> None:
    """Figure 4.10. Data of the old ring is received as in Operational."""
    solo = committed()
    assert (
        packets_of(solo.give(Token(RING, ONE, TokenSeq(16), 1, NO_SEQ, NO_SEQ, NOBODY, (), 0, 8, 0, 0, False, 0))) == []
    )
    assert packets_of(solo.give_packets(packet_of(1, originator=FOUR, ring=ConfigurationId(8, FOUR)))) == []
    assert delivered(solo.give_packets(packet_of(1))) == ["1"]
    assert solo.node.state_name == "Commit"


def test_the_join_is_not_repeated_in_commit() -> None:
    """Section 4.2 Gather: Join and Consensus timers are cancelled."""
    assert sent(committed().wait(LOSS - 1), Join) == []


def test_the_commit_token_is_retransmitted() -> None:
    """Figure 4.9 starts the Token Retransmission timer."""
    solo = committed()
    token = solo.forwarded
    assert sent(solo.wait(KEEP), CommitToken) == [token]


def test_token_loss_in_commit_leads_back_to_gather() -> None:
    """Figure 4.10, Token Loss: the sets stay, and the Join speaks of the ring that failed."""
    solo = committed()
    effects = solo.wait(LOSS)
    assert reasons(effects) == [ChangeReason.COMMIT_LOST]
    assert (solo.join.ring_seq, sets(solo)) == (12, (TRIO, ()))


@pytest.mark.parametrize("state", ["Commit", "Recovery"])
@pytest.mark.parametrize(
    ("sender", "ring_seq", "is_taken"),
    [(THREE, 12, True), (THREE, 16, True), (THREE, 8, False), (FOUR, 16, False)],
)
def test_a_member_that_speaks_of_this_ring_or_a_later_one_has_given_it_up(
    state: str, sender: ProcessId, ring_seq: int, is_taken: bool
) -> None:
    """Figures 4.10 and 4.12; E9: >=, for who accepted this ring and lost its token sends exactly its seq."""
    solo = committed() if state == "Commit" else recovering()
    effects = solo.give(solo.join_of(sender, {*TRIO, FIVE, sender}, {FIVE}, ring_seq=ring_seq))
    assert solo.node.state_name == ("Gather" if is_taken else state)
    assert (sets(solo) == ((*TRIO, FIVE), (FIVE,))) is is_taken
    interrupted = Occurrence.COMMIT_INTERRUPTED if state == "Commit" else Occurrence.RECOVERY_INTERRUPTED
    assert (interrupted in occurred(effects)) is is_taken


# Recovery (Figures 4.12 and 4.13)


def test_the_representatives_third_sight_makes_the_commit_token_a_regular_one() -> None:
    """Section 4.2 Recover."""
    solo = recovering(ONE)
    (token,) = sent(solo.give(solo.third_commit()), Token)
    assert (token.ring, token.token_seq, token.seq, token.aru, token.requests) == (NEXT, 7, 0, 0, ())


def test_others_do_not_take_a_third_commit_token() -> None:
    solo = recovering(TWO)
    assert packets_of(solo.give(solo.third_commit(), replace(solo.second_commit(), token_seq=TokenSeq(7)))) == []


def test_duplicates_of_the_second_rotation_are_refused_in_recovery() -> None:
    """Errata: the representative too checks the hop before it takes a Commit token for the third sight."""
    solo = recovering(ONE)
    for hop in (1, 3, 4, 5, 7):
        assert packets_of(solo.give(replace(solo.third_commit(), token_seq=TokenSeq(hop)))) == []


def test_token_loss_in_recovery_leads_back_to_gather_as_a_member_of_the_old_ring() -> None:
    """Section 4.2 Recover and section 4.3."""
    solo = recovering()
    effects = solo.wait(LOSS)
    assert reasons(effects) == [ChangeReason.RECOVERY_LOST]
    assert (solo.join.ring, solo.join.ring_seq) == (RING, 12)
    assert solo.node.ring.id == RING


def test_foreign_messages_are_dropped_in_recovery() -> None:
    """Figure 4.12."""
    solo = recovering()
    assert packets_of(solo.give_packets(packet_of(1, originator=FOUR, ring=ConfigurationId(8, FOUR)))) == []
    assert solo.node.state_name == "Recovery"


# Ids over crashes


@pytest.mark.parametrize(
    "kind", [FaultKind.CRASH_BEFORE_WRITE, FaultKind.CRASH_DURING_WRITE, FaultKind.CRASH_AFTER_WRITE]
)
@pytest.mark.parametrize("node", [0, 1])
def test_a_crash_round_the_write_never_lets_an_id_be_used_twice(kind: FaultKind, node: int) -> None:
    """Chapter 3 and section 4.5: n0 (the representative) or n1 dies again and again at a write: of a ring being formed
    and, by plain crashes, of its start."""
    moments = []
    for start in (60, 280, 500):
        moments += [
            Fault(start * MILLISECOND, kind, node=node),
            Fault(start * MILLISECOND, FaultKind.CRASH, node=2),
            Fault((start + 130) * MILLISECOND, FaultKind.RESTART, node=node),
            Fault(
                (start + 130) * MILLISECOND + 200_000, FaultKind.CRASH, node=node
            ),  # while its start is being written
            Fault((start + 132) * MILLISECOND, FaultKind.RESTART, node=node),
            Fault((start + 132) * MILLISECOND, FaultKind.RESTART, node=2),
        ]
    play = Play(options(faults=tuple(moments), fault_time_ns=720 * MILLISECOND)).run()
    assert play.is_valid
    assert play.world.hosts[node].lives == 7
    names: dict[ConfigurationId, tuple[ConfigurationKind, tuple[ProcessId, ...]]] = {}
    last: dict[int, int] = {}
    for event in play.events:
        if isinstance(event, Installed):
            view = event.configuration
            assert names.setdefault(view.id, (view.kind, view.members)) == (view.kind, view.members)
            assert view.id.seq > last.get(node_of(event.process), 0), "also from one life to the next"
            last[node_of(event.process)] = view.id.seq


def test_installing_comes_after_storing() -> None:
    """E10, seen from outside: in no log does a view come before the write of its seq."""
    solo = operational()
    written = [i for i, effect in enumerate(solo.log) if isinstance(effect, Persist)]
    installed = [i for i, effect in enumerate(solo.log) if isinstance(effect, Install)]
    joins = [i for i, effect in enumerate(solo.log) if isinstance(effect, Broadcast) and sent([effect], Join)]
    assert written[0] < installed[0] < joins[0] < written[1] < installed[1] < installed[2]
