"""Exchange: the states that go between replicas. Pure.

For this replica: the state that it lacks and fetches, and what has its place behind it meanwhile. For others: the
pictures that are kept here until nobody needs them, and one that is due when so much is applied. The core (`core.py`)
says what was decided, and who was loaded; it is the desk and its driver that move the bytes (`arrival.py`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from ordercast.replicated.component import Component
from ordercast.replicated.copy import Arriving, Copy, Due
from ordercast.replicated.decision import Decision, donors_of
from ordercast.replicated.effects import Effect, Fetch, Freeze, Point, Release, StopFetching
from ordercast.replicated.quorum import Life
from ordercast.replicated.track import Tails, Track
from ordercast.replicated.wire import Loading


class Arrived(NamedTuple):
    """A picture that came before the decision that says if it counts."""

    point: Point
    preface: bytes
    pieces: Iterable[bytes]


@dataclass(slots=True)
class Pictures:
    """The pictures of the state that are kept here for others, and for whom: each is served until nobody needs it."""

    readers: dict[Point, set[Life]] = field(default_factory=dict)

    @property
    def points(self) -> tuple[Point, ...]:
        return tuple(sorted(self.readers))

    def keep(self, point: Point, lives: Iterable[Life]) -> None:
        self.readers[point] = set(lives)

    def retain(self, wanted: Collection[Point]) -> list[Point]:
        """Return the pictures that are not kept any more."""
        released = [point for point in self.points if point not in wanted]
        for point in released:
            del self.readers[point]
        return released

    def loaded(self, life: Life) -> list[Point]:
        """It needs none any more. Returns the pictures that are not kept any more."""
        for lives in self.readers.values():
            lives.discard(life)
        return self.retain([point for point, lives in self.readers.items() if lives])


class Exchange:
    def __init__(self, copy: Copy, tails: Tails) -> None:
        self.arrived: Arrived | None = None
        self.due: Due | None = None  # a picture that is not taken yet
        self._copy = copy
        self._tails = tails
        self._arriving: tuple[Point, Arriving] | None = None
        self._pictures = Pictures()

    # Questions

    @property
    def track(self) -> Track | None:
        """The track of the state that is being fetched, with what came since."""
        return None if self._arriving is None else self._arriving[1].track

    @property
    def loading(self) -> Loading | None:
        """What others are told of it."""
        return None if self._arriving is None else Loading(self._arriving[0], self._arriving[1].track.rank)

    @property
    def points(self) -> tuple[Point, ...]:
        """The pictures that are kept for others."""
        return self._pictures.points

    def is_fetching(self, point: Point) -> bool:
        return self._arriving is not None and self._arriving[0] == point

    # Views come and go

    def on_view(self) -> None:
        """A picture that is not taken yet never will be. Pictures that were taken may be asked for in the new view,
        too."""
        self.due = None

    def cut_off(self, effects: list[Effect]) -> None:
        """Nobody comes for anything, and nothing comes."""
        effects += [Release(point) for point in self._pictures.retain(())]
        self._stop_fetching(effects)
        self.arrived = self.due = None

    # For this replica

    def aim(self, me: str, component: Component, decision: Decision, effects: list[Effect]) -> None:
        """What to fetch now, if anything."""
        best = decision.best
        if me in decision.continuing:
            if not component.is_signalled and self.arrived is None:
                effects.append(_fetch(decision.continuing[me], me, component, decision))
            return
        self.arrived = None
        is_lacking = me in decision.lacking and not self._copy.is_spoilt
        if best is not None and is_lacking and not component.is_signalled:
            if self._arriving is not None:
                self._arriving[1].track.held.close()
            track = Track(best.lineage, best.term, best.length, best.digest, self._tails())
            self._arriving = decision.point, Arriving(best.length, best.digest, track)
            effects.append(_fetch(decision.point, me, component, decision))
        else:
            self._stop_fetching(effects)

    def load(self, preface: bytes, pieces: Iterable[bytes]) -> None:
        """The picture is here. WireError when it is not the one that was asked for: then nothing has changed."""
        assert self._arriving is not None
        self._copy.load(self._arriving[1], preface, pieces)
        self._arriving = self.arrived = None

    def fetch_again(
        self, point: Point, me: str, component: Component, decision: Decision, effects: list[Effect]
    ) -> None:
        """What has arrived is of no use."""
        self.arrived = None
        effects.append(_fetch(point, me, component, decision))

    def _stop_fetching(self, effects: list[Effect]) -> None:
        if self._arriving is not None:
            effects.append(StopFetching(self._arriving[0]))
            self._arriving[1].track.held.close()
            self._arriving = None

    # For others

    def keep_pictures(self, me: str, component: Component, decision: Decision, effects: list[Effect]) -> None:
        """Keep the pictures that somebody still fetches, and a new one for those who begin."""
        wanted = set(decision.continuing.values()) if component.has_best else set()
        effects += [Release(point) for point in self._pictures.retain(wanted)]
        for point in self._pictures.points:
            readers = (name for name, other in decision.continuing.items() if other == point)
            self._pictures.keep(point, map(component.life, readers))
        is_donor = component.has_best and me in donors_of(decision.point, decision, component.states)
        if is_donor and decision.lacking and not component.is_signalled:
            track = self._copy.track
            assert track is not None
            due = Due(decision.point, track.count, {component.life(name) for name in decision.lacking})
            if component.is_live and self._copy.is_behind and not component.is_gated:
                self.due = due  # what was decided is the state with all that is held
            else:
                self.take_picture(due, effects)

    def take_picture(self, due: Due, effects: list[Effect]) -> None:
        self.due = None
        if due.lives:
            self._pictures.keep(due.point, due.lives)
            effects.append(Freeze(due.point, self._copy.preface(due.count), self._copy.machine.freeze()))

    def on_loaded(self, life: Life, effects: list[Effect]) -> None:
        """It needs no picture any more."""
        if self.due is not None:
            self.due.lives.discard(life)
        effects += [Release(point) for point in self._pictures.loaded(life)]


def _fetch(point: Point, me: str, component: Component, decision: Decision) -> Fetch:
    """Fetchers begin with different donors."""
    names = donors_of(point, decision, component.states)
    fetchers = sorted({*decision.lacking, *decision.continuing})
    start = fetchers.index(me) % len(names)
    return Fetch(point, tuple(component.donor(name) for name in names[start:] + names[:start]))
