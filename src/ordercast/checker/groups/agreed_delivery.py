"""Agreed delivery: P2.13, the parts on holes.

Whoever gets an agreed message in a view before a signal has got all messages before it in the order that anybody got in
that view. After a signal it has got those of them whose senders are in its next view's transitional set. What an engine
delivers early may have come when somebody was no member yet: it is not asked for.

Where the order is one among those who share groups, two members of a view are compared, one with the other: whoever got
a message before a signal has got all that the other got before it. After a signal virtual synchrony says it all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ordercast.checker.groups.base import GroupChecker
from ordercast.checker.groups.history import JudgedClient, Stay
from ordercast.checker.groups.matters import GroupMatter
from ordercast.checker.groups.views import id_text
from ordercast.checker.verdict import Witness
from ordercast.model.events import ViewId
from ordercast.model.ids import Position
from ordercast.model.promises import GroupPromise
from ordercast.model.service import Service
from ordercast.trace.client_records import ClientId


class AgreedDelivery(GroupChecker):
    promise = GroupPromise.AGREED_DELIVERY
    rule = "nobody got an agreed message in a view without all before it that it was owed"
    matter = GroupMatter.AGREED

    def violations(self) -> Iterator[Witness]:
        positions = self.history.positions()
        for (group, view), stays in self.history.by_view().items():
            if self.history.is_by_groups:
                yield from self._holes(stays, _where(group, view))
                continue
            got = {number for _, stay in stays for number in stay.delivered()}
            numbers = {number for number in got if not self.history.is_early(number)}
            inorder = sorted(numbers, key=positions.__getitem__)
            for client, stay in stays:
                for number in self._missing(client, stay, inorder, positions):
                    yield self.witness(f"did not get it, but got a later one in {_where(group, view)}", client, number)

    def _holes(self, stays: list[tuple[JudgedClient, Stay]], where: str) -> Iterator[Witness]:
        sendings = self.history.sendings
        told: set[tuple[ClientId, int]] = set()
        for client, stay in stays:
            agreed = {number for number in stay.numbers if sendings[number].sent.service >= Service.AGREED}
            for other, reference in stays:
                before: list[int] = []
                lacked: list[int] = []
                for number in reference.delivered():
                    if number in agreed:
                        lacked, before = lacked + before, []
                    elif number not in client.has and not self.history.is_again(number):
                        before.append(number)
                for number in lacked:
                    if (client.id, number) not in told and self.history.is_owed(number, client):
                        told.add((client.id, number))
                        yield self.witness(
                            f"did not get it, unlike {other}, but a later one in {where}", client, number
                        )

    def _missing(
        self, client: JudgedClient, stay: Stay, inorder: list[int], positions: dict[int, Position]
    ) -> Iterator[int]:
        first = self._last(stay.numbers, positions)
        late = self._last(stay.late, positions)
        along = () if stay.next is None else stay.next.view.transitional
        for number in inorder:
            position = positions[number]
            is_owed = (first is not None and position < first) or (
                late is not None and position < late and self.history.sendings[number].sender.name in along
            )
            if is_owed and number not in client.has and self.history.is_owed(number, client):
                yield number

    def _last(self, numbers: Iterable[int], positions: dict[int, Position]) -> Position | None:
        agreed = (
            positions[number] for number in numbers if self.history.sendings[number].sent.service >= Service.AGREED
        )
        return max(agreed, default=None)


def _where(group: str, view: ViewId) -> str:
    return f"{id_text(view)} of {group}"
