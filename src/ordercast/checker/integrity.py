"""Integrity: nothing is delivered that was not submitted before, with the same bytes, size and service.

The identity is read from the delivered bytes, so bytes that carry none were made up or torn. "Before" is meant in the
order of the history: whoever merges the records of several hosts must put a submission before its deliveries.

For a process whose record stops too soon, as that of a killed live node does, the last submissions may be missing. What
it sent after those that are there is in doubt; but all who deliver it must deliver the same.
"""

from __future__ import annotations

from collections.abc import Iterator

from ordercast.checker.base import Checker
from ordercast.checker.history import NONE, Oddity
from ordercast.checker.matters import Matter
from ordercast.checker.verdict import Witness
from ordercast.model.ids import ProcessId, process_text
from ordercast.model.promises import Promise
from ordercast.trace.records import DeliveredMessage, Gap, SubmittedMessage


class Integrity(Checker):
    promise = Promise.INTEGRITY
    rule = "every delivered message had been submitted, with the same bytes, size and service"
    matter = Matter.DELIVERED

    def violations(self) -> Iterator[Witness]:
        yield from self._missing_stamps()
        last = self._last_submitted()
        for oddity in self.history.oddities:
            what = self._what(oddity)
            if self._may_be_lost(oddity, last):
                first = self.history.columns.submissions[oddity.number]
                if oddity.delivered[:4] == first:
                    continue
                what = "delivered with other bytes, size or service than elsewhere"
            yield Witness(what, oddity.process, oddity.delivered.message, oddity.view)

    def doubts(self) -> Iterator[Witness]:
        last = self._last_submitted()
        for oddity in self.history.oddities:
            if self._may_be_lost(oddity, last):
                what = "delivered, and its submission not recorded, since the record of its submitter stops before it"
                yield Witness(what, oddity.process, oddity.delivered.message, oddity.view)

    def _missing_stamps(self) -> Iterator[Witness]:
        """Yield unstamped deliveries of processes that stamp all they send."""
        for process, delivered in self.history.unstamped.items():
            is_unknown = self.history.life(process) is None and self.history.lacks(process, Gap.END)
            if not is_unknown and not self.history.lacks(process, Gap.MESSAGES):
                yield Witness(f"{delivered.size} bytes of {process_text(process)} were delivered without its stamp")

    def _last_submitted(self) -> dict[tuple[ProcessId, int], int]:
        """Return the last counter of each sender of a process whose record stops too soon."""
        last: dict[tuple[ProcessId, int], int] = {}
        for gap in self.history.gaps:
            life = self.history.life(gap.process)
            for number in () if life is None else life.submitted:
                process, sender, counter = self.history.identity(number)
                last[process, sender] = max(counter, last.get((process, sender), 0))
        return last

    def _may_be_lost(self, oddity: Oddity, last: dict[tuple[ProcessId, int], int]) -> bool:
        message = oddity.delivered.message
        return (
            message is not None
            and oddity.expected is None
            and not self.history.was_submitted(oddity.number)
            and self.history.lacks(message.process, Gap.TAIL, Gap.END)
            and message.counter > last.get((message.process, message.sender), 0)
        )

    def _what(self, oddity: Oddity) -> str:
        if oddity.number == NONE:
            return f"delivered {oddity.delivered.size} bytes that carry no identity"
        if oddity.expected is not None:
            return _difference(oddity.delivered, oddity.expected)
        if self.history.was_submitted(oddity.number):
            return "delivered before it was submitted"
        return "delivered, but never submitted"


def _difference(delivered: DeliveredMessage, submitted: SubmittedMessage) -> str:
    if delivered.size != submitted.size:
        return f"delivered {delivered.size} bytes of {submitted.size} submitted"
    if delivered.digest != submitted.digest:
        return "delivered with other bytes than were submitted"
    return f"delivered with service {delivered.service}, submitted with {submitted.service}"
