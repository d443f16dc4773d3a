"""What one input may touch: the time, the facts that all states share, and the list of effects it causes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ordercast.model.configuration import ChangeReason
from ordercast.model.effects import Alarm, AlarmKind, Broadcast, Effect, Persist, Record, SendTo
from ordercast.model.ids import NO_SEQ, NOBODY, Instant, ProcessId, Seq
from ordercast.model.notes import Ignored, Moved, Note, Occurred, Occurrence
from ordercast.order.clock import Clock
from ordercast.order.engine import CONFIGURATION_SEQ_KEY
from ordercast.order.membership.admission import Admission
from ordercast.order.membership.bounds import Horizon
from ordercast.order.membership.consensus import Proposal
from ordercast.order.membership.hearing import Hearing
from ordercast.order.membership.past import Parts, Past
from ordercast.order.membership.recovery_plan import RecoveryPlan
from ordercast.order.membership.ring import Ring
from ordercast.order.membership.rosters import Rosters
from ordercast.order.membership.states.moves import MOVES
from ordercast.order.membership.stats import RingStats
from ordercast.order.membership.timers import Timer, Timers
from ordercast.order.outbox import Outbox
from ordercast.order.ring.config import RingConfig
from ordercast.wire.codec import encode
from ordercast.wire.messages import CommitToken, Token, WireMessage
from ordercast.wire.pieces import Pieces


@dataclass(slots=True)
class StoredSeq:
    """The ring seq in stable storage: written before it is used, one write at a time.

    A disk that refuses or hangs must not end a ring, so after `storage_patience_ns` the process goes on without it. Why
    that is sound: no two rings share an id even if nothing is ever stored, because the representative's process id is
    part of it, and a process id has an incarnation that never was before. What storage adds is that the views of a
    node's next life come after those of this one. While `is_without`, that cannot be promised: the process says so
    (alarm, occurrence) before it uses a seq that is not stored, and a restart counts as one that lost its storage.
    """

    confirmed: int
    wanted: int = 0  # the highest that was asked for
    written: int | None = None  # the one write that is outstanding
    is_without: bool = False  # it was not waited for any longer

    def has(self, ring_seq: int) -> bool:
        return self.confirmed >= ring_seq


@dataclass(slots=True)
class Attempt:
    """One change of membership, from leaving Operational to the next installation; kept over failures on the way."""

    reason: ChangeReason = ChangeReason.STARTED  # why the ring was given up: goes into the views
    blamed: ProcessId = NOBODY  # who was expelled for failing to receive
    forwards: int = 0  # how often I forwarded the token since consensus (`my_rotation_count`)
    told_at: int = -(1 << 62)  # when a Join was last sent
    told: int = 0  # its number
    promise: RecoveryPlan | None = None  # set: I hold and shall deliver all that was exchanged (`my_received_flg`)
    high_delivered: Seq = NO_SEQ  # somebody delivered up to here, as the plans of attempts that failed said


@dataclass(slots=True)
class Facts:
    """What all states share."""

    me: ProcessId
    config: RingConfig
    cluster: bytes
    storage: StoredSeq
    proposal: Proposal
    hearing: Hearing
    admission: Admission
    rosters: Rosters
    horizon: Horizon
    outbox: Outbox
    digests: tuple[int, ...]  # of the configuration, for every Join
    ring_seq: int  # the highest ring seq I have committed to
    installed: Ring  # the ring I last installed: the old ring while a new one is being formed
    past: Past  # the messages of that ring
    parts: Parts  # what the engine adds
    pieces: Pieces  # of control messages that are larger than a packet
    timers: Timers = field(default_factory=Timers)
    attempt: Attempt = field(default_factory=Attempt)
    clock: Clock = field(
        default_factory=Clock
    )  # Lamport; shared with other rings of this process, in a network of rings
    join_number: int = 0
    own_seq: Seq = NO_SEQ  # the last packet that I numbered on the installed ring
    stats: RingStats = field(default_factory=RingStats)
    loop: Token | CommitToken | None = None  # a token on its way from me to me
    leaving: bool = False
    is_behind: bool = False  # the layer above cannot take more deliveries
    verbose: bool = False  # note every token visit

    @property
    def wants_token(self) -> bool:
        """Something may be sent, or this process leaves and waits for nothing else."""
        return self.outbox.is_ready or (self.leaving and not self.outbox)

    @property
    def waits_for_clock(self) -> bool:
        """Something waits for a higher bound of the clock: it has been heard, and has its place in the order of the
        network above the bound, or it is to be sent."""
        is_sending = self.outbox.is_waiting and not self.outbox.is_ready
        return is_sending or not self.clock.covers(self.clock.tick)

    def crowd(self, now: Instant) -> int:
        """Return how many have to read what this process sends to all: those that hear each other, and candidates."""
        return max(self.hearing.count(now), len(self.proposal.candidates))

    @property
    def is_frozen(self) -> bool:
        """The old ring's store takes no more packets: what was exchanged is what is owed, no more and no less."""
        return self.attempt.promise is not None


