"""Networks: an engine with several networks under it, which looks like an engine.

Above it is whoever drives an engine; below it N networks that may each lose anything. It gives what the engine sends to
the networks that its style names, lets messages up at once, lets a token up when it may go, watches what arrives on
which network, and marks, probes and takes back networks. It reads the engine's effects (a new ring starts it anew) and
asks it one question, `holds`. Membership packets go out on every network that is not marked, and up at every copy.

On the way up the cost is per read, not per packet; nothing is read but the clear head, what `Engine.traffic` says of
what lies behind it, and probes.
"""

from __future__ import annotations

from collections.abc import Sequence

from ordercast.model.configuration import Configuration, ConfigurationKind
from ordercast.model.effects import Broadcast, Effect, Endpoint, Install, Record, SendTo, Unicast
from ordercast.model.ids import (
    NO_CONFIGURATION,
    NO_SEQ,
    NOBODY,
    Incarnation,
    Instant,
    NodeId,
    process_id_from,
)
from ordercast.model.inputs import Lane, Packet, Stored
from ordercast.model.notes import Evidence, Release, TokenReleased
from ordercast.networks.config import NetworksConfig
from ordercast.networks.gate import Arrival, Gate
from ordercast.networks.judgement import Judgement, NetworksStats
from ordercast.networks.marks import Marks
from ordercast.networks.monitors import ArrivalCounts
from ordercast.networks.styles import style_of
from ordercast.networks.watch import Watch, WatchedMember, suspicions
from ordercast.order.engine import Engine
from ordercast.order.passing import PassingLayer
from ordercast.order.ring.config import RingConfig
from ordercast.wire.head import (
    CLUSTER,
    KIND_AT,
    LAYER_KIND,
    OPENING,
    TRANSMITTER,
    TRANSMITTER_AT,
    cluster_id_from,
)

# Bytes that tell one member's data packets from all else: kind, node, the end of the incarnation.
TELLING = (KIND_AT, TRANSMITTER_AT, TRANSMITTER_AT + 1, TRANSMITTER_AT + 7)
VISITS_MAX = 20  # that a packet may be missing while networks are marked; a fifth of what expels a member


