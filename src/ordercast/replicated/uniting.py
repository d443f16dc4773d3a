"""Uniting: one state for several sides that have met (`sides.py`). Pure.

One replica, the uniter, fetches a picture of every side but its own, one after the other, and keeps them beside until
all are here. It says in the order which of them are needed, and at that place its state becomes the one that unites
them. On every other side the first few members keep a picture for it (`exchange.py`). What that means for the component
is a decision like any other, which the core (`core.py`) takes up.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ordercast.model.errors import WireError
from ordercast.model.lineage import Term
from ordercast.replicated.component import Component
from ordercast.replicated.copy import Copy, Due
from ordercast.replicated.decision import DONORS_MAX, Decision, decide_united
from ordercast.replicated.effects import Effect, Fetch, Point, Send, StopFetching
from ordercast.replicated.exchange import Exchange
from ordercast.replicated.machine import SideState, Unites
from ordercast.replicated.quorum import Life
from ordercast.replicated.sessions import Sessions
from ordercast.replicated.sides import Side, covers, picture_point, united_sessions, uniter_of
from ordercast.replicated.track import Track
from ordercast.replicated.wire import United, decode_preface, encode_united


class Fetched(NamedTuple):
    """A side as its picture tells it."""

    sessions: Sessions
    pieces: Iterable[bytes] | None  # None: the state that is here


@dataclass(slots=True)
class Uniting:
    """What the uniter has of the sides so far: its own, and those that it fetched."""

    term: Term
    sides: Sequence[Side]
    fetched: dict[int, Fetched] = field(default_factory=dict)  # by number

    @property
    def wanted(self) -> Side | None:
        """The one to be fetched now."""
        return next((side for side in self.sides if side.number not in self.fetched), None)

    @property
    def point(self) -> Point | None:
        return None if self.wanted is None else picture_point(self.term, self.wanted)

    def have(self, side: Side, sessions: Sessions) -> None:
        """It is the one that is here."""
        self.fetched[side.number] = Fetched(sessions, None)

    def take(self, preface: bytes, pieces: Iterable[bytes]) -> None:
        """The picture of the side that is wanted. WireError when it is another."""
        wanted = self.wanted
        assert wanted is not None
        applied, digest, sessions, held = decode_preface(preface)
        if held or (applied, digest) != wanted.sequence:
            raise WireError(f"a picture of {applied} commands, one of {wanted.sequence.length} was wanted")
        self.fetched[wanted.number] = Fetched(sessions, pieces)

    def needed(self) -> list[Side]:
        """Return the sides that are to be united. Where two have the same commands in two orders, the first is
        enough."""
        needed: list[Side] = []
        for side in reversed(self.sides):
            others = (*needed, *self.sides[: side.number - 1])
            mine = self.fetched[side.number].sessions
            if not any(covers(self.fetched[other.number].sessions, mine) for other in others):
                needed.append(side)
        return needed[::-1]

    def sessions(self, sides: Sequence[Side]) -> Sessions:
        return united_sessions([self.fetched[side.number].sessions for side in sides])


class Uniter:
    """What one replica does when sides meet: it is the uniter, or keeps a picture for it, or waits."""

    def __init__(self, copy: Copy, exchange: Exchange) -> None:
        self._copy = copy
        self._exchange = exchange
        self._uniting: Uniting | None = None  # None: it is not the uniter

    def is_fetching(self, point: Point) -> bool:
        return self._uniting is not None and self._uniting.point == point

    def meet(self, me: Life, component: Component, mine: Side, effects: list[Effect]) -> None:
        """Everything that is of this replica's side is applied."""
        assert component.decision is not None and self._copy.track is not None
        sides = component.decision.sides
        uniter = uniter_of(sides)
        if me.name == uniter:
            self._uniting = Uniting(component.term, sides)
            self._uniting.have(mine, self._copy.sessions)
            self._fetch(self._uniting, me, component, effects)
        elif uniter not in mine.members and me.name in mine.members[:DONORS_MAX]:
            due = Due(picture_point(component.term, mine), self._copy.track.count, {component.life(uniter)})
            self._exchange.take_picture(due, effects)

    def fetched(
        self, me: Life, component: Component, preface: bytes, pieces: Iterable[bytes], effects: list[Effect]
    ) -> None:
        """The picture of the side that was wanted. WireError when it is another: then nothing has changed."""
        assert self._uniting is not None
        self._uniting.take(preface, pieces)
        if not component.is_signalled:
            self._fetch(self._uniting, me, component, effects)

    def _fetch(self, uniting: Uniting, me: Life, component: Component, effects: list[Effect]) -> None:
        """The next one, or say that all are here."""
        side = uniting.wanted
        if side is None:
            numbers = tuple(side.number for side in uniting.needed())
            united = United(component.view.id, me.life, me.stint, numbers)
            effects.append(Send((encode_united(united),)))
            return
        donors = (component.donor(name) for name in side.members[:DONORS_MAX])
        effects.append(Fetch(picture_point(component.term, side), tuple(donors)))

    def on_united(self, component: Component, united: United) -> Decision:
        """The place in the order at which the sides are one: the uniter has their state, everybody knows it."""
        assert component.decision is not None
        sides = [side for side in component.decision.sides if side.number in united.numbers]
        uniter = uniter_of(component.decision.sides)
        decision = decide_united(component.term, component.states, sides, uniter)
        uniting, self._uniting = self._uniting, None
        if uniting is not None and len(sides) > 1:
            assert decision.best is not None and isinstance(self._copy.machine, Unites)
            states = [SideState(side.number, side.members, uniting.fetched[side.number].pieces) for side in sides]
            self._copy.machine.unite(states)
            self._copy.begin(Track(*decision.best))
            self._copy.sessions = uniting.sessions(sides)
        return decision

    def stop(self, effects: list[Effect]) -> None:
        """The view is over."""
        uniting, self._uniting = self._uniting, None
        if uniting is not None and uniting.point is not None:
            effects.append(StopFetching(uniting.point))
