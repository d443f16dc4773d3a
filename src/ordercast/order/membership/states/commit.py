"""The Commit token goes round twice: once to confirm the membership and to collect what recovery needs, once to hand it
out. (Paper, the Commit state, Figures 4.9 and 4.10)

The hop number on the token tells the rotation, so a duplicate of the first can never pass for the second. The ring seq
is written as soon as the token has come once, by all members at the same time, and is on stable storage before the
second forwarding. A disk that refuses or hangs is waited for no longer than `storage_patience_ns`: see
`step.StoredSeq`.

In a network of rings the token's timestamp of the first rotation is what the new ring's birth goes by: above every
packet of the old rings that any member holds when it writes its entry. So nobody takes old packets from then on but
from companions, and the second rotation changes the timestamp no more. (Paper, section 5.2)
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from ordercast.model.configuration import ChangeReason
from ordercast.model.ids import TokenSeq
from ordercast.model.notes import Occurrence
from ordercast.order.membership.bounds import believed_clock
from ordercast.order.membership.recovery_plan import plan_from
from ordercast.order.membership.ring import Ring, TokenMemory
from ordercast.order.membership.states import gather, moves, recovery
from ordercast.order.membership.states.base import State
from ordercast.order.membership.states.changing import Changing
from ordercast.order.membership.step import Facts, Step
from ordercast.order.membership.timers import Timer
from ordercast.wire.messages import CommitEntry, CommitToken, Join, Leave


@dataclass(slots=True)
class Commit(Changing):
    ring: Ring
    entry: CommitEntry  # what I wrote on the first rotation
    name: ClassVar[str] = moves.COMMIT
    complete: CommitToken | None = None  # of the second rotation, held until the ring seq is stored
    is_patient: bool = True  # with the disk; all members' patience runs at the same time, from the first rotation on

    @classmethod
    def enter(cls, origin: State, token: CommitToken, step: Step) -> State:
        facts = step.facts
        step.moved(origin.name, cls.name, None, f"ring {token.ring}")
        facts.timers.only()
        members = tuple(member.process for member in token.members)
        if not facts.is_frozen:  # what came with the token is delivered before it is said what was delivered
            facts.past.advance(step.effects)
        mine = _my_entry(facts)
        entries = tuple(mine if member.process == facts.me else member for member in token.members)
        facts.ring_seq = token.ring.seq
        held = facts.past.tick if facts.parts.attached else 0
        facts.clock.hear(believed_clock(facts.clock.tick, held, is_new=False))
        take_clock(facts, token)
        forwarded = replace(
            token,
            sender=facts.me,
            token_seq=TokenSeq(token.token_seq + 1),
            members=entries,
            timestamp=facts.clock.tick,
        )
        ring = Ring(token.ring, members, facts.me, facts.cluster, TokenMemory(forwarded.token_seq))
        facts.attempt.forwards = 0
        step.forward(ring, forwarded)
        step.persist(ring.id.seq)
        step.arm(Timer.STORAGE, facts.config.storage_patience_ns)
        return cls(ring, mine, is_patient=not facts.storage.is_without)

    def accepting(self, facts: Facts) -> Ring | None:
        return None if facts.parts.freezes_at_entry else Changing.accepting(self, facts)

    def on_commit(self, token: CommitToken, step: Step) -> State:
        ring = self.ring
        if token.ring != ring.id:
            step.ignored(token, "another ring's")
            return self
        second = ring.index + len(ring.members)
        if self.complete is not None or token.token_seq != second:
            step.occurred(Occurrence.DUPLICATE_TOKEN)
            return self
        if not self._is_sound(token, step.facts):
            step.ignored(token, "it contradicts what I wrote on it")
            return self
        self.complete = token
        if step.facts.parts.attached:
            ring.birth = believed_clock(0, token.timestamp, is_new=True) + 1
            step.facts.clock.hear(ring.birth)
        # From here on only my own disk is waited for, and that is nobody's fault.
        step.facts.timers.cancel(Timer.TOKEN_RETRANSMIT, Timer.TOKEN_LOSS)
        return self.on_persisted(step)

    def _is_sound(self, token: CommitToken, facts: Facts) -> bool:
        """Everybody has filled in its entry, mine is as I wrote it, and my companions are no more than before."""
        processes = tuple(member.process for member in token.members)
        if processes != self.ring.members or not all(member.filled for member in token.members):
            return False
        if self.entry not in token.members:
            return False
        plan, promise = plan_from(token.members, facts.me), facts.attempt.promise
        return promise is None or set(plan.transitional) <= set(promise.transitional)

    def on_persisted(self, step: Step) -> State:
        facts, ring = step.facts, self.ring
        is_stored = facts.storage.has(ring.id.seq) and facts.clock.covers(ring.birth)
        if self.complete is None or (self.is_patient and not is_stored):
            return self
        if not facts.storage.has(ring.id.seq):
            step.go_without_storage()
        if not facts.clock.covers(ring.birth):
            step.go_without_clock()
        return recovery.Recovery.enter(self, ring, self.complete, step)

    def on_join(self, join: Join, step: Step) -> State:
        return start_over(self, self.ring, join, step)

    def on_leave(self, leave: Leave, step: Step) -> State:
        return give_up(self, self.ring, leave, step)

    def on_timer(self, timer: Timer, step: Step) -> State:
        if timer is Timer.TOKEN_RETRANSMIT:
            step.forward_again(self.ring)
        elif timer is Timer.TOKEN_LOSS:
            step.occurred(Occurrence.COMMIT_INTERRUPTED)
            return gather.Gather.enter(self, ChangeReason.COMMIT_LOST, step)
        elif timer is Timer.STORAGE:
            self.is_patient = False
            return self.on_persisted(step)
        return self


def take_clock(facts: Facts, token: CommitToken) -> None:
    """Mine is not below those of the members."""
    is_new = len(facts.installed.members) == 1 or facts.parts.is_stamped
    facts.clock.hear(believed_clock(facts.clock.tick, token.timestamp, is_new=is_new))


def _my_entry(facts: Facts) -> CommitEntry:
    past, delivered = facts.past, max(facts.past.delivered, facts.attempt.high_delivered)
    return CommitEntry(facts.me, True, facts.installed.id, past.aru, delivered, facts.is_frozen)


def start_over(state: State, ring: Ring, join: Join, step: Step) -> State:
    """In Commit and Recovery: a member whose Join speaks of this ring or a later one has given this ring up."""
    facts = step.facts
    if join.sender not in ring.members or join.ring_seq < ring.id.seq:
        step.ignored(join, "a ring is being formed, and this Join does not speak of it")
        return state
    facts.proposal.merge(join, facts.installed.members)
    _interrupted(state, step)
    return gather.Gather.enter(state, join.reason, step, {join.sender: join})


def give_up(state: State, ring: Ring, leave: Leave, step: Step) -> State:
    """In Commit and Recovery: a member left."""
    if leave.sender not in ring.members:
        step.ignored(leave, "not of the ring that is being formed")
        return state
    step.facts.proposal.fail([leave.sender])
    _interrupted(state, step)
    return gather.Gather.enter(state, ChangeReason.LEFT, step)


def _interrupted(state: State, step: Step) -> None:
    is_commit = state.name == moves.COMMIT
    step.occurred(Occurrence.COMMIT_INTERRUPTED if is_commit else Occurrence.RECOVERY_INTERRUPTED)