class Networks(PassingLayer):
    """One process with several networks."""

    def __init__(
        self,
        engine: Engine,
        node: NodeId,
        config: NetworksConfig,
        ring: RingConfig,
        *,
        verbose: bool = False,
        cluster: bytes | None = None,  # the id in the engine's packets, if it is not that of a cluster with one domain
    ) -> None:
        super().__init__(engine)
        self._node = node
        self._config = config
        self._verbose = verbose
        self._cluster = cluster or cluster_id_from(ring.cluster, engine.promises.engine)
        self.marks = Marks(config)
        self._style = style_of(config, self.marks)
        self._gate = Gate()
        self._watch = Watch(config, self.marks, config.message_lag(ring))
        self._me = NOBODY
        self._awaited = NO_CONFIGURATION, NO_SEQ  # the engine should soon hold everything up to here
        self._visits = 0  # how often it did not when the token came
        self.stats = NetworksStats([0] * config.count)
        self._judgement = Judgement(config, self._cluster, self.marks, self._watch, self.stats)

    # What a driver asks

    def next_deadline(self) -> Instant | None:
        deadlines = (self._engine.next_deadline(), self._gate.deadline, self._judgement.probe_at)
        return min((deadline for deadline in deadlines if deadline is not None), default=None)

    def check_invariants(self, *, thorough: bool = True) -> None:
        super().check_invariants(thorough=thorough)
        assert self.marks.good, "one network is always good"
        assert (self._gate.packet is None) == (self._gate.deadline is None), "a token that waits has a timer"

    # Inputs

    def start(self, stored: Stored, incarnation: Incarnation, now: Instant) -> list[Effect]:
        self._me = process_id_from(self._node, incarnation)
        return self.outward(self._engine.start(stored, incarnation, now), now)

    def wake(self, now: Instant) -> list[Effect]:
        effects: list[Effect] = []
        if self._gate.deadline is not None and self._gate.deadline <= now:
            self._expire(now, effects)
        probe_at = self._judgement.probe_at
        if probe_at is not None and probe_at <= now:
            self._judgement.probe_all(now, effects)
        due = self._engine.next_deadline()
        if due is not None and due <= now:
            effects += self.outward(self._engine.wake(now), now)
        return effects

    def receive(self, packets: Sequence[Packet], now: Instant) -> list[Effect]:
        """Data packets, which are nearly all, are counted and passed as they are; what is left is sorted out."""
        effects: list[Effect] = []
        cluster, kinds, counted, passed = self._cluster, self._traffic.data, self._watch.messages, 0
        for packet in packets:
            data, size, network = packet[0], packet[1], packet[4]  # costs less than names, or than taking it apart
            if type(data) is not bytes or data[CLUSTER] != cluster or len(data) <= KIND_AT:
                break
            if data[KIND_AT] not in kinds or data[:4] != OPENING:
                break
            count = 1
            if len(data) > size:
                if not _is_uniform(data, size, kinds):
                    break
                count = -(-len(data) // size)
            counts = counted.get(data[TRANSMITTER])
            if counts is not None:
                counts.counts[network] += count  # what `Counts.add` does, less the price of a call
                left = counts.left = counts.left - count
                if left <= 0 and (behind := counts.look()):
                    member = self._watch.members[data[TRANSMITTER]]
                    self._blame(behind, Evidence.MESSAGES, member, counts, now, effects)
            passed += 1
        is_first = False
        if passed < len(packets):
            up = list(packets[:passed])
            is_first = self._sort_out(packets[passed:], up, now, effects)
            packets = up
        if packets and (inner := self._engine.receive(packets, now)):
            effects += self.outward(inner, now)
        if self._gate.packet is not None:
            self._release(now, effects, is_first=is_first)
        return effects

    # What arrives

    def _sort_out(self, packets: Sequence[Packet], up: list[Packet], now: Instant, effects: list[Effect]) -> bool:
        """Adds to `up` what is for the engine now; True when a new token has come, which now waits, perhaps for no time
        at all."""
        is_first, traffic = False, self._traffic
        for packet in packets:
            if packet.lane is Lane.LINK:  # numbered by its link, which drops copies; no network is judged by it
                up.append(packet)
                continue
            data = bytes(packet.data)
            if len(data) > packet.segment_size and not _is_uniform(data, packet.segment_size, traffic.data):
                is_first |= self._sort_out(_singles(packet, data), up, now, effects)
                continue
            if len(data) <= KIND_AT or data[:4] != OPENING or data[CLUSTER] != self._cluster:
                up.append(packet)  # the engine says what it is not
            elif data[KIND_AT] in traffic.tokens:
                is_first |= self._take_token(packet, data, up, now, effects)
            elif data[KIND_AT] == LAYER_KIND:
                self._judgement.take_probe(packet.network, data, now, effects)
            else:
                up.append(packet)
                self._count(packet, data, now, effects)
        return is_first

    def _count(self, packet: Packet, data: bytes, now: Instant, effects: list[Effect]) -> None:
        """Data packets, or an announcement, or neither."""
        member, traffic = self._watch.members.get(data[TRANSMITTER]), self._traffic
        if member is None:
            return
        kind = traffic.counted_kind(data)
        if kind in traffic.data:
            behind = member.messages.add(packet.network, -(-len(data) // packet.segment_size))
            self._blame(behind, Evidence.MESSAGES, member, member.messages, now, effects)
        elif kind in traffic.announcements:
            behind = member.announcements.add(packet.network)
            self._blame(behind, Evidence.ANNOUNCEMENTS, member, member.announcements, now, effects)

    def _take_token(self, packet: Packet, data: bytes, up: list[Packet], now: Instant, effects: list[Effect]) -> bool:
        """True when it is a new one."""
        name = self._traffic.token(data)
        if name is None:
            up.append(packet)  # cut short: the engine says so
            return False
        member = self._watch.members.get(data[TRANSMITTER])
        arrival = self._gate.take(packet, name, Instant(now + self._config.token_hold_ns))
        if arrival is Arrival.FOREIGN:
            up.append(packet)
        elif member is not None and self._style.counts_tokens:
            behind = member.tokens.add(packet.network)
            self._blame(behind, Evidence.TOKENS, member, member.tokens, now, effects)
        return arrival is Arrival.NEW

    def _blame(
        self,
        behind: Sequence[int],
        evidence: Evidence,
        member: WatchedMember,
        counts: ArrivalCounts,
        now: Instant,
        effects: list[Effect],
    ) -> None:
        """These networks bring too little of a member's packets; mostly there are none."""
        if behind:
            self._judgement.suspect(suspicions(behind, evidence, member, counts), now, effects)

    # The token that waits

    def _release(self, now: Instant, effects: list[Effect], *, is_first: bool) -> None:
        gate = self._gate
        cause = self._style.release(gate.brought, self._is_lacking, is_first=is_first)
        if cause is not None:
            if self._style.blames_expiry:
                self._watch.in_time(gate.brought)
            self._pass_up(cause, now, effects)

    def _is_lacking(self) -> bool:
        """Whether the engine would ask again for packets if it had the token: it does so for what it misses of those
        that were numbered before its last visit."""
        gate = self._gate
        return not self._engine.holds(gate.ring, gate.before)

    def _expire(self, now: Instant, effects: list[Effect]) -> None:
        """The token has waited long enough. A timer that is as late as it is long says that we did not run: then nobody
        is to blame."""
        gate = self._gate
        assert gate.deadline is not None
        self.stats.expired += 1
        if self._style.blames_expiry and now - gate.deadline <= self._config.token_hold_ns:
            self._judgement.suspect(self._watch.expired(gate.brought, now), now, effects)
        self._pass_up(Release.TIMER, now, effects)

    def _pass_up(self, cause: Release, now: Instant, effects: list[Effect]) -> None:
        gate = self._gate
        if self._verbose:
            note = TokenReleased(gate.ring, gate.token_seq, gate.seq, cause, gate.brought)
            effects.append(Record(note))
        if len(self.marks.good) < self._config.count:
            self._notice_missing(now, effects)
        effects += self.outward(self._engine.receive([gate.release()], now), now)

    def _notice_missing(self, now: Instant, effects: list[Effect]) -> None:
        """While networks are marked: a packet that is asked for at visit after visit and does not come is brought by no
        good network, for whoever answers first may be the one that is not heard. Long before the engine is expelled for
        it, every network is used."""
        gate = self._gate
        if self._engine.holds(*self._awaited):
            self._awaited, self._visits = (gate.ring, gate.before), 0
            return
        self._visits += 1
        if self._visits % VISITS_MAX == 0:
            self._judgement.miss(self._awaited[1], now, effects)

    # What goes out, and what the engine's effects tell

    def outward(self, effects: list[Effect], now: Instant) -> list[Effect]:
        """Return what the engine asked for, with the networks on which it goes out; also when the engine was told
        something past this layer, which has no word for it."""
        outward: list[Effect] = []
        traffic = self._traffic
        for effect in effects:
            if type(effect) is Broadcast:
                if effect.bursts[0][0][KIND_AT] in traffic.data:
                    outward += self._style.spread(effect)
                else:
                    effect.networks = self.marks.used
                    outward.append(effect)
            elif type(effect) is SendTo:
                is_shared = effect.packet[KIND_AT] in traffic.tokens and not effect.is_vital
                effect.networks = self._style.token_networks() if is_shared else self.marks.used
                outward.append(effect)
                if (agreed := traffic.agreed(effect.packet)) is not None:
                    self._gate.expect(agreed)
            elif type(effect) is Unicast and not isinstance(effect.target, Endpoint):
                outward += self._style.spread(effect)
            else:
                outward.append(effect)
                if isinstance(effect, Install) and effect.configuration.kind is ConfigurationKind.REGULAR:
                    self._begin(effect.configuration, now, outward)
        return outward

    def _begin(self, view: Configuration, now: Instant, effects: list[Effect]) -> None:
        others = tuple(process for process in view.members if process != self._me)
        self._gate.expect(view.id)
        self._judgement.begin(view.id, self._me, others, now, effects)


def _is_uniform(data: bytes, size: int, kinds: frozenset[int]) -> bool:
    """Whether all packets of a read are one member's data. A few bytes are compared, all packets at a time. Reads of
    other packets, which are rare, are taken apart: the kernel joins whatever one sender sends in a row."""
    for at in TELLING:
        column = data[at::size]
        if column.count(column[:1]) != len(column):
            return False
    return data[KIND_AT] in kinds


def _singles(packet: Packet, data: bytes) -> list[Packet]:
    size = packet.segment_size
    return [packet._replace(data=data[at : at + size]) for at in range(0, len(data), size)]
