"""Which sites hold up the order for too long, as one representative sees it. Pure.

A site whose links answer may still say nothing that the order waits for: its ring stands, or turns in vain. While
others wait for its promise or its acknowledgement and neither moves, its time runs; when it is over it is *stuck*, and
left out of the view: one ring must not stop all.
"""

from __future__ import annotations

from ordercast.model.effects import Alarm, AlarmKind
from ordercast.model.ids import SECOND, Instant
from ordercast.order.sites.observed import wait_of
from ordercast.order.sites.order import WideOrder
from ordercast.order.sites.views import Fragment

LOOKS = 4  # in the time after which a site is stuck


class StuckSites:
    def __init__(self, patience_ns: int) -> None:
        self._patience_ns = patience_ns
        self._view = b""
        self._waited: dict[int, tuple[tuple[int, int], Instant]] = {}  # by rank: its last word, and since when
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
        waiting = wait_of(order)
        blockers = () if waiting is None or order.is_held else waiting.blockers
        words = {rank: (order.streams[rank].line, order.arus[rank]) for rank in blockers if rank != order.rank}
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
