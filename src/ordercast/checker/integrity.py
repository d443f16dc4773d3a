"""Integrity: nothing is delivered that was not submitted before, with the same bytes, size and service.

The identity is read from the delivered bytes, so bytes that carry none were made up or torn. "Before" is meant in the
order of the history: whoever merges the records of several hosts must put a submission before its deliveries.
"""

from __future__ import annotations

from collections.abc import Iterator

from ordercast.checker.base import Checker
from ordercast.checker.history import NONE, Oddity
from ordercast.checker.verdict import Witness
from ordercast.model.promises import Promise
from ordercast.trace.records import DeliveredMessage, SubmittedMessage


class Integrity(Checker):
    promise = Promise.INTEGRITY
    rule = "every delivered message had been submitted, with the same bytes, size and service"

    def violations(self) -> Iterator[Witness]:
        for oddity in self.history.oddities:
            yield Witness(self._what(oddity), oddity.process, oddity.delivered.message, oddity.view)

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
