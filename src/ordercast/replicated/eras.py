"""Eras: in which order components come, though views do not always rise. Pure.

What is decided rests on this: who has said in a view what it has, and lives on, is only in later components after it.
So of two components of which one had a majority of the other's voters it is known which was later. The ids of views
rise, as long as daemons remember theirs. One that lost its memory numbers its rings anew, and replicas that outlive it
meet in views that come before those that they know: unnoticed, a state of long ago would be the latest.

So components are ordered by era first, then by view. Everybody says its era, and whether it has been in a view of that
era which is not before this one. When all say the same era, and nobody that, the view is decided in it. If not, all
take up the last era that was said, or the one after it if it was said by one who is behind, and say once more what
they have: then it is agreed. Who misses that goes on in an era in which this view was never decided.

So era and last view are a logical clock: every component is after the clocks of all its members, and sets them. No two
components have one term, because no two views have one id: a ring is named after a process, and no process lives twice.
Of one view several rounds may be decided, when members were excluded (`component.py`): each in a later era than the
last, of which those know, too, who had no part in it.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from ordercast.model.events import ViewId
from ordercast.model.lineage import Term
from ordercast.replicated.wire import State


@dataclass(slots=True)
class Calendar:
    """Of one replica."""

    era: int = 0
    _last: ViewId | None = None  # the last view that it was in, in this era

    def enter(self, view: ViewId) -> bool:
        """Is it behind one that it was in?"""
        if self._last is not None and view <= self._last:
            return True
        self._last = view
        return False

    def take_up(self, era: int, view: ViewId) -> None:
        """The view is in this era, too."""
        self.era, self._last = era, view

    def has_reached(self, term: Term) -> bool:
        """Must be so of all components that are known here: it was in them, or heard of them in later ones."""
        return term.era < self.era or (term.era == self.era and self._last is not None and term.view <= self._last)


def era_to_take_up(states: Collection[State]) -> int | None:
    """None: it is agreed."""
    last = max(state.era for state in states)
    is_behind = any(state.behind for state in states if state.era == last)
    is_agreed = not is_behind and all(state.era == last for state in states)
    return None if is_agreed else last + is_behind
