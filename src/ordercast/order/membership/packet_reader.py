"""How packets are read: data packets of the ring that the current state accepts, and all other messages.

Data packets take the short way: one look at the header, into the store, and one call of the state per batch. What
Recovery exchanges comes this way in every engine; a ring's own messages do too.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import assert_never

from ordercast.model.effects import AlarmKind
from ordercast.model.errors import UsageError, WireError
from ordercast.model.ids import MAIN, Attachment, ProcessId, Seq
from ordercast.model.inputs import Lane, Packet
from ordercast.model.notes import PacketDropped
from ordercast.order.attached import Attached
from ordercast.order.membership.ring import Ring
from ordercast.order.membership.states import moves
from ordercast.order.membership.states.base import State
from ordercast.order.membership.states.starting import Starting
from ordercast.order.membership.step import Step
from ordercast.order.membership.suspicion import Suspicion
from ordercast.order.membership.timers import Timer
from ordercast.order.neighbours import OTHER_ENGINE
from ordercast.order.ring.config import RingConfig
from ordercast.wire.codec import decode, plain_token
from ordercast.wire.head import KIND_AT, MAGIC, OtherVersion, cluster_id_from, kind_of, transmitter_of
from ordercast.wire.header import ARRIVAL, FLAGS_AT, RING, ROUND, MessageKind, is_same
from ordercast.wire.messages import Announcement, CommitToken, Join, Leave, RosterCopy, Token, Wake, WireMessage
from ordercast.wire.run import PacketRun, parse_data, parse_run

DATA_KIND = bytes((MessageKind.DATA,))
ROSTER_KIND = bytes((MessageKind.ROSTER,))
PIECE_KIND = bytes((MessageKind.PIECE,))
ANNOUNCEMENT_KIND = bytes((MessageKind.ANNOUNCEMENT,))
ANNOUNCED_MAX = 256  # processes whose last announcements are known by their bytes


class PacketReader:
    """The current state, and what it hears."""

    def __init__(
        self, config: RingConfig, other_engines: Mapping[bytes, str], attached: Attached | None = None
    ) -> None:
        self._config = config
        self._state: State = Starting()
        domains = {}
        if attached is not None:
            domains = {cluster_id_from(config.cluster, attached.engine, other): other for other in attached.others}
        self._suspicion = Suspicion(other_engines, domains)
        self._reach = config.ahead_max
        self._lane = Lane.DATA
        # What each process has announced last, as bytes and as read: most say it again and again.
        self._announced: dict[ProcessId, tuple[bytes, WireMessage]] = {}

    def first_lane(self, attachment: Attachment = MAIN) -> Lane:
        return self._lane

    # Data packets

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
            if ring is not None and data[start + KIND_AT : start + FLAGS_AT] == ring.heading.ring:
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
            if fresh:
                self._heed(fresh, step)
            self._control(data if size >= end else data[start : start + size], step)
            start += size
            ring = self._state.accepting(step.facts)

    def _heed(self, fresh: list[PacketRun], step: Step) -> None:
        """The state hears of packets that are in the store of the ring that it accepts."""
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

    def _choose_lane(self, ring: Ring, run: PacketRun) -> None:
        """Accelerated ring: once the predecessor sends packets of a round that I have not seen, its token is near."""
        packet = run.at + (run.count - 1) * run.size
        if transmitter_of(run.data, packet) == ring.predecessor:
            nearing = ring.memory.round + (ring.me != ring.representative)  # the representative counts the rounds
            if ROUND.unpack_from(run.data, packet)[0] >= nearing:
                self._lane = Lane.TOKEN

    # Everything else

    def _control(self, data: bytes, step: Step) -> None:
        """Everything but data packets of the accepting ring."""
        facts = step.facts
        try:
            kind = data[KIND_AT : KIND_AT + 1]
            if kind == DATA_KIND:
                self._foreign(data, step)
            elif kind == ROSTER_KIND and not facts.rosters.may_read(len(data), step.now):
                step.note(PacketDropped("node lists come faster than they are read"))
            elif kind == PIECE_KIND:
                whole = facts.pieces.add(data)
                if whole is not None:
                    self._control(whole, step)
            elif kind == ANNOUNCEMENT_KIND:
                self._dispatch(self._announcement(data, facts.cluster), step)
            elif (token := plain_token(data, facts.cluster)) is not None:
                self._on_token(token, step)
            else:
                self._dispatch(decode(data, facts.cluster), step)
        except WireError as error:
            self._refuse(data, error, step)

    def _announcement(self, data: bytes, cluster: bytes) -> WireMessage:
        sender = transmitter_of(data)
        known = self._announced.get(sender)
        if known is None or known[0] != data:
            if len(self._announced) >= ANNOUNCED_MAX:
                self._announced.clear()
            known = self._announced[sender] = data, decode(data, cluster)
        return known[1]

    def _refuse(self, packet: bytes, error: WireError, step: Step) -> None:
        """Drop a packet; a person is told of a node that speaks another version, or runs another engine."""
        why = str(error)
        if isinstance(error, OtherVersion):
            self._suspicion.heard_version(error, step)
        elif self._suspicion.heard_engine(packet, step):
            why = OTHER_ENGINE
        step.note(PacketDropped(why))

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
        facts, due = step.facts, step.facts.timers.deadline(Timer.ANNOUNCE)
        if facts.hearing.hear(process, step.now) and due is not None:
            soon = step.now + self._config.notice_gap_of(facts.hearing.count(step.now))
            facts.timers.arm(Timer.ANNOUNCE, min(soon, due))

    def _is_ahead(self, token: Token | CommitToken, step: Step) -> bool:
        """Whether the clock of a token leaps, where it makes the order."""
        facts = step.facts
        if facts.parts.attached is None or facts.horizon.believes_clock(token.timestamp, facts.clock.tick, step.now):
            return False
        step.ignored(token, "it comes from a time that cannot be")
        return True

    def _on_token(self, token: Token, step: Step) -> None:
        if not (step.facts.rosters.is_stranger(token.sender, step) or self._is_ahead(token, step)):
            self._lane = Lane.DATA
            self._state = self._state.on_token(token, step)

    def _dispatch(self, message: WireMessage, step: Step) -> None:
        if isinstance(message, Token):
            self._on_token(message, step)
            return
        facts, state = step.facts, self._state
        if message.sender == facts.me and not isinstance(message, CommitToken):
            self._suspicion.heard_my_name(message, step, is_gone=state.name == moves.GONE)
            return
        is_stranger = facts.rosters.is_stranger(message.sender, step)
        if isinstance(message, RosterCopy):
            facts.rosters.copied(message, step, is_stranger=is_stranger)
            return
        if is_stranger:
            return
        if isinstance(message, CommitToken) and self._is_ahead(message, step):
            return
        if not facts.horizon.believes(message, facts.ring_seq, step.now):
            self._suspicion.disbelieve(message, step)
            return
        if isinstance(message, Join | Announcement) and self._suspicion.is_unlike(message, step):
            step.ignored(message, "its sender's engine has other settings")
            return
        match message:
            case CommitToken():
                self._state = state.on_commit(message, step)
            case Join():
                self._heard(message.sender, step)
                self._suspicion.compare_configuration(message, step)
                facts.rosters.claimed(message.sender, message.claim, step)
                if facts.rosters.has_stranger(set(message.candidates) - set(message.failed), step):
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
