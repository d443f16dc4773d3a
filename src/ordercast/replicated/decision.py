"""Who has the best state, who lacks it, and whether this view is a primary component: a pure function of what the
members of a view said, and therefore the same at all who heard them all.

An attempt is a component that somebody decided after the signal, when others may have decided it before, or not at all.
It is refuted by a life that was to hold the state in it and does not know of it: safe delivery would have told it, had
anybody decided before the signal. A beginning that is refuted never was: its state counts as none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ordercast.model.events import ViewId
from ordercast.replicated.effects import Point, Reason
from ordercast.replicated.quorum import Electorate, Life, Rule
from ordercast.replicated.track import EMPTY, Rank
from ordercast.replicated.wire import State

DONORS_MAX = 3  # holders that keep a picture, the first by name

States = Mapping[str, State]  # what each member said


@dataclass(frozen=True, slots=True)
class Knowledge:
    """Of primary components."""

    formed: Electorate | None = None
    attempts: tuple[Electorate, ...] = ()  # after `formed`, in order

    def electorates(self) -> Sequence[Electorate]:
        return (*(() if self.formed is None else (self.formed,)), *self.attempts)

    def with_attempt(self, electorate: Electorate) -> Knowledge:
        return Knowledge(self.formed, (*self.attempts, electorate))


@dataclass(frozen=True, slots=True)
class Decision:
    point: Point
    reason: Reason
    best: Rank | None
    holders: tuple[str, ...]  # sorted
    is_primary: bool
    knowledge: Knowledge  # before this decision
    forgotten: frozenset[ViewId]  # lineages that never began
    continuing: Mapping[str, Point]  # those who lack it and go on with the picture that they are fetching
    lacking: tuple[str, ...]  # those who lack it and need a new picture, sorted


def life_of(name: str, state: State) -> Life:
    return Life(name, state.life, state.stint)


def decide(view: ViewId, states: States, rule: Rule) -> Decision:
    knowledge, refuted = _known(states)
    forgotten = frozenset(
        attempt.point.view
        for attempt in refuted
        if any(state.rank is not None and state.rank.lineage == attempt.point.view for state in states.values())
    )
    point = Point(view, 0)
    ranks = {
        name: state.rank
        for name, state in states.items()
        if state.rank is not None and state.rank.lineage not in forgotten
    }
    if not ranks:
        return _beginning(point, states, rule, knowledge, forgotten)
    best = _best(ranks, states, rule)
    holders = tuple(sorted(name for name, rank in ranks.items() if rank == best))
    voters = [life_of(name, states[name]) for name in holders if states[name].voter]
    is_primary = rule.is_quorum(voters, knowledge.electorates()) or _is_everybody_back(best, states, knowledge)
    served = {picture for name in holders for picture in states[name].pictures}
    continuing = {
        name: state.loading.point
        for name, state in states.items()
        if name not in holders
        and state.loading is not None
        and state.loading.rank == best
        and state.loading.point in served
    }
    lacking = tuple(sorted(name for name in states if name not in holders and name not in continuing))
    reason = Reason.QUORUM if is_primary else Reason.NO_QUORUM
    return Decision(point, reason, best, holders, is_primary, knowledge, forgotten, continuing, lacking)


def _known(states: States) -> tuple[Knowledge, list[Electorate]]:
    """Of all together; and the attempts that turn out to have failed."""
    formed = max((state.formed for state in states.values() if state.formed is not None), default=None)
    attempts = {
        attempt
        for state in states.values()
        for attempt in state.attempts
        if formed is None or attempt.point > formed.point
    }
    refuted = sorted(attempt for attempt in attempts if _is_refuted(attempt, states))
    return Knowledge(formed, tuple(sorted(attempts.difference(refuted)))), refuted


def _is_everybody_back(best: Rank, states: States, knowledge: Knowledge) -> bool:
    """All who held the state in the last primary component are here, each in the life in which it did: some were cut
    off, but nobody has forgotten anything, so what was confirmed is here. (Nobody can have gone on without them: a
    quorum needs one of them, and who is cut off in a round, or while somebody is being loaded, does not count here.)"""
    electorates = knowledge.electorates()
    return bool(electorates) and all(
        (state := states.get(life.name)) is not None
        and state.life == life.life
        and (state.voter or state.kept)
        and state.rank is not None
        and state.rank.lineage == best.lineage
        for electorate in electorates
        for life in electorate.lives
    )


def _is_refuted(attempt: Electorate, states: States) -> bool:
    for life in attempt.lives:
        state = states.get(life.name)
        if state is not None and life_of(life.name, state) == life and attempt not in state.attempts:
            return True
    return False


def _beginning(
    point: Point, states: States, rule: Rule, knowledge: Knowledge, forgotten: frozenset[ViewId]
) -> Decision:
    names = tuple(sorted(states))
    if rule.may_begin({name: state.founding for name, state in states.items()}):
        best = Rank(point.view, point.view, 0, EMPTY)
        return Decision(point, Reason.BOOTSTRAP, best, names, True, knowledge, forgotten, {}, ())
    return Decision(point, Reason.NO_STATE, None, (), False, knowledge, forgotten, {}, ())


def _best(ranks: Mapping[str, Rank], states: States, rule: Rule) -> Rank:
    """The greatest by term and count, of these the one whose holder is first by name. Of several lineages (all who had
    a voice lost everything and began anew, and somebody without one did not) the one whose voters have more weight."""
    weights = {rank.lineage: 0 for rank in ranks.values()}
    for name, rank in ranks.items():
        if states[name].voter:
            weights[rank.lineage] += rule.weight(name)
    lineage = max(weights, key=lambda each: (weights[each], each))
    candidates = [(name, rank) for name, rank in sorted(ranks.items()) if rank.lineage == lineage]
    return max(candidates, key=lambda candidate: (candidate[1].term, candidate[1].length))[1]  # the first of the equals


def donors_of(point: Point, decision: Decision, states: States) -> tuple[str, ...]:
    """Holders that have this picture, or make it at this decision."""
    if point == decision.point:
        return decision.holders[:DONORS_MAX]
    return tuple(name for name in decision.holders if point in states[name].pictures)
