"""Static: what the comparison engines share. Members come from the setup and never change, there is one configuration
from the start, and links keep the order of their packets and lose none: nothing is repaired, and nobody may fail.

An engine of the kind says what is sent for a message (`_send`), what an arriving packet means (`_take`), and what is
done now and then (`_tick`). After a quiet moment everybody says what it has delivered: then all know when all is done.
Own messages on their way are bounded, so that no receive buffer overflows. What is for everybody goes out once, or once
for each of the others (`fanout`).
"""

from __future__ import annotations

import struct
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Sequence
from typing import ClassVar, NamedTuple

from ordercast.model.configuration import ChangeReason, Configuration, ConfigurationKind
from ordercast.model.effects import Broadcast, Deliver, Effect, Install, LeaveDone, Record, Room, SendTo
from ordercast.model.errors import UsageError
from ordercast.model.ids import (
    MAIN,
    NO_CONFIGURATION,
    NO_SEQ,
    Attachment,
    ConfigurationId,
    Incarnation,
    Instant,
    NodeId,
    Position,
    ProcessId,
    Seq,
    process_id_from,
)
from ordercast.model.inputs import Interest, Lane, Packet, Stored, Submission, Submissions
from ordercast.model.notes import Moved
from ordercast.model.promises import Promise, Promises
from ordercast.model.roster import Roster
from ordercast.model.service import Service
from ordercast.order.baselines.config import BaselineConfig
from ordercast.order.engine import EngineStats, Membership, granted
from ordercast.order.setup import Setup
from ordercast.order.traffic import Traffic
from ordercast.wire.head import HEAD, HEAD_SIZE, OPENING, cluster_id_from, transmitter_of

STARTING, OPERATIONAL, GONE = "Starting", "Operational", "Gone"
MOVES = frozenset({(STARTING, OPERATIONAL), (OPERATIONAL, GONE)})
FIRST = Incarnation(1)  # nobody comes back
LINK = struct.Struct(">BQ")  # kind, number of the packet on its link: behind the clear head
LETTER = struct.Struct(">QIB")
DONE = 0  # kind of the packet that says how many messages of each member were delivered

# What an engine of the kind promises that has no order, and what one does that has a total order.
CAUSAL = frozenset(
    {
        Promise.INTEGRITY,
        Promise.NO_DUPLICATES,
        Promise.SELF_DELIVERY,
        Promise.FIFO,
        Promise.CAUSAL,
        Promise.WHOLE_MESSAGES,
        Promise.LIVENESS,
    }
)
ORDERED = CAUSAL | {Promise.TOTAL_ORDER, Promise.AGREED_DELIVERY}
SERVICES = frozenset({Service.RELIABLE, Service.FIFO, Service.CAUSAL, Service.AGREED})


class Letter(NamedTuple):
    """One message as it travels."""

    originator: ProcessId
    sender: int
    service: int
    data: bytes

    def encoded(self) -> bytes:
        return LETTER.pack(*self[:3]) + self.data


def letter_from(data: bytes) -> Letter:
    originator, sender, service = LETTER.unpack_from(data)
    return Letter(ProcessId(originator), sender, service, data[LETTER.size :])


