"""Messages one by one: P2.5 and P2.6, and the confirmations of their places.

A message comes once to each receiver, however many of its groups the receiver is in. What comes was sent, unchanged, by
whom it says, to the groups that it says, with the service that it says; and not to a sender that did not want it back.
"""

from __future__ import annotations

from collections.abc import Iterator

from ordercast.checker.groups.base import GroupChecker
from ordercast.checker.groups.matters import GroupMatter
from ordercast.checker.verdict import Witness
from ordercast.model.promises import GroupPromise
from ordercast.trace.client_records import GotConfirmation


class NoDuplicates(GroupChecker):
    promise = GroupPromise.NO_DUPLICATES
    rule = "nobody got a message twice"
    matter = GroupMatter.GOT

    def violations(self) -> Iterator[Witness]:
        for client in self.history.clients.values():
            if len(client.has) < len(client.got):
                seen: set[int] = set()
                for number in client.got:
                    if number in seen:
                        yield self.witness("got it twice", client, number)
                    seen.add(number)


class Integrity(GroupChecker):
    promise = GroupPromise.INTEGRITY
    rule = "every message that came had been sent so, to its receiver"
    matter = GroupMatter.GOT

    def violations(self) -> Iterator[Witness]:
        for oddity in self.history.oddities:
            if oddity.kind == "unknown":
                yield Witness(f"{oddity.client}: {oddity.what}", oddity.client.id.process, oddity.message)
        for client, number, receipt in self.history.receipts:
            sending = self.history.sendings[number]
            sent = sending.sent
            if (receipt.digest, receipt.groups, receipt.service) != (sent.digest, sent.groups, sent.service):
                yield self.witness("got it with other bytes, groups or service than it was sent with", client, number)
            if receipt.sender != sending.sender.name:
                yield self.witness(f"got it from {receipt.sender}, it is of {sending.sender.name}", client, number)
            if not self.history.is_for(number, client):
                yield self.witness("got its own message, which it did not want back", client, number)


class Confirmations(GroupChecker):
    promise = GroupPromise.CONFIRMATIONS
    rule = "who asked for the place of a message was told it once, the same that all others saw"
    matter = GroupMatter.CONFIRMATION

    def violations(self) -> Iterator[Witness]:
        positions = self.history.positions()
        confirmed: set[int] = set()
        for client, event in self.history.confirmations:
            number = None if event.message is None else self.history.numbers.get(event.message)
            if number is None or self.history.sendings[number].sender is not client:
                yield Witness(f"{client}: was told the place of a message not its own", client.id.process)
            elif not self.history.sendings[number].sent.confirm:
                yield self.witness("was told its place without having asked for it", client, number)
            elif number in confirmed:
                yield self.witness("was told its place twice", client, number)
            elif positions.setdefault(number, event.position) != event.position and not self._is_again(number, event):
                yield self.witness(f"was told {event.position!r}, others saw {positions[number]!r}", client, number)
            else:
                confirmed.add(number)
        if self.history.is_complete and self.history.healed is not None:
            for number, sending in enumerate(self.history.sendings):
                if sending.sent.confirm and sending.sender.end is None and number not in confirmed:
                    yield self.witness("was never told its place", sending.sender, number)

    def _is_again(self, number: int, event: GotConfirmation) -> bool:
        """Whether the message was ordered again, in another configuration than that in which others got it."""
        home = event.position.origin.seq
        others = {
            at.position for _, one, at in self.history.receipts if one == number and at.position.origin.seq == home
        }
        return self.history.is_by_groups and others <= {event.position}
