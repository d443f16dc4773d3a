"""Join sets only grow, and nobody gives up itself: that is what makes Gather end."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ordercast.model.configuration import ChangeReason
from ordercast.model.ids import NO_CONFIGURATION, NOBODY, ProcessId
from ordercast.order.membership.consensus import Proposal, agreeing, least_forwarder, new_ring_seq
from ordercast.wire.messages import Join

few = st.integers(1, 7).map(ProcessId)
ME = ProcessId(1)


@st.composite
def joins(draw: st.DrawFn) -> Join:
    sender = draw(few.filter(lambda process: process != ME))
    candidates = {sender, *draw(st.sets(few))}
    failed = draw(st.sets(st.sampled_from(sorted(candidates)))) - {sender}
    ring_seq = draw(st.integers(0, 100))
    return Join(
        NO_CONFIGURATION,
        sender,
        1,
        ring_seq,
        tuple(sorted(candidates)),
        tuple(sorted(failed)),
        0,
        ChangeReason.MERGE,
        NOBODY,
        (),
    )


rings = st.sets(few).map(lambda others: frozenset({ME, *others}))


@given(rings, st.lists(joins(), max_size=10))
def test_sets_only_grow_and_me_never_fails(ring: frozenset[ProcessId], drawn: list[Join]) -> None:
    proposal = Proposal(ME, set(ring))
    for join in drawn:
        candidates, failed = proposal.sets
        proposal.merge(join, ring)
        assert proposal.candidates >= candidates and proposal.failed >= failed
        assert proposal.candidates >= set(join.candidates)
        assert proposal.failed <= proposal.candidates
        assert ME not in proposal.failed and ME in proposal.members


@given(rings, joins())
def test_after_merging_either_the_join_is_covered_or_outsiders_were_refused(
    ring: frozenset[ProcessId], join: Join
) -> None:
    proposal = Proposal(ME, set(ring))
    proposal.merge(join, ring)
    if ME in join.failed:
        assert proposal.failed == {join.sender}
    elif join.sender in ring:
        assert proposal.covers(join)
    else:
        assert proposal.failed == set(join.failed) - ring


@given(rings, joins())
def test_merging_the_same_join_twice_changes_nothing(ring: frozenset[ProcessId], join: Join) -> None:
    proposal = Proposal(ME, set(ring))
    proposal.merge(join, ring)
    once = proposal.sets
    proposal.merge(join, ring)
    assert proposal.sets == once


@given(rings, st.lists(joins(), max_size=6))
def test_those_agree_whose_join_is_equal_to_mine_and_all_of_them_are_proposed(
    ring: frozenset[ProcessId], drawn: list[Join]
) -> None:
    proposal = Proposal(ME, set(ring))
    heard = {join.sender: join for join in drawn}
    mine = tuple(sorted(ring)), ()
    equal = {sender for sender, join in heard.items() if (join.candidates, join.failed) == mine}
    assert agreeing(proposal, heard) == equal <= set(proposal.members) - {ME}


@given(st.lists(few, min_size=1, unique=True), st.dictionaries(few, st.integers(0, 5)))
def test_the_least_forwarder_is_the_first_of_the_laziest(
    listed: list[ProcessId], forwards: dict[ProcessId, int]
) -> None:
    victim = least_forwarder(tuple(listed), forwards)
    fewest = min(forwards.get(process, 0) for process in listed)
    assert victim == next(process for process in listed if forwards.get(process, 0) == fewest)


@given(st.integers(0, 100), st.lists(joins()))
def test_a_new_ring_seq_is_above_all_and_leaves_room_for_the_transitional_one(mine: int, drawn: list[Join]) -> None:
    highest = max([mine, *(join.ring_seq for join in drawn)])
    assert new_ring_seq(mine, drawn) - 2 > highest
