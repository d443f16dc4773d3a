"""Transitional sets (P2.4): a view tells its reader exactly who came from the same view before.

1. In the first view of a group the set is the reader alone (so the paper's theorems and code; its text says nobody).
2. It lists members of the old view and of the new one.
3. When two install the same view, each is in the other's set if and only if both came from the same view. But when
   the network was cut once more before the new view came, two may have lost each other in the old view and met again:
   they came from the same view, and not with the same messages. Then both had a signal in it, and neither lists the
   other.
4. Members who are in each other's sets have equal sets.
"""

from __future__ import annotations

from collections.abc import Iterator

from ordercast.checker.groups.base import GroupChecker
from ordercast.checker.groups.history import JudgedClient, Stay
from ordercast.checker.groups.matters import GroupMatter
from ordercast.checker.groups.views import id_text
from ordercast.checker.verdict import Witness
from ordercast.model.events import View
from ordercast.model.promises import GroupPromise


class TransitionalSets(GroupChecker):
    promise = GroupPromise.TRANSITIONAL_SETS
    rule = "every view told its reader exactly who came from the same view"
    matter = GroupMatter.VIEW

    def violations(self) -> Iterator[Witness]:
        for client in self.history.clients.values():
            for stays in client.stays.values():
                before: View | None = None
                for stay in stays:
                    before = None if stay.before is None else before
                    for text in _faults(client, before, stay.view):
                        yield self.witness(f"{text} in {id_text(stay.view.id)} of {stay.view.group}", client)
                    before = stay.view
        for (group, view), stays_of in self.history.by_view().items():
            for text, client in _differences(stays_of):
                yield self.witness(f"{text} in {id_text(view)} of {group}", client)


def _faults(client: JudgedClient, before: View | None, view: View) -> Iterator[str]:
    along = set(view.transitional)
    if before is None:
        if along != {client.name}:
            yield f"the first view, but {sorted(along)} came along"
        return
    if not along <= set(before.members):
        yield f"{sorted(along - set(before.members))} came along, who were not in {id_text(before.id)}"
    if not along <= set(view.members):
        yield f"{sorted(along - set(view.members))} came along, and are not there"
    if client.name not in along:
        yield "did not come along with itself"


def _differences(stays: list[tuple[JudgedClient, Stay]]) -> Iterator[tuple[str, JudgedClient]]:
    """Between those who installed one view."""
    for client, stay in stays:
        for other, their in stays:
            is_listed = other.name in stay.view.transitional
            is_same = other is client or (their.before == stay.before and stay.before is not None)
            if is_listed and not is_same:
                yield f"{other} came from another view, and is among those who came along", client
            elif is_listed and their.view.transitional != stay.view.transitional:
                yield f"lists others as coming along than {other}, who came along", client
            elif is_same and not is_listed and not (stay.was_signalled and their.was_signalled):
                yield f"{other} came from the same view, and is not among those who came along", client
