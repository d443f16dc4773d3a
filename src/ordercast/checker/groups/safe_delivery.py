"""Safe delivery: P2.14.

When somebody gets a safe message in a view before a signal, every member of the view gets it; after a signal, every
member of the next view's transitional set. Unless it disconnects or crashes first: before it comes to another view or,
where views are not shared, past the place of the message. Where it gets it does not matter: one who was separated may
be in a view of another id by then.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ordercast.checker.groups.base import GroupChecker
from ordercast.checker.groups.history import JudgedClient, Stay
from ordercast.checker.groups.matters import GroupMatter
from ordercast.checker.groups.views import id_text
from ordercast.checker.verdict import Witness
from ordercast.model.events import ViewId
from ordercast.model.promises import GroupPromise
from ordercast.model.service import Service


class SafeDelivery(GroupChecker):
    promise = GroupPromise.SAFE_DELIVERY
    rule = "a safe message came to all who were owed it, or they ended"
    matter = GroupMatter.SAFE

    def violations(self) -> Iterator[Witness]:
        named = self.history.named()
        for (group, view), stays in self.history.by_view().items():
            inside = {client.name: (client, stay) for client, stay in stays}
            judged: set[tuple[int, str]] = set()
            for _, stay in stays:
                for numbers, members in _owed(stay):
                    for number in self._safe(numbers):
                        owing = [name for name in members if (number, name) not in judged]
                        judged.update((number, name) for name in owing)
                        for name in owing:
                            yield from self._judge(number, name, inside, named.get(name, []), (group, view))

    def _safe(self, numbers: list[int]) -> list[int]:
        return [number for number in numbers if self.history.sendings[number].sent.service >= Service.SAFE]

    def _judge(
        self,
        number: int,
        name: str,
        inside: dict[str, tuple[JudgedClient, Stay]],
        candidates: list[JudgedClient],
        where: tuple[str, ViewId],
    ) -> Iterator[Witness]:
        found = inside.get(name)
        if found is not None:
            client, stay = found
            is_excused = client.end is not None and not self.history.is_past(client, stay, number)
            clients = [client]
        else:
            clients = candidates
            is_excused = any(client.end is not None for client in clients)
        if is_excused or any(number in client.has or not self.history.is_owed(number, client) for client in clients):
            return
        what = f"did not get it, which was safe in {id_text(where[1])} of {where[0]}"
        for client in clients[:1]:
            yield self.witness(what, client, number)


def _owed(stay: Stay) -> Iterable[tuple[list[int], tuple[str, ...]]]:
    yield stay.numbers, stay.view.members
    if stay.next is not None:
        yield stay.late, stay.next.view.transitional
