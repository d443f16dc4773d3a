"""Sane view delivery: P2.9.

An agreed or safe message to a group comes in no earlier view than that in which a member sent it. Ids of views that
were made apart say nothing of earlier and later, so this is asked of the view that the receiver comes to itself, and of
a view whose position has the origin of the message's: the engine put the two in one order. And nobody gets a message of
a client in the first view of its successor: the next client of that name.
"""

from __future__ import annotations

from collections.abc import Iterator

from ordercast.checker.groups.base import GroupChecker
from ordercast.checker.groups.history import JudgedClient, Stay
from ordercast.checker.groups.matters import GroupMatter
from ordercast.checker.groups.views import id_text
from ordercast.checker.verdict import Witness
from ordercast.model.events import ViewId
from ordercast.model.promises import GroupPromise
from ordercast.model.service import Service


class SaneViews(GroupChecker):
    promise = GroupPromise.SANE_VIEWS
    rule = "no message came in a view before that of its sending, or in one of its sender's successor"
    matter = GroupMatter.GOT

    def violations(self) -> Iterator[Witness]:
        successors = self._successors()
        positions = self.history.positions()
        for client, group, stay in self.history.stays():
            for number in stay.delivered():
                origin = self._origin(number, group)
                if origin is None or stay.view.id >= origin:
                    continue
                is_one_order = origin.position.origin == positions[number].origin
                if is_one_order or any(other.view.id == origin for other in client.stays[group]):
                    ids = f"{id_text(stay.view.id)} of {group}, but it was sent in {id_text(origin)}"
                    yield self.witness(f"got it in {ids}", client, number)
            yield from self._after_successor(client, group, stay, successors)

    def _origin(self, number: int, group: str) -> ViewId | None:
        """The view in which a member sent it, if that is to be judged."""
        sending = self.history.sendings[number]
        stay = sending.views.get(group)
        return stay.view.id if stay is not None and sending.sent.service >= Service.AGREED else None

    def _successors(self) -> dict[tuple[str, ViewId], JudgedClient]:
        """The views in which a name is used by its second, third … client, by group and id: the first of each."""
        found: dict[tuple[str, ViewId], JudgedClient] = {}
        for clients in self.history.named().values():
            for later in clients[1:]:
                for group, stays in later.stays.items():
                    found[group, stays[0].view.id] = later
        return found

    def _after_successor(
        self, client: JudgedClient, group: str, stay: Stay, successors: dict[tuple[str, ViewId], JudgedClient]
    ) -> Iterator[Witness]:
        later = successors.get((group, stay.view.id))
        if later is None:
            return
        for number in stay.delivered():
            sender = self.history.sendings[number].sender
            if sender.name == later.name and sender is not later and sender.first <= later.first:
                where = f"{id_text(stay.view.id)} of {group}, in which {later} has its name"
                yield self.witness(f"got a message of {sender} in {where}", client, number)
