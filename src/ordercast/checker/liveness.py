"""Liveness: once the network is whole, all who run come together and deliver (Theorems 4.3 and 4.8).

At the end of a complete record with a healed network all running processes are in one regular view, of exactly them.
What anyone delivered in it, all have delivered; and so has everyone what any of them submitted since it installed that
view. Earlier submissions are owed to their sender only: that is self delivery.
"""

from __future__ import annotations

from collections.abc import Iterator

from ordercast.checker.base import Checker
from ordercast.checker.life import Life
from ordercast.checker.matters import Matter
from ordercast.checker.verdict import Witness, view_text
from ordercast.model.ids import ProcessId, process_text
from ordercast.model.promises import Promise
from ordercast.model.service import Service
from ordercast.trace.records import Gap


class Liveness(Checker):
    promise = Promise.LIVENESS
    rule = "after the network healed all who ran came together in one view, and delivered everything in it"
    matter = Matter.SURVIVOR
    needs_messages = False  # of the views it can speak in any case

    def violations(self) -> Iterator[Witness]:
        if self.history.is_complete and self.history.healed is not None:
            apart = list(self._apart())
            yield from apart
            if not apart and not self._unseen():
                yield from self._undelivered()

    def doubts(self) -> Iterator[Witness]:
        yield from self.cut_short()
        if self.history.healed is None and self.history.running():
            yield Witness(
                "some ran on when the record ended, and nothing says that the network was whole: what is owed is open"
            )
        yield from self._unseen()

    def _unseen(self) -> list[Witness]:
        """Why the messages cannot be judged, if they cannot."""
        return [Witness(gap.why) for gap in self.history.gaps if gap.gap is Gap.MESSAGES] + self.unstamped()

    def _apart(self) -> Iterator[Witness]:
        running = self.history.running()
        expected = {life.process for life in running}
        for life in running:
            stay = life.stays[-1]
            if stay.view is None or not stay.is_regular:
                yield self.witness("is in no regular view at the end", life.process, view=stay.id)
            elif set(stay.view.members) != expected:
                yield self.witness(f"ends in a view of {_names(stay.view.members)}", life.process, view=stay.id)
            elif stay.id != running[0].stays[-1].id:
                other = f"{process_text(running[0].process)} in {view_text(running[0].stays[-1].id)}"
                yield self.witness(f"ends in another view than {other}", life.process, view=stay.id)

    def _undelivered(self) -> Iterator[Witness]:
        running = self.history.running()
        owed: set[int] = set()
        for life in running:
            owed.update(life.submitted[life.submitted_before_view :], life.stays[-1].numbers)
        for life in running:
            missing = self.history.at_least(Service.RELIABLE, sorted(owed - life.delivered))
            yield from self._missing(life, self.owed.among(life, missing))

    def _missing(self, life: Life, numbers: list[int]) -> Iterator[Witness]:
        for number in numbers:
            yield self.witness(
                "never delivered, though its view lasted to the end", life.process, number, life.stays[-1].id
            )


def _names(processes: tuple[ProcessId, ...]) -> str:
    return ", ".join(process_text(process) for process in processes)
