"""AdaptiveNode: the engine. Its frame is every engine's (`membership/frame.py`); what it adds is in its `Parts`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from ordercast.model.effects import AlarmKind, Effect
from ordercast.model.errors import UsageError, WireError
from ordercast.model.ids import ConfigurationId, Duration, Instant, NodeId, Seq, process_text
from ordercast.model.inputs import Interest, Packet
from ordercast.model.notes import Occurrence
from ordercast.model.promises import Promises
from ordercast.order.adaptive.codec import AdaptiveKind, decode_ask, decode_mark, parse_direct
from ordercast.order.adaptive.config import AdaptiveConfig
from ordercast.order.adaptive.merge import Merge
from ordercast.order.adaptive.observed import SlotsSeen, slots_seen
from ordercast.order.adaptive.policy import Policy
from ordercast.order.adaptive.promised import PROMISED, SERVICES
from ordercast.order.adaptive.stall import why_stalled
from ordercast.order.adaptive.states.operational import Direct
from ordercast.order.adaptive.states.talking import Own, merge_of
from ordercast.order.adaptive.stats import AdaptiveStats
from ordercast.order.adaptive.traffic import ADAPTIVE_TRAFFIC
from ordercast.order.engine import granted
from ordercast.order.membership.frame import Frame
from ordercast.order.membership.past import Parts
from ordercast.order.membership.ring import Ring
from ordercast.order.membership.states import moves
from ordercast.order.membership.states.gather import Gather
from ordercast.order.membership.states.recovery import Recovery
from ordercast.order.membership.step import Step
from ordercast.order.neighbours import NO_NEIGHBOURS
from ordercast.order.ring.config import ONE_NETWORK, RingConfig
from ordercast.order.ring.states.token_visit import TokenExchange
from ordercast.order.traffic import Traffic
from ordercast.wire.head import (
    CLUSTER,
    HEAD_SIZE,
    KIND_AT,
    LENGTH_AT,
    MAGIC,
    OPENING,
    kind_of,
    transmitter_of,
)
from ordercast.wire.header import RETRANSMITTED, RING
from ordercast.wire.run import PacketRun

KINDS = frozenset(map(int, AdaptiveKind))
DIRECT, MARK = int(AdaptiveKind.DIRECT), int(AdaptiveKind.MARK)
STRANGER = "from one who is no member"
BAD_MAX = 16  # packets that cannot be true before a person is told


class AdaptiveNode(Frame):
    """One process whose messages go out at once."""

    def __init__(
        self,
        node: NodeId,
        config: RingConfig,
        adaptive: AdaptiveConfig,
        *,
        verbose: bool = False,
        beneath: str = ONE_NETWORK,
        other_engines: Mapping[bytes, str] = NO_NEIGHBOURS,
    ) -> None:
        config.validate()
        adaptive.validate(config.members_max)
        self._own = Own(adaptive, Policy(adaptive))
        self._bad = 0  # packets that cannot be true, since a person was told
        self._early: list[bytes] = []  # packets of the configuration that is being formed
        promises = Promises("adaptive", PROMISED, SERVICES, config.message_size_max)
        parts = parts_of(config, self._own)
        super().__init__(node, config, promises, parts, verbose=verbose, beneath=beneath, other_engines=other_engines)

    # What a driver asks

    @property
    def traffic(self) -> Traffic:
        return ADAPTIVE_TRAFFIC

    @property
    def adaptive(self) -> AdaptiveConfig:
        return self._own.config

    @property
    def adaptive_stats(self) -> AdaptiveStats:
        return self._own.stats

    @property
    def merge(self) -> Merge:
        """The order of the installed configuration; for status displays and witnesses."""
        return merge_of(self._running)

    def observed(self) -> SlotsSeen:
        """Who has which part of the order, and who holds it up; for status displays."""
        return slots_seen(self.merge, self._state.repair if isinstance(self._state, Direct) else None)

    def is_idle(self) -> bool:
        facts = self._running
        merge = merge_of(facts)
        is_known = all(stream.high == stream.last for stream in merge.streams)
        is_done = merge.highest <= min(merge.delivered, merge.safe)
        return self._state.name == moves.OPERATIONAL and not facts.outbox and is_known and is_done

    def holds(self, ring: ConfigurationId, seq: Seq) -> bool:
        """In normal operation no token asks for packets."""
        if self._state.name == moves.OPERATIONAL:
            return True
        accepting = self._state.accepting(self._running)
        return accepting is None or accepting.id != ring or accepting.store.aru >= seq

    # Inputs

    def receive(self, packets: Sequence[Packet], now: Instant) -> list[Effect]:
        step = self._begin(now)
        fresh: list[PacketRun] = []
        if isinstance(self._state, Direct):
            self._state.pace.read(len(packets))
        for packet in packets:
            self._sort(packet, fresh, step)
        if fresh:
            self._heed(fresh, step)
        self._settle(step)
        return self._end(step)

    def interest(self, changes: Sequence[Interest], now: Instant) -> list[Effect]:
        """Everybody receives everything."""
        return granted(changes)

    def _sort(self, packet: Packet, fresh: list[PacketRun], step: Step) -> None:
        """Packets of this engine's own kinds are read here, others by the frame."""
        data, size = bytes(packet.data), packet.segment_size
        if size < 1:
            raise UsageError("segment_size must be at least 1")
        start, end = 0, len(data)
        if not end:
            self._read(packet, fresh, step)
        while start < end:
            if start + KIND_AT < end and data[start + KIND_AT] in KINDS and data[start : start + 2] == MAGIC:
                if fresh:
                    self._heed(fresh, step)
                start += self._take_own(data, start, size, step) * size
            else:
                self._read(packet._replace(data=data[start : start + size]), fresh, step)
                start += size

    def _take_own(self, data: bytes, start: int, size: int, step: Step) -> int:
        """Read packets in a row; return how many."""
        state, facts = self._state, step.facts
        ring = data[start + RING.start : start + (RING.stop if size > RING.stop else size)]
        try:
            if ring == facts.installed.heading.digest:
                if isinstance(state, Direct):
                    return self._take_installed(state.merge, state, data, start, size, step)
                if self._takes(step):
                    return self._take_installed(merge_of(facts), None, data, start, size, step)
            elif isinstance(state, Recovery) and ring == state.ring.heading.digest:
                self._keep_early(data[start : start + size], step)
            else:
                self._foreign(data[start : start + size], step)
        except WireError as error:
            self._refuse(data[start : start + size], error, step)
        return 1

    def _refuse(self, packet: bytes, error: WireError, step: Step) -> None:
        """Packets of this cluster that cannot be true are counted; a person is told when they go on."""
        super()._refuse(packet, error, step)
        if len(packet) <= HEAD_SIZE or packet[CLUSTER] != step.facts.cluster:
            return
        self._bad += 1
        if self._bad >= BAD_MAX:
            self._bad = 0
            process = transmitter_of(packet)
            text = f"{BAD_MAX} packets that cannot be true came, the last from {process_text(process)}: {error}"
            self._suspicion.warn(AlarmKind.FORGED, text, step, process)

    def _takes(self, step: Step) -> bool:
        """Whether packets of the installed configuration are taken: not once this process has written on a Commit token
        what it has, or promised to deliver no more and no less."""
        return isinstance(self._state, Direct) or (isinstance(self._state, Gather) and not step.facts.is_frozen)

    def _take_installed(
        self, merge: Merge, state: Direct | None, data: bytes, start: int, size: int, step: Step
    ) -> int:
        """Take packets of the installed configuration; in Gather no state acts upon them."""
        if data[start + KIND_AT] != DIRECT:
            self._hear(merge, state, data[start : start + size], step)
            return 1
        run, number, (aru, safe), flags, transmitter = parse_direct(data, start, size, merge.heading)
        if transmitter not in merge.heading.places:
            raise WireError(STRANGER)
        if aru > run.last:
            merge.check_aru(run, aru)
        is_new = merge.take(run, number)
        merge.hear_aru(merge.heading.places[run.originator], aru)
        merge.hear_safe(safe)
        if state is not None:
            if flags & RETRANSMITTED:
                state.on_answer(run, number, transmitter, step)
            if is_new:
                state.on_new(run, aru, transmitter, step)
        return run.count

    def _hear(self, merge: Merge, state: Direct | None, packet: bytes, step: Step) -> None:
        """Take a mark or a request."""
        if packet[:LENGTH_AT] != OPENING or packet[CLUSTER] != merge.heading.cluster:
            kind_of(packet, merge.heading.cluster)  # says what is wrong
        transmitter = transmitter_of(packet)
        if transmitter not in merge.heading.places:
            raise WireError(STRANGER)
        if packet[KIND_AT] == MARK:
            mark = decode_mark(packet, merge.heading)
            is_new = merge.hear(mark)
            if state is not None:
                state.on_mark(mark, transmitter, step, is_new=is_new)
        elif state is not None:
            state.on_ask(decode_ask(packet, merge.heading), step)

    def _keep_early(self, packet: bytes, step: Step) -> None:
        """Somebody has installed the configuration that is being formed, and this process has not."""
        kind_of(packet, step.facts.cluster)
        if len(self._early) < self._config.backlog_max:
            self._early.append(packet)
            if len(self._early) == 1:
                step.occurred(Occurrence.EARLY_KEPT)

    def _settle(self, step: Step) -> None:
        """What was read leads to packets, marks and deliveries."""
        if self._early and not isinstance(self._state, Recovery):
            early, self._early = self._early, []
            for packet in early:
                self._take_own(packet, 0, len(packet), step)
        if isinstance(self._state, Direct):
            self._state = self._state.after_packets(step)
        elif isinstance(self._state, Gather) and not step.facts.is_frozen:
            step.facts.past.advance(step.effects)

    def _notice_pause(self, late: Duration, step: Step) -> None:
        super()._notice_pause(late, step)
        if isinstance(self._state, Direct):
            self._state.forgive(step.now)

    def check_invariants(self, *, thorough: bool = True) -> None:
        facts = self._running
        merge = merge_of(facts)
        assert merge.delivered <= merge.aru, "delivered ≤ known"
        if thorough:
            merge.check_invariants()
            facts.installed.store.check_invariants()
            self._check_membership(facts)


def parts_of(config: RingConfig, own: Own) -> Parts:
    """What the engine adds to its membership."""

    def past_of(ring: Ring, through: Seq) -> Merge:
        return Merge(ring, ring.id, own.config, config.backlog_max)

    return Parts(
        past_of,
        partial(Direct.enter, text="the first view of this life", own=own),
        partial(Direct.enter, own=own),
        TokenExchange(),
        why_stalled,
        settings=own.config.settings,
        sends_at_once=True,
        freezes_at_entry=True,
    )
