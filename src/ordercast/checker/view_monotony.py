"""View monotony: configurations only move on (Theorems 4.1, 4.18; the number in stable storage).

At each process the ids of views strictly rise, and so do their positions. A node that comes back with its storage
begins above everything that it had installed before; one that lost it starts anew, and binds its later lives alone.
What was installed while the process said that it had no storage binds nobody, until it uses storage again.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from ordercast.checker.base import Checker
from ordercast.checker.life import Life
from ordercast.checker.matters import Matter
from ordercast.checker.verdict import Witness
from ordercast.model.ids import NodeId, node_of
from ordercast.model.promises import Promise


class ViewMonotony(Checker):
    promise = Promise.VIEW_MONOTONY
    rule = "the ids and positions of views rose at every process, and over restarts that kept their storage"
    matter = Matter.RISE
    needs_messages = False

    def violations(self) -> Iterator[Witness]:
        remembered: dict[NodeId, int] = {}  # the highest seq that the node's storage must hold
        for life in self.history.lives():
            yield from self._rising(life)
            yield from self._restart(life, remembered)

    def _rising(self, life: Life) -> Iterator[Witness]:
        views = life.views()
        for before, view in pairwise(views):
            if view.id <= before.id:
                yield self.witness(f"installed after {before.id}", life.process, view=view.id)
            if view.position <= before.position:
                yield self.witness(f"its position is not after that of {before.id}", life.process, view=view.id)

    def _restart(self, life: Life, remembered: dict[NodeId, int]) -> Iterator[Witness]:
        node = node_of(life.process)
        if life.started is not None and not life.started.kept_storage:
            remembered.pop(node, None)
        ids = [view.id for view in life.regular_views()]
        if not ids:
            return
        stored = [stay.id for stay in life.stays if stay.is_regular and stay.is_stored]
        if node in remembered and ids[0].seq <= remembered[node]:
            what = f"the first view after a restart, but an earlier life had installed one of seq {remembered[node]}"
            yield self.witness(what, life.process, view=ids[0])
        remembered[node] = max([remembered.get(node, 0), *(id.seq for id in stored)])
