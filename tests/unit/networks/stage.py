"""The layer with an engine that is played by hand: packets in on named networks, effects out, time as the test says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ordercast.model.configuration import ChangeReason, Configuration, ConfigurationKind
from ordercast.model.effects import Alarm, AlarmKind, Broadcast, Effect, Install, Record, SendTo
from ordercast.model.ids import (
    MAIN,
    NO_SEQ,
    NOBODY,
    Attachment,
    ConfigurationId,
    Incarnation,
    Instant,
    NodeId,
    Position,
    ProcessId,
    Seq,
    TokenSeq,
    process_id_from,
)
from ordercast.model.inputs import Interest, Lane, Packet, Stored, Submission, Submissions
from ordercast.model.notes import NetworkState, NetworkTurned, Release, TokenReleased
from ordercast.model.promises import Promises
from ordercast.model.roster import Roster
from ordercast.networks.config import NetworksConfig, Replication
from ordercast.networks.layer import Networks
from ordercast.networks.probe import Probe, decode_probe, encode_probe
from ordercast.order.ring.config import RingConfig
from ordercast.order.ring.traffic import RING_TRAFFIC
from ordercast.order.traffic import Traffic
from ordercast.wire.codec import decode, encode
from ordercast.wire.head import KIND_AT, LAYER_KIND, cluster_id_from
from ordercast.wire.header import Heading, MessageKind
from ordercast.wire.header import retransmitted as sent_again
from ordercast.wire.messages import Announcement, CommitEntry, CommitToken, Join, Token
from ordercast.wire.run import build_data
from tests.packets import seq_of

CLUSTER = cluster_id_from("ordercast")
ME, TWO, THREE, FOUR = (process_id_from(NodeId(node), Incarnation(1)) for node in (1, 2, 3, 4))
EVERYBODY = (ME, TWO, THREE, FOUR)
RING = ConfigurationId(8, ME)
HOLD = NetworksConfig().token_hold_ns


def config(style: Replication = Replication.ACTIVE, count: int = 2, **changes: Any) -> NetworksConfig:
    return NetworksConfig(count=count, replication=style, **changes)


def data_packet(seq: int, transmitter: ProcessId = TWO, ring: ConfigurationId = RING, again: bool = False) -> bytes:
    heading = Heading(CLUSTER, ring, EVERYBODY)
    text = f"{seq:06}".encode()
    packet = build_data(heading, 0, [(0, len(text), 4, text)], transmitter, Seq(seq), 1, seq).packet(Seq(seq))
    return sent_again(packet, transmitter) if again else packet


def token_packet(number: int, seq: int = 0, sender: ProcessId = FOUR, ring: ConfigurationId = RING) -> bytes:
    token = Token(ring, sender, TokenSeq(number), 1, Seq(seq), NO_SEQ, NOBODY, (), 0, 0, 0, 0, False, 0)
    return encode(CLUSTER, token)


def announcement(sender: ProcessId = TWO, ring: ConfigurationId = RING) -> bytes:
    return encode(CLUSTER, Announcement(ring, sender, EVERYBODY, ()))


def join(sender: ProcessId = TWO) -> bytes:
    return encode(CLUSTER, Join(RING, sender, 1, 4, (sender,), (), 0, ChangeReason.MERGE, NOBODY, ()))


class FakeEngine:
    """Remembers what it was given; says what it is told to say."""

    def __init__(self) -> None:
        self.taken: list[Packet] = []
        self.answers: list[list[Effect]] = []  # to the next inputs
        self.aru = 1 << 40
        self.asked: list[tuple[ConfigurationId, Seq]] = []
        self.deadline: Instant | None = None
        self.wakes = 0

    @property
    def promises(self) -> Promises:
        return Promises("ring", frozenset(), frozenset(), 1)

    @property
    def traffic(self) -> Traffic:
        return RING_TRAFFIC

    def _answer(self) -> list[Effect]:
        return self.answers.pop(0) if self.answers else []

    def start(self, stored: Stored, incarnation: Incarnation, now: Instant) -> list[Effect]:
        return self._answer()

    def submit(self, submissions: Sequence[Submission | Submissions], now: Instant) -> list[Effect]:
        return self._answer()

    def receive(self, packets: Sequence[Packet], now: Instant) -> list[Effect]:
        self.taken += packets
        return self._answer()

    def persisted(self, key: str, now: Instant) -> list[Effect]:
        return self._answer()

    def interest(self, changes: Sequence[Interest], now: Instant) -> list[Effect]:
        return self._answer()

    def wake(self, now: Instant) -> list[Effect]:
        self.wakes += 1
        self.deadline = None
        return self._answer()

    def enlist(self, roster: Roster, now: Instant, attachment: Attachment = MAIN) -> list[Effect]:
        return self._answer()

    def behind(self, is_behind: bool, now: Instant) -> list[Effect]:
        return self._answer()

    def leave(self, now: Instant) -> list[Effect]:
        return self._answer()

    def next_deadline(self) -> Instant | None:
        return self.deadline

    def room(self) -> int:
        return 77

    def want_room(self, size: int) -> None: ...

    def is_idle(self) -> bool:
        return True

    def first_lane(self, attachment: Attachment = MAIN) -> Lane:
        return Lane.DATA

    def holds(self, ring: ConfigurationId, seq: Seq) -> bool:
        self.asked.append((ring, seq))
        return self.aru >= seq

    def deniable(self, configuration: ConfigurationId) -> tuple[Seq, Seq] | None:
        return None

    def check_invariants(self, *, thorough: bool = True) -> None: ...


def view(members: Sequence[ProcessId] = EVERYBODY, ring: ConfigurationId = RING) -> Install:
    chosen = tuple(members)
    regular = Configuration(
        ConfigurationKind.REGULAR, ring, chosen, RING, chosen, ChangeReason.MERGE, Position(ring, NO_SEQ, 0)
    )
    return Install(regular)


class Stage:
    def __init__(
        self,
        style: Replication = Replication.ACTIVE,
        count: int = 2,
        ring: RingConfig | None = None,
        members: Sequence[ProcessId] = EVERYBODY,
        engine: FakeEngine | None = None,
        **changes: Any,
    ) -> None:
        self.config = config(style, count, **changes)
        self.engine = engine or FakeEngine()
        self.layer = Networks(self.engine, NodeId(1), self.config, ring or RingConfig(), verbose=True)
        self.now = Instant(0)
        self.log: list[Effect] = []
        self.numbers: dict[tuple[ProcessId, int], int] = {}
        self.engine.answers.append([view(members)])
        self._keep(self.layer.start({}, Incarnation(1), self.now))

    # Inputs

    def give(self, network: int, *packets: bytes) -> list[Effect]:
        """In one look at the networks."""
        return self.give_all(*((network, packet) for packet in packets))

    def give_all(self, *packets: tuple[int, bytes]) -> list[Effect]:
        listed = [
            Packet(data, len(data), Lane.TOKEN if data[KIND_AT] == MessageKind.TOKEN else Lane.DATA, network=network)
            for network, data in packets
        ]
        return self._keep(self.layer.receive(listed, self.now))

    def give_run(self, network: int, packets: Sequence[bytes]) -> list[Effect]:
        """Packets of one size in one read."""
        return self._keep(self.layer.receive([Packet(b"".join(packets), len(packets[0]), network=network)], self.now))

    def token(self, number: int, *networks: int, seq: int = 0, ring: ConfigurationId = RING) -> list[Effect]:
        effects: list[Effect] = []
        for network in networks:
            effects += self.give(network, token_packet(number, seq, ring=ring))
        return effects

    def probe(
        self,
        network: int,
        sender: ProcessId,
        state: NetworkState = NetworkState.FAULTY,
        whole: bool = True,
        skip: int = 0,
        ring: ConfigurationId = RING,
        elsewhere: bool = True,
        in_need: bool = False,
    ) -> list[Effect]:
        """On one network; who probes one probes the others too, and thinks well of them."""
        for other in range(self.config.count if elsewhere else 0):
            if other != network:
                self.probe(other, sender, NetworkState.GOOD, ring=ring, elsewhere=False)
        number = self.numbers[sender, network] = self.numbers.get((sender, network), 0) + 1 + skip
        return self.give(network, encode_probe(CLUSTER, Probe(ring, sender, number, network, state, whole, in_need)))

    def send(self, *effects: Effect) -> list[Effect]:
        """The engine wants this."""
        self.engine.answers.append(list(effects))
        return self._keep(self.layer.submit([], self.now))

    def wait(self, duration: int) -> list[Effect]:
        end = self.now + duration
        effects: list[Effect] = []
        while (deadline := self.layer.next_deadline()) is not None and deadline <= end:
            self.now = max(self.now, deadline)
            effects += self._keep(self.layer.wake(self.now))
        self.now = Instant(end)
        return effects

    def mark(self, network: int) -> list[Effect]:
        """By the word of a member."""
        return self.probe(network, TWO, NetworkState.FAULTY)

    def _keep(self, effects: list[Effect]) -> list[Effect]:
        self.layer.check_invariants()
        self.log += effects
        return effects

    # Questions

    @property
    def up(self) -> list[bytes]:
        """What the engine was given."""
        return [bytes(packet.data) for packet in self.engine.taken]

    @property
    def tokens_up(self) -> list[int]:
        return [number_of(packet) for packet in self.up if packet[KIND_AT] == MessageKind.TOKEN]

    def state(self, network: int) -> NetworkState:
        return self.layer.marks[network]


def number_of(packet: bytes) -> int:
    token = decode(packet, CLUSTER)
    assert isinstance(token, Token)
    return token.token_seq


def releases(effects: Sequence[Effect]) -> list[Release]:
    notes = [effect.note for effect in effects if isinstance(effect, Record)]
    return [note.cause for note in notes if isinstance(note, TokenReleased)]


def turns(effects: Sequence[Effect]) -> list[NetworkTurned]:
    notes = [effect.note for effect in effects if isinstance(effect, Record)]
    return [note for note in notes if isinstance(note, NetworkTurned)]


def alarms(effects: Sequence[Effect], kind: AlarmKind = AlarmKind.NETWORK_FAULTY) -> list[Alarm]:
    return [effect for effect in effects if isinstance(effect, Alarm) and effect.kind is kind]


def probes(effects: Sequence[Effect]) -> list[tuple[int, Probe]]:
    """(network, probe)"""
    return [
        (effect.networks[0], decode_probe(effect.bursts[0][0], CLUSTER))
        for effect in effects
        if isinstance(effect, Broadcast) and effect.bursts[0][0][KIND_AT] == LAYER_KIND
    ]


def sends(effects: Sequence[Effect]) -> list[tuple[int, int]]:
    """(network, seq) of data packets, in the order in which they go out."""
    return [
        (network, seq_of(packet))
        for effect in effects
        if isinstance(effect, Broadcast) and effect.bursts[0][0][KIND_AT] == MessageKind.DATA
        for network in effect.networks
        for packet in effect.packets
    ]


def burst(first: int, count: int = 1) -> Broadcast:
    packets = [data_packet(seq, ME) for seq in range(first, first + count)]
    return Broadcast([(b"".join(packets), len(packets[0]))])


def token_out(number: int = 5, *, is_vital: bool = False) -> SendTo:
    return SendTo(TWO, token_packet(number, sender=ME), is_vital=is_vital)


def commit_out(ring: ConfigurationId) -> SendTo:
    """This process agrees to a ring."""
    members = (CommitEntry(ME), CommitEntry(TWO))
    return SendTo(TWO, encode(CLUSTER, CommitToken(ring, ME, TokenSeq(1), ChangeReason.MERGE, members, 0)))


def token_networks(effects: Sequence[Effect]) -> list[tuple[int, ...]]:
    return [effect.networks for effect in effects if isinstance(effect, SendTo)]
