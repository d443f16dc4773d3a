"""Networks: an engine with several networks under it, which looks like an engine.

Above it is whoever drives an engine; below it N networks that may each lose anything. It gives what the engine sends to
the networks that its style names, lets messages up at once, lets a token up when it may go, watches what arrives on
which network, and marks, probes and takes back networks. It reads the engine's effects (a new ring starts it anew) and
asks it one question, `holds`. Membership packets go out on every network that is not marked, and up at every copy.

On the way up the cost is per read, not per packet; nothing is decoded but tokens' names and probes.
"""

from __future__ import annotations

from collections.abc import Sequence

from ordercast.model.effects import Alarm, AlarmKind, Broadcast, Effect, InstallView, Record, SendTo
from ordercast.model.errors import WireError
from ordercast.model.ids import Incarnation, Instant, NodeId, ProcessId, RingId, Seq, process_id_from, process_text
from ordercast.model.inputs import Interest, Lane, Packet, Stored, Submission, Submissions
from ordercast.model.notes import Dropped, Evidence, NetworkState, NetworkTurned, Note, Release, TokenReleased
from ordercast.model.promises import Promises
from ordercast.model.view import View, ViewKind
from ordercast.networks.active import Active
from ordercast.networks.active_passive import ActivePassive
from ordercast.networks.config import NetworksConfig, Replication
from ordercast.networks.gate import NUMBER_END, Arrival, Gate
from ordercast.networks.marks import Marks
from ordercast.networks.passive import Passive
from ordercast.networks.probing import Probing
from ordercast.networks.stats import NetworksStats
from ordercast.networks.styles import Style
from ordercast.networks.watch import Suspicion, Watch, suspicions
from ordercast.order.engine import Engine
from ordercast.order.ring.config import RingConfig
from ordercast.wire.codec import cluster_id_from, decode_probe, encode_probe
from ordercast.wire.header import KIND_AT, MAGIC, VERSION, MessageKind
from ordercast.wire.messages import Probe

HEAD_SIZE = 12  # magic, version, kind and cluster
TRANSMITTER_AT, TRANSMITTER_END = 32, 40
DATA, TOKEN = int(MessageKind.DATA), int(MessageKind.TOKEN)


def style_of(config: NetworksConfig, marks: Marks) -> Style:
    match config.replication:
        case Replication.ACTIVE:
            return Active(marks)
        case Replication.PASSIVE:
            return Passive(marks, config.count)
        case Replication.ACTIVE_PASSIVE:
            return ActivePassive(marks, config.count, config.copies, is_strict=config.is_strict)


