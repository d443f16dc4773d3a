"""Agreed delivery: in a configuration all deliver prefixes of one sequence (Theorems 4.9, 4.13, 4.14).

What members deliver in a regular configuration are prefixes of its delivery order; what processes deliver in one
transitional configuration likewise. And a message is delivered only in the regular configuration of the ring on which
it was originated, or in the transitional configuration that follows directly on it at this process.
Judged are messages that asked for agreed or better. Where the engine prunes, nobody may have the whole sequence: then a
process that delivers a message must have delivered all messages before it that it is owed, by their places.
"""

from __future__ import annotations

from collections.abc import Iterator

from ordercast.checker.base import Checker
from ordercast.checker.life import Life, Stay
from ordercast.checker.sequences import common_length, stays_of_views
from ordercast.checker.verdict import Witness, message_text
from ordercast.model.ids import NO_CONFIGURATION, ConfigurationId, process_text
from ordercast.model.promises import Promise
from ordercast.model.service import Service


class AgreedDelivery(Checker):
    promise = Promise.AGREED_DELIVERY
    rule = "in each configuration all delivered prefixes of one sequence, of the ring that it belongs to"

    def violations(self) -> Iterator[Witness]:
        for life in self.history.lives():
            yield from self._strangers(life)
        judge = self._disagreements if self.owed.is_everything else self._holes
        for view, stays in stays_of_views(self.history).items():
            yield from judge(view, stays)

    def _strangers(self, life: Life) -> Iterator[Witness]:
        """Messages of a ring that this configuration does not deliver."""
        before: Stay | None = None
        for stay in life.stays:
            ring = _ring_of(stay, before)
            for run in stay.runs:
                numbers = self.history.at_least(Service.AGREED, run.numbers) if run.ring != ring else []
                for number in numbers:
                    what = f"originated on {run.ring}, delivered in a configuration of {ring or 'no ring'}"
                    yield self.witness(what, life.process, number, stay.id)
            before = stay

    def _disagreements(self, view: ConfigurationId, stays: list[tuple[Life, Stay]]) -> Iterator[Witness]:
        sequences = [(life, self.history.at_least(Service.AGREED, stay.numbers)) for life, stay in stays]
        owner, reference = max(sequences, key=lambda each: len(each[1]))
        for life, sequence in sequences:
            shared = common_length(sequence, reference)
            if shared < len(sequence):
                other = message_text(self.history.identity(reference[shared]))
                what = f"delivered where {process_text(owner.process)} delivered {other}"
                yield self.witness(what, life.process, sequence[shared], view)

    def _holes(self, view: ConfigurationId, stays: list[tuple[Life, Stay]]) -> Iterator[Witness]:
        """For an engine that prunes: messages that a process lacks, and delivered a later one."""
        placements = self.history.placements()
        sequences = [(life, self.history.at_least(Service.AGREED, stay.numbers)) for life, stay in stays]
        everything = {
            number: (placements.rings[number], placements.places[number]) for _, n in sequences for number in n
        }
        inorder = sorted(everything, key=everything.__getitem__)
        for life, sequence in sequences:
            has, last = set(sequence), max((everything[number] for number in sequence), default=None)
            earlier = (number for number in inorder if last is not None and everything[number] < last)
            for number in self.owed.among(life, (number for number in earlier if number not in has)):
                yield self.witness("not delivered, but a later one was", life.process, number, view)


def _ring_of(stay: Stay, before: Stay | None) -> ConfigurationId | None:
    """The ring whose messages may be delivered here; None when there is none."""
    if stay.view is None:
        return None
    if stay.is_regular:
        return stay.view.id
    return None if before is None or before.id == NO_CONFIGURATION or not before.is_regular else before.id
