"""The work with the regular token: do it, send what it yields, expel the deaf. Operational does it, and so does
Recovery, through `TokenExchange`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ordercast.model.effects import Alarm, AlarmKind, Broadcast
from ordercast.model.ids import NO_SEQ, NOBODY, ProcessId, Seq, process_text
from ordercast.model.notes import Occurrence, Visited
from ordercast.order.membership.bounds import believed_clock
from ordercast.order.membership.past import Source
from ordercast.order.membership.ring import Ring
from ordercast.order.membership.step import Step
from ordercast.order.membership.timers import Timer
from ordercast.order.ring.config import RingConfig
from ordercast.order.ring.delivery import Delivery
from ordercast.order.ring.ordering import add_to_visit, held_back_by, visit
from ordercast.wire.messages import Token


def accepted(ring: Ring, token: Token, step: Step) -> bool:
    """The token of this ring, and not a copy of one that was here already."""
    if token.ring != ring.id:
        step.ignored(token, "another ring's token")
        return False
    if token.seq > ring.memory.forwarded_seq + step.facts.config.ahead_max:
        step.ignored(token, "its seq cannot be true")
        return False
    if token.token_seq != ring.expected_token_seq() or token.seq < ring.memory.forwarded_seq:
        step.occurred(Occurrence.DUPLICATE_TOKEN)
        return False
    if token.round > ring.memory.round + 1 or (token.aru_id != NOBODY and token.aru_id not in ring.members):
        step.occurred(Occurrence.IMPLAUSIBLE)
        step.ignored(token, "its round or the holder of its aru cannot be true")
        return False
    step.facts.timers.cancel(Timer.TOKEN_RETRANSMIT)
    step.arm(Timer.TOKEN_LOSS, step.facts.config.token_loss_ns)
    return True


def has_intruder(ring: Ring, token: Token, step: Step, delivered: Seq = NO_SEQ) -> bool:
    """Somebody who did not hold the token has numbered packets. Who has the token sees that for sure: there are packets
    above its seq, or one under a number of mine that is not mine. Packets that were not delivered are forgotten."""
    high, foreign = ring.store.high, ring.memory.foreign_seq
    if high <= token.seq and not foreign:
        return False
    ring.store.cut(max(token.seq, delivered))
    what = f"packet {foreign or high} of ring {ring.id}"
    return _is_noticed(f"{what} came from somebody who did not hold the token: a new ring is formed", step)


def is_flooded(ring: Ring, step: Step) -> bool:
    """There are more parts of messages than all members together can be sending: each has its messages in its queue
    until the last part is numbered."""
    past = step.facts.past
    assert isinstance(past, Delivery)
    size, limit = past.large.size, step.facts.config.queue_size_max * len(ring.members)
    if size <= limit:
        return False
    return _is_noticed(f"{size} bytes of messages without an end came, more than {limit}: a new ring is formed", step)


def _is_noticed(text: str, step: Step) -> bool:
    step.occurred(Occurrence.FOREIGN_PACKET)
    step.alarm(Alarm(AlarmKind.FORGED, text, step.facts.me))
    return True


def deaf_member(ring: Ring, token: Token, step: Step) -> ProcessId | None:
    """Who has failed to receive for too long, if anybody but me. (Paper, recognising failure to receive)"""
    limit = step.facts.config.fail_to_receive_rotations
    deaf = held_back_by(ring, token, limit)
    if deaf is None or deaf == ring.me:
        return None
    step.occurred(Occurrence.EXPELLED, process=deaf)
    text = f"{process_text(deaf)} has not received packet {token.aru + 1} in {limit} rotations: it is expelled"
    step.alarm(Alarm(AlarmKind.FAILED_TO_RECEIVE, text, deaf))
    return deaf


def unchanged(token: Token) -> Token:
    return token


def work(
    ring: Ring,
    token: Token,
    wanted: int,
    source: Source,
    step: Step,
    config: RingConfig,
    amend: Callable[[Token], Token],
    *,
    visit_most: int | None = None,
    is_behind: bool = False,
    passes_on: bool = True,
) -> Token:
    """A whole visit: packets, the token (amended, in recovery; kept, if it is to rest), the packets that may follow."""
    facts = step.facts
    token.timestamp = believed_clock(facts.clock.tick, token.timestamp, is_new=facts.parts.is_stamped)
    is_attached = facts.parts.attached is not None
    done = visit(
        ring, token, wanted, source, config, visit_most=visit_most, is_behind=is_behind, is_attached=is_attached
    )
    forwarded = done.token if amend is unchanged else amend(done.token)
    facts.clock.hear(forwarded.timestamp)
    if done.before:
        step.effects.append(Broadcast(done.before))
    if passes_on:
        # A quiet ring's token may be resting with whoever sent last: that is no reason to send it again.
        step.forward(ring, forwarded, config.rest_ns if ring.memory.may_rest else 0)
    if done.after:
        step.effects.append(Broadcast(done.after))
    facts.stats.visited(
        step.now, done.sent, done.retransmitted, done.requested, wanted, is_resting=bool(ring.memory.quiet)
    )
    if facts.verbose:
        step.note(_visited(ring, forwarded, done.sent, done.retransmitted, done.requested))
    return forwarded


def more(ring: Ring, token: Token, wanted: int, source: Source, step: Step) -> None:
    """Packets that are added to a visit whose token has not gone on, as far as the visit's own limits allow."""
    facts, before = step.facts, token.seq
    is_attached = facts.parts.attached is not None
    bursts = add_to_visit(ring, token, wanted, source, facts.config, facts.clock.tick, is_attached=is_attached)
    if bursts:
        sent = token.seq - before
        facts.clock.hear(token.timestamp)
        facts.stats.packets_sent += sent
        step.effects.append(Broadcast(bursts))
        if facts.verbose:
            step.note(_visited(ring, token, sent, 0, 0))


def _visited(ring: Ring, token: Token, sent: int, retransmitted: int, requested: int) -> Visited:
    return Visited(ring.id, token.round, token.seq, token.aru, ring.store.aru, sent, retransmitted, requested)


class TokenExchange:
    """The ring's token while packets of an old ring are exchanged: nobody rests, and nothing follows the token."""

    accepts = staticmethod(accepted)
    has_intruder = staticmethod(has_intruder)
    deaf_member = staticmethod(deaf_member)

    @staticmethod
    def visit(
        ring: Ring, token: Token, wanted: int, source: Source, step: Step, amend: Callable[[Token], Token]
    ) -> Token:
        config = replace(step.facts.config, accelerated=False, rest_ns=0)
        return work(ring, token, wanted, source, step, config, amend)
