"""Facts: what one replica has and knows, and the questions about it. Pure.

The core (`core.py`) is what changes them; here is what its driver, and whoever watches, may ask. What a replica says of
itself is made of them, too: its STATE to the others at every view, and a Changed to its own application.
"""

from __future__ import annotations

from collections.abc import Iterator

from ordercast.model.events import ViewId
from ordercast.model.lineage import Lineage, Term
from ordercast.replicated.component import Calendar, Component
from ordercast.replicated.copy import Copy
from ordercast.replicated.decision import Knowledge
from ordercast.replicated.effects import Changed, Reason, Standing
from ordercast.replicated.exchange import Exchange
from ordercast.replicated.machine import StateMachine
from ordercast.replicated.quorum import Life, Rule
from ordercast.replicated.requests import Requests
from ordercast.replicated.stance import Stance
from ordercast.replicated.track import Tails
from ordercast.replicated.wire import State

Claim = tuple[ViewId, int, int]  # in a round of a view: how many commands of its component are here
Round = tuple[ViewId, int]  # of a view, in which its members say what they have


class Facts:
    def __init__(self, me: Life, machine: StateMachine, rule: Rule, outstanding_max: int, tails: Tails) -> None:
        self.me = me  # it changes when the replica was cut off
        self.malformed = 0  # messages that could not be read
        self.foreign = 0  # messages of others than members
        self.ahead = 0  # commands of its own that came without the one before them, and do not count
        self._rule = rule
        self._copy = Copy(machine)
        self._knowledge = Knowledge()
        self._calendar = Calendar()
        self._component: Component | None = None  # None: not in the group
        self._exchange = Exchange(self._copy, tails)
        self._requests = Requests(me.life, outstanding_max)
        self._will_go_on = False  # a GoOn is not answered yet

    # The component

    @property
    def is_primary(self) -> bool:
        return self._component is not None and self._component.is_live

    @property
    def refuses(self) -> bool:
        """Commands are refused for certain, as things are."""
        return self._copy.is_spoilt or (self._component is not None and self._component.refuses)

    @property
    def kept_back(self) -> int:
        """How many requests wait behind others that are not sent yet."""
        return sum(request.is_held for request in self._requests.waiting.values())

    @property
    def standing(self) -> Standing:
        if self._copy.track is None:
            return Standing.FRESH
        is_current = self._component is not None and self._component.has_best
        return Standing.HOLDER if is_current else Standing.STALE

    @property
    def is_in_group(self) -> bool:
        """It gets the group's stream, as far as is known here."""
        return self._component is not None

    @property
    def is_current(self) -> bool:
        """The copy here is the state of a primary component, with all that was applied there so far, as far as is known
        here. Never so after the stream has ended."""
        return self.is_primary and self.standing is Standing.HOLDER and not self.is_behind

    @property
    def _limit(self) -> int:
        """How many commands may be applied by now. Where journals are kept: those that are safe at a quorum."""
        track, component = self._copy.track, self._component
        if track is None or component is None or not component.is_gated:
            return 0 if track is None else track.count
        return min(track.count, component.limit)

    @property
    def is_deciding(self) -> bool:
        """A round is open."""
        return self._component is not None and self._component.decision is None

    @property
    def round(self) -> Round | None:
        """The one that is open, or whose sides are being united. None: nobody is waited for, or this replica is left
        out."""
        component = self._component
        if component is None or not (component.is_open or component.is_uniting):
            return None
        return component.view.id, component.round

    @property
    def awaited(self) -> tuple[str, ...]:
        """Who has not said what it has in the round that is open, or has not answered."""
        return () if self._component is None else self._component.awaited

    @property
    def pending(self) -> int:
        """Commands that came in the round that is open."""
        return 0 if self._component is None else len(self._component.pending)

    @property
    def era(self) -> int:
        return self._calendar.era

    # The state

    @property
    def count(self) -> int:
        """Commands applied here."""
        return 0 if self._copy.track is None else self._copy.track.applied

    @property
    def term(self) -> Term | None:
        return None if self._copy.track is None else self._copy.track.term

    @property
    def lineage(self) -> Lineage | None:
        return None if self._copy.track is None else self._copy.track.lineage

    @property
    def held(self) -> int:
        """Commands that have their places here and are not applied."""
        return 0 if self._copy.track is None else len(self._copy.track.held)

    @property
    def is_behind(self) -> bool:
        """Commands of this component are still to be applied here: a `go_on` will; or journals are waited for, and it
        has more than what came since the component began."""
        if not self.is_primary or self.standing is not Standing.HOLDER:
            return False
        assert self._component is not None
        return self.count < max(self._limit, self._component.floor or 0)

    @property
    def claim(self) -> Claim | None:
        """What may be said of the commands here when the journal has them."""
        component, track = self._component, self._copy.track
        if not self.memory or component is None or track is None or not (component.is_live and component.has_best):
            return None
        return component.view.id, component.round, track.count

    @property
    def memory(self) -> int:
        """What the journal is called; 0: there is none."""
        return self._copy.memory

    @property
    def stance(self) -> Stance:
        track, calendar = self._copy.track, self._calendar
        rank = None if track is None else track.rank
        return Stance(calendar.era, calendar.last, self._copy.is_voter, self._knowledge.formed, rank)

    def unapplied(self) -> Iterator[bytes]:
        """The commands that a primary component still has to apply here, in order: its state has them already."""
        return self._copy.unapplied() if self.is_primary else iter(())

    @property
    def arriving_lineage(self) -> Lineage | None:
        """The lineage of the state that is being fetched."""
        return None if self._exchange.track is None else self._exchange.track.lineage

    @property
    def pictures(self) -> int:
        """The pictures that are kept for others."""
        return len(self._exchange.points)

    @property
    def outstanding(self) -> int:
        """Requests without an answer."""
        return len(self._requests.waiting)

    # What it says of itself

    def _state(self, component: Component, *, behind: bool, founding: bool, address: bytes) -> State:
        track = self._copy.track
        return State(
            component.view.id,
            component.round,
            self._calendar.era,
            behind,
            self.me.life,
            self.me.stint,
            self._copy.is_voter,
            self._copy.is_kept,
            founding,
            None if track is None else track.rank,
            self._knowledge.formed,
            self._knowledge.attempts,
            self._exchange.loading,
            self._exchange.points,
            address,
            self.memory,
        )

    def _missing(self, component: Component) -> tuple[str, ...]:
        """For whom is waited."""
        decision = component.decision
        if decision is None:
            return component.awaited
        if component.is_primary:
            return ()
        if decision.reason is Reason.NO_STATE:
            return self._rule.missing({name: state.founding for name, state in component.states.items()})
        return self._rule.absent(component.voters(), self._knowledge.electorates())

    def _changed(self, reason: Reason) -> Changed:
        component = self._component
        return Changed(
            self.is_primary,
            self.standing,
            () if component is None else tuple(sorted(component.holders)),
            () if component is None else component.view.members,
            self.term,
            self.count + self.held if self.is_primary and self.standing is Standing.HOLDER else self.count,
            reason,
            self.lineage,
            () if component is None else self._missing(component),
            self._rule.needed() if reason is Reason.NO_STATE else (),
            () if component is None else tuple(sorted(component.excluded)),
            0 if component is None else component.round,
        )

    def check_invariants(self) -> None:
        track, component = self._copy.track, self._component
        assert track is not None or not self._copy.is_voter, "a voter without a state"
        assert track is None or 0 <= len(track.held) <= track.count, "more is held than there is"
        if component is not None and component.is_live and component.has_best:
            is_due = track is not None and track.applied < self._limit
            assert not is_due or self._will_go_on, "a live component, and nobody applies"
            assert track is not None
            assert track.term == component.term, "the term is not the component's"
            assert track.held or track.digest == self._copy.applied_digest
        known = [electorate.point.term for electorate in self._knowledge.electorates()]
        known += [] if track is None else [track.lineage.term, track.term]
        assert all(map(self._calendar.has_reached, known)), "a component is known that is after the last view here"
        is_fetching = self._exchange.track is not None
        assert not is_fetching or component is None or not component.has_best, "fetching what is here"
