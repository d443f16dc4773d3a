"""Pure questions on the sets that Join messages carry. (Paper, section 4.2, the Gather state)"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from ordercast.model.ids import ProcessId
from ordercast.order.attached import next_ring_seq
from ordercast.wire.messages import Join


@dataclass(slots=True)
class Proposal:
    """Whom this process considers for the next ring. Both sets only grow until a ring is installed."""

    me: ProcessId
    candidates: set[ProcessId] = field(default_factory=set)  # `my_proc_set`
    failed: set[ProcessId] = field(default_factory=set)  # `my_fail_set`, within candidates and never me
    # The two sets on which consensus was last reached: they are not proposed a second time.
    agreed: tuple[frozenset[ProcessId], frozenset[ProcessId]] | None = None

    @property
    def members(self) -> tuple[ProcessId, ...]:
        """The proposed ring, in ring order."""
        return tuple(sorted(self.candidates - self.failed))

    @property
    def sets(self) -> tuple[frozenset[ProcessId], frozenset[ProcessId]]:
        return frozenset(self.candidates), frozenset(self.failed)

    def fail(self, processes: Iterable[ProcessId]) -> None:
        """Give these up. A process never gives up itself."""
        for process in processes:
            if process != self.me:
                self.candidates.add(process)
                self.failed.add(process)

    def equals(self, join: Join) -> bool:
        """Whether the Join proposes the same. Sizes first: many compare many, and nearly all differ in them."""
        if len(self.candidates) != len(join.candidates) or len(self.failed) != len(join.failed):
            return False
        return self.candidates.issuperset(join.candidates) and self.failed.issuperset(join.failed)

    def covers(self, join: Join) -> bool:
        """The Join says nothing that is not known."""
        return self.candidates.issuperset(join.candidates) and self.failed.issuperset(join.failed)

    def merge(self, join: Join, my_ring: Collection[ProcessId]) -> None:
        """Take over what a Join says; outsiders may not break up the ring I was on."""
        self.candidates |= set(join.candidates)
        if self.me in join.failed:
            self.fail([join.sender])  # the two of us can never agree
        elif join.sender in my_ring:
            self.fail(join.failed)
        else:
            self.fail(set(join.failed) - set(my_ring))


def agreeing(proposal: Proposal, joins: Mapping[ProcessId, Join]) -> set[ProcessId]:
    """Return those who have sent a Join equal to my sets: proposed members, and not me."""
    return {process for process, join in joins.items() if proposal.equals(join)}


def newcomers_of(join: Join, ring: Collection[ProcessId]) -> set[ProcessId]:
    """Whom a Join would bring to this ring."""
    return set(join.candidates) - set(join.failed) - set(ring)


def least_forwarder(members: tuple[ProcessId, ...], forwards: Mapping[ProcessId, int]) -> ProcessId:
    """Who forwarded the token of a failed ring the fewest times: the first such in ring order."""
    return min(members, key=lambda process: (forwards.get(process, 0), members.index(process)))


def new_ring_seq(mine: int, joins: Iterable[Join], domain: int | None = None) -> int:
    """Above everything that any proposed member has committed to; two less names the transitional configuration."""
    return next_ring_seq(max([mine, *(join.ring_seq for join in joins)]), domain)
