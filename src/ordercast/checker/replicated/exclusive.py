"""A lock is never held twice in the ordered stream: by the word of all copies, each token belongs to one claim, and the
next holder has a greater one. Said of the copies themselves, without asking what a sequential lock would do.
"""

from __future__ import annotations

from collections.abc import Iterator

from ordercast.checker.replicated.base import ReplicaChecker
from ordercast.checker.replicated.matters import LOCKS, ReplicaMatter
from ordercast.checker.verdict import Witness
from ordercast.model.promises import ReplicaPromise
from ordercast.trace.replica_records import Looked


class Exclusive(ReplicaChecker):
    promise = ReplicaPromise.EXCLUSIVE
    rule = "of a lock or a leader there was one holder at a time, with a token above all before it"
    matter = ReplicaMatter.HELD

    def violations(self) -> Iterator[Witness]:
        first = next(iter(self.history.lives.values()), None)
        if first is None or first.started.structure not in LOCKS:
            return
        holders: dict[tuple[object, int], bytes] = {}  # by lineage and token
        highest: dict[object, int] = {}
        for look in self._holdings():
            claim, _, text = look.answer.rpartition(b" ")
            token = int(text)
            if holders.setdefault((look.lineage, token), claim) != claim:
                yield self.witness(f"sees {claim!r} with token {token}, which another claim has", look.life)
            if token < highest.get(look.lineage, 0) or token > look.position:
                yield self.witness(f"sees token {token} at place {look.position}, after a greater one", look.life)
            highest[look.lineage] = max(token, highest.get(look.lineage, 0))

    def _holdings(self) -> Iterator[Looked]:
        """In the order of places."""
        for (lineage, position), looks in sorted(self.history.looks.items(), key=lambda item: item[0][1]):
            if lineage is not None and position:
                yield from (look for look in looks if look.answer)
