"""One view of the group: what its members said, what was decided of it, and who has the state by now.

Members say what they have in rounds. In every round each speaks once, and a round ends when all have spoken but those
who are excluded: a member says in the order that others are silent, and whoever of them has not been heard before that
place is excluded, at everybody alike. It has no part in what is decided. Whoever was only slow speaks later: at the
place of its word a new round begins, with it.

Where sides are being united all wait for each other, too, and it may take long. So they ask who is still there, and
whoever does not answer is excluded in the same way: a new round begins without it.

Eras: in which order components come, though views do not always rise. What is decided rests on this: who has said in a
view what it has, and lives on, is only in later components after it. So of two components of which one had a majority
of the other's voters it is known which was later. The ids of views rise, as long as daemons remember theirs. One that
lost its memory numbers its views anew, and replicas that outlive it meet in views that come before those that they
know: unnoticed, a state of long ago would be the latest.

So components are ordered by era first, then by view. Everybody says its era, and whether it has been in a view of that
era which is not before this one. When all say the same era, and nobody that, the view is decided in it. If not, all
take up the last era that was said, or the one after it if it was said by one who is behind, and say once more what they
have: then it is agreed. Who misses that goes on in an era in which this view was never decided.

So era and last view are a logical clock: every component is after the clocks of all its members, and sets them. No two
components have one term, because no two views have one id: an id names a process, and no process lives twice.
In one view several rounds may be decided, when members were excluded: each in a later era than the last, of which those
know, too, who had no part in it.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from ordercast.model.events import View, ViewId
from ordercast.model.lineage import Term
from ordercast.replicated.decision import Decision, life_of, voice_of
from ordercast.replicated.effects import Donor, Point, Reason
from ordercast.replicated.quorum import Electorate, Life, Rule
from ordercast.replicated.sides import uniter_of
from ordercast.replicated.track import Held
from ordercast.replicated.wire import Ask, Durable, Exclude, Here, Loaded, State, United


@dataclass(slots=True)
class Component:
    view: View
    era: int = 0
    round: int = 0
    excluded: set[str] = field(default_factory=set)  # they have not spoken, and are waited for no more
    is_left_out: bool = False  # the others have decided without this replica
    era_decided: int = (
        -1
    )  # the last one in which an earlier round of this view was decided, with or without this replica
    answered: set[str] | None = None  # who has, since it was asked who is still there; None: nobody has asked
    patience: int = 0  # how often this replica has lost it, since then
    states: dict[str, State] = field(default_factory=dict)
    is_gated: bool = False  # one of them keeps a journal: then a command is applied when it is safe at a quorum
    pending: list[Held] = field(default_factory=list)  # commands that came before the decision
    decision: Decision | None = None
    holders: set[str] = field(default_factory=set)  # since the decision, those who were loaded included
    has_best: bool = False  # the state of this replica is the component's
    is_primary: bool = False
    step: int = 0  # how many were loaded since the decision
    is_signalled: bool = False
    is_attempt: bool = False  # it was decided after the signal, so others may have decided otherwise
    safe: dict[str, int] = field(default_factory=dict)  # how many commands each has safe on its disk, by its word
    limit: int = 0  # where journals are kept: how many commands are safe at a quorum
    floor: int | None = None  # how many there were when it became primary
    is_forced: bool = False
    is_uniting: bool = False  # several sides have met, and not all who were on them have the state that unites them

    @property
    def term(self) -> Term:
        """Once it is decided."""
        return Term(self.era, self.view.id)

    @property
    def is_complete(self) -> bool:
        return len(self.states) + len(self.excluded) == len(self.view.members)

    @property
    def is_open(self) -> bool:
        """A round is under way."""
        return self.decision is None and not self.is_left_out

    @property
    def awaited(self) -> tuple[str, ...]:
        """Who has not spoken in the round that is under way, or while sides are united has not answered."""
        if self.is_uniting:
            return () if self.answered is None else tuple(sorted(self.states.keys() - self.answered))
        if not self.is_open:
            return ()
        return tuple(name for name in self.view.members if name not in self.states and name not in self.excluded)

    def is_settled_for(self, name: str) -> bool:
        """Nothing can be decided of this member any more that it would have to hear of: what was decided stays what it
        is, for nobody can be loaded any more; or the others decide without it."""
        is_decided = self.decision is not None and len(self.holders) in (0, len(self.states))
        return is_decided or name in self.excluded

    @property
    def refuses(self) -> bool:
        """Commands, for certain."""
        return self.decision is not None and not self.is_primary and not self.is_uniting

    @property
    def is_live(self) -> bool:
        """Commands are applied at delivery."""
        return self.is_primary and not self.is_signalled

    @property
    def era_said(self) -> int:
        """The last one that was said in this round: once it is decided, its own."""
        return max(state.era for state in self.states.values())

    def is_of_round(self, message: State | Exclude | Ask | Here | Durable) -> bool:
        return message.view == self.view.id and message.round == self.round

    def hear(self, sender: str, state: State) -> None:
        """What it says first in this round counts."""
        if sender not in self.states:
            self.states[sender] = state
            self.is_gated = self.is_gated or bool(state.memory)

    def ask_again(self, era: int) -> None:
        """In this era, which all take up."""
        self.era, self.round = era, self.round + 1
        self.states.clear()
        self.is_gated = False
        self.safe.clear()

    def begun_again(self, era: int, excluded: set[str]) -> Component:
        """A new round without these. Nothing of the last one counts."""
        decided = self.era_decided if self.is_open else max(self.era_decided, self.era_said)
        return Component(self.view, era, self.round + 1, excluded, era_decided=decided, is_signalled=self.is_signalled)

    def silent(self, sender: str, exclude: Exclude) -> set[str]:
        """Whom this excludes: those whom it names and who are awaited. Only who has spoken may say it."""
        if not self.is_of_round(exclude) or sender not in self.states:
            return set()
        return set(self.awaited).intersection(exclude.names)

    def exclude(self, names: set[str]) -> None:
        self.excluded |= names
        self.pending = [held for held in self.pending if held.name not in names]

    def admits(self, sender: str, loaded: Loaded) -> bool:
        """It is news of this view: one who lacked the state has it."""
        if self.decision is None or loaded.view != self.view.id or sender in self.holders or sender not in self.states:
            return False
        return self.life(sender) == Life(sender, loaded.life, loaded.stint)

    def admits_united(self, sender: str, united: United) -> bool:
        """It is the uniter's word on this view's sides. When the view is ending nothing is united any more; but if one
        side is enough, others may have gone on with it before the signal, so its members must."""
        sides = () if self.decision is None else self.decision.sides
        if not sides or united.view != self.view.id or sender != uniter_of(sides):
            return False
        if self.is_signalled and len(united.numbers) > 1:
            return False
        if not united.numbers or not {side.number for side in sides}.issuperset(united.numbers):
            return False
        return self.life(sender) == Life(sender, united.life, united.stint)

    def settle(self, decision: Decision) -> None:
        self.decision = decision
        self.holders = set(decision.holders)
        self.is_primary = decision.is_primary
        self.is_attempt = self.is_signalled
        self.is_uniting = decision.reason in (Reason.SIDES, Reason.UNITED)

    def electorate(self, before: Electorate | None = None) -> Electorate:
        """Return who holds the state at this point. Where journals are kept: with those of the last one who are not
        here, for their journals have forgotten nothing."""
        lives = {name: voice_of(name, self.states[name]) for name in self.holders}
        if self.is_gated and before is not None:
            for life in before.lives:
                lives.setdefault(life.name, life)
        return Electorate(Point(self.term, self.step), tuple(sorted(lives.values())))

    def has_safe(self, name: str, count: int, rule: Rule) -> bool:
        """Its journal has so many commands. Return whether more of them may be applied by that."""
        self.safe[name] = max(count, self.safe.get(name, 0))
        return self.lift(rule)

    def lift(self, rule: Rule) -> bool:
        """Find how many commands are safe at a quorum; in a component that was forced, at all who keep a journal.
        Return whether there are more."""
        if self.decision is None:
            return False
        keepers = [name for name in sorted(self.holders) if self.states[name].memory]
        counts = {name: self.safe.get(name, 0) for name in self.states if name in self.safe}
        if self.is_forced:
            found = min((counts.get(name, 0) for name in keepers), default=0)
        else:
            found = 0
            for count in sorted(set(counts.values()), reverse=True):
                if rule.is_quorum([self.life(name) for name, has in counts.items() if has >= count], ()):
                    found = count
                    break
        is_more, self.limit = found > self.limit, max(found, self.limit)
        return is_more

    def are_all_loaded(self) -> bool:
        """Everybody who came with a state has the component's."""
        return all(name in self.holders for name, state in self.states.items() if state.rank is not None)

    def voters(self) -> list[Life]:
        """Among the holders."""
        votes = {} if self.decision is None else self.decision.votes
        return [life for name in sorted(self.holders) for life in votes.get(name, ())]

    def donor(self, name: str) -> Donor:
        return Donor(name, self.states[name].life, self.states[name].address)

    def life(self, name: str) -> Life:
        return life_of(name, self.states[name])


@dataclass(slots=True)
class Calendar:
    """The eras that one replica has seen."""

    era: int = 0
    last: ViewId | None = None  # the last view that it was in, in this era

    def enter(self, view: ViewId) -> bool:
        """Is it behind one that it was in?"""
        if self.last is not None and view <= self.last:
            return True
        self.last = view
        return False

    def take_up(self, era: int, view: ViewId) -> None:
        """The view is in this era, too."""
        self.era, self.last = era, view

    def has_reached(self, term: Term) -> bool:
        """Must be so of all components that are known here: it was in them, or heard of them in later ones."""
        return term.era < self.era or (term.era == self.era and self.last is not None and term.view <= self.last)


def era_to_take_up(states: Collection[State]) -> int | None:
    """None: it is agreed."""
    last = max(state.era for state in states)
    is_behind = any(state.behind for state in states if state.era == last)
    is_agreed = not is_behind and all(state.era == last for state in states)
    return None if is_agreed else last + is_behind
