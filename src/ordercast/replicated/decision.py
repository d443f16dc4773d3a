"""Who has the best state, who lacks it, and whether this view is a primary component: a pure function of what the
members of a view said, and therefore the same at all who heard them all.

An attempt is a component that somebody decided after the signal, when others may have decided it before, or not at all.
It is refuted by a life that was to hold the state in it and does not know of it: safe delivery would have told it, had
anybody decided before the signal. A beginning that is refuted never was: its state counts as none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ordercast.model.lineage import Lineage, Term
from ordercast.replicated.effects import Point, Reason
from ordercast.replicated.quorum import Electorate, Life, Rule
from ordercast.replicated.sides import Side, sides_of, united_rank
from ordercast.replicated.track import EMPTY, Rank
from ordercast.replicated.wire import State

DONORS_MAX = 3  # holders that keep a picture, the first by name

States = Mapping[str, State]  # what each member said


@dataclass(frozen=True, slots=True)
class Knowledge:
    """What is known of primary components."""

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
    votes: Mapping[str, tuple[Life, ...]] = field(default_factory=dict)  # that each has, once it holds the state
    knowledge: Knowledge = Knowledge()  # before this decision
    forgotten: frozenset[Lineage] = frozenset()  # that never began
    continuing: Mapping[str, Point] = field(default_factory=dict)  # who lacks it, and goes on fetching a picture of it
    lacking: tuple[str, ...] = ()  # those who lack it and need a new picture, sorted
    sides: tuple[Side, ...] = ()  # several that have met and are not united yet


def life_of(name: str, state: State) -> Life:
    return Life(name, state.life, state.stint)


def voice_of(name: str, state: State) -> Life:
    """Return whose voice it is: a journal's, if there is one, which outlives its replica."""
    return Life(name, state.memory, 0) if state.memory else life_of(name, state)


def decide(term: Term, states: States, rule: Rule) -> Decision:
    return _decide_sides(term, states) if rule.goes_on else _decide_primary(term, states, rule)


def _decide_sides(term: Term, states: States) -> Decision:
    sequences = {name: state.rank.sequence for name, state in states.items() if state.rank is not None}
    sides, point = sides_of(sequences), Point(term, 0)
    if not sides:
        return Decision(point, Reason.BOOTSTRAP, Rank(Lineage(term), term, 0, EMPTY), tuple(sorted(states)), True)
    if len(sides) > 1:
        return Decision(point, Reason.SIDES, None, (), False, sides=sides)
    best, holders = united_rank(term, sides), sides[0].members
    continuing = _continuing(best, holders, states)
    lacking = _others(states, (*holders, *continuing))
    return Decision(point, Reason.ONE_SIDE, best, holders, True, continuing=continuing, lacking=lacking)


def decide_united(term: Term, states: States, sides: Sequence[Side], uniter: str) -> Decision:
    """Decide on a union: of several sides these make the state. If it is one, who was on it has it; if not, the uniter
    alone."""
    best, is_one = united_rank(term, sides), len(sides) == 1
    holders, reason = (sides[0].members, Reason.ONE_SIDE) if is_one else ((uniter,), Reason.UNITED)
    return Decision(Point(term, 0), reason, best, holders, is_one, lacking=_others(states, holders))


def _decide_primary(term: Term, states: States, rule: Rule) -> Decision:
    knowledge = _known(states)
    forgotten = _forgotten(states, knowledge)
    point = Point(term, 0)
    ranks = {
        name: state.rank
        for name, state in states.items()
        if state.rank is not None and state.rank.lineage not in forgotten
    }
    if not ranks:
        return _beginning(point, states, rule, knowledge, forgotten)
    best = _best(ranks, states, rule)
    holders = tuple(sorted(name for name, rank in ranks.items() if rank == best))
    votes = _votes(best, states, knowledge)
    voters = [life for name in holders for life in votes.get(name, ())]
    is_primary = rule.is_quorum(voters, knowledge.electorates())
    continuing = _continuing(best, holders, states)
    lacking = _others(states, (*holders, *continuing))
    reason = Reason.QUORUM if is_primary else Reason.NO_QUORUM
    return Decision(point, reason, best, holders, is_primary, votes, knowledge, forgotten, continuing, lacking)


