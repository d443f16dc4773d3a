"""Collecting opinions on who is alive. Ends in Commit, or starts over. (Paper, the Gather state, Figures 4.5 to 4.8)"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from ordercast.model.configuration import ChangeReason
from ordercast.model.ids import NOBODY, ConfigurationId, ProcessId, TokenSeq, process_text
from ordercast.model.notes import Occurrence
from ordercast.order.membership.consensus import agreeing, least_forwarder, new_ring_seq, newcomers_of
from ordercast.order.membership.states import commit, moves
from ordercast.order.membership.states.base import State
from ordercast.order.membership.states.changing import Changing
from ordercast.order.membership.step import Step
from ordercast.order.membership.timers import Timer
from ordercast.wire.messages import CommitEntry, CommitToken, Join, Leave


@dataclass(slots=True)
class Gather(Changing):
    name: ClassVar[str] = moves.GATHER
    joins: dict[ProcessId, Join] = field(default_factory=dict)  # the newest of each (`my_last`)
    agreeing: set[ProcessId] = field(default_factory=set)  # whose newest equals my sets, which change with the state
    has_consensus: bool = False  # reached, and waiting for the representative's Commit token

    @classmethod
    def leave_ring(
        cls,
        origin: State,
        reason: ChangeReason,
        step: Step,
        *,
        blamed: ProcessId = NOBODY,
        join: Join | None = None,
    ) -> State:
        """From Operational: a new attempt begins, for this reason."""
        attempt = step.facts.attempt
        attempt.reason = reason
        attempt.blamed = blamed
        attempt.forwards = 0
        step.facts.hearing.hold_down([blamed], step.now, is_blamed=True)  # nobody is never heard
        return cls.enter(origin, reason, step, {join.sender: join} if join else None)

    @classmethod
    def enter(
        cls, origin: State, reason: ChangeReason, step: Step, joins: dict[ProcessId, Join] | None = None
    ) -> State:
        facts = step.facts
        proposal = facts.proposal
        step.moved(origin.name, cls.name, reason, f"proposing {_listed(proposal.members)}")
        facts.timers.only()
        crowd = facts.crowd(step.now)
        step.arm(Timer.CONSENSUS, facts.config.consensus_of(crowd))
        facts.join_number += 1
        state = cls(joins or {}, agreeing(proposal, joins or {}))
        soon = facts.attempt.told_at + facts.config.opinion_gap_of(crowd)
        if step.now < soon:
            facts.timers.arm(Timer.JOIN, soon)
        else:
            state._broadcast_join(step)
        return state._try_to_form(step)

    def _broadcast_join(self, step: Step) -> None:
        """Tell everybody my sets, and again after a while."""
        facts = step.facts
        attempt, proposal = facts.attempt, facts.proposal
        attempt.told_at, attempt.told = step.now, facts.join_number
        step.arm(Timer.JOIN, facts.config.join_gap_of(facts.crowd(step.now)))
        step.broadcast(
            Join(
                facts.installed.id,
                facts.me,
                facts.join_number,
                facts.ring_seq,
                tuple(sorted(proposal.candidates)),
                tuple(sorted(proposal.failed)),
                attempt.forwards,
                attempt.reason,
                attempt.blamed,
                facts.digests,
                facts.admission.claim,
                facts.parts.setting_digests,
            )
        )

    def _again(self, reason: ChangeReason, step: Step, joins: dict[ProcessId, Join] | None = None) -> State:
        facts = step.facts
        facts.proposal.fail(facts.admission.unlisted(facts.proposal.members, facts.installed.members))
        return Gather.enter(self, reason, step, joins)

    def _try_to_form(self, step: Step) -> State:
        """Consensus: everybody proposed has sent a Join equal to my sets."""
        facts = step.facts
        proposal = facts.proposal
        others = len(proposal.candidates) - len(proposal.failed) - 1
        if self.has_consensus or len(self.agreeing) < others:
            return self
        if proposal.agreed == proposal.sets and len(proposal.members) > 1:
            return self._give_one_up(step)
        proposal.agreed = proposal.sets
        facts.attempt.forwards = 0
        if facts.me == proposal.members[0]:
            if facts.attempt.told < facts.join_number:  # all others wait for it, and for a token from then on
                self._broadcast_join(step)
            return commit.Commit.enter(self, self._new_commit_token(step), step)
        self.has_consensus = True
        facts.timers.cancel(Timer.CONSENSUS)
        step.arm(Timer.TOKEN_LOSS, facts.config.commit_wait_of(facts.crowd(step.now)))
        return self

    def _new_commit_token(self, step: Step) -> CommitToken:
        facts = step.facts
        members = facts.proposal.members
        joins = (self.joins[m] for m in members if m != facts.me)
        ring_id = ConfigurationId(new_ring_seq(facts.ring_seq, joins, facts.parts.domain), facts.me)
        entries = tuple(CommitEntry(process) for process in members)
        return CommitToken(ring_id, facts.me, TokenSeq(0), facts.attempt.reason, entries, facts.clock.tick)

    def _give_one_up(self, step: Step) -> State:
        """The same sets a second time: rather than repeat a ring that failed to form, count one more as failed."""
        facts = step.facts
        members = facts.proposal.members
        forwards = {process: self.joins[process].forwards for process in members if process != facts.me}
        forwards[facts.me] = facts.attempt.forwards
        victim = least_forwarder(members, forwards)
        step.occurred(Occurrence.SAME_PROPOSAL, process=victim)
        facts.proposal.fail(members if victim == facts.me else [victim])
        return self._again(ChangeReason.SAME_PROPOSAL, step)

    def on_commit(self, token: CommitToken, step: Step) -> State:
        facts = step.facts
        members = tuple(member.process for member in token.members)
        if members != facts.proposal.members:
            step.ignored(token, "another membership than I propose")
            return self
        if token.ring.seq <= facts.ring_seq:
            step.ignored(token, "a ring that is given up")
            return self
        index = members.index(facts.me)
        if token.token_seq != index or not all(member.filled for member in token.members[:index]):
            step.occurred(Occurrence.DUPLICATE_TOKEN)
            return self
        facts.proposal.agreed = facts.proposal.sets
        return commit.Commit.enter(self, token, step)

    def on_join(self, join: Join, step: Step) -> State:
        facts = step.facts
        proposal, members = facts.proposal, facts.installed.members
        if join.sender in members and join.ring_seq < facts.installed.id.seq:
            step.ignored(join, "stale: sent before the last ring was formed")
            return self
        if proposal.equals(join):
            self.joins[join.sender] = join
            self.agreeing.add(join.sender)
            return self._try_to_form(step)
        if join.sender in proposal.failed:
            step.ignored(join, "from one I count as failed")
            return self
        if proposal.covers(join):
            self.joins.pop(join.sender, None)  # its opinion is behind mine, whatever it said before
            self.agreeing.discard(join.sender)
            return self
        if join.sender not in proposal.candidates and not self._admits(join, step):
            step.ignored(join, "not everybody here and there hear each other")
            return self
        before = proposal.sets
        proposal.merge(join, members)
        if proposal.sets == before:  # an outsider counts my ring-mates as failed: the consensus timeout decides
            step.ignored(join, "it says nothing that I may take over")
            return self  # and its earlier agreement counts until my sets change
        self.joins[join.sender] = join
        return self._again(join.reason if join.sender in members else ChangeReason.MERGE, step, self.joins)

    def _admits(self, join: Join, step: Step) -> bool:
        facts = step.facts
        if facts.me in join.failed:
            return False
        members = facts.proposal.members
        return facts.hearing.admits(newcomers_of(join, members), members, step.now)

    def on_leave(self, leave: Leave, step: Step) -> State:
        facts = step.facts
        if leave.sender not in facts.proposal.members:
            step.ignored(leave, "from one that is not proposed")
            return self
        facts.proposal.fail([leave.sender])
        return self._again(ChangeReason.LEFT, step, self.joins)

    def on_timer(self, timer: Timer, step: Step) -> State:
        facts = step.facts
        if timer is Timer.JOIN:
            self._broadcast_join(step)
        elif timer is Timer.CONSENSUS:
            facts.proposal.fail(set(facts.proposal.members) - self.agreeing)
            return self._again(ChangeReason.NO_CONSENSUS, step)
        elif timer is Timer.TOKEN_LOSS:
            return self._again(ChangeReason.COMMIT_LOST, step)
        return self


def _listed(members: tuple[ProcessId, ...]) -> str:
    return "{" + ", ".join(map(process_text, members)) + "}"
