"""Which old-ring packets to exchange, and what is owed afterwards. (Paper, section 4.3 and Figure 4.11)"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ordercast.model.ids import ProcessId, Seq
from ordercast.wire.messages import CommitEntry


@dataclass(frozen=True, slots=True)
class RecoveryPlan:
    """What the Commit token's second rotation tells those who come from one old ring; equal at all of them."""

    transitional: tuple[ProcessId, ...]  # who comes along from my old ring (`my_trans_memb`), in ring order
    obligation: frozenset[ProcessId]  # whose messages are owed even beyond a gap (`my_deliver_memb`)
    low_aru: Seq  # everybody has everything up to here
    high_delivered: Seq  # somebody delivered up to here on the old ring (`high_ring_delivered`)
    high_aru: Seq  # somebody has everything up to here

    @property
    def owed(self) -> tuple[frozenset[ProcessId], Seq]:
        """What decides which messages are delivered, and which of them in the regular configuration."""
        return self.obligation, self.high_delivered


def plan_from(members: Sequence[CommitEntry], me: ProcessId) -> RecoveryPlan:
    mine = next(member for member in members if member.process == me)
    companions = [member for member in members if member.old_ring == mine.old_ring]
    transitional = tuple(member.process for member in companions)
    return RecoveryPlan(
        transitional,
        frozenset(transitional),
        min(member.old_aru for member in companions),
        max(member.high_delivered for member in companions),
        max(member.old_aru for member in companions),
    )


def must_exchange(members: Sequence[CommitEntry], plan: RecoveryPlan) -> bool:
    """False when every companion has promised, in an earlier recovery that failed, to deliver what was exchanged then:
    someone may have relied on it, so that promise stands."""
    return not all(member.received for member in members if member.process in plan.transitional)


def kept_promise(promise: RecoveryPlan, plan: RecoveryPlan) -> RecoveryPlan:
    """The earlier obligation, delivered in the transitional configuration that is entered now."""
    assert set(plan.transitional) <= set(promise.transitional), "companions only become fewer while recovery fails"
    return replace(promise, transitional=plan.transitional)