@dataclass(slots=True)
class Step:
    now: Instant
    facts: Facts
    effects: list[Effect] = field(default_factory=list)

    def note(self, note: Note) -> None:
        self.effects.append(Record(note))

    def moved(self, origin: str, target: str, reason: ChangeReason | None, text: str) -> None:
        """Every state is entered through here."""
        assert (origin, target) in MOVES, f"{origin} -> {target} is no legal move"
        self.effects.append(Record(Moved(origin, target, reason, text)))

    def occurred(self, what: Occurrence, count: int = 1, process: ProcessId | None = None) -> None:
        self.effects.append(Record(Occurred(what, count, process)))

    def ignored(self, message: WireMessage, why: str) -> None:
        self.effects.append(Record(Ignored(type(message).__name__, why)))

    def alarm(self, alarm: Alarm) -> None:
        self.effects.append(alarm)

    def arm(self, timer: Timer, delay: int) -> None:
        self.facts.timers.arm(timer, self.now + delay)

    def broadcast(self, message: WireMessage) -> None:
        packets = self.facts.pieces.cut(encode(self.facts.cluster, message))
        self.effects.append(Broadcast([(packet, len(packet)) for packet in packets]))

    def send(self, process: ProcessId, message: WireMessage) -> None:
        self._send(process, self.facts.pieces.cut(encode(self.facts.cluster, message)))

    def _send(self, process: ProcessId, packets: Sequence[bytes], *, is_vital: bool = False) -> None:
        for packet in packets:
            self.effects.append(SendTo(process, packet, is_vital=is_vital))

    def forward(self, ring: Ring, token: Token | CommitToken, patience: int = 0) -> None:
        """Pass the token on and keep a copy. `patience` is how much longer than usual no sign of life is normal."""
        facts = self.facts
        facts.attempt.forwards += 1
        facts.timers.arm(Timer.TOKEN_LOSS, self.now + facts.config.token_loss_ns)
        if ring.successor == facts.me:
            facts.loop = token
            facts.timers.arm(Timer.LOOP, self.now)
            return
        ring.memory.copy = facts.pieces.cut(encode(facts.cluster, token))
        self._send(ring.successor, ring.memory.copy, is_vital=patience > 0)
        facts.timers.arm(Timer.TOKEN_RETRANSMIT, self.now + facts.config.token_retransmit_ns + patience)

    def forward_again(self, ring: Ring) -> None:
        self._send(ring.successor, ring.memory.copy, is_vital=True)
        self.arm(Timer.TOKEN_RETRANSMIT, self.facts.config.token_retransmit_ns)
        self.occurred(Occurrence.TOKEN_RETRANSMITTED)

    def persist(self, ring_seq: int) -> None:
        """Asks for the write now, or when the one that is outstanding is confirmed."""
        storage = self.facts.storage
        storage.wanted = max(storage.wanted, ring_seq)
        if storage.written is None:
            storage.written = storage.wanted
            self.effects.append(Persist(CONFIGURATION_SEQ_KEY, storage.wanted.to_bytes(8, "big")))

    def persisted(self) -> None:
        """The outstanding write is confirmed."""
        storage = self.facts.storage
        assert storage.written is not None
        storage.confirmed, storage.written = max(storage.confirmed, storage.written), None
        if not storage.has(storage.wanted):
            self.persist(storage.wanted)
        elif storage.is_without:
            storage.is_without = False
            self.occurred(Occurrence.STORAGE_AGAIN)
            text = f"ring seq {storage.confirmed} is stored: stable storage is in use again"
            self.alarm(Alarm(AlarmKind.STORAGE_REPAIRED, text, self.facts.me))

    def go_without_clock(self) -> None:
        """Ticks are about to be used above the bound that is stored. Said once, until storage is in use again."""
        facts = self.facts
        if not facts.clock.go_without():
            return
        self.occurred(Occurrence.WITHOUT_STORAGE)
        text = f"the clock's bound above {facts.clock.tick} was not stored in time: this node goes on without stable"
        text += " storage until the disk of its state folder works again; see to it"
        self.alarm(Alarm(AlarmKind.WITHOUT_STORAGE, text, facts.me))

    def clock_stored(self) -> None:
        """The clock's bound is stored after this process had gone on without it."""
        self.occurred(Occurrence.STORAGE_AGAIN)
        text = f"the clock's bound {self.facts.clock.bound} is stored: stable storage is in use again"
        self.alarm(Alarm(AlarmKind.STORAGE_REPAIRED, text, self.facts.me))

    def go_without_storage(self) -> None:
        """A ring seq is about to be used that is not stored. Said once, until storage is in use again."""
        storage = self.facts.storage
        if storage.is_without:
            return
        storage.is_without = True
        self.occurred(Occurrence.WITHOUT_STORAGE)
        patience = self.facts.config.storage_patience_ns / 1e6
        text = (
            f"ring seq {storage.wanted} was not stored within {patience:.0f} ms: this node goes on without stable "
            "storage until the disk of its state folder works again; see to it"
        )
        self.alarm(Alarm(AlarmKind.WITHOUT_STORAGE, text, self.facts.me))
