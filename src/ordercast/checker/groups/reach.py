"""Members in reach: what a view says of its members agrees with the configuration of daemons in which it was made.

Whoever is listed as coming along is a client of a daemon of that configuration; and in a regular configuration so are
all members. (In a transitional one those who are lost are still members, until the next view.)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from ordercast.checker.groups.base import GroupChecker
from ordercast.checker.groups.matters import GroupMatter
from ordercast.checker.groups.views import id_text
from ordercast.checker.verdict import Witness
from ordercast.model.configuration import Configuration, ConfigurationKind
from ordercast.model.events import ViewId
from ordercast.model.ids import node_of
from ordercast.model.promises import GroupPromise


class Reach(GroupChecker):
    promise = GroupPromise.REACH
    rule = "views listed as coming along, and in regular configurations as members, only clients of daemons in reach"
    matter = GroupMatter.PLACED_VIEW

    def violations(self) -> Iterator[Witness]:
        nodes = {client.name: node_of(client.id.process) for client in self.history.clients.values()}
        judged: set[tuple[str, ViewId, tuple[str, ...]]] = set()
        for client, group, stay in self.history.stays():
            view = stay.view
            configuration = self.history.configurations.get(view.id.configuration)
            if configuration is None or (group, view.id, view.transitional) in judged:
                continue
            judged.add((group, view.id, view.transitional))
            where = f"in {id_text(view.id)} of {group}"
            for name in _out_of_reach(view.transitional, nodes, configuration):
                yield self.witness(f"{name} came along {where}, from a daemon out of reach", client)
            if configuration.kind is ConfigurationKind.REGULAR:
                for name in _out_of_reach(view.members, nodes, configuration):
                    yield self.witness(f"{name} is a member {where}, at a daemon out of reach", client)


def _out_of_reach(names: Iterable[str], nodes: Mapping[str, int], configuration: Configuration) -> Iterator[str]:
    here = {int(node_of(process)) for process in configuration.members}
    return (name for name in names if nodes.get(name) not in here)
