"""Which sites hold up the order for too long, as one representative sees it. Pure.

A site whose links answer may still say nothing that the order waits for: its ring stands, or turns in vain. While
others wait for its promise, or for its acknowledgement, and what they wait for does not move, its time runs; when it is
over the site is *stuck*, and left out of the view: one ring must not stop all. An acknowledgement is waited for by
whoever holds a unit, delivered or not, where every promise lies above the unit: without one nobody can give it.
"""

from __future__ import annotations

from ordercast.model.effects import Alarm, AlarmKind
from ordercast.model.ids import SECOND, Instant
from ordercast.order.sites.order import WideOrder
from ordercast.order.sites.views import Fragment

LOOKS = 4  # in the time after which a site is stuck
SiteWord = tuple[str, int]  # a promise or an acknowledgement, and the stamp in it


def awaited(order: WideOrder) -> dict[int, SiteWord]:
    """Return the ranks whose word is waited for, with the last one that came: promises first, then acknowledgements."""
    waiting = [stream.lane.runs[0].content.place for stream in order.streams if stream.lane.runs]
    if waiting:
        place = min(waiting)
        late = {
            rank: ("promise", stream.line)
            for rank, stream in enumerate(order.streams)
            if rank != place[1] and stream.lane.bound < place
        }
        if late:
            return late
    held = [stream.units[stream.passed[0]].last for stream in order.streams if stream.passed]
    held += [place[0] for place in waiting]
    if not held or min(stream.line for stream in order.streams) <= min(held):
        return {}
    return {rank: ("acknowledgement", aru) for rank, aru in enumerate(order.arus) if aru <= min(held)}


class StuckSites:
    def __init__(self, patience_ns: int) -> None:
        self._patience_ns = patience_ns
        self._view = b""
        self._waited: dict[int, tuple[SiteWord, Instant]] = {}  # by rank: what it said last of that, and since when
        self.look_at = Instant(0)

    def forgive(self) -> None:
        """Count from now on: this process itself did nothing for a while."""
        self._waited.clear()

    def look(self, order: WideOrder, now: Instant) -> list[Fragment]:
        """Return those that are stuck; `look_at` tells when to look again."""
        self.look_at = Instant(now + self._patience_ns // LOOKS)
        if order.view.digest != self._view:
            self._view = order.view.digest
            self._waited.clear()
        words = {} if order.is_held else awaited(order)
        words.pop(order.rank, None)
        self._waited = {
            rank: self._waited[rank] if rank in self._waited and self._waited[rank][0] == word else (word, now)
            for rank, word in words.items()
        }
        late = [rank for rank, (_, since) in self._waited.items() if now - since >= self._patience_ns]
        return [order.view.fragments[rank] for rank in late]

    def alarm(self, fragment: Fragment) -> Alarm:
        """Return what a person should know of one that is left out."""
        text = (
            f"site {fragment.site} answers, and for {self._patience_ns / SECOND:g} s has said nothing that all others "
            "wait for; it is left out for a while: look at the ring there"
        )
        return Alarm(AlarmKind.SITE_STUCK, text, fragment.representative, domain=fragment.site)
