"""Order across groups: P2.11, P2.12, and the total order of P2.13.

Every message has one position, the same for all who get it and of no other message, and positions rise at every client:
so any two messages come in the same order to all, whatever groups they were sent to (but those of services that an
engine delivers early). A sender's fifo messages come in
the order in which it sent them; a causal message comes after all that its sender had got or sent before it, and what
those depended on.

Where the order is one among those who share groups (multiple group order), positions are names: then the sequences of
all clients in a configuration, with causes if those are judged, do not contradict each other (`checker/linear.py`).
What was ordered again in a later configuration is bound by neither.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from ordercast.checker.causes import Pasts
from ordercast.checker.groups.base import GroupChecker
from ordercast.checker.groups.history import GroupHistory, JudgedClient
from ordercast.checker.groups.matters import GroupMatter
from ordercast.checker.linear import extension_of
from ordercast.checker.verdict import Witness
from ordercast.model.ids import NO_POSITION, Position
from ordercast.model.promises import GroupPromise
from ordercast.model.service import Service


class TotalOrder(GroupChecker):
    promise = GroupPromise.TOTAL_ORDER
    rule = "every message had one position at all, and positions rose at every client, but for services that come early"
    matter = GroupMatter.GOT

    def violations(self) -> Iterator[Witness]:
        positions = self.history.positions()
        owners: dict[Position, int] = {}
        for client, number, receipt in self.history.receipts:
            if receipt.position != positions[number]:
                yield self.witness(f"got it at {receipt.position!r}, others at {positions[number]!r}", client, number)
            if owners.setdefault(receipt.position, number) != number:
                yield self.witness(f"got it at {receipt.position!r}, where others got another", client, number)
        for client in self.history.clients.values():
            inorder = [
                pair for pair in zip(client.got, client.places, strict=True) if not self.history.is_early(pair[0])
            ]
            for (_, before), (number, after) in pairwise(inorder):
                if after <= before:
                    yield self.witness(f"got it at {after} after a message at {before}", client, number)


class MultipleGroupOrder(GroupChecker):
    promise = GroupPromise.MULTIPLE_GROUP_ORDER
    rule = "all who got two messages of a configuration got them in one order, around any circle of them too"
    matter = GroupMatter.GOT

    def is_asked(self) -> bool:
        return self.history.is_by_groups

    def violations(self) -> Iterator[Witness]:
        yield from self._differing()
        for home, sequences in _sequences(self.history).items():
            for number in extension_of(sequences.values()).contradicted:
                sender = self.history.sendings[number].sender
                yield self.witness(f"its message is before and after itself in configuration {home}", sender, number)

    def _differing(self) -> Iterator[Witness]:
        places: dict[tuple[int, int], Position] = {}
        owners: dict[Position, int] = {}
        for client, number, receipt in self.history.receipts:
            here = receipt.position
            if (other := places.setdefault((here.origin.seq, number), here)) != here:
                yield self.witness(f"got it at {here}, others at {other}", client, number)
            if owners.setdefault(here, number) != number:
                yield self.witness(f"got it at {here}, where others got another", client, number)


def _sequences(history: GroupHistory, *, is_bound: bool = False) -> dict[int, dict[JudgedClient, list[int]]]:
    """Return what each client got in each configuration, in its order. `is_bound`: but what was ordered again."""
    found: dict[int, dict[JudgedClient, dict[int, None]]] = {}
    for client, number, receipt in history.receipts:
        if not (is_bound and history.is_again(number)):
            found.setdefault(receipt.position.origin.seq, {}).setdefault(client, {})[number] = None
    return {home: {one: list(got) for one, got in all_of.items()} for home, all_of in found.items()}


class Fifo(GroupChecker):
    promise = GroupPromise.FIFO
    rule = "messages of each sender came in the order in which it had sent them"
    matter = GroupMatter.FIFO

    def violations(self) -> Iterator[Witness]:
        for client in self.history.clients.values():
            highest: dict[JudgedClient, int] = {}
            for number in client.got:
                sending = self.history.sendings[number]
                last = highest.get(sending.sender)
                if last is not None and number < last:
                    text = self.history.sendings[last].sent.message.counter
                    yield self.witness(f"got it after number {text} of the same sender", client, number)
                if sending.sent.service >= Service.FIFO:
                    highest[sending.sender] = max(number, last or 0)


class Causal(GroupChecker):
    promise = GroupPromise.CAUSAL
    rule = "no message came before one that it may depend on"
    matter = GroupMatter.CAUSAL

    def violations(self) -> Iterator[Witness]:
        if self.history.is_by_groups:
            yield from self._contradicted()
            return
        positions = self.history.positions()
        past: dict[JudgedClient, tuple[Position, int]] = {}  # the last in the order that a client knows of, or sent
        known: dict[int, tuple[Position, int]] = {}  # the same for each message, when it was sent
        for client, number, is_sent in self.history.events:
            here = positions.get(number, NO_POSITION)
            before = past.get(client, (NO_POSITION, -1))
            if is_sent:
                known[number] = before
                is_judged = self.history.sendings[number].sent.service >= Service.CAUSAL and here != NO_POSITION
                if is_judged and before[0] > here:
                    yield from self._broken(before[1], number)
                past[client] = max(before, (here, number))
            else:
                past[client] = max(before, known[number], (here, number))

    def _contradicted(self) -> Iterator[Witness]:
        """For an order among those who share groups."""
        history = self.history
        causes: list[tuple[int, int]] = []
        last: dict[JudgedClient, list[int]] = {}  # what each has got and sent last
        for client, number, is_sent in history.events:
            if is_sent and history.sendings[number].sent.service >= Service.CAUSAL:
                causes += ((cause, number) for cause in last.get(client, ()))
            got_last, sent_last = last.get(client, [number, number])
            last[client] = [got_last, number] if is_sent else [number, sent_last]
        for sequences in _sequences(history, is_bound=True).values():
            contradicted = extension_of(sequences.values(), causes).contradicted
            if not contradicted:
                continue
            pasts = self._pasts(contradicted)
            for client, numbers in sequences.items():
                for number, cause in pasts.overtaken(numbers):
                    message = history.sendings[cause].sent.message
                    yield self.witness(f"got it before {message}, on which it may depend", client, number)

    def _pasts(self, numbers: list[int]) -> Pasts:
        """Gather what these messages may depend on: all that their senders had got, or sent, before."""
        history, pasts = self.history, Pasts(numbers)
        known: dict[JudgedClient, int] = {}
        for client, number, is_sent in history.events:
            past = known.get(client, 0)
            if is_sent and history.sendings[number].sent.service >= Service.CAUSAL:
                pasts.depends(number, past)
            known[client] = past | pasts.with_itself(number)
        return pasts

    def _broken(self, cause: int, number: int) -> Iterator[Witness]:
        message = self.history.sendings[cause].sent.message
        for client in self.history.clients.values():
            if cause in client.has and number in client.has:
                yield self.witness(f"got it before {message}, on which it may depend", client, number)
