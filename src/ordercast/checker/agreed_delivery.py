"""Agreed delivery: in a configuration all deliver prefixes of one sequence (Theorems 4.9, 4.13, 4.14).

What members deliver in a regular configuration are prefixes of its delivery order; what processes deliver in one
transitional configuration likewise. And all who deliver a message do so in the same regular configuration, or in the
transitional configuration that follows directly on that one, if the engine says so: on others those who are cut
off from each other may have gone through different ones before the message, which reached both.
Judged are messages that asked for agreed or better. Where the engine prunes, nobody may have the whole sequence: then a
process that delivers a message must have delivered all messages before it that it is owed, by their places. Where the
order is one among those who share groups, this is judged for each group, and a message that was ordered again may be
in two configurations.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import repeat
from operator import is_

from ordercast.checker.base import Checker
from ordercast.checker.life import Life, Stay
from ordercast.checker.matters import Matter
from ordercast.checker.sequences import common_length, stays_of_views
from ordercast.checker.verdict import Witness, message_text
from ordercast.model.ids import NO_CONFIGURATION, ConfigurationId, process_text
from ordercast.model.promises import Promise
from ordercast.model.service import Service


class AgreedDelivery(Checker):
    promise = Promise.AGREED_DELIVERY
    rule = "in each configuration all delivered prefixes of one sequence of agreed and safe messages, and each in one"
    matter = Matter.AGREED

    def violations(self) -> Iterator[Witness]:
        for life in self.history.lives():
            yield from self._strangers(life)
        judge = self._disagreements if self.owed.is_everything else self._holes
        if self.history.is_by_groups:
            judge = self._holes_of_groups
        for view, stays in stays_of_views(self.history).items():
            yield from judge(view, stays)

    def _strangers(self, life: Life) -> Iterator[Witness]:
        """Messages that were delivered in no configuration, or elsewhere in another."""
        homes = self.history.placements().homes
        for stay, run in life.runs():
            home = stay.home
            if (self.history.is_by_groups or not self.history.shares_views) and home is not NO_CONFIGURATION:
                continue
            is_one = all(map(is_, map(homes.__getitem__, run.numbers), repeat(home)))
            if is_one and home is not NO_CONFIGURATION:
                continue
            for number in self.history.at_least(Service.AGREED, run.numbers):
                if home is NO_CONFIGURATION:
                    yield self.witness("delivered in no configuration", life.process, number, stay.id)
                elif homes[number] is not home:
                    what = f"of configuration {home} here, of {homes[number]} elsewhere"
                    yield self.witness(what, life.process, number, stay.id)

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
        origins, places = self.history.placements().origins, self.history.placements().places
        sequences = [(life, self.history.at_least(Service.AGREED, stay.numbers)) for life, stay in stays]
        everything = {number: (origins[number], places[number]) for _, sequence in sequences for number in sequence}
        inorder = sorted(everything, key=everything.__getitem__)
        for life, sequence in sequences:
            has, last = set(sequence), max((everything[number] for number in sequence), default=None)
            earlier = (number for number in inorder if last is not None and everything[number] < last)
            for number in self.owed.among(life, (number for number in earlier if number not in has)):
                yield self.witness("not delivered, but a later one was", life.process, number, view)

    def _holes_of_groups(self, view: ConfigurationId, stays: list[tuple[Life, Stay]]) -> Iterator[Witness]:
        """The same among the messages of each group, for an engine whose order is one among those who share groups."""
        places, bound = self.history.placements().places, self.history.bound
        sequences = [(life, self.history.at_least(Service.AGREED, stay.numbers)) for life, stay in stays]
        groups: dict[str, set[int]] = {}
        for number in {number for _, sequence in sequences for number in sequence}:
            for group in bound[number].destinations if number in bound else ("",):
                groups.setdefault(group, set()).add(number)
        for group, numbers in sorted(groups.items()):
            inorder = sorted(
                (number for number in numbers if not self.history.is_again(number)), key=places.__getitem__
            )
            for life, sequence in sequences:
                has = numbers.intersection(sequence)
                last = max((places[number] for number in has), default=0)
                earlier = [number for number in inorder if places[number] < last and number not in life.delivered]
                for number in self.owed.among(life, earlier):
                    what = f"not delivered, but a later one of {group or 'all'} was"
                    yield self.witness(what, life.process, number, view)
