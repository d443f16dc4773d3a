from __future__ import annotations

from ordercast.model.configuration import ChangeReason
from ordercast.model.ids import NOBODY, ProcessId
from ordercast.order.membership.consensus import Proposal, agreeing, least_forwarder, new_ring_seq
from ordercast.wire.messages import Join

from ..rings import FOUR, ONE, RING_ID, THREE, TWO


def _join(
    sender: ProcessId, candidates: tuple[ProcessId, ...], failed: tuple[ProcessId, ...] = (), ring_seq: int = 8
) -> Join:
    return Join(RING_ID, sender, 1, ring_seq, candidates, failed, 0, ChangeReason.MERGE, NOBODY, ())


def test_a_join_of_a_ring_mate_is_taken_over_whole() -> None:
    proposal = Proposal(ONE, {ONE, TWO, THREE})
    proposal.merge(_join(TWO, (ONE, TWO, THREE, FOUR), (THREE,)), (ONE, TWO, THREE))
    assert (proposal.candidates, proposal.failed) == ({ONE, TWO, THREE, FOUR}, {THREE})
    assert proposal.members == (ONE, TWO, FOUR)


def test_an_outsider_may_not_break_up_my_ring() -> None:
    proposal = Proposal(ONE, {ONE, TWO})
    proposal.merge(_join(THREE, (ONE, TWO, THREE, FOUR), (TWO, FOUR)), (ONE, TWO))
    assert (proposal.candidates, proposal.failed) == ({ONE, TWO, THREE, FOUR}, {FOUR})


def test_who_counts_me_as_failed_has_failed_for_me() -> None:
    proposal = Proposal(ONE, {ONE, TWO, THREE})
    proposal.merge(_join(TWO, (ONE, TWO, THREE), (ONE, THREE)), (ONE, TWO, THREE))
    assert (proposal.candidates, proposal.failed) == ({ONE, TWO, THREE}, {TWO})


def test_nobody_gives_up_itself() -> None:
    proposal = Proposal(ONE, {ONE, TWO})
    proposal.fail([ONE, TWO])
    assert (proposal.candidates, proposal.failed) == ({ONE, TWO}, {TWO})


def test_a_failed_stranger_becomes_a_failed_candidate() -> None:
    proposal = Proposal(ONE, {ONE})
    proposal.fail([FOUR])
    assert (proposal.candidates, proposal.failed) == ({ONE, FOUR}, {FOUR})


def test_equal_and_covered_are_told_apart() -> None:
    proposal = Proposal(ONE, {ONE, TWO, THREE}, {THREE})
    joins = (
        _join(TWO, (ONE, TWO, THREE), (THREE,)),
        _join(TWO, (ONE, TWO)),
        _join(TWO, (ONE, TWO, THREE, FOUR), (THREE,)),
        _join(TWO, (ONE, TWO, THREE)),  # the same candidates, of whom fewer
        _join(TWO, (ONE, TWO, THREE), (TWO, THREE)),  # or more have failed
    )
    assert [proposal.equals(join) for join in joins] == [True, False, False, False, False]
    assert [proposal.covers(join) for join in joins] == [True, True, False, True, False]


def test_consensus_waits_for_an_equal_join_of_everybody_proposed() -> None:
    proposal = Proposal(ONE, {ONE, TWO, THREE, FOUR}, {FOUR})
    equal = (ONE, TWO, THREE, FOUR), (FOUR,)
    assert agreeing(proposal, {}) == set()
    assert agreeing(proposal, {TWO: _join(TWO, *equal), THREE: _join(THREE, (ONE, TWO, THREE))}) == {TWO}
    assert agreeing(proposal, {TWO: _join(TWO, *equal), THREE: _join(THREE, *equal)}) == {TWO, THREE}


def test_who_forwarded_least_is_given_up_and_the_first_of_equals() -> None:
    assert least_forwarder((ONE, TWO, THREE), {ONE: 2, TWO: 1, THREE: 1}) == TWO
    assert least_forwarder((ONE, TWO, THREE), {ONE: 2, TWO: 1}) == THREE


def test_a_new_ring_seq_is_four_above_the_highest_that_anybody_committed_to() -> None:
    assert new_ring_seq(8, []) == 12
    assert new_ring_seq(8, [_join(TWO, (TWO,), ring_seq=20), _join(THREE, (THREE,), ring_seq=4)]) == 24