def _beginning(
    point: Point, states: States, rule: Rule, knowledge: Knowledge, forgotten: frozenset[Lineage]
) -> Decision:
    holders = tuple(sorted(rule.beginners({name: state.founding for name, state in states.items()})))
    if not holders:
        return Decision(point, Reason.NO_STATE, None, (), False, {}, knowledge, forgotten)
    best, lacking = Rank(Lineage(point.term), point.term, 0, EMPTY), _others(states, holders)
    return Decision(point, Reason.BOOTSTRAP, best, holders, True, {}, knowledge, forgotten, lacking=lacking)


def _continuing(best: Rank, holders: Sequence[str], states: States) -> dict[str, Point]:
    """Who is fetching a picture that some holder serves, and will have the best state with what came since."""
    served = {picture for name in holders for picture in states[name].pictures}
    return {
        name: state.loading.point
        for name, state in states.items()
        if name not in holders
        and state.loading is not None
        and state.loading.rank.sequence == best.sequence
        and state.loading.point in served
    }


def _others(states: States, names: Sequence[str]) -> tuple[str, ...]:
    return tuple(sorted(states.keys() - set(names)))


def _known(states: States) -> Knowledge:
    """Return what all together know, without the attempts that turn out to have failed."""
    formed = max((state.formed for state in states.values() if state.formed is not None), default=None)
    attempts = {
        attempt
        for state in states.values()
        for attempt in state.attempts
        if formed is None or attempt.point > formed.point
    }
    refuted = {attempt for attempt in attempts if _is_refuted(attempt, states)}
    return Knowledge(formed, tuple(sorted(attempts.difference(refuted))))


def _votes(best: Rank, states: States, knowledge: Knowledge) -> dict[str, tuple[Life, ...]]:
    """Who came with a vote keeps it, unless that was about another state altogether. Members who lost theirs when they
    were cut off have it again when everybody is back who held the state in the last primary component, in the life in
    which it did: nobody has forgotten anything, so what was confirmed is here. (Nobody can have gone on without them:
    a quorum needs one of them, and who is cut off in a round, or while somebody is being loaded, does not count.)

    A journal has its vote from the first primary component on that its replica held the state in. What is confirmed is
    in the journals of a quorum: who votes may have missed something, and must only have forgotten nothing."""
    about = {name: state for name, state in states.items() if state.rank and state.rank.lineage == best.lineage}
    votes: dict[str, tuple[Life, ...]] = {
        name: (life_of(name, state),) for name, state in about.items() if state.voter and not state.memory
    }
    elected = () if knowledge.formed is None else knowledge.formed.lives
    for name, state in states.items():
        if state.memory and (voice := voice_of(name, state)) in elected:
            votes[name] = (voice,)
    needed = {life for electorate in knowledge.electorates() for life in electorate.lives}
    keepers = {(name, state.life) for name, state in about.items() if state.voter or state.kept}
    if needed and keepers.issuperset(life[:2] for life in needed):
        for life in sorted(needed):
            votes[life.name] = (*votes.get(life.name, ()), life)
    return votes


def _forgotten(states: States, knowledge: Knowledge) -> frozenset[Lineage]:
    """Beginnings that failed: nothing that may have been decided is known of them, nor of what came after. (One that an
    operator forced is none, whatever came of it.)"""
    begun = {state.rank.lineage for state in states.values() if state.rank is not None and not state.rank.lineage.side}
    last = max((electorate.point.term for electorate in knowledge.electorates()), default=None)
    return frozenset(lineage for lineage in begun if last is None or lineage.term > last)


def _is_refuted(attempt: Electorate, states: States) -> bool:
    for life in attempt.lives:
        state = states.get(life.name)
        if state is not None and life_of(life.name, state) == life and attempt not in state.attempts:
            return True
    return False


def _best(ranks: Mapping[str, Rank], states: States, rule: Rule) -> Rank:
    """The greatest by term and count, of these the one whose holder is first by name. Where there are several lineages
    (all who had a voice lost everything and began anew, and somebody without one did not) the one whose voters have
    more weight."""
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
