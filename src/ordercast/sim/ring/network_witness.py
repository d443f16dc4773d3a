"""Judges what the layer with several networks does, from what it is given and what it sends: no word of its own is
believed but the notes on tokens and marks, and those are compared with the packets.

The letters are those of docs/internals/networks.md. What was lost only the simulated networks know: they tell it.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from ordercast.checker.verdict import Outcome, Verdict
from ordercast.model.configuration import Configuration, ConfigurationKind
from ordercast.model.effects import Alarm, AlarmKind, Broadcast, Effect, Install, Record, SendTo
from ordercast.model.ids import MILLISECOND, Attachment, ConfigurationId, ProcessId, node_of
from ordercast.model.inputs import Packet
from ordercast.model.notes import Moved, NetworkState, NetworkTurned, Note, Occurred, Occurrence, Release, TokenReleased
from ordercast.model.promises import NetworkPromise
from ordercast.networks.config import Replication
from ordercast.order.catalogue import entry_of
from ordercast.order.membership.states.moves import GATHER, OPERATIONAL
from ordercast.order.ring.traffic import RING_TRAFFIC
from ordercast.sim.faults import Fault, FaultKind
from ordercast.sim.findings import Findings
from ordercast.sim.options import SimOptions
from ordercast.trace.records import DeliveredBatch, Event, Submitted
from ordercast.wire.codec import decode
from ordercast.wire.head import CLUSTER, KIND_AT, LAYER_KIND
from ordercast.wire.header import FIXED_SIZE, FLAGS_AT, RETRANSMITTED, RING, MessageKind, digest_of
from ordercast.wire.messages import Token

ROTATIONS_MAX = 8  # in which every message is delivered that is submitted while networks fail
HOP_NS = 2 * MILLISECOND  # more than a hop takes when nothing fails

Key = tuple[ConfigurationId, int]  # of a token: its ring and its number there
DataKey = tuple[bytes, int]  # of a data packet: its kind and the digest of its ring, and its seq


def is_token(packet: bytes) -> bool:
    return packet[KIND_AT] in RING_TRAFFIC.tokens


def is_data(packet: bytes) -> bool:
    return packet[KIND_AT] in RING_TRAFFIC.data


def data_key(packet: bytes) -> DataKey:
    """Return the digest of a ring, and the seq of its data packet."""
    return packet[RING], int.from_bytes(packet[FIXED_SIZE : FIXED_SIZE + 8], "big")


def kind_key(packet: bytes) -> DataKey:
    """Return the same of an engine with several kinds of data."""
    return packet[KIND_AT:FLAGS_AT], data_key(packet)[1]


def token_key(packet: bytes) -> Key:
    name = RING_TRAFFIC.token(packet)
    assert name is not None
    return name.configuration, name.number


def token_in(packet: bytes) -> Token:
    token = decode(packet, packet[CLUSTER])
    assert isinstance(token, Token)
    return token


def is_blocking_all(fault: Fault) -> bool:
    """Two hosts no longer reach each other on links, whichever network they take: this is no fault of a network."""
    return fault.kind is FaultKind.BLOCK and fault.network is None


@dataclass(slots=True)
class Conduct:
    """What one process has done so far, on the networks of one attachment."""

    segment: int
    states: list[NetworkState]
    is_operational: bool = False  # its engine works with the token, and does not form a ring
    sent: list[int] = field(default_factory=list)  # data packets, by network, since the marks last changed
    brought: dict[Key, int] = field(default_factory=dict)  # networks that brought each token, as bits
    first_at: dict[Key, int] = field(default_factory=dict)
    asking: set[Key] = field(default_factory=set)  # those that came with requests
    released: dict[ConfigurationId, int] = field(default_factory=dict)  # the last token passed up
    forwarded: Key | None = None  # the last token that it sent
    has_kept: bool = False  # the token that it sends next has rested here, and so rests nowhere else
    again_at: dict[DataKey, int] = field(default_factory=dict)  # when it last sent a packet again
    spoken: dict[ConfigurationId, int] = field(default_factory=dict)  # the highest seq of which it spoke
    held: dict[bytes, set[int]] = field(
        default_factory=dict
    )  # data packets that came, or were sent, by kind and ring digest
    known: dict[bytes, int] = field(default_factory=dict)  # up to here nothing is missing
    alarmed: int | None = None  # the network of an alarm that no mark has followed yet

    def missing(self, ring: ConfigurationId, through: int) -> int | None:
        """The first packet that never came."""
        digest = bytes((MessageKind.DATA,)) + digest_of(ring)
        held = self.held.get(digest, set())
        seq = self.known.get(digest, 0) + 1
        while seq <= through and seq in held:
            seq += 1
        self.known[digest] = seq - 1
        return None if seq > through else seq

    @property
    def good(self) -> set[int]:
        return {n for n, state in enumerate(self.states) if state is NetworkState.GOOD}

    @property
    def trial(self) -> set[int]:
        return {n for n, state in enumerate(self.states) if state is NetworkState.ON_TRIAL}


class NetworkWitness:
    def __init__(self, options: SimOptions) -> None:
        self._options = options
        self._config = options.networks
        entry = entry_of(options.engine)
        self._data_kinds = entry.traffic.data
        self._has_thirds = Occurrence.THIRD_ANSWERED in entry.occurrences  # several may answer one request
        self._may_rest = Occurrence.TOKEN_RESTED in entry.occurrences  # tokens do, on this engine
        self._conducts: dict[tuple[ProcessId, Attachment], Conduct] = {}
        self._members: dict[ProcessId, tuple[ProcessId, ...]] = {}  # of the configuration of each
        self._complete: set[ProcessId] = set()  # those who were in a configuration of all
        self._rings: dict[tuple[int, int], ConfigurationId] = {}  # by host and segment: whose token it has had last
        self._whole = set() if options.segments > 1 else {0}  # segments whose hosts were on one ring
        self._arriving: Counter[tuple[DataKey, int]] = Counter()  # copies of a packet that a host gets, or got
        self._owned: set[tuple[DataKey, int]] = set()  # packets that a host has because it sent them
        self._again: set[DataKey] = set()  # packets that were sent again, by anybody
        self._submitted: dict[object, int] = {}
        self._longest_ns = 0
        self._findings = Findings()

    def _is_data(self, packet: bytes) -> bool:
        return packet[KIND_AT] in self._data_kinds

    # What is seen

    def arriving(self, target: int, packets: list[bytes]) -> None:
        """These are on their way to a host."""
        for packet in packets:
            if self._is_data(packet):
                self._arriving[kind_key(packet), target] += 1

    def overflowed(self, target: int, packets: list[bytes]) -> None:
        """These came and found no room."""
        for packet in packets:
            if self._is_data(packet):
                self._arriving[kind_key(packet), target] -= 1

    def received(self, process: ProcessId, packets: list[Packet], now: int) -> None:
        for packet in packets:
            conduct, data = self._conduct(process, packet.attachment), bytes(packet.data)
            if is_token(data):
                key = token_key(data)
                conduct.brought[key] = conduct.brought.get(key, 0) | 1 << packet.network
                if conduct.first_at.setdefault(key, now) == now and token_in(data).requests:
                    conduct.asking.add(key)
            elif self._is_data(data):
                ring, seq = kind_key(data)
                conduct.held.setdefault(ring, set()).add(seq)

    def effect(self, process: ProcessId, effect: Effect, now: int) -> None:
        if isinstance(effect, Install):
            self._installed(process, effect.configuration)
        elif isinstance(effect, Broadcast):
            self._broadcast(process, self._conduct(process, effect.attachment), effect, now)
        elif isinstance(effect, SendTo):
            self._unicast(process, self._conduct(process, effect.attachment), effect)
        elif isinstance(effect, Alarm):
            if effect.kind is AlarmKind.NETWORK_FAULTY:
                self._conduct(process, effect.attachment).alarmed = effect.network
        elif isinstance(effect, Record):
            self._noted(process, self._conduct(process, effect.attachment), effect.note, now)

    def _installed(self, process: ProcessId, configuration: Configuration) -> None:
        if configuration.kind is ConfigurationKind.REGULAR:
            self._members[process] = configuration.members
            if len(configuration.members) == self._options.nodes:
                self._complete.add(process)

    def _noted(self, process: ProcessId, conduct: Conduct, note: Note, now: int) -> None:
        if isinstance(note, NetworkTurned):
            self._turned(process, conduct, note)
        elif isinstance(note, TokenReleased):
            self._released(process, conduct, note, now)
            self._on_ring(node_of(process), conduct.segment, note.ring)
        elif isinstance(note, Occurred):
            conduct.has_kept |= note.what is Occurrence.TOKEN_RESTED
        elif isinstance(note, Moved):
            conduct.is_operational = note.target == OPERATIONAL
            if note.target == GATHER and process in self._complete and conduct.segment in self._whole:
                self._found(NetworkPromise.NO_VIEW_CHANGE, process, f"gave up its ring: {note.text}")

    def _on_ring(self, node: int, segment: int, ring: ConfigurationId) -> None:
        if segment in self._whole or self._rings.get((node, segment)) == ring:
            return
        self._rings[node, segment] = ring
        hosts = (host for host in range(self._options.nodes) if segment in self._options.segments_of(host))
        if all(self._rings.get((host, segment)) == ring for host in hosts):
            self._whole.add(segment)

    def observe(self, event: Event) -> None:
        """How long messages take from the moment at which all are together."""
        if isinstance(event, Submitted):
            if event.process in self._complete and len(self._whole) == self._options.segments:
                for submitted in event.messages:
                    self._submitted[submitted.message] = event.at
        elif isinstance(event, DeliveredBatch):
            for delivered in event.messages:
                since = self._submitted.get(delivered.message)
                if since is not None:
                    self._longest_ns = max(self._longest_ns, event.at - since)

    # R7 to R11: the token

    def _released(self, process: ProcessId, conduct: Conduct, note: TokenReleased, now: int) -> None:
        key = note.ring, note.token_seq
        brought, good = conduct.brought.get(key, 0), conduct.good
        text = f"token {note.token_seq} of ring {note.ring}"
        if note.token_seq <= conduct.released.get(note.ring, -1):
            self._found(NetworkPromise.TOKENS, process, f"{text} was passed up twice, or after a later one")
        conduct.released[note.ring] = note.token_seq
        if note.brought & ~brought or not brought:
            self._found(NetworkPromise.TOKENS, process, f"{text} was passed up for networks that did not bring it")
        if note.cause is Release.ALL and any(not brought >> n & 1 for n in good):
            self._found(NetworkPromise.TOKENS, process, f"{text} was passed up before every good network brought it")
        if note.cause is Release.ENOUGH and brought.bit_count() < min(self._config.copies, len(good)):
            self._found(NetworkPromise.TOKENS, process, f"{text} was passed up before enough copies had come")
        if note.cause in (Release.DIRECT, Release.GAP_CLOSED) and conduct.is_operational:
            missing = conduct.missing(note.ring, conduct.spoken.get(note.ring, 0))
            if missing is not None:
                self._found(NetworkPromise.TOKENS, process, f"{text} was passed up without packet {missing}")
        conduct.spoken[note.ring] = note.seq
        waited = now - conduct.first_at.get(key, now)
        if self._options.is_one_whole and waited > self._config.token_hold_ns * 1.02 + MILLISECOND:
            self._found(NetworkPromise.TOKENS, process, f"{text} waited for {waited / 1e6:.1f} ms")

    # R13 to R18: what goes out, and marks

    def _copies(self, good: set[int]) -> int:
        match self._config.replication:
            case Replication.ACTIVE:
                return len(good)
            case Replication.PASSIVE:
                return 1
            case Replication.ACTIVE_PASSIVE:
                return min(self._config.copies, len(good))

    def _broadcast(self, process: ProcessId, conduct: Conduct, effect: Broadcast, now: int) -> None:
        first = effect.bursts[0][0]
        if first[KIND_AT] == LAYER_KIND:
            return
        self._check_networks(process, conduct, effect.networks, is_shared=self._is_data(first))
        if self._is_data(first):
            packets = effect.packets
            for network in effect.networks:
                conduct.sent[network] += len(packets)
            for packet in packets:
                self._data(process, conduct, packet, now)

    def _unicast(self, process: ProcessId, conduct: Conduct, effect: SendTo) -> None:
        key = token_key(effect.packet) if is_token(effect.packet) else None
        is_again = key is not None and conduct.forwarded == key
        is_shared = key is not None and not is_again and not effect.is_vital
        self._check_networks(process, conduct, effect.networks, is_shared=is_shared)
        if key is None:
            return
        if not is_again:
            self._check_vital(process, conduct, token_in(effect.packet), is_vital=effect.is_vital)
        conduct.forwarded = key
        sent = [conduct.sent[network] for network in conduct.good]
        bound = self._copies(conduct.good)
        if sent and max(sent) - min(sent) > bound:
            self._found(NetworkPromise.SENDS, process, f"its packets are not spread evenly: {conduct.sent}")

    def _check_vital(self, process: ProcessId, conduct: Conduct, token: Token, *, is_vital: bool) -> None:
        """A token rests somewhere only if nobody misses anything, and unheard of by its sender only if that one had
        nothing to do and did not keep it itself. Then its loss would be noticed late."""
        is_idle = token.seq == token.aru and not token.requests
        had_to_do = token.seq != conduct.spoken.get(token.ring) or (token.ring, token.token_seq - 1) in conduct.asking
        may_rest = is_idle and not (had_to_do or conduct.has_kept)
        conduct.has_kept = False
        if is_vital and not is_idle:
            self._found(NetworkPromise.SENDS, process, "a token of a busy ring was called vital")
        if may_rest and self._may_rest and conduct.is_operational and not is_vital:
            self._found(NetworkPromise.SENDS, process, "a token that may rest was not called vital")

    def _check_networks(
        self, process: ProcessId, conduct: Conduct, networks: tuple[int, ...], *, is_shared: bool
    ) -> None:
        good, trial, used = conduct.good, conduct.trial, set(networks)
        if used - good - trial:
            self._found(NetworkPromise.SENDS, process, f"sent on a network that it has marked: {sorted(used)}")
        if len(used) != len(networks):
            self._found(NetworkPromise.SENDS, process, "sent twice on one network")
        wanted = self._copies(good) if is_shared else len(good)
        if used & good and (len(used & good) != wanted or (not is_shared and used != good | trial)):
            self._found(NetworkPromise.SENDS, process, f"{len(used & good)} copies on good networks, not {wanted}")
        if not used & good and used != trial:
            self._found(NetworkPromise.SENDS, process, "sent on no good network")

    def _turned(self, process: ProcessId, conduct: Conduct, note: NetworkTurned) -> None:
        before = conduct.states[note.network]
        if before is NetworkState.GOOD and note.state is NetworkState.FAULTY:
            if conduct.alarmed != note.network:
                self._found(NetworkPromise.SENDS, process, f"network {note.network} was marked without an alarm")
            if conduct.good == {note.network}:
                self._found(NetworkPromise.SENDS, process, "the last good network was marked")
            conduct.alarmed = None
        if before is not note.state:
            conduct.sent = [0] * self._config.count
        conduct.states[note.network] = note.state

    # R4 to R6: nothing is sent again that was not lost

    def _data(self, process: ProcessId, conduct: Conduct, packet: bytes, now: int) -> None:
        """What goes out on several networks at a time is sent once."""
        ring, seq = key = kind_key(packet)
        conduct.held.setdefault(ring, set()).add(seq)
        if packet[FLAGS_AT] & RETRANSMITTED and conduct.again_at.get(key) != now:
            conduct.again_at[key] = now
            is_second = self._has_thirds and key in self._again  # it was lost, and two answer at a time
            self._again.add(key)
            others = self._mates(process, conduct.segment)
            is_everywhere = bool(others) and all(self._arriving[key, n] > 0 or (key, n) in self._owned for n in others)
            if is_everywhere and not is_second:
                text = f"packet {seq} of ring {ring.hex()} was sent again though it reaches everybody"
                self._found(NetworkPromise.NOTHING_TWICE, process, text)
        self._owned.add((key, node_of(process)))

    def _mates(self, process: ProcessId, segment: int) -> list[int]:
        """The other hosts of a ring that a process is on; none while it is not known who they are."""
        if segment not in self._whole:
            return []
        nodes = (node_of(member) for member in self._members.get(process, ()) if member != process)
        return [node for node in nodes if segment in self._options.segments_of(node)]

    # Verdicts

    def verdicts(self) -> list[Verdict]:
        return [self._verdict(promise) for promise in NetworkPromise]

    def _verdict(self, promise: NetworkPromise) -> Verdict:
        if not self._is_owed(promise):
            return Verdict(promise, Outcome.NOT_PROMISED, "these networks and faults do not allow it")
        if promise is NetworkPromise.DELAY:
            return self._delay_verdict()
        return self._findings.verdict(promise)

    def _delay_verdict(self) -> Verdict:
        longest, bound = self._longest_ns / 1e6, self._bound_ns() / 1e6
        sentence = f"the longest delivery took {longest:.1f} ms, {bound:.1f} ms are allowed"
        outcome = Outcome.VALID if longest <= bound else Outcome.INVALID
        return Verdict(NetworkPromise.DELAY, outcome, sentence)

    def _bound_ns(self) -> int:
        ring, config = self._options.ring, self._config
        hop = config.token_hold_ns + HOP_NS
        if config.replication is not Replication.ACTIVE:
            hop += ring.token_retransmit_ns
        turns = 2 * self._options.segments - 1  # rings that wait for each other, there and back
        return turns * (ROTATIONS_MAX * self._options.nodes * hop + ring.rest_ns)

    def _is_owed(self, promise: NetworkPromise) -> bool:
        options = self._options
        if promise in (NetworkPromise.TOKENS, NetworkPromise.SENDS):
            return True
        if promise is NetworkPromise.NOTHING_TWICE:
            return options.is_one_whole and self._keeps_order()
        if promise is NetworkPromise.DELAY and any(is_blocking_all(fault) for fault in options.faults):
            return False
        return options.is_one_whole

    def _keeps_order(self) -> bool:
        """Packets of a network arrive in the order in which they were sent, whoever sent them, and the networks are
        less far apart than a token waits."""
        options = self._options
        count = options.networks.count * options.segments
        lines = [*options.lines, *[None] * count][:count]
        delays = [
            (options.delay_min_ns, options.delay_max_ns)
            if line is None
            else (line.delay_min_ns or options.delay_min_ns, line.delay_max_ns or options.delay_max_ns)
            for line in lines
        ]
        slowest = max(high for _, high in delays) + max((fault.duration_ns for fault in options.faults), default=0)
        is_steady = options.is_fifo and not (options.straggler or options.ghost or options.duplication)
        is_near = options.networks.replication is Replication.ACTIVE or 2 * slowest < options.networks.token_hold_ns
        return is_steady and is_near and all(low == high for low, high in delays)

    def _conduct(self, process: ProcessId, attachment: Attachment) -> Conduct:
        key = process, attachment
        if key not in self._conducts:
            count, segment = self._config.count, self._options.segments_of(node_of(process))[attachment]
            self._conducts[key] = Conduct(segment, [NetworkState.GOOD] * count, sent=[0] * count)
        return self._conducts[key]

    def _found(self, promise: NetworkPromise, process: ProcessId, what: str) -> None:
        self._findings.add(promise, what, process)
