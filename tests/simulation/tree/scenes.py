"""Scenes of the tree engine: runs in which one thing is made to happen, and rules that these miss at once.

In two of them the root is cut off together with what it has ordered, when its blocks have no longer come to one of
those below it for a while: so others have what that one is owed, and do not have, or what nobody has whom they go on
with. In the third links break.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from ordercast.model.ids import MILLISECOND, ProcessId
from ordercast.order.tree import plan
from ordercast.order.tree.exchange import Owed, TreeExchange
from ordercast.order.tree.reports import HeldMark, Unordered
from ordercast.sim.faults import Fault, FaultKind
from ordercast.sim.options import SIM_TREE, SimOptions
from ordercast.sim.topology import Rate

from .planted import Plant, nothing_implied, reconciled_sent_again

TOPICS = (0, 3), (0, 2), (0, 1, 2)
FAULTS = (
    Fault(100 * MILLISECOND, FaultKind.BLOCK, links=((0, 2),)),
    Fault(112 * MILLISECOND, FaultKind.PARTITION, groups=((0, 3), (1, 2))),
    Fault(300 * MILLISECOND, FaultKind.HEAL),
)
LOST_ENTRY = SimOptions(
    engine="tree",
    nodes=4,
    messages=120,
    topics=TOPICS,
    fault_time_ns=400 * MILLISECOND,
    faults=FAULTS,
    tree=replace(SIM_TREE, link_patience_ns=120 * MILLISECOND),
)
BROKEN_LINK = SimOptions(  # nobody notices but the processes themselves: the members stay
    engine="tree",
    messages=80,
    topics=((0, 1, 2), (2, 3), (3, 4), (0, 4, 1)),
    topic_changes=4,
    fault_time_ns=500 * MILLISECOND,
    faults=(Fault(60 * MILLISECOND, FaultKind.BLOCK, links=((0, 1), (1, 0), (0, 2))),),
    tree=replace(SIM_TREE, link_patience_ns=60 * MILLISECOND),
)
LOST_SOURCE = replace(LOST_ENTRY, messages=60, rates=(Rate(0, 600),))  # it has sent much to those below


def _lost_sources_forgotten(patch: pytest.MonkeyPatch) -> None:
    """What others hold of a source that does not come along is not taken from them."""
    right = TreeExchange.owed

    def owed(self: TreeExchange) -> list[Owed]:
        came = {identity for identity in self.came if identity[0] not in self.companions}
        return [one for one in right(self) if one[1] is None or one[1].identity not in came]

    patch.setattr(TreeExchange, "owed", owed)


def _implied_before_the_later_one(patch: pytest.MonkeyPatch) -> None:
    """What was ordered before something that is held goes just before that, wherever it was."""
    right = plan._implied_mark

    def mark(process: ProcessId, one: Unordered, following: HeldMark) -> HeldMark | None:
        *above, last = following.rank
        implied = right(process, one, following)
        return implied and implied._replace(rank=(*above, last - 1, one.source))

    patch.setattr(plan, "_implied_mark", mark)


SCENE_FAULTS: list[tuple[str, Plant, SimOptions, int]] = [
    ("nothing implied", nothing_implied, LOST_ENTRY, 6),
    ("implied messages just before the later one", _implied_before_the_later_one, LOST_ENTRY, 6),
    ("reconciled messages sent again", reconciled_sent_again, BROKEN_LINK, 5),
    ("messages of lost sources forgotten", _lost_sources_forgotten, LOST_SOURCE, 4),
]
