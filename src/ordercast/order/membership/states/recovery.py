"""Old-ring packets are exchanged on the new ring; then the old ring is finished and the new one installed, in one
step. (Paper, section 4.3, Figures 4.11 to 4.14)

The old ring's store takes packets only through the new ring from here on: what arrives otherwise would be at some and
not at others. The promise to deliver what was exchanged survives the failure of this recovery.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar

from ordercast.model.configuration import ChangeReason
from ordercast.model.errors import WireError
from ordercast.model.ids import NO_SEQ, Seq, TokenSeq
from ordercast.model.notes import Occurrence, PacketDropped
from ordercast.order.membership.consensus import Proposal
from ordercast.order.membership.past import Past
from ordercast.order.membership.recovery_plan import RecoveryPlan, kept_promise, must_exchange, plan_from
from ordercast.order.membership.ring import Ring
from ordercast.order.membership.states import commit, gather, moves
from ordercast.order.membership.states.base import State
from ordercast.order.membership.states.changing import Changing
from ordercast.order.membership.step import Attempt, Facts, Step
from ordercast.order.membership.timers import Timer
from ordercast.wire.header import RECOVERED, origin_of, recovered
from ordercast.wire.messages import CommitToken, Join, Leave, Token
from ordercast.wire.run import PacketRun, parse_packet


@dataclass(slots=True)
class Recovery(Changing):
    ring: Ring  # the new one
    plan: RecoveryPlan
    reason: ChangeReason  # as the Commit token says: equal at all members
    name: ClassVar[str] = moves.RECOVERY
    queue: dict[Seq, PacketRun] = field(
        default_factory=dict
    )  # old-ring packets that I would send (`retrans_message_queue`)
    i_set_flag: bool = False  # `exchanging` on the token is true because of me
    idle_max: int = 0  # on so many visits in a row nothing may happen although the flag is true
    idle_visits: int = 0
    quiet_visits: int = 0  # successive visits with the flag false (`my_retrans_flg_count`)
    install_seq: Seq = NO_SEQ  # the last seq that carries an old-ring packet; known when quiet_visits is 2

    @classmethod
    def enter(cls, origin: State, ring: Ring, token: CommitToken, step: Step) -> State:
        facts = step.facts
        step.moved(origin.name, cls.name, None, f"ring {ring.id}")
        facts.timers.only()
        plan = plan_from(token.members, facts.me)
        if facts.parts.sends_at_once:
            facts.attempt.high_delivered = max(facts.attempt.high_delivered, plan.high_delivered)
        queue: dict[Seq, PacketRun] = {}
        if must_exchange(token.members, plan):
            facts.attempt.promise = None
            queue = dict(facts.past.held_after(plan.low_aru))
        else:
            assert facts.attempt.promise is not None
            kept = kept_promise(facts.attempt.promise, plan)
            step.occurred(Occurrence.OBLIGATION_KEPT)
            if kept.owed != plan.owed:
                step.occurred(Occurrence.PROMISE_DIFFERS)
            plan = kept
        commit.take_clock(facts, token)
        ring.memory.token_seq = TokenSeq(token.token_seq + 1)
        timestamp = token.timestamp if facts.parts.attached else facts.clock.tick
        forwarded = replace(token, sender=facts.me, token_seq=ring.memory.token_seq, timestamp=timestamp)
        step.forward(ring, forwarded)
        limit = facts.config.fail_to_receive_rotations
        return cls(ring, plan, token.reason, queue=queue, idle_max=limit)

    def on_commit(self, token: CommitToken, step: Step) -> State:
        """The representative's third sight of it: it becomes the regular token. Nobody else waits for that hop."""
        ring = self.ring
        if token.ring != ring.id or token.token_seq != 2 * len(ring.members):
            step.occurred(Occurrence.DUPLICATE_TOKEN)
            return self
        first = ring.first_token(token.sender, token.token_seq, token.timestamp, token.extension)
        return self.on_token(first, step)

    def on_token(self, token: Token, step: Step) -> State:
        facts, ring = step.facts, self.ring
        exchange = facts.parts.exchange
        if not exchange.accepts(ring, token, step):
            return self
        if exchange.has_intruder(ring, token, step):
            return self._fail(ChangeReason.FOREIGN_PACKET, step)
        if self._is_idle(token):
            return self._fail(ChangeReason.RECOVERY_LOST, step)
        deaf = exchange.deaf_member(ring, token, step)
        if deaf is not None:
            facts.proposal.fail([deaf])
            facts.attempt.blamed = deaf
            return self._fail(ChangeReason.FAILED_TO_RECEIVE, step)
        forwarded = exchange.visit(ring, token, len(self.queue), self._take, step, self._flag)
        self._count(forwarded, step)
        if self.quiet_visits >= 3 and ring.memory.safe_seq >= self.install_seq:
            return self._install(step)
        return self

    def _is_idle(self, token: Token) -> bool:
        """The token says that packets are still to be sent, and none is sent for many rotations: whoever said so is not
        there to take it back."""
        stands = token.exchanging and token.seq == token.aru == self.ring.memory.forwarded_seq
        self.idle_visits = self.idle_visits + 1 if stands and not self.queue else 0
        return self.idle_visits > self.idle_max

    def _take(self, first: Seq, token_round: int, timestamp: int, limit: int) -> list[PacketRun]:
        """The next old-ring packets that nobody else has sent yet, wrapped. They keep their own timestamps."""
        packets: list[PacketRun] = []
        for old_seq in list(self.queue)[:limit]:
            seq = Seq(first + len(packets))
            run, ring = self.queue.pop(old_seq), self.ring
            packet = recovered(run.packet(old_seq), run.originator, ring.heading, ring.me, seq, token_round)
            packets.append(parse_packet(packet, ring.heading))
        return packets

    def _flag(self, token: Token) -> Token:
        """Raise the flag while I have something to send; lower it only if it was I who raised it."""
        if self.queue:
            if not token.exchanging:
                self.i_set_flag = True
                return replace(token, exchanging=True)
        elif token.exchanging and self.i_set_flag:
            self.i_set_flag = False
            return replace(token, exchanging=False)
        return token

    def _count(self, token: Token, step: Step) -> None:
        facts = step.facts
        self.quiet_visits = 0 if token.exchanging else self.quiet_visits + 1
        if self.quiet_visits == 2:
            self.install_seq = token.seq
        if self.quiet_visits >= 2 and self.ring.store.aru >= self.install_seq and facts.attempt.promise is None:
            facts.attempt.promise = self.plan
            step.occurred(Occurrence.PROMISE_MADE)

    def accepting(self, facts: Facts) -> Ring | None:
        return self.ring

    def on_data(self, fresh: list[PacketRun], step: Step) -> State:
        facts = step.facts
        if self.ring.store.high > self.ring.memory.forwarded_seq:
            facts.timers.cancel(Timer.TOKEN_RETRANSMIT)
        step.arm(Timer.TOKEN_LOSS, facts.config.token_loss_ns)
        for run in fresh:
            if run.flags & RECOVERED:
                packet = run.packet(run.seq)
                digest, old_seq = origin_of(packet)
                if digest == facts.installed.heading.digest:
                    self.queue.pop(old_seq, None)
                    _keep(facts.past, old_seq, packet, step)
        return self

    def _install(self, step: Step) -> State:
        """Steps 2 to 6: the rest of the old ring, two views, and back to work."""
        facts = step.facts
        assert facts.attempt.promise is not None, "nobody installs what it has not promised to deliver"
        facts.past.finish(self.plan, self.ring, self.reason, step.effects)
        facts.hearing.hold_down(sorted(facts.proposal.failed), step.now)
        facts.installed = self.ring
        facts.past = facts.parts.past_of(self.ring, self.install_seq)
        facts.proposal = Proposal(facts.me, set(self.ring.members))
        facts.attempt = Attempt()
        facts.own_seq = NO_SEQ
        again = facts.outbox.start_over()
        if again:
            step.occurred(Occurrence.LARGE_SENT_AGAIN, again)
        return facts.parts.work(self, step, f"installed ring {self.ring.id}")

    def _fail(self, reason: ChangeReason, step: Step) -> State:
        """Back to Gather as a member of the old ring. What the new ring brought to the old store stays."""
        step.occurred(Occurrence.RECOVERY_INTERRUPTED)
        return gather.Gather.enter(self, reason, step)

    def on_join(self, join: Join, step: Step) -> State:
        return commit.start_over(self, self.ring, join, step)

    def on_leave(self, leave: Leave, step: Step) -> State:
        return commit.give_up(self, self.ring, leave, step)

    def on_timer(self, timer: Timer, step: Step) -> State:
        if timer is Timer.TOKEN_RETRANSMIT:
            step.forward_again(self.ring)
        elif timer is Timer.TOKEN_LOSS:
            return self._fail(ChangeReason.RECOVERY_LOST, step)
        return self


def _keep(past: Past, seq: Seq, packet: bytes, step: Step) -> None:
    """Whatever the exchange brought is owed to the layer above."""
    try:
        if past.keep(seq, packet):
            step.occurred(Occurrence.MESSAGES_EXCHANGED)
    except WireError as error:
        step.note(PacketDropped(f"in a recovered packet: {error}"))
