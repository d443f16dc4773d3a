"""The frame of an engine whose configurations are formed by the membership algorithm: every input but packets.

Above it is whoever submits and delivers (groups, through a driver); below it the network. It hands each input to the
current state and lets that name the next one. Packets are read in `packet_reader.py`; the engine adds `receive`, with
what it reads itself, and its `Parts`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ordercast.model.effects import Alarm, AlarmKind, Effect, Room
from ordercast.model.errors import UsageError
from ordercast.model.ids import (
    MAIN,
    NO_SEQ,
    Attachment,
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
from ordercast.model.inputs import Stored, Submission, Submissions
from ordercast.model.notes import Occurrence
from ordercast.model.promises import Promises
from ordercast.model.roster import Roster
from ordercast.model.service import Service
from ordercast.order.attached import ALONE_STEP, next_ring_seq
from ordercast.order.clock import Clock
from ordercast.order.engine import CONFIGURATION_SEQ_KEY, Membership, stored_configuration_seq
from ordercast.order.membership.admission import Admission
from ordercast.order.membership.bounds import Horizon, stored_ring_seq
from ordercast.order.membership.consensus import Proposal
from ordercast.order.membership.hearing import Hearing, lifetime_of
from ordercast.order.membership.packet_reader import PacketReader
from ordercast.order.membership.past import Parts
from ordercast.order.membership.ring import Ring, TokenMemory
from ordercast.order.membership.rosters import ROSTER_KEY, Rosters
from ordercast.order.membership.stall import STALL_NS, Stall
from ordercast.order.membership.states import moves
from ordercast.order.membership.states.starting import Starting
from ordercast.order.membership.stats import RingStats
from ordercast.order.membership.step import Facts, Step, StoredSeq
from ordercast.order.membership.timers import BLAMING, Timer, Timers
from ordercast.order.neighbours import NO_NEIGHBOURS
from ordercast.order.outbox import Lot, cost, lots_from
from ordercast.order.ring.config import ONE_NETWORK, RingConfig
from ordercast.wire.head import cluster_id_from
from ordercast.wire.pieces import Pieces, size_of_pieces

TIMERS_PER_WAKE = 256  # a ring of one passes the token to itself: the rest is done in the next wake
SENDER_MAX = 0xFFFFFFFF


class Frame(PacketReader):
    """One process of an engine with membership."""

    def __init__(
        self,
        node: NodeId,
        config: RingConfig,
        promises: Promises,
        parts: Parts,
        *,
        verbose: bool,
        beneath: str,  # what carries the packets, in words, which are compared with other members'
        other_engines: Mapping[bytes, str] = NO_NEIGHBOURS,  # by the id of this cluster on them
    ) -> None:
        super().__init__(config, other_engines, parts.attached)
        self._node = node
        self._verbose = verbose
        self._beneath = beneath
        self._parts = parts
        self._facts: Facts | None = None
        self._promises = promises
        self._served = tuple(int(one) if one in promises.services else None for one in Service)  # by service number
        self._wanted = 0  # room that the layer above waits for
        self._stall = Stall()
        self._late: Instant | None = None  # the deadline whose lateness was noticed last

    # What a driver asks

    @property
    def promises(self) -> Promises:
        return self._promises

    @property
    def cluster(self) -> bytes:
        """The id that keeps strangers apart: of other clusters, engines, and domains of a network of rings."""
        attached = self._parts.attached
        if attached is None:
            return cluster_id_from(self._config.cluster, self._promises.engine)
        return cluster_id_from(self._config.cluster, attached.engine, attached.name)

    @property
    def state_name(self) -> str:
        return self._state.name

    @property
    def is_ready(self) -> bool:
        return self._state.name == moves.OPERATIONAL

    @property
    def is_gone(self) -> bool:
        return self._state.name == moves.GONE

    @property
    def configuration(self) -> Membership:
        return Membership(self._running.installed.id, self._running.installed.members)

    @property
    def process(self) -> ProcessId:
        return self._running.me

    @property
    def ring(self) -> Ring:
        """The ring that is installed; for status displays."""
        return self._running.installed

    def deniable(self, configuration: ConfigurationId) -> tuple[Seq, Seq] | None:
        ring = self._running.installed
        return (ring.memory.forwarded_seq, ring.store.high) if configuration == ring.id else None

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
        return self._stall.sentence(self._running, now) if self._stall.is_told else None

    @property
    def is_without_storage(self) -> bool:
        """A ring seq is in use that is not stored; for status displays."""
        return self._running.storage.is_without

    def next_deadline(self) -> Instant | None:
        return None if self._facts is None else self._facts.timers.earliest

    def room(self) -> int:
        return max(0, self._config.queue_size_max - self._running.outbox.size)

    def want_room(self, size: int) -> None:
        self._wanted = max(self._wanted, min(size, self._config.queue_size_max))

    # Inputs

    def start(self, stored: Stored, incarnation: Incarnation, now: Instant) -> list[Effect]:
        if self._facts is not None:
            raise UsageError("an engine is started once; make a new one for the next life")
        me = process_id_from(self._node, incarnation)
        kept = stored_ring_seq(stored_configuration_seq(stored))
        stored_seq = kept or 0
        attached = self._parts.attached
        ring_seq = next_ring_seq(stored_seq - stored_seq % ALONE_STEP, self._parts.domain)
        cluster = self.cluster
        ring = Ring(ConfigurationId(ring_seq, me), (me,), me, cluster, TokenMemory(TokenSeq(0)))
        admission = Admission(me)
        self._facts = Facts(
            me=me,
            config=self._config,
            cluster=cluster,
            storage=StoredSeq(stored_seq),
            proposal=Proposal(me, {me}),
            hearing=Hearing(me, self._config, admission, is_counted=self._beneath != ONE_NETWORK),
            admission=admission,
            rosters=Rosters(admission),
            horizon=Horizon(lifetime_of(self._config)),
            outbox=self._parts.outbox_of(self._config),
            ring_seq=ring_seq,
            installed=ring,
            past=self._parts.past_of(ring, NO_SEQ),
            parts=self._parts,
            pieces=Pieces(cluster, size_of_pieces(self._config.packet_size_max)),
            timers=Timers(),
            clock=attached.clock if attached else Clock(),
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
        if step.facts.leaving:
            raise UsageError("this process is leaving: it sends nothing more")
        lots = self._lots_from(submissions)
        size, size_max, outbox = cost(lots), self._config.queue_size_max, step.facts.outbox
        if outbox.size + size > size_max:
            self._wanted = max(self._wanted, min(size, size_max))
            raise UsageError(f"no room for {size} bytes; wait for a Room effect")
        outbox.add(lots, size)
        if outbox.size > size_max - size_max // 4:
            self._wanted = max(self._wanted, size_max // 2)
        self._state = self._state.on_submission(step)
        if not step.facts.timers.is_armed(Timer.STALL):
            self._watch_sending(step)
        return self._end(step)

    def persisted(self, key: str, now: Instant) -> list[Effect]:
        step = self._begin(now)
        if key == ROSTER_KEY:
            return self._end(step)  # nothing waits for it
        if key != CONFIGURATION_SEQ_KEY or step.facts.storage.written is None:
            raise UsageError(f"no write of {key!r} is outstanding")
        step.persisted()
        self._state = self._state.on_persisted(step)
        return self._end(step)

    def enlist(self, roster: Roster, now: Instant, attachment: Attachment = MAIN) -> list[Effect]:
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
            elif timer is Timer.CLOCK:
                self._go_on_without_clock(step)
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
            Timer.CONSENSUS: config.consensus_of(step.facts.crowd(step.now)),
            Timer.STORAGE: config.storage_patience_ns,
            Timer.CLOCK: config.storage_patience_ns,
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
        if self._wanted and (room := self._config.queue_size_max - step.facts.outbox.size) >= self._wanted:
            self._wanted = 0
            step.effects.append(Room(room))
        if self._stall.is_told:
            self._watch_sending(step)
        if self._parts.attached is not None:
            timers, waits = step.facts.timers, step.facts.waits_for_clock
            if waits and not timers.is_armed(Timer.CLOCK):
                step.arm(Timer.CLOCK, self._config.storage_patience_ns)
            elif not waits and timers.is_armed(Timer.CLOCK):
                timers.cancel(Timer.CLOCK)  # a later wait has a patience of its own
        return step.effects

    def _go_on_without_clock(self, step: Step) -> None:
        if step.facts.waits_for_clock:
            step.go_without_clock()
            self._state = self._state.on_submission(step)

    def _watch_sending(self, step: Step) -> None:
        self._stall.watch(step, is_installed=self._state.name == moves.OPERATIONAL)

    def _lots_from(self, submissions: Sequence[Submission | Submissions]) -> list[Lot]:
        """What the outbox takes; UsageError for what cannot be served."""
        size_max, attached = self._config.message_size_max, self._parts.attached
        lots: list[Lot] = []
        for submission in submissions:
            sender, service = submission.sender, self._served[submission.service]
            if service is None:
                raise UsageError(
                    f"the {self._promises.engine} does not serve {Service(submission.service).name} messages"
                )
            if not 0 <= sender <= SENDER_MAX:
                raise UsageError(f"sender {sender} is not a 32-bit number")
            block = b"" if attached is None else attached.block_of(submission.destinations)
            if isinstance(submission, Submission):
                lots.append(Lot(sender, len(submission.data), service, [submission.data], block))
            else:
                lots += lots_from(submission.payloads, service, sender, block)
        for lot in lots:
            if lot.length > size_max:
                raise UsageError(f"a message of {lot.length} bytes exceeds message_size_max = {size_max}")
        return lots

    def _check_membership(self, facts: Facts) -> None:
        assert facts.me in facts.proposal.candidates - facts.proposal.failed, "nobody gives up itself"
        assert facts.proposal.failed <= facts.proposal.candidates, "only candidates can have failed"
        assert set(facts.installed.members) <= facts.proposal.candidates, "the old ring's members are candidates"
        assert facts.ring_seq >= facts.installed.id.seq, "the ring seq never falls"
        is_timed = facts.timers.earliest is not None
        assert is_timed or self._state.name == moves.GONE, "a timer always runs: nothing is waited for without end"
