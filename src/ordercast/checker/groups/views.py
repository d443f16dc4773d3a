"""Views of groups, each by itself: P2.1 to P2.3, and P2.20.

A client is told nothing of a group before its first view (P2.1), is in every view that it installs (P2.2), and installs
rising ids in each group, over leaving and joining again (P2.3). The id of a view is one and the same for all, so that
equal ids mean equal members (P2.20, which the paper's own ids do not give).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from ordercast.checker.groups.base import GroupChecker
from ordercast.checker.groups.history import JudgedClient
from ordercast.checker.groups.matters import GroupMatter
from ordercast.checker.verdict import Witness
from ordercast.model.events import View, ViewId
from ordercast.model.promises import GroupPromise


def id_text(view: ViewId) -> str:
    configuration, (origin, number, slot) = view
    where = "" if origin == configuration else f"/{origin}"
    return f"{configuration}{where}/{number}/{slot}"


class InitialView(GroupChecker):
    promise = GroupPromise.INITIAL_VIEW
    rule = "nobody was told anything of a group without a view of it"
    matter = GroupMatter.VIEW

    def violations(self) -> Iterator[Witness]:
        for oddity in self.history.oddities:
            if oddity.kind == "outside":
                yield Witness(f"{oddity.client}: {oddity.what}", oddity.client.id.process, oddity.message)


class SelfInclusion(GroupChecker):
    promise = GroupPromise.SELF_INCLUSION
    rule = "everybody was in each view that it installed"
    matter = GroupMatter.VIEW

    def violations(self) -> Iterator[Witness]:
        for client, group, stay in self.history.stays():
            if client.name not in stay.view.members:
                yield self.witness(f"is not in its own view {id_text(stay.view.id)} of {group}", client)


class ViewMonotony(GroupChecker):
    promise = GroupPromise.VIEW_MONOTONY
    rule = "the ids of views rose at every client, in each group"
    matter = GroupMatter.SECOND_VIEW

    def violations(self) -> Iterator[Witness]:
        for client in self.history.clients.values():
            for group, stays in client.stays.items():
                for before, after in pairwise(stays):
                    if after.view.id <= before.view.id:
                        ids = f"{id_text(after.view.id)} after {id_text(before.view.id)}"
                        yield self.witness(f"installed {ids} in {group}", client)


class ViewAgreement(GroupChecker):
    promise = GroupPromise.VIEW_AGREEMENT
    rule = "views with the same id had the same members"
    matter = GroupMatter.SHARED_VIEW

    def violations(self) -> Iterator[Witness]:
        known: dict[tuple[str, ViewId], tuple[JudgedClient, View]] = {}
        for client, group, stay in self.history.stays():
            other, view = known.setdefault((group, stay.view.id), (client, stay.view))
            if view.members != stay.view.members:
                what = f"sees other members in {id_text(stay.view.id)} of {group} than {other}"
                yield self.witness(f"{what}: {stay.view.members} and {view.members}", client)
            elif (view.reason, view.who) != (stay.view.reason, stay.view.who):
                what = f"sees another reason of {id_text(stay.view.id)} of {group} than {other}"
                yield self.witness(what, client)