class Static(ABC):
    name: ClassVar[str]
    promised: ClassVar[frozenset[Promise]] = ORDERED
    services: ClassVar[frozenset[Service]] = SERVICES
    traffic: ClassVar[Traffic] = Traffic()

    roster = None
    is_without_storage = False

    def __init__(self, setup: Setup) -> None:
        self.config, self.me = setup.ring, process_id_from(setup.node, FIRST)
        self.members = tuple(process_id_from(NodeId(node), FIRST) for node in range(setup.nodes))
        self.index = setup.node  # of this process among the members
        self.baseline: BaselineConfig = setup.tables["baseline"]
        self.baseline.validate()
        self.configuration = Membership(ConfigurationId(1, self.members[0]), self.members)
        size = self.config.message_size_max
        self.promises = Promises(
            self.name, self.promised, self.services, size, groups=frozenset(), replicas=frozenset()
        )
        self.stats = EngineStats()
        self._cluster = cluster_id_from(self.config.cluster, self.name)
        self.state_name = STARTING
        self._now = Instant(0)
        self._own = 0  # messages of this process that were sent
        self._delivered = dict.fromkeys(self.members, 0)  # messages of each member that were delivered here
        self._confirmed = {process: 0 for process in self.members if process != self.me}  # own ones, at the others
        self._told = 0  # deliveries that the others were told of
        self._waiting: deque[Letter] = deque()
        self._waiting_size = 0
        self._wanted = 0  # room that the layer above waits for
        self._sent: dict[ProcessId, int] = {}  # packets to each; to myself stands for to everybody
        self._received: dict[tuple[ProcessId, Lane], int] = {}
        self._rest_at: Instant | None = None
        self._tick_at: Instant | None = None
        self._effects: list[Effect] = []

    # What an engine of the kind has of its own

    @abstractmethod
    def _send(self, letter: Letter) -> None:
        """Send one message of this process."""

    @abstractmethod
    def _take(self, kind: int, transmitter: ProcessId, body: bytes) -> None:
        """Do what an arriving packet asks for."""

    def _rest(self) -> None:
        """Nothing has come for a while: say what was delivered."""
        total = sum(self._delivered.values())
        if total > self._told:
            self._told = total
            self._multicast(DONE, struct.pack(f">{len(self.members)}Q", *self._delivered.values()))

    def _tick(self) -> None:
        """So much time has passed again (`tick_ns`)."""
        return None

    @property
    def tick_ns(self) -> int:
        """The time between two calls of `_tick`; 0: there are none."""
        return 0

    @property
    def in_flight(self) -> int:
        """How many own messages are sent and not delivered here."""
        return self._own - self._delivered[self.me]

    # What it does it with

    def _multicast(self, kind: int, body: bytes) -> None:
        if len(self.members) == 1:
            return
        if self.baseline.fanout == "unicast":
            for process in self._confirmed:
                self._unicast(kind, process, body)
            return
        packet = self._packet(kind, self.me, body)
        self._effects.append(Broadcast([(packet, len(packet))]))

    def _unicast(self, kind: int, process: ProcessId, body: bytes) -> None:
        self._effects.append(SendTo(process, self._packet(kind, process, body)))

    def _packet(self, kind: int, to: ProcessId, body: bytes) -> bytes:
        number = self._sent[to] = self._sent.get(to, 0) + 1
        self.stats.packets_sent += 1
        rest = LINK.pack(kind, number) + body
        size = min(HEAD_SIZE + len(rest), 0xFFFF)  # nothing is cut here: a packet may be longer than it can say
        return HEAD.pack(OPENING, size, self._cluster, self.me) + rest

    def _deliver(self, number: int, letter: Letter) -> None:
        parcel = (number, letter.originator, [letter.sender], [letter.service], [letter.data], 1, 0)
        self._effects.append(Deliver(self.configuration.id, self.configuration.id, [parcel]))
        self._delivered[letter.originator] += 1

    # What a driver asks

    @property
    def is_ready(self) -> bool:
        return self.state_name == OPERATIONAL

    @property
    def is_gone(self) -> bool:
        return self.state_name == GONE

    @property
    def has_sent_all(self) -> bool:
        return not self._waiting and self._delivered[self.me] == self._own

    def is_idle(self) -> bool:
        return self.has_sent_all and all(count == self._own for count in self._confirmed.values())

    def stalled(self, now: Instant) -> None:
        return None

    def roster_differences(self, now: Instant) -> list[str]:
        return []

    def next_deadline(self) -> Instant | None:
        return min((at for at in (self._rest_at, self._tick_at) if at is not None), default=None)

    def room(self) -> int:
        return max(0, self.config.queue_size_max - self._waiting_size)

    def want_room(self, size: int) -> None:
        self._wanted = max(self._wanted, min(size, self.config.queue_size_max))

    def first_lane(self, attachment: Attachment = MAIN) -> Lane:
        return Lane.DATA

    def holds(self, ring: ConfigurationId, seq: Seq) -> bool:
        return True

    def deniable(self, configuration: ConfigurationId) -> tuple[Seq, Seq] | None:
        return None

    def check_invariants(self, *, thorough: bool = True) -> None:
        assert self.in_flight >= 0, "nothing is delivered that was not sent"

    # Inputs

    def start(self, stored: Stored, incarnation: Incarnation, now: Instant) -> list[Effect]:
        if incarnation != FIRST:
            raise UsageError(f"the members of {self.name} never change: none may come back")
        id, everybody = self.configuration
        kind, reason, position = ConfigurationKind.REGULAR, ChangeReason.STARTED, Position(id, NO_SEQ, 0)
        self._move(OPERATIONAL, "the members are known")
        self._now, self._tick_at = now, Instant(now + self.tick_ns) if self.tick_ns else None
        self._effects.append(Install(Configuration(kind, id, everybody, NO_CONFIGURATION, everybody, reason, position)))
        return self._end()

    def submit(self, submissions: Sequence[Submission | Submissions], now: Instant) -> list[Effect]:
        letters = [letter for submission in submissions for letter in self._letters(submission)]
        size = sum(len(letter.data) for letter in letters)
        if size > self.room():
            self.want_room(size)
            raise UsageError(f"no room for {size} bytes; wait for a Room effect")
        self._waiting.extend(letters)
        self._waiting_size += size
        self._now = now
        return self._end()

    def _letters(self, submission: Submission | Submissions) -> list[Letter]:
        if submission.service not in self.services:
            raise UsageError(f"the {self.name} does not serve {Service(submission.service).name} messages")
        payloads = [submission.data] if isinstance(submission, Submission) else submission.payloads
        return [Letter(self.me, submission.sender, int(submission.service), data) for data in payloads]

    def receive(self, packets: Sequence[Packet], now: Instant) -> list[Effect]:
        self._now = now
        for packet in packets:
            data = bytes(packet.data)
            transmitter, (kind, number) = transmitter_of(data), LINK.unpack_from(data, HEAD_SIZE)
            link = (transmitter, packet.lane)
            assert number == self._received.get(link, 0) + 1, "links keep the order of packets and lose none"
            self._received[link] = number
            body = data[HEAD_SIZE + LINK.size :]
            if kind == DONE:
                self._confirmed[transmitter] = struct.unpack(f">{len(self.members)}Q", body)[self.index]
            else:
                self._take(kind, transmitter, body)
        self._rest_at = Instant(now + self.baseline.rest_ns)
        return self._end()

    def wake(self, now: Instant) -> list[Effect]:
        self._now = now
        if self._tick_at is not None and self._tick_at <= now:
            self._tick_at = Instant(now + self.tick_ns)
            self._tick()
        if self._rest_at is not None and self._rest_at <= now:
            self._rest_at = None
            self._rest()
        return self._end()

    def leave(self, now: Instant) -> list[Effect]:
        self._move(GONE, "it was told to leave")
        return [*self._end(), LeaveDone()]

    def persisted(self, key: str, now: Instant) -> list[Effect]:
        raise UsageError(f"no write of {key!r} is outstanding")

    def interest(self, changes: Sequence[Interest], now: Instant) -> list[Effect]:
        return granted(changes)

    def enlist(self, roster: Roster, now: Instant, attachment: Attachment = MAIN) -> list[Effect]:
        raise UsageError(f"the members of {self.name} never change: there is no node list")

    def behind(self, is_behind: bool, now: Instant) -> list[Effect]:
        return []

    def _move(self, target: str, text: str) -> None:
        self._effects.append(Record(Moved(self.state_name, target, None, text)))
        self.state_name = target

    def _end(self) -> list[Effect]:
        """Send what may be sent, and hand out what was caused."""
        while self._waiting and self.in_flight < max(1, self.baseline.in_flight // len(self.members)):
            letter = self._waiting.popleft()
            self._waiting_size -= len(letter.data)
            self._own += 1
            self._send(letter)
        if self._wanted and self.room() >= self._wanted:
            self._wanted = 0
            self._effects.append(Room(self.room()))
        effects, self._effects = self._effects, []
        return effects
