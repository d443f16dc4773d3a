"""Who gets nothing of the stream knows that what it has may be old: it calls itself neither current, nor the leader,
nor the holder of a lock, from the moment on at which the stream is cut until it is back. A process that is paused
cannot know it, and says nothing either; a pause is no cut. Nor is anybody current in a round of a view that was decided
without it.
"""

from __future__ import annotations

from collections.abc import Iterator

from ordercast.checker.replicated.base import ReplicaChecker
from ordercast.checker.replicated.matters import ReplicaMatter
from ordercast.checker.verdict import Witness
from ordercast.model.promises import ReplicaPromise


class Beliefs(ReplicaChecker):
    promise = ReplicaPromise.BELIEFS
    rule = "whoever was cut off, or excluded, called itself neither current, nor leader, nor holder"
    matter = ReplicaMatter.BELIEF

    def violations(self) -> Iterator[Witness]:
        for belief in self.history.cut_beliefs:
            if belief.is_current:
                yield self.witness("called itself current after its stream was cut", belief.life)
            if belief.holds:
                yield self.witness("called itself the holder after its stream was cut", belief.life)
        for which, life in self.history.claims:
            if self.history.lives[life].started.name in self.history.excluded[which]:
                yield self.witness("called itself current where the others had excluded it", life)