class Networks:
    """One process with several networks."""

    def __init__(
        self, engine: Engine, node: NodeId, config: NetworksConfig, ring: RingConfig, *, verbose: bool = False
    ) -> None:
        self._engine = engine
        self._node = node
        self._config = config
        self._verbose = verbose
        self._cluster = cluster_id_from(ring.cluster)
        self._kinds = {
            MAGIC + bytes((VERSION, kind)) + self._cluster: int(kind)
            for kind in (MessageKind.DATA, MessageKind.TOKEN, MessageKind.ANNOUNCEMENT, MessageKind.PROBE)
        }
        self._data_head = MAGIC + bytes((VERSION, DATA)) + self._cluster
        self.marks = Marks(config)
        self._style = style_of(config, self.marks)
        self._gate = Gate()
        self._watch = Watch(config, self.marks, config.message_lag(ring))
        self._probing = [Probing(config) for _ in range(config.count)]
        self._probe_at: Instant | None = None
        self._me = ProcessId(0)
        self._ring = RingId(0, ProcessId(0))  # the ring that is installed
        self._in_need = False  # even the last good network has faults: everything is used
        self.stats = NetworksStats([0] * config.count)

    # What a driver asks

    @property
    def promises(self) -> Promises:
        return self._engine.promises

    def next_deadline(self) -> Instant | None:
        deadlines = [d for d in (self._engine.next_deadline(), self._gate.deadline, self._probe_at) if d is not None]
        return min(deadlines, default=None)

    def room(self) -> int:
        return self._engine.room()

    def want_room(self, size: int) -> None:
        self._engine.want_room(size)

    def is_idle(self) -> bool:
        return self._engine.is_idle()

    def first_lane(self) -> Lane:
        return self._engine.first_lane()

    def holds(self, ring: RingId, seq: Seq) -> bool:
        return self._engine.holds(ring, seq)

    def check_invariants(self, *, thorough: bool = True) -> None:
        self._engine.check_invariants(thorough=thorough)
        assert self.marks.good, "one network is always good"
        assert (self._gate.packet is None) == (self._gate.deadline is None), "a token that waits has a timer"

    # Inputs

    def start(self, stored: Stored, incarnation: Incarnation, now: Instant) -> list[Effect]:
        self._me = process_id_from(self._node, incarnation)
        return self._outward(self._engine.start(stored, incarnation, now), now)

    def submit(self, submissions: Sequence[Submission | Submissions], now: Instant) -> list[Effect]:
        return self._outward(self._engine.submit(submissions, now), now)

    def persisted(self, key: str, now: Instant) -> list[Effect]:
        return self._outward(self._engine.persisted(key, now), now)

    def interest(self, changes: Sequence[Interest], now: Instant) -> list[Effect]:
        return self._outward(self._engine.interest(changes, now), now)

    def behind(self, is_behind: bool, now: Instant) -> list[Effect]:
        return self._outward(self._engine.behind(is_behind, now), now)

    def leave(self, now: Instant) -> list[Effect]:
        return self._outward(self._engine.leave(now), now)

    def wake(self, now: Instant) -> list[Effect]:
        effects: list[Effect] = []
        if self._gate.deadline is not None and self._gate.deadline <= now:
            self._expire(now, effects)
        if self._probe_at is not None and self._probe_at <= now:
            self._probe_all(now, effects)
        due = self._engine.next_deadline()
        if due is not None and due <= now:
            effects += self._outward(self._engine.wake(now), now)
        return effects

    def receive(self, packets: Sequence[Packet], now: Instant) -> list[Effect]:
        """Data packets, which are nearly all, are counted and passed as they are; what is left is sorted out."""
        effects: list[Effect] = []
        head, members, passed = self._data_head, self._watch.members, 0
        for packet in packets:
            data, size, _, _, network = packet
            if type(data) is not bytes or not data.startswith(head):
                break
            passed += 1
            member = members.get(data[TRANSMITTER_AT:TRANSMITTER_END])
            if len(data) > size:
                self._count_run(data, size, network, now, effects)
            elif member is not None and (behind := member.messages.add(network)):
                self._suspect(suspicions(behind, Evidence.MESSAGES, member, member.messages), now, effects)
        up, is_first = packets, False
        if passed < len(packets):
            up = list(packets[:passed])
            is_first = self._sort_out(packets[passed:], up, now, effects)
        if up and (inner := self._engine.receive(up, now)):
            effects += self._outward(inner, now)
        if self._gate.packet is not None:
            self._release(now, effects, is_first=is_first)
        return effects

    # What arrives

    def _sort_out(self, packets: Sequence[Packet], up: list[Packet], now: Instant, effects: list[Effect]) -> bool:
        """Adds to `up` what is for the engine now; True when a new token has come, which now waits, perhaps for no time
        at all."""
        is_first = False
        for packet in packets:
            data, size = bytes(packet.data), packet.segment_size
            kind = self._kinds.get(data[:HEAD_SIZE])
            if kind == DATA:
                self._count_run(data, size, packet.network, now, effects)
                up.append(packet)
            elif kind is None or len(data) > size:
                up.append(packet)
            elif kind == TOKEN:
                is_first |= self._take_token(packet, data, up, now, effects)
            else:
                self._take_control(kind, packet, data, up, now, effects)
        return is_first

    def _count_run(self, data: bytes, size: int, network: int, now: Instant, effects: list[Effect]) -> None:
        """All packets of one read; mostly they are one member's."""
        members = self._watch.members
        step = len(data) if _is_uniform(data, size) else size
        for at in range(0, len(data), step):
            member = members.get(data[at + TRANSMITTER_AT : at + TRANSMITTER_END])
            if member is not None:
                behind = member.messages.add(network, -(-step // size))
                if behind:
                    self._suspect(suspicions(behind, Evidence.MESSAGES, member, member.messages), now, effects)

    def _take_token(self, packet: Packet, data: bytes, up: list[Packet], now: Instant, effects: list[Effect]) -> bool:
        """True when it is a new one."""
        if len(data) < NUMBER_END:
            up.append(packet)  # cut short: the engine says so
            return False
        member = self._watch.members.get(data[TRANSMITTER_AT:TRANSMITTER_END])
        arrival = self._gate.take(packet, data, Instant(now + self._config.token_hold_ns))
        if arrival is Arrival.FOREIGN:
            up.append(packet)
        elif member is not None and self._style.counts_tokens:
            behind = member.tokens.add(packet.network)
            self._suspect(suspicions(behind, Evidence.TOKENS, member, member.tokens), now, effects)
        if arrival is Arrival.LATE:
            self.stats.late_copies += 1
        return arrival is Arrival.NEW

    def _take_control(
        self, kind: int, packet: Packet, data: bytes, up: list[Packet], now: Instant, effects: list[Effect]
    ) -> None:
        if kind == MessageKind.PROBE:
            self._take_probe(packet.network, data, now, effects)
            return
        member = self._watch.members.get(data[TRANSMITTER_AT:TRANSMITTER_END])
        if member is not None:
            behind = member.announcements.add(packet.network)
            self._suspect(suspicions(behind, Evidence.ANNOUNCEMENTS, member, member.announcements), now, effects)
        up.append(packet)

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
            self._suspect(self._watch.expired(gate.brought, now), now, effects)
        self._pass_up(Release.TIMER, now, effects)

    def _pass_up(self, cause: Release, now: Instant, effects: list[Effect]) -> None:
        gate = self._gate
        if self._verbose:
            note = TokenReleased(gate.ring, gate.token_seq, gate.seq, cause, gate.brought)
            effects.append(Record(note))
        effects += self._outward(self._engine.receive([gate.release()], now), now)

    # What goes out, and what the engine's effects tell

    def _outward(self, effects: list[Effect], now: Instant) -> list[Effect]:
        outward: list[Effect] = []
        for effect in effects:
            if type(effect) is Broadcast:
                if effect.bursts[0][0][KIND_AT] == DATA:
                    outward += self._style.spread(effect)
                else:
                    effect.networks = self.marks.used
                    outward.append(effect)
            elif type(effect) is SendTo:
                is_token = effect.packet[KIND_AT] == TOKEN
                effect.networks = self._style.token_networks() if is_token else self.marks.used
                outward.append(effect)
            else:
                outward.append(effect)
                if type(effect) is InstallView and effect.view.kind is ViewKind.REGULAR:
                    self._begin(effect.view, now, outward)
        return outward

    def _begin(self, view: View, now: Instant, effects: list[Effect]) -> None:
        """A new ring: nothing that was counted among others holds, and every network gets another chance."""
        others = tuple(process for process in view.members if process != self._me)
        self._ring = view.id
        self._in_need = False
        self._gate.forget(view.id)
        for probing in self._probing:
            probing.begin(others, now)
        self._watch.begin(others)
        for network, state in enumerate(self.marks.states):
            if state is NetworkState.FAULTY:
                self._try_again(network, Evidence.NEW_RING, now, effects)

    # Marks

    def _suspect(self, found: list[Suspicion], now: Instant, effects: list[Effect]) -> None:
        for network, evidence, process, text in found:
            if self.marks[network] is not NetworkState.GOOD:
                continue
            if self.marks.is_last(network):
                self._keep_last(network, evidence, process, text, now, effects)
            else:
                self._mark(network, evidence, process, text, now, effects)

    def _mark(
        self,
        network: int,
        evidence: Evidence,
        process: ProcessId | None,
        text: str,
        now: Instant,
        effects: list[Effect],
    ) -> None:
        self.marks.mark(network, now)
        self._probing[network].restart(now)
        self._watch.reset()
        self.stats.alarms[network] += 1
        about = "" if process is None else f" ({process_text(process)})"
        sentence = f"{self._config.name(network)} is faulty and no longer used: {evidence.value}{about}, {text}"
        alarm = Alarm(AlarmKind.NETWORK_FAULTY, sentence, process, network=network, evidence=evidence)
        effects.append(alarm)
        self._turned(network, evidence, process, sentence, effects)
        self._probe(network, now, effects)

    def _keep_last(
        self,
        network: int,
        evidence: Evidence,
        process: ProcessId | None,
        text: str,
        now: Instant,
        effects: list[Effect],
    ) -> None:
        """It is blamed too, but there is no other: use everything, rely on what comes."""
        self._watch.reset()
        if self._in_need:
            return
        self._in_need = True
        about = "" if process is None else f" ({process_text(process)})"
        name = self._config.name(network)
        sentence = f"{name} is the last good network and has faults too: {evidence.value}{about}, {text}"
        alarm = Alarm(AlarmKind.NO_GOOD_NETWORK, sentence, process, network=network, evidence=evidence)
        effects.append(alarm)
        self._turned(network, evidence, process, sentence, effects)
        for other, state in enumerate(self.marks.states):
            if state is NetworkState.FAULTY:
                self._try_again(other, Evidence.NEED, now, effects)

    def _try_again(self, network: int, evidence: Evidence, now: Instant, effects: list[Effect]) -> None:
        self.marks.try_again(network)
        self._probing[network].tried_at = now
        sentence = f"{self._config.name(network)} is on trial: {evidence.value}"
        self._turned(network, evidence, None, sentence, effects)
        self._probe(network, now, effects)

    def _take_back(self, network: int, now: Instant, effects: list[Effect]) -> None:
        self.marks.take_back(network, now)
        self._in_need = False
        self._watch.reset()
        sentence = f"{self._config.name(network)} is used again: {Evidence.HEARD.value}"
        effects.append(Alarm(AlarmKind.NETWORK_REPAIRED, sentence, network=network, evidence=Evidence.HEARD))
        self._turned(network, Evidence.HEARD, None, sentence, effects)
        self._probe(network, now, effects)

    def _give_up(self, network: int, process: ProcessId, now: Instant, effects: list[Effect]) -> None:
        self.marks.give_up(network)
        self._probing[network].restart(now)
        sentence = f"{self._config.name(network)} failed its trial: {process_text(process)} was not heard there"
        self._turned(network, Evidence.UNHEARD, process, sentence, effects)

    def _turned(
        self, network: int, evidence: Evidence, process: ProcessId | None, text: str, effects: list[Effect]
    ) -> None:
        self._note(NetworkTurned(network, self.marks[network], evidence, process, text), effects)

    def _note(self, note: Note, effects: list[Effect]) -> None:
        effects.append(Record(note))

    # Probes

    def _take_probe(self, network: int, data: bytes, now: Instant, effects: list[Effect]) -> None:
        try:
            probe = decode_probe(data, self._cluster)
        except WireError as error:
            self._note(Dropped(str(error)), effects)
            return
        if probe.network != network:
            names = self._config.name(probe.network), self._config.name(network)
            self._note(Dropped(f"a probe of {names[0]} came on {names[1]}: are they connected?"), effects)
            return
        probing = self._probing[network]
        if probe.ring != self._ring or probe.sender not in probing.members or not probing.hear(probe, now):
            return
        excused = [n for n, other in enumerate(self._probing) if other.state_at(probe.sender) is not NetworkState.GOOD]
        self._watch.excuse(probe.sender, frozenset(excused))
        if self.marks[network] is NetworkState.GOOD:
            if probe.state is NetworkState.FAULTY:
                self._suspect([Suspicion(network, Evidence.REFUSAL, probe.sender, "it says so")], now, effects)
            if self._probe_at is None and probing.is_probed(now):
                self._probe(network, now, effects)
        else:
            self._judge(network, now, effects)

    def _judge(self, network: int, now: Instant, effects: list[Effect]) -> None:
        """A network that is not good, after a probe came or time has passed."""
        probing, state = self._probing[network], self.marks[network]
        if not probing.members:
            return  # alone, nothing can be learnt
        if state is NetworkState.FAULTY and probing.is_proved(self.marks.levels[network], now):
            self._try_again(network, Evidence.PROVED, now, effects)
        elif state is NetworkState.ON_TRIAL:
            if probing.is_used_by_all(now):
                self._take_back(network, now, effects)
            elif not self._in_need and (silent := probing.unheard(now)) is not None:
                self._give_up(network, silent, now, effects)

    def _probe_all(self, now: Instant, effects: list[Effect]) -> None:
        self._probe_at = None
        for network, state in enumerate(self.marks.states):
            if state is not NetworkState.GOOD:
                self._judge(network, now, effects)
                self._tell_silence(network, now, effects)
            if self.marks[network] is not NetworkState.GOOD or self._probing[network].is_probed(now):
                self._probe(network, now, effects)

    def _tell_silence(self, network: int, now: Instant, effects: list[Effect]) -> None:
        """Once after each mark, when everybody has had time to probe: whom we do not hear there. Who reads the records
        of all members sees from it what broke (`diagnosis.py`)."""
        if self.marks[network] is NetworkState.FAULTY:
            for member in self._probing[network].silent(now):
                sentence = f"{process_text(member)} is not heard on {self._config.name(network)}"
                self._turned(network, Evidence.UNHEARD, member, sentence, effects)

    def _probe(self, network: int, now: Instant, effects: list[Effect]) -> None:
        """Say on a network what we think of it; and again, until all think well of it."""
        probing = self._probing[network]
        probing.number += 1
        whole = probing.hears_all(now)
        probe = Probe(self._ring, self._me, probing.number, network, self.marks[network], whole)
        packet = encode_probe(self._cluster, probe)
        effects.append(Broadcast([(packet, len(packet))], networks=(network,)))
        if self._probe_at is None:
            self._probe_at = Instant(now + self._config.probe_ns)


def _is_uniform(data: bytes, size: int) -> bool:
    """Whether all packets of a read have the transmitter of the first. Bytes of node and incarnation are compared, all
    packets at a time."""
    for at in (TRANSMITTER_AT, TRANSMITTER_AT + 1, TRANSMITTER_END - 1):
        column = data[at::size]
        if column.count(column[:1]) != len(column):
            return False
    return True
