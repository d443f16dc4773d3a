"""RingNode: the engine. It reads packets, hands each message to the current state and lets it name the next one.

Above it is whoever submits and delivers (groups, through a driver); below it the network. Data packets of the accepting
ring take the short way: one look at the header, into the store, and one call of the state per batch.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import assert_never

from ordercast.model.effects import Alarm, AlarmKind, Effect, Room
from ordercast.model.errors import UsageError, WireError
from ordercast.model.ids import (
    SECOND,
    ConfigurationId,
    Duration,
    Incarnation,
    Instant,
    NodeId,
    ProcessId,
    Seq,
    TokenSeq,
    node_of,
    process_id_from,
)
from ordercast.model.inputs import Interest, Lane, Packet, Stored, Submission, Submissions
from ordercast.model.notes import Occurrence, PacketDropped
from ordercast.model.promises import Promise, Promises
from ordercast.model.roster import Roster
from ordercast.model.service import Service
from ordercast.order.ring.admission import Admission
from ordercast.order.ring.bounds import Horizon, stored_ring_seq
from ordercast.order.ring.config import ONE_NETWORK, RingConfig
from ordercast.order.ring.consensus import Proposal
from ordercast.order.ring.delivery import Delivery
from ordercast.order.ring.hearing import Hearing, lifetime_of
from ordercast.order.ring.ordering import QUIET_VISITS
from ordercast.order.ring.outbox import Lot, Outbox, cost, lots_from
from ordercast.order.ring.ring import Ring, TokenMemory
from ordercast.order.ring.rosters import ROSTER_KEY, Rosters
from ordercast.order.ring.stall import STALL_NS, Stall, sentence
from ordercast.order.ring.states import moves
from ordercast.order.ring.states.base import State
from ordercast.order.ring.states.starting import Starting
from ordercast.order.ring.stats import RingStats
from ordercast.order.ring.step import RING_SEQ_KEY, Facts, Step, StoredSeq
from ordercast.order.ring.suspicion import Suspicion
from ordercast.order.ring.timers import BLAMING, Timer, Timers
from ordercast.order.ring.traffic import RING_TRAFFIC
from ordercast.order.traffic import Traffic
from ordercast.wire.codec import decode
from ordercast.wire.head import KIND_AT, MAGIC, OtherVersion, cluster_id_from, kind_of, transmitter_of
from ordercast.wire.header import ARRIVAL, RING, ROUND, MessageKind, is_same
from ordercast.wire.messages import Announcement, CommitToken, Join, Leave, RosterCopy, Token, Wake, WireMessage
from ordercast.wire.run import PacketRun, parse_data, parse_run

DATA_KIND = bytes((MessageKind.DATA,))
ROSTER_KIND = bytes((MessageKind.ROSTER,))
TIMERS_PER_WAKE = 256  # a ring of one passes the token to itself: the rest is done in the next wake
SENDER_MAX = 0xFFFFFFFF
SERVICES = frozenset(Service) - {Service.UNRELIABLE}
_SERVED = tuple(int(service) if service in SERVICES else None for service in Service)  # by service number


class RingNode:
    """One process on a Totem ring."""

    def __init__(
        self,
        node: NodeId,
        config: RingConfig | None = None,
        *,
        verbose: bool = False,
        beneath: str = ONE_NETWORK,  # what carries the packets, in words, which are compared with other members'
    ) -> None:
        self._node = node
        self._config = config or RingConfig()
        self._config.validate()
        self._verbose = verbose
        self._beneath = beneath
        self._facts: Facts | None = None
        self._state: State = Starting()
        self._promises = Promises("ring", frozenset(Promise), SERVICES, self._config.message_size_max)
        self._wanted = 0  # room that the layer above waits for
        self._suspicion = Suspicion()
        self._reach = 2 * self._config.backlog_max  # packets above the last token's seq that may come before the next
        self._stall = Stall()
        self._lane = Lane.DATA
        self._late: Instant | None = None  # the deadline whose lateness was noticed last

    # What a driver asks

    @property
    def promises(self) -> Promises:
        return self._promises

    @property
    def traffic(self) -> Traffic:
        return RING_TRAFFIC

    @property
    def state_name(self) -> str:
        return self._state.name

    @property
    def process(self) -> ProcessId:
        return self._running.me

    @property
    def ring(self) -> Ring:
        """The ring that is installed; for status displays."""
        return self._running.installed

    @property
    def roster(self) -> Roster | None:
        """The node list; None where everybody may be a member."""
        return self._running.admission.mine

    def roster_differences(self, now: Instant) -> list[str]:
        """How the node lists of those who are heard differ from the one here, a sentence each; for status displays."""
        facts = self._running
        admission = facts.admission
        around = {*facts.hearing.heard(now), *facts.installed.members} - {facts.me}
        listed = [one for one in sorted(around) if admission.mine is not None and node_of(one) in admission.mine]
        return [admission.difference(one) for one in listed if admission.is_at_odds(one)]

    @property
    def stats(self) -> RingStats:
        """What was done so far, of all rings; for status displays."""
        return self._running.stats

    def stalled(self, now: Instant) -> str | None:
        """Why nothing may be sent although something waits, once that has lasted; None as long as all is well."""
        return sentence(self._running, self._stall, now) if self._stall.is_told else None

    @property
    def is_without_storage(self) -> bool:
        """A ring seq is in use that is not stored; for status displays."""
        return self._running.storage.is_without

    def next_deadline(self) -> Instant | None:
        return self._running.timers.earliest

    def room(self) -> int:
        return max(0, self._config.queue_size_max - self._running.outbox.size)

    def want_room(self, size: int) -> None:
        self._wanted = max(self._wanted, min(size, self._config.queue_size_max))

    def is_idle(self) -> bool:
        facts = self._running
        memory, store = facts.installed.memory, facts.installed.store
        is_delivered = facts.delivery.delivered == store.high == memory.forwarded_seq
        alone = len(facts.installed.members) == 1
        return (
            self._state.name == moves.OPERATIONAL
            and not facts.outbox
            and is_delivered
            and (alone or memory.quiet >= QUIET_VISITS)
        )

    def first_lane(self) -> Lane:
        return self._lane

    def holds(self, ring: ConfigurationId, seq: Seq) -> bool:
        accepting = self._state.accepting(self._running)
        return accepting is None or accepting.id != ring or accepting.store.aru >= seq

    # Inputs

    def start(self, stored: Stored, incarnation: Incarnation, now: Instant) -> list[Effect]:
        if self._facts is not None:
            raise UsageError("an engine is started once; make a new one for the next life")
        me = process_id_from(self._node, incarnation)
        kept = stored_ring_seq(stored.get(RING_SEQ_KEY, b""))
        stored_seq = kept or 0
        ring_seq = stored_seq + 4 - stored_seq % 4
        cluster = cluster_id_from(self._config.cluster)
        ring = Ring(ConfigurationId(ring_seq, me), (me,), me, cluster, TokenMemory(TokenSeq(0)))
        admission = Admission(me)
        self._facts = Facts(
            me=me,
            config=self._config,
            cluster=cluster,
            storage=StoredSeq(stored_seq),
            proposal=Proposal(me, {me}),
            hearing=Hearing(me, self._config, admission),
            admission=admission,
            rosters=Rosters(admission),
            horizon=Horizon(lifetime_of(self._config)),
            outbox=Outbox(self._config.body_size_max),
            ring_seq=ring_seq,
            installed=ring,
            delivery=Delivery(ring, ring.id),
            timers=Timers(),
            verbose=self._verbose,
            digests=self._config.digests(self._beneath),
        )
        step = Step(now, self._facts)
        self._facts.rosters.start(stored, step)
        if kept is None:
            text = (
                "the stored ring seq cannot be true and is not used: this process counts its rings from the beginning"
            )
            step.alarm(Alarm(AlarmKind.STORAGE_DAMAGED, text, me))
        self._state = Starting.enter(step)
        return step.effects

    def submit(self, submissions: Sequence[Submission | Submissions], now: Instant) -> list[Effect]:
        step = self._begin(now)
        lots = self._lots_from(submissions)
        size = cost(lots)
        if size > self.room():
            self._wanted = max(self._wanted, min(size, self._config.queue_size_max))
            raise UsageError(f"no room for {size} bytes; wait for a Room effect")
        step.facts.outbox.add(lots, size)
        if self.room() < self._config.queue_size_max // 4:
            self._wanted = max(self._wanted, self._config.queue_size_max // 2)
        self._state = self._state.on_submission(step)
        if not step.facts.timers.is_armed(Timer.STALL):
            self._watch_sending(step)
        return self._end(step)

    def receive(self, packets: Sequence[Packet], now: Instant) -> list[Effect]:
        step = self._begin(now)
        fresh: list[PacketRun] = []
        for packet in packets:
            self._read(packet, fresh, step)
        self._heed(fresh, step)
        return self._end(step)

    def persisted(self, key: str, now: Instant) -> list[Effect]:
        step = self._begin(now)
        if key == ROSTER_KEY:
            return self._end(step)  # nothing waits for it
        if key != RING_SEQ_KEY or step.facts.storage.written is None:
            raise UsageError(f"no write of {key!r} is outstanding")
        step.persisted()
        self._state = self._state.on_persisted(step)
        return self._end(step)

    def interest(self, changes: Sequence[Interest], now: Instant) -> list[Effect]:
        """Everybody on a ring receives everything: interest changes nothing here."""
        return []

    def enlist(self, roster: Roster, now: Instant) -> list[Effect]:
        step = self._begin(now)
        step.facts.rosters.enlist(roster, step)
        if step.facts.timers.is_armed(Timer.ANNOUNCE):
            step.arm(Timer.ANNOUNCE, 0)  # others should know
        return self._end(step)

    def wake(self, now: Instant) -> list[Effect]:
        step = self._begin(now)
        for _ in range(TIMERS_PER_WAKE):
            timer = step.facts.timers.pop_due(now)
            if timer is None:
                break
            if timer is Timer.LOOP:
                token, step.facts.loop = step.facts.loop, None
                assert token is not None
                self._dispatch(token, step)
            elif timer is Timer.STALL:
                self._watch_sending(step)
            else:
                self._state = self._state.on_timer(timer, step)
        return self._end(step)

    def behind(self, is_behind: bool, now: Instant) -> list[Effect]:
        step = self._begin(now)
        step.facts.is_behind = is_behind
        self._state = self._state.on_submission(step)
        return self._end(step)

    def leave(self, now: Instant) -> list[Effect]:
        step = self._begin(now)
        step.facts.leaving = True
        self._state = self._state.on_submission(step)
        return self._end(step)

    # Reading packets

    def _read(self, packet: Packet, fresh: list[PacketRun], step: Step) -> None:
        """All datagrams of one read. Data packets in order go straight to the store and to `fresh`; the state hears of
        them before anything else is looked at, or when all is read."""
        data, size = bytes(packet.data), packet.segment_size  # a memoryview is copied once, not piece by piece
        if not data:
            step.note(PacketDropped("an empty datagram"))
            return
        if size < 1:
            raise UsageError("segment_size must be at least 1")
        ring = self._state.accepting(step.facts)
        start, end = 0, len(data)
        while start < end:
            if ring is not None:
                store = ring.store
                if store.aru == store.high < ring.memory.forwarded_seq + self._reach:
                    run = parse_run(data, start, size, ring.heading, Seq(store.aru + 1))
                    if run is not None:
                        store.extend(run)
                        fresh.append(run)
                        start += run.count * size
                        continue
                if self._take(ring, data, start, size, fresh, step):
                    start += size
                    continue
            if data[start : start + 2] != MAGIC:  # noise must not cost more than this
                step.note(PacketDropped("not an Ordercast packet"))
                start += size
                continue
            self._heed(fresh, step)
            self._control(data[start : min(start + size, end)], step)
            ring = self._state.accepting(step.facts)
            start += size

    def _heed(self, fresh: list[PacketRun], step: Step) -> None:
        """The state hears of packets that are in the store of the ring that it accepts."""
        if not fresh:
            return
        ring = self._state.accepting(step.facts)
        self._state = self._state.on_data(list(fresh), step)
        if self._config.accelerated and ring is not None:
            self._choose_lane(ring, fresh[-1])
        fresh.clear()

    def _take(self, ring: Ring, data: bytes, start: int, size: int, fresh: list[PacketRun], step: Step) -> bool:
        """A data packet of this ring that is out of order, or a duplicate, or unsound. False when it is another's."""
        if not ring.heading.is_of(data, start):
            return False
        store = ring.store
        try:
            _, length, _, _, flags, count, place, seq = ARRIVAL.unpack_from(data, start)
            end = start + length
            if length > size or end > len(data):
                raise WireError("a data packet is cut short")
            if store.has(seq):
                self._compare(ring, seq, data[start:end], step)
            elif seq <= ring.memory.forwarded_seq + self._reach:
                run = parse_data(data, flags, count, ring.heading.originator(place), seq, start, end)
                store.add(seq, run)
                fresh.append(run)
        except (struct.error, WireError) as error:
            step.note(PacketDropped(str(error)))
        return True

    def _compare(self, ring: Ring, seq: Seq, packet: bytes, step: Step) -> None:
        """A second packet of one number is a copy, or one of the two is forged."""
        held = ring.store.get(seq)
        if held is None or is_same(mine := held.packet(seq), packet):
            return
        if transmitter_of(mine) == ring.me:
            ring.memory.foreign_seq = seq  # the state hears of it when it has the token
        else:
            text = f"two packets came as number {seq} of ring {ring.id}: one is forged"
            self._suspicion.warn(AlarmKind.FORGED, text, step)

    def _control(self, data: bytes, step: Step) -> None:
        """Everything but data packets of the accepting ring."""
        facts = step.facts
        try:
            kind = data[KIND_AT : KIND_AT + 1]
            if kind == DATA_KIND:
                self._foreign(data, step)
            elif kind == ROSTER_KIND and not facts.rosters.may_read(len(data), step.now):
                step.note(PacketDropped("node lists come faster than they are read"))
            else:
                self._dispatch(decode(data, facts.cluster), step)
        except WireError as error:
            step.note(PacketDropped(str(error)))
            if isinstance(error, OtherVersion):
                self._suspicion.hear_version(error, step)

    def _foreign(self, data: bytes, step: Step) -> None:
        """A data packet of another ring shows that its transmitter is alive, and nothing else; not even that if its
        members announce a ring that cannot be."""
        facts = step.facts
        kind_of(data, facts.cluster)
        transmitter = transmitter_of(data)
        if transmitter in facts.installed.members or self._suspicion.is_doubted(data[RING], step):
            return
        if not facts.rosters.is_stranger(transmitter, step):
            self._heard(transmitter, step)

    def _heard(self, process: ProcessId, step: Step) -> None:
        """Whoever is heard for the first time is announced soon: others wait for that evidence."""
        facts = step.facts
        if facts.hearing.hear(process, step.now) and facts.timers.is_armed(Timer.ANNOUNCE):
            soon = step.now + self._config.announce_ns // 8
            facts.timers.arm(Timer.ANNOUNCE, min(soon, facts.timers.deadline(Timer.ANNOUNCE) or soon))

    def _dispatch(self, message: WireMessage, step: Step) -> None:
        facts, state = step.facts, self._state
        if message.sender == facts.me and not isinstance(message, Token | CommitToken):
            self._suspicion.heard_my_name(message, step, is_gone=state.name == moves.GONE)
            return
        is_stranger = facts.rosters.is_stranger(message.sender, step)
        if isinstance(message, RosterCopy):
            facts.rosters.copied(message, step, is_stranger=is_stranger)
            return
        if is_stranger:
            return
        if not facts.horizon.believes(message, facts.ring_seq, step.now):
            self._suspicion.disbelieve(message, step)
            return
        match message:
            case Token():
                self._lane = Lane.DATA
                self._state = state.on_token(message, step)
            case CommitToken():
                self._state = state.on_commit(message, step)
            case Join():
                self._heard(message.sender, step)
                self._suspicion.compare_configuration(message, step)
                facts.rosters.claimed(message.sender, message.claim, step)
                if any(facts.rosters.is_stranger(one, step) for one in set(message.candidates) - set(message.failed)):
                    step.ignored(message, "it proposes a node that is not on this node's list")
                elif facts.hearing.is_stale(message, step.now):
                    step.ignored(message, "an older opinion of its sender")
                else:
                    self._state = state.on_join(message, step)
            case Announcement():
                self._heard(message.sender, step)
                facts.rosters.claimed(message.sender, message.claim, step)
                facts.hearing.report(message, step.now)
                self._state = state.on_announcement(message, step)
            case Wake():
                self._state = state.on_wake(message, step)
            case Leave():
                self._state = state.on_leave(message, step)
            case _:
                assert_never(message)

    def _choose_lane(self, ring: Ring, run: PacketRun) -> None:
        """Accelerated ring: once the predecessor sends packets of a round that I have not seen, its token is near."""
        packet = run.at + (run.count - 1) * run.size
        if len(ring.members) > 1 and transmitter_of(run.data, packet) == ring.predecessor:
            nearing = ring.memory.round + (ring.me != ring.representative)  # the representative counts the rounds
            if ROUND.unpack_from(run.data, packet)[0] >= nearing:
                self._lane = Lane.TOKEN

    # The frame of every input

    @property
    def _running(self) -> Facts:
        if self._facts is None:
            raise UsageError("the engine is not started: call start() first")
        return self._facts

    def _begin(self, now: Instant) -> Step:
        step = Step(now, self._running)
        earliest = step.facts.timers.earliest
        if earliest is not None and now - earliest > self._config.pause_ns and earliest != self._late:
            self._late = earliest  # one pause is told once, however many inputs come before its timers are looked at
            self._notice_pause(Duration(now - earliest), step)
        return step

    def _notice_pause(self, late: Duration, step: Step) -> None:
        """A timer is so late that we must have been paused. What others failed to say meanwhile is not their fault."""
        timers, config = step.facts.timers, self._config
        patience = {
            Timer.TOKEN_LOSS: config.token_loss_ns,
            Timer.CONSENSUS: config.consensus_ns,
            Timer.STORAGE: config.storage_patience_ns,
        }
        for timer in BLAMING:
            deadline = timers.deadline(timer)
            if deadline is not None and deadline <= step.now:
                timers.arm(timer, step.now + patience[timer])
        self._stall.forgive(step.now)
        if timers.is_armed(Timer.STALL):
            timers.arm(Timer.STALL, step.now + STALL_NS)
        step.occurred(Occurrence.PAUSE_NOTICED)
        text = f"this process did not run for at least {late / 1e6:.0f} ms; peers are not blamed for that time"
        step.alarm(Alarm(AlarmKind.PAUSED, text, step.facts.me, late))

    def _end(self, step: Step) -> list[Effect]:
        if self._wanted and self.room() >= self._wanted:
            self._wanted = 0
            step.effects.append(Room(self.room()))
        if self._stall.is_told:
            self._watch_sending(step)
        return step.effects

    def _watch_sending(self, step: Step) -> None:
        """Something that waits while nothing may be sent is an alarm after a while, and so is its end. Looked at when
        something is submitted, and every second as long as something waits: a ring under load must not pay for it."""
        facts, stall, now = step.facts, self._stall, step.now
        is_installed, lasted = self._state.name == moves.OPERATIONAL, stall.lasts(now)
        if stall.goes_on(facts, now, is_installed=is_installed):
            if not stall.is_told and lasted >= STALL_NS:
                stall.is_told = True
                step.alarm(Alarm(AlarmKind.STALLED, sentence(facts, stall, now), facts.me, Duration(lasted)))
        elif stall.is_told:
            stall.is_told = False
            end = "packets are sent again" if is_installed else "a new ring is formed"
            text = f"{end} after {lasted / SECOND:.1f} s in which nothing could be sent"
            step.alarm(Alarm(AlarmKind.STALL_ENDED, text, facts.me, Duration(lasted)))
        if facts.outbox and not (stall.is_told or facts.timers.is_armed(Timer.STALL)):
            facts.timers.arm(Timer.STALL, (stall.since or now) + STALL_NS)

    def _lots_from(self, submissions: Sequence[Submission | Submissions]) -> list[Lot]:
        """What the outbox takes; UsageError for what cannot be served."""
        if self._running.leaving:
            raise UsageError("this process is leaving: it sends nothing more")
        size_max = self._config.message_size_max
        lots: list[Lot] = []
        for submission in submissions:
            sender, service = submission.sender, _SERVED[submission.service]
            if service is None:
                raise UsageError(f"the ring does not serve {Service(submission.service).name} messages")
            if not 0 <= sender <= SENDER_MAX:
                raise UsageError(f"sender {sender} is not a 32-bit number")
            if isinstance(submission, Submission):
                lots.append(Lot(sender, len(submission.data), service, [submission.data]))
            else:
                lots += lots_from(submission.payloads, service, sender)
        for lot in lots:
            if lot.length > size_max:
                raise UsageError(f"a message of {lot.length} bytes exceeds message_size_max = {size_max}")
        return lots

    def check_invariants(self, *, thorough: bool = True) -> None:
        facts = self._running
        store = facts.installed.store
        assert store.base <= facts.delivery.delivered <= store.aru, "discarded ≤ delivered ≤ received"
        assert facts.installed.memory.safe_seq <= store.aru, "what is safe was received here too"
        if thorough:
            store.check_invariants()
            self._check_membership(facts)

    def _check_membership(self, facts: Facts) -> None:
        assert facts.me in facts.proposal.candidates - facts.proposal.failed, "nobody gives up itself"
        assert facts.proposal.failed <= facts.proposal.candidates, "only candidates can have failed"
        assert set(facts.installed.members) <= facts.proposal.candidates, "the old ring's members are candidates"
        assert facts.ring_seq >= facts.installed.id.seq, "the ring seq never falls"
        is_timed = facts.timers.earliest is not None
        assert is_timed or self._state.name == moves.GONE, "a timer always runs: nothing is waited for without end"
