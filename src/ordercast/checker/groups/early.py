"""Virtual synchrony of services that an engine delivers early, before their place in the order.

Such a message does not wait for views: it comes before a view here and after it there, and while daemons that have come
together tell each other of their groups it may come in the old view or in the new one. So it is judged over whole
configurations: two who were members from one view of the network's making to the second after it, together all the
time, have both got what one of them got before the first of the two.
"""

from __future__ import annotations

from collections.abc import Iterator

from ordercast.checker.groups.history import GroupHistory, JudgedClient, Stay
from ordercast.model.events import Reason, ViewId

Way = tuple[str, ViewId, ViewId]  # the group, the view in which it begins and the one in which it ends


def uneven(history: GroupHistory) -> Iterator[tuple[str, JudgedClient, JudgedClient, int]]:
    """Yield each group and message that the first client got and the second did not, though they went together."""
    first: dict[Way, tuple[JudgedClient, set[int]]] = {}
    for client in history.clients.values():
        for way, got, companions in _ways(history, client):
            other, reference = first.setdefault(way, (client, got))
            if other is client or other.name not in companions:
                continue
            yield from ((way[0], client, other, number) for number in sorted(got - other.has))
            yield from ((way[0], other, client, number) for number in sorted(reference - client.has))


def _ways(history: GroupHistory, client: JudgedClient) -> Iterator[tuple[Way, set[int], set[str]]]:
    """Each way of a client over two changes of the network, what it got early up to the first, and who went along."""
    for group, stays in client.stays.items():
        turns = [index for index, stay in enumerate(stays) if stay.view.reason is Reason.NETWORK]
        for begin, middle, end in zip(turns, turns[1:], turns[2:], strict=False):
            if _is_unbroken(stays[begin : end + 1]):
                got = {
                    number for stay in stays[begin:middle] for number in stay.delivered() if history.is_early(number)
                }
                along = set.intersection(*(set(stay.view.transitional) for stay in stays[begin + 1 : end + 1]))
                yield (group, stays[begin].view.id, stays[end].view.id), got, along


def _is_unbroken(stays: list[Stay]) -> bool:
    """Whether the client did not leave and join again in between."""
    return all(stay.next is not None for stay in stays[:-1])
