"""Normal operation: messages are numbered, sent, received and delivered. (Paper, sections 4.1 and 4.2)

An idle ring rests: after a rotation that brought nothing new, whoever sent last makes its visit and keeps the token for
`rest_ns`, since it is likely to send again; any other that gets something to send wakes it with a packet. What whoever
sent last got to send during that rotation is sent at once, and the token rests on: a client that sends one message at a
time, and the next when the last has come back, would otherwise keep the token going, and wait for it each time.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

from ordercast.model.configuration import ChangeReason
from ordercast.model.ids import Seq, TokenSeq
from ordercast.model.notes import Occurrence
from ordercast.order.membership.past import Source
from ordercast.order.membership.states import gather
from ordercast.order.membership.states.base import State
from ordercast.order.membership.states.working import Working
from ordercast.order.membership.step import Facts, Step
from ordercast.order.membership.timers import Timer
from ordercast.order.ring.ordering import sums_of, with_news
from ordercast.order.ring.states.token_visit import (
    accepted,
    deaf_member,
    has_intruder,
    is_flooded,
    more,
    unchanged,
    work,
)
from ordercast.order.ring.two_queues import TwoQueues
from ordercast.wire.messages import Token, Wake
from ordercast.wire.run import PacketRun, build_runs

LITTLE = 8  # packets: who has no more to send is no reason to pass the token on; who streams has more at each visit


@dataclass(slots=True)
class Operational(Working):
    resting: Token | None = None  # my visit is done, the token has not gone on: I may still add to it
    woken: bool = False  # somebody asked for the token before it came: do not let it rest

    @classmethod
    def enter(cls, origin: State, step: Step, text: str) -> State:
        facts, config = step.facts, step.facts.config
        step.moved(origin.name, cls.name, None, text)
        facts.timers.only(Timer.LOOP, Timer.TOKEN_RETRANSMIT, Timer.TOKEN_LOSS)
        step.arm(Timer.TOKEN_LOSS, config.token_loss_ns)
        step.arm(Timer.ANNOUNCE, 0)
        state = cls(woken=True)  # one rotation of work, for what has waited for this ring
        facts.past.advance(step.effects)
        facts.rosters.installed(step)
        facts.hearing.installed(facts.installed.members)
        return state.leave_if_done(step)

    @classmethod
    def begin(cls, origin: State, step: Step) -> State:
        """Start-up: the ring of one, its token at rest."""
        state = cls.enter(origin, step, "the first view of this life")
        if isinstance(state, cls):
            token = step.facts.installed.first_token(step.facts.me, TokenSeq(0))
            return state._work(token, step) if step.facts.outbox.is_ready else state._rest(token, step)
        return state

    def on_data(self, fresh: list[PacketRun], step: Step) -> State:
        facts = step.facts
        ring = facts.installed
        if self.resting is not None and has_intruder(ring, self.resting, step, facts.past.delivered):
            return gather.Gather.leave_ring(self, ChangeReason.FOREIGN_PACKET, step)
        if ring.store.high > ring.memory.forwarded_seq:  # the token went on from here
            facts.timers.cancel(Timer.TOKEN_RETRANSMIT)
            step.arm(Timer.TOKEN_LOSS, facts.config.token_loss_ns)
        facts.past.advance(step.effects)
        return self

    def on_token(self, token: Token, step: Step) -> State:
        facts = step.facts
        ring = facts.installed
        if self.resting is not None and token.ring == ring.id:
            step.occurred(Occurrence.DUPLICATE_TOKEN)
            return self
        if not accepted(ring, token, step):
            return self
        facts.timers.cancel(Timer.WAKE)
        if has_intruder(ring, token, step, facts.past.delivered) or is_flooded(ring, step):
            return gather.Gather.leave_ring(self, ChangeReason.FOREIGN_PACKET, step)
        deaf = deaf_member(ring, token, step)
        if deaf is not None:
            facts.proposal.fail([deaf])
            return gather.Gather.leave_ring(self, ChangeReason.FAILED_TO_RECEIVE, step, blamed=deaf)
        if self._may_rest(token, facts):
            step.occurred(Occurrence.TOKEN_RESTED)
            return self._rest(token, step)
        return self._work(token, step)

    def _may_rest(self, token: Token, facts: Facts) -> bool:
        """Tell whether the token may rest: with whoever sent last, when a whole rotation found nothing to do and
        everybody has delivered everything.

        Nothing here is about the representative: every condition compares this visit with my previous one, and what
        lies between two visits of a member is one visit of each other member. So at whichever member it holds:

        - Nobody has sent since I passed the token on (`seq` stands), and all have everything. The aru was seq when the
          token left me and is now; whoever had less would have lowered it, and only at its next visit raised it again.
          Hence all have the highest packet, and all know the same last sender: there is one place to wake, and the
          token rests nowhere else. Who has not received it knows, from the token, that the token comes again.
        - All have delivered everything (`delivered`). What asked for safe delivery I had delivered when the token left
          me: the aru had been there at two visits of mine in a row. Then it was there at each other member's visit in
          between, and so it was at their visits since: two in a row, so they have delivered it as well.
        - Nobody misses a packet, or had something to send (`waiting` counts me too), unless nobody may send, because
          somebody is behind. If I alone have a little, it is as if I got it when the token had come to rest.

        - Where the ring settles, everything has become safe at me when the token left me, whatever it asked for. By the
          same argument it is safe at all others.

        Who is leaving does not take the token with it.
        """
        ring, memory = facts.installed, facts.installed.memory
        if not token.seq == memory.forwarded_seq == memory.forwarded_aru == token.aru or ring.me != ring.last_sender:
            return False
        _, waiting, behind = sums_of(ring, token)
        return (
            facts.past.delivered == token.seq
            and (memory.safe_seq >= token.seq or not facts.parts.settles)
            and not (token.requests or self.woken or _has_news(facts))
            and not (facts.leaving and facts.wants_token)
            and ((behind > 0 and facts.parts.attached is None) or (_has_little(facts) and waiting <= memory.wanted))
        )

    def _rest(self, token: Token, step: Step) -> State:
        """The visit is made now, so that a submission finds nothing left to do but to be sent: one that has come before
        the token, too."""
        facts = step.facts
        self.resting = self._visit(token, step, keeps=True)
        step.arm(Timer.REST, facts.config.rest_ns)
        if len(facts.installed.members) == 1:
            facts.timers.cancel(Timer.REST, Timer.TOKEN_LOSS)  # nobody waits for a sign of life
        if facts.outbox.is_ready and not facts.installed.memory.behind:
            return self._add(self.resting, step)
        return self.leave_if_done(step)

    def _work(self, token: Token, step: Step) -> State:
        self.woken = False
        self._visit(token, step)
        return self.leave_if_done(step)

    def _visit(self, token: Token, step: Step, *, keeps: bool = False) -> Token:
        """Send what there is and pass the token on, or keep it, and send nothing yet."""
        facts = step.facts
        if facts.clock.tick > token.timestamp:
            token = replace(token, timestamp=facts.clock.tick)
        source, wanted = _nothing if keeps else outbox_source(facts), facts.outbox.packets()
        amend = unchanged if facts.parts.attached is None else partial(_extended, facts)
        visited = work(
            facts.installed,
            token,
            wanted,
            source,
            step,
            facts.config,
            amend,
            visit_most=_visit_most(facts),
            is_behind=facts.is_behind,
            passes_on=not keeps,
        )
        facts.past.advance(step.effects)
        facts.installed.store.discard(facts.installed.memory.safe_seq)
        return visited

    def _add(self, token: Token, step: Step) -> State:
        """Send more in the visit whose token rests here. The token goes on soon, so that losses are noticed; at once,
        if somebody waits for it."""
        facts = step.facts
        ring, config = facts.installed, facts.config
        more(ring, token, facts.outbox.packets(), outbox_source(facts), step)
        facts.past.advance(step.effects)
        is_patient = facts.past.delivered == ring.store.high and not facts.wants_token
        deadline = facts.timers.deadline(Timer.REST)
        if not is_patient or _has_news(facts) or deadline is None:
            return self._pass_on(step)
        facts.timers.arm(Timer.REST, min(deadline, step.now + config.linger_ns))
        return self

    def _pass_on(self, step: Step) -> State:
        facts = step.facts
        token, self.resting = self.resting, None
        assert token is not None
        self.woken = False
        facts.timers.cancel(Timer.REST)
        step.forward(facts.installed, with_news(facts.installed, token, is_behind=facts.is_behind))
        return self.leave_if_done(step)

    def on_wake(self, wake: Wake, step: Step) -> State:
        if wake.ring != step.facts.installed.id:
            step.ignored(wake, "another ring's")
            return self
        if self.resting is None:
            self.woken = True
            return self
        step.occurred(Occurrence.RING_WOKEN)
        return self._pass_on(step)

    def on_timer(self, timer: Timer, step: Step) -> State:
        facts = step.facts
        if timer is Timer.TOKEN_LOSS:
            return gather.Gather.leave_ring(self, ChangeReason.TOKEN_LOST, step)
        if timer is Timer.TOKEN_RETRANSMIT:
            step.forward_again(facts.installed)
        elif timer is Timer.REST and self.resting is not None:
            return self._pass_on(step)
        elif timer is Timer.WAKE:
            self._wake_holder(step, is_again=True)
        else:
            return Working.on_timer(self, timer, step)
        return self

    def on_submission(self, step: Step) -> State:
        facts = step.facts
        if self.resting is not None and (facts.wants_token or _has_news(facts)):
            return self._add(self.resting, step)
        state = self.leave_if_done(step)
        if state is self and not facts.timers.is_armed(Timer.WAKE):
            self._wake_holder(step)
        return state

    def _wake_holder(self, step: Step, *, is_again: bool = False) -> None:
        """If the token may be resting elsewhere, ask for it: first whoever sent last, and soon after, in case that was
        lost, everybody, until it comes. Where it does not rest, a Wake does nothing but keep it going once."""
        facts = step.facts
        ring, config = facts.installed, facts.config
        has_reason = facts.wants_token or _has_news(facts)
        if not (has_reason and ring.memory.may_rest) or ring.last_sender == facts.me:
            return
        wake = Wake(ring.id, facts.me)
        if is_again:
            step.broadcast(wake)
        else:
            step.send(ring.last_sender, wake)
        step.arm(Timer.WAKE, config.token_retransmit_ns if is_again else config.linger_ns)

    def owes(self, facts: Facts) -> bool:
        return facts.installed.memory.safe_seq < facts.own_seq  # what is safe was delivered when it became so


def _share_of_visit(facts: Facts) -> int:
    """Return how many packets of its own a visit may have: a gateway's share is larger than others'. A rotation has no
    more packets by that: receivers have room for `window + visit_max`."""
    config, place = facts.config, facts.parts.attached
    return config.visit_max if place is None else min(int(config.visit_max * place.share), config.window)


def _visit_most(facts: Facts) -> int:
    """Return how many packets a visit may have. Who has more to carry than two of its visits take asks for as much of
    the rotation as it needs, up to a whole window: the token then gives less to those who send for themselves, on all
    rings from which this comes, and users need not be stopped. Its own users have no more of a visit by that."""
    share, outbox = _share_of_visit(facts), facts.outbox
    if not facts.parts.has_full_visits or not isinstance(outbox, TwoQueues):
        return share
    is_pressed = outbox.freight_packets > 2 * share
    return min(facts.config.window, outbox.freight_packets + share // 2) if is_pressed else share


def outbox_source(facts: Facts) -> Source:
    """New packets come from the outbox."""

    def take(first: Seq, token_round: int, timestamp: int, limit: int) -> list[PacketRun]:
        outbox, heading = facts.outbox, facts.installed.heading
        if isinstance(outbox, TwoQueues):
            natives_max = _share_of_visit(facts)
            runs = outbox.runs(heading, facts.me, first, token_round, timestamp + 1, limit, natives_max)
        else:
            runs = build_runs(heading, outbox.take(limit), facts.me, first, token_round, timestamp + 1)
        if runs:
            facts.own_seq = runs[-1].last
        return runs

    return take


def _nothing(first: Seq, token_round: int, timestamp: int, limit: int) -> list[PacketRun]:
    return []


def _has_little(facts: Facts) -> bool:
    """Tell whether what waits here lets the token rest. An engine that encloses the ring waits for the token itself."""
    return not facts.outbox.is_ready if facts.parts.is_enclosed else facts.outbox.has_at_most(LITTLE)


def _extended(facts: Facts, token: Token) -> Token:
    """Let the token carry how far all members are in the order of the network."""
    assert facts.parts.attached is not None
    token.extension = facts.parts.attached.lowest.visit(token.ring, facts.me, token.extension)
    return token


def _has_news(facts: Facts) -> bool:
    """My application has fallen behind, or caught up, since the token was told."""
    return facts.installed.memory.was_behind != facts.is_behind
