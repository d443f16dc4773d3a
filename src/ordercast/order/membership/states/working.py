"""Normal operation as far as it is about who is here: whatever would change the configuration is looked for.

The engine adds how messages flow.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

from ordercast.model.configuration import ChangeReason
from ordercast.model.ids import NOBODY
from ordercast.model.notes import Occurrence
from ordercast.order.membership.consensus import newcomers_of
from ordercast.order.membership.ring import Ring
from ordercast.order.membership.states import gather, gone, moves
from ordercast.order.membership.states.base import State
from ordercast.order.membership.step import Facts, Step
from ordercast.order.membership.timers import Timer
from ordercast.wire.messages import Announcement, CommitToken, Join, Leave


class Working(State):
    name: ClassVar[str] = moves.OPERATIONAL

    @abstractmethod
    def owes(self, facts: Facts) -> bool:
        """Somebody may still need something that this process has sent, or this process itself."""

    def accepting(self, facts: Facts) -> Ring | None:
        return facts.installed

    def on_commit(self, token: CommitToken, step: Step) -> State:
        step.ignored(token, "a ring is installed")
        return self

    def on_join(self, join: Join, step: Step) -> State:
        facts = step.facts
        members = facts.installed.members
        if facts.me in join.failed:
            step.ignored(join, "it counts me as failed")
            return self
        if join.sender in members:
            if join.ring_seq < facts.installed.id.seq:
                step.ignored(join, "stale: sent before this ring was formed")
                return self
        elif not facts.hearing.admits(newcomers_of(join, members), members, step.now):
            step.ignored(join, "not everybody here and there hear each other")
            return self
        elif facts.hearing.is_quarrel(join, step.now):
            step.ignored(join, "it gives up processes that are heard here")
            return self
        facts.proposal.merge(join, members)
        reason = join.reason if join.sender in members else ChangeReason.MERGE
        blamed = join.blamed if join.sender in members and join.blamed in members else NOBODY
        return gather.Gather.leave_ring(self, reason, step, blamed=blamed, join=join)

    def on_announcement(self, announcement: Announcement, step: Step) -> State:
        """The representative looks, a little later, whether the rings it has heard of can be merged."""
        facts = step.facts
        ring = facts.installed
        is_news = facts.me == ring.representative and announcement.sender not in ring.members
        if is_news and not facts.timers.is_armed(Timer.MERGE):
            step.arm(Timer.MERGE, facts.config.announce_ns // 4)
        return self

    def on_leave(self, leave: Leave, step: Step) -> State:
        facts = step.facts
        if leave.ring != facts.installed.id or leave.sender not in facts.installed.members:
            step.ignored(leave, "not a member of this ring")
            return self
        facts.proposal.fail([leave.sender])
        return gather.Gather.leave_ring(self, ChangeReason.LEFT, step)

    def on_timer(self, timer: Timer, step: Step) -> State:
        if timer is Timer.ANNOUNCE:
            return self._announce(step)
        if timer is Timer.MERGE:
            return self._merge(step)
        return self

    def _announce(self, step: Step) -> State:
        facts = step.facts
        ring = facts.installed
        heard = facts.hearing.heard(step.now)
        claim, settings = facts.admission.claim, facts.parts.setting_digests
        step.broadcast(Announcement(ring.id, facts.me, ring.members, heard, claim, settings))
        facts.rosters.announced(step)
        if facts.hearing.is_calm(heard) and facts.rosters.is_calm(step):
            gap, members = facts.config.calm_gap_of(len(ring.members)), ring.members
            mine = gap * members.index(facts.me) // len(members)  # they take turns, as far as their clocks go together
            step.arm(Timer.ANNOUNCE, (mine - step.now) % gap or gap)
        else:
            step.arm(Timer.ANNOUNCE, facts.config.announce_gap_of(len(heard) + 1))
        return self._drop_removed(step)

    def _drop_removed(self, step: Step) -> State:
        """The first of the others expels members that the rosters of all others have dropped, and that have not left by
        themselves meanwhile."""
        facts = step.facts
        members = facts.installed.members
        dropped = facts.rosters.dropped_for_long(members)
        if not dropped or facts.me != next(member for member in members if member not in dropped):
            return self
        step.occurred(Occurrence.MEMBER_DROPPED, len(dropped))
        facts.proposal.fail(dropped)
        return gather.Gather.leave_ring(self, ChangeReason.REMOVED, step)

    def _merge(self, step: Step) -> State:
        facts = step.facts
        newcomers, held, unlisted = facts.hearing.mergeable(facts.installed.members, step.now)
        if held:
            step.occurred(Occurrence.MERGE_HELD)
        if unlisted:
            step.occurred(Occurrence.NEWCOMER_HELD)
        if not newcomers:
            return self
        facts.proposal.candidates.update(newcomers)
        return gather.Gather.leave_ring(self, ChangeReason.MERGE, step)

    def on_persisted(self, step: Step) -> State:
        return self  # a write that an abandoned ring had asked for

    def leave_if_done(self, step: Step) -> State:
        facts = step.facts
        if not facts.leaving or facts.outbox or self.owes(facts):
            return self
        return gone.Gone.enter(self, step)
