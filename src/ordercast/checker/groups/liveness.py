"""What must happen in the end: P2.15 to P2.17, judged when the network has healed and all has settled.

A member gets what it sends to its group. Who sends in a view and stays in it sees everybody of the view get it. What is
sent when all is calm reaches everybody it is for; a private message reaches a client of the same daemon in any case.
And in the end the members of a group are exactly those who asked to be in it and still live: all of them agree on that,
and so does every daemon.
"""

from __future__ import annotations

from collections.abc import Iterator

from ordercast.checker.groups.base import GroupChecker
from ordercast.checker.groups.history import JudgedClient, Sending
from ordercast.checker.groups.matters import GroupMatter
from ordercast.checker.groups.views import id_text
from ordercast.checker.verdict import Witness
from ordercast.model.ids import process_text
from ordercast.model.promises import GroupPromise


class SelfDelivery(GroupChecker):
    promise = GroupPromise.SELF_DELIVERY
    rule = "members got what they had sent to their groups"
    matter = GroupMatter.SENT_INSIDE
    is_liveness = True

    def violations(self) -> Iterator[Witness]:
        for number, sending in enumerate(self.history.sendings):
            client = sending.sender
            groups = sending.owed
            if self.history.is_early(number):  # it passes by a join, and one after a leave may be under way
                groups = [group for group in groups if group in sending.views and group not in sending.leaving]
            is_owed = groups and client.end is None and not sending.sent.self_discard
            if is_owed and number not in client.has and self.history.is_owed(number, client):
                yield self.witness(f"never got its own message to {groups[0]}", client, number)


class Termination(GroupChecker):
    promise = GroupPromise.TERMINATION
    rule = "what was sent in the last views, in calm, or to a client of the same daemon, came to all it was for"
    matter = GroupMatter.SENT
    is_liveness = True

    def violations(self) -> Iterator[Witness]:
        alive = [client for client in self.history.clients.values() if client.end is None]
        for number, sending in enumerate(self.history.sendings):
            if sending.sender.end is not None or self.history.is_early(number):
                continue  # what is early may reach a daemon before the join of its client does
            for client in alive:
                if number in client.has or not self.history.is_owed(number, client):
                    continue
                if _is_owed(number, sending, client):
                    yield self.witness(f"never got it, which was for {sending.sent.groups}", client, number)


def _is_owed(number: int, sending: Sending, client: JudgedClient) -> bool:
    if client.name in sending.sent.groups and number >= client.first:
        return sending.is_calm or client.id.process == sending.sent.client.process
    for group in sending.sent.groups:
        stay = client.current.get(group)
        if stay is None:
            continue
        view = sending.views.get(group)
        if sending.is_calm or (view is not None and view.next is None and view.view.id == stay.view.id):
            return True
    return False


class Precision(GroupChecker):
    promise = GroupPromise.PRECISION
    rule = "in the end everybody saw exactly the live members of each group"
    matter = GroupMatter.SURVIVOR
    is_liveness = True

    def violations(self) -> Iterator[Witness]:
        alive = [client for client in self.history.clients.values() if client.end is None]
        members: dict[str, list[JudgedClient]] = {}
        for client in alive:
            for group in sorted(client.current.keys() | client.wanted.keys()):
                if (group in client.current) != client.wanted.get(group, False):
                    yield self.witness(f"asked to be in {group}, or out of it, and it was not done", client)
            for group in client.current:
                members.setdefault(group, []).append(client)
        names = {group: tuple(sorted(client.name for client in clients)) for group, clients in members.items()}
        for group, clients in sorted(members.items()):
            yield from self._last_views(group, clients, names[group])
        for known in self.history.known:
            if dict(known.groups) != names:
                what = f"{process_text(known.process)} knows {dict(known.groups)}, but the live members are {names}"
                yield Witness(what, known.process)

    def _last_views(self, group: str, clients: list[JudgedClient], names: tuple[str, ...]) -> Iterator[Witness]:
        reference = clients[0].current[group].view
        for client in clients:
            stay = client.current[group]
            if stay.view.members != names:
                yield self.witness(f"sees {stay.view.members} in {group}, where {names} live", client)
            if stay.view.id != reference.id:
                ids = f"{id_text(stay.view.id)} and {id_text(reference.id)}"
                yield self.witness(f"is in another last view of {group} than {clients[0]}: {ids}", client)
            if stay.signals:
                yield self.witness(f"still waits for a view of {group} after a signal", client)
