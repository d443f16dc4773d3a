"""One token visit: answer requests, number new packets, say what is missing, update the aru. (Paper, section 4.1)

Nothing is sent here: a visit returns what goes out before the token, the token, and what follows it. In the plain ring
nothing follows; in the accelerated ring the last packets do. In both a member asks again only for what was numbered
before its *previous* visit: later packets may still be on their way, or not have been sent yet. This costs one rotation
after a loss, and without loss nothing is ever sent twice.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ordercast.model.effects import Burst
from ordercast.model.ids import NOBODY, ProcessId, Seq, TokenSeq
from ordercast.order.membership.past import Source
from ordercast.order.membership.ring import Ring
from ordercast.order.ring.config import RingConfig
from ordercast.order.ring.flow_control import allowance, fair_share, renewed, rotation_budget
from ordercast.wire.header import retransmitted as sent_again
from ordercast.wire.messages import NOTHING, Counts, Token
from ordercast.wire.run import PacketRun

QUIET_VISITS = 2  # after so many in a row, everybody has learnt that all have everything


@dataclass(slots=True)
class Visit:
    before: list[Burst]
    token: Token
    after: list[Burst]
    sent: int
    retransmitted: int
    requested: int


def visit(
    ring: Ring,
    token: Token,
    wanted: int,
    source: Source,
    config: RingConfig,
    *,
    visit_most: int | None = None,
    is_behind: bool = False,
    is_attached: bool = False,
) -> Visit:
    """Do a member's work with the token, and remember what the next visit needs. `source` has some `wanted` packets,
    of which this visit takes up to `visit_max`, or `visit_most`;
    `is_behind` tells that the application cannot take more deliveries. In a network of rings (`is_attached`) all
    packets of a visit have one timestamp, and nobody stops for an application: others wait for what is carried."""
    memory, store = ring.memory, ring.store
    answers, unanswered = _answer(ring, token.requests, config.visit_max) if token.requests else ([], [])
    most = config.visit_max if visit_most is None else visit_most
    if wanted > most:
        wanted = most
    answered = len(answers)
    mine: Counts = (answered, wanted, is_behind)
    told = (memory.retransmitted, memory.wanted, memory.was_behind)
    token_round, budget = token.round, token.budget
    window = config.window_of(len(ring.members))
    retransmitted, waiting, behind = renewed(sums_of(ring, token), told, mine)
    if ring.me == ring.representative:
        counted = mine
        token_round += 1
        budget = rotation_budget(window, config.backlog_max, token.seq, token.aru, retransmitted)
    else:
        counted = renewed(token.counted, NOTHING, mine)
    if behind and not is_attached:
        budget = 0
    seq = token.seq
    fresh: list[PacketRun] = []
    if wanted:
        share = fair_share(budget, wanted, waiting)
        allowed = allowance(window, config.visit_max, share, seq, memory.received_seq, retransmitted, most)
        fresh = source(Seq(seq + 1), token_round, token.timestamp, allowed)
        for run in fresh:
            _keep(ring, run)
            seq = run.last
    sent = seq - token.seq

    aru, aru_id = updated_aru(token, store.aru, seq, ring.me)
    if is_aru_forged(ring, token):
        aru, aru_id = min(token.aru, memory.forwarded_aru), ring.me
    overdue = store.missing(memory.received_seq, config.requests_max) if store.aru < memory.received_seq else []
    requests = _requests(unanswered, overdue, config.requests_max) if unanswered or overdue else ()
    forwarded = Token(
        token.ring,
        ring.me,
        TokenSeq(token.token_seq + 1),
        token_round,
        seq,
        aru,
        aru_id,
        requests,
        retransmitted,
        budget,
        waiting,
        behind,
        token.exchanging,
        token.timestamp + (1 if is_attached and sent else sent),
        token.extension,
        counted,
    )
    quiet = seq == memory.received_seq == aru and not answers and not requests
    memory.quiet = memory.quiet + 1 if quiet else 0
    memory.may_rest = seq == token.seq == aru and not answers and not requests
    memory.token_seq = forwarded.token_seq
    memory.round = token_round
    memory.received_seq = token.seq
    memory.forwarded_seq = seq
    safe = memory.forwarded_aru if memory.forwarded_aru < aru else aru
    if safe > memory.safe_seq:
        memory.safe_seq = safe
    memory.forwarded_aru = aru
    memory.retransmitted = answered
    memory.wanted = wanted
    memory.was_behind = is_behind
    memory.behind = behind
    memory.aru_id = aru_id

    bursts = answers + [run.burst() for run in fresh]
    before = bursts
    after: list[Burst] = []
    if config.accelerated and bursts:
        before, after = _divided(bursts, max(0, answered + sent - config.accelerated_window))
    return Visit(before, forwarded, after, sent, answered, len(requests))


def add_to_visit(
    ring: Ring,
    token: Token,
    wanted: int,
    source: Source,
    config: RingConfig,
    clock: int,
    *,
    is_attached: bool = False,
) -> list[Burst]:
    """More packets in a visit that is done, before its token goes on; the token is changed in place. What was found out
    about the others stays as it is, so nothing becomes safe by it. In a network of rings they have a timestamp of
    their own: since the visit this process may have met others."""
    memory, before = ring.memory, token.seq
    limit = min(config.visit_max, token.budget) - (token.seq - memory.received_seq)
    token.timestamp = max(token.timestamp, clock)
    fresh = source(Seq(token.seq + 1), token.round, token.timestamp, limit) if limit > 0 else []
    for run in fresh:
        _keep(ring, run)
        token.seq = run.last
    token.timestamp += min(token.seq - before, 1) if is_attached else token.seq - before
    token.aru, token.aru_id = updated_aru(token, ring.store.aru, token.seq, ring.me)
    wanted = min(wanted, config.visit_max)
    _renew(token, (0, memory.wanted, 0), (0, wanted, 0))
    memory.wanted = wanted
    memory.forwarded_seq = token.seq
    memory.forwarded_aru = token.aru
    if fresh:
        memory.quiet = 0
    return [run.burst() for run in fresh]


def sums_of(ring: Ring, token: Token) -> Counts:
    """What a token that comes says of all members; the representative goes by what was counted since its last visit."""
    if ring.me == ring.representative:
        return token.counted
    return token.retransmitted, token.waiting, token.behind


def with_news(ring: Ring, token: Token, *, is_behind: bool) -> Token:
    """The token as it goes on, if my application fell behind or caught up while it rested."""
    memory = ring.memory
    if memory.was_behind == is_behind:
        return token
    changed = replace(token)
    _renew(changed, (0, 0, memory.was_behind), (0, 0, is_behind))
    memory.was_behind = is_behind
    memory.behind = changed.behind
    if changed.behind:
        changed.budget = 0
    return changed


def _renew(token: Token, before: Counts, mine: Counts) -> None:
    """My part of the sums changed while the token was here."""
    sums = renewed((token.retransmitted, token.waiting, token.behind), before, mine)
    token.retransmitted, token.waiting, token.behind = sums
    token.counted = renewed(token.counted, before, mine)


def _keep(ring: Ring, run: PacketRun) -> None:
    """My own packets, which nobody needs to send me."""
    store = ring.store
    if store.aru == store.high == run.seq - 1:
        store.extend(run)
    else:
        for seq in range(run.seq, run.seq + run.count):
            store.add(Seq(seq), run)


def _divided(bursts: list[Burst], count: int) -> tuple[list[Burst], list[Burst]]:
    """The first `count` packets, and the rest."""
    for index, (data, size) in enumerate(bursts):
        packets = -(-len(data) // size)
        if packets > count:
            cut = count * size
            first, rest = [(data[:cut], size)] if count else [], (data[cut:], size)
            return bursts[:index] + first, [rest, *bursts[index + 1 :]]
        count -= packets
    return bursts, []


def updated_aru(token: Token, my_aru: Seq, seq: Seq, me: ProcessId) -> tuple[Seq, ProcessId]:
    """Lower the aru to mine; raise it only if I was the one who held it down, or nobody does. (Figure 4.1)"""
    if my_aru < token.aru or token.aru_id in (me, NOBODY):
        return my_aru, NOBODY if my_aru == seq else me
    return token.aru, token.aru_id


def is_aru_forged(ring: Ring, token: Token) -> bool:
    """Tell whether the aru that I hold comes back other than I forwarded it. Others change it only under their own
    names. One that was made too low hides from members that they lack something: if I raised it at once, nobody would
    have lowered it in between, and what they lack would count as safe. So it goes round once more."""
    return token.aru_id == ring.me and token.aru != ring.memory.forwarded_aru


def held_back_by(ring: Ring, token: Token, limit: int) -> ProcessId | None:
    """Who has held the aru at one value, below seq, for more than `limit` visits. (Figure 4.4)

    The aru is the one that this visit will forward: who lowered it may be about to raise it.
    """
    memory = ring.memory
    aru, aru_id = updated_aru(token, ring.store.aru, token.seq, ring.me)
    stands = aru == memory.forwarded_aru and aru_id != NOBODY
    memory.stuck = memory.stuck + 1 if stands else 0
    return aru_id if memory.stuck > limit else None


def _answer(ring: Ring, requests: tuple[Seq, ...], limit: int) -> tuple[list[Burst], list[Seq]]:
    """Packets to retransmit, and the requests that remain."""
    answers: list[Burst] = []
    unanswered: list[Seq] = []
    for seq in requests:
        if seq <= ring.store.base:
            continue  # everybody has it, or it would not have been discarded
        run = ring.store.get(seq) if len(answers) < limit else None
        if run is None:
            unanswered.append(seq)
        else:
            answers.append((sent_again(run.packet(seq), ring.me), run.size))
    return answers, unanswered


def _requests(unanswered: list[Seq], missing: list[Seq], limit: int) -> tuple[Seq, ...]:
    if not missing:
        return tuple(unanswered)
    return tuple(sorted({*unanswered, *missing})[:limit])
