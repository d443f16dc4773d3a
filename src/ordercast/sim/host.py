"""One simulated host: an engine, its clock, its disk, its receive buffers and its single processor.

It carries out effects as a driver would, and writes the history that the checkers read.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, assert_never

from ordercast.groups.turns import Turn
from ordercast.model.configuration import Configuration, ConfigurationKind
from ordercast.model.effects import (
    Act,
    Alarm,
    AlarmKind,
    Broadcast,
    Deliver,
    Effect,
    Endpoint,
    Enlisted,
    Install,
    LeaveDone,
    Parted,
    Persist,
    Placed,
    Record,
    Room,
    SendTo,
    Subscribed,
    Unicast,
    in_order,
)
from ordercast.model.errors import UsageError
from ordercast.model.ids import (
    MAIN,
    Attachment,
    Incarnation,
    Instant,
    NodeId,
    ProcessId,
    node_of,
    process_id_from,
)
from ordercast.model.inputs import EVERYWHERE, Interest, Lane, Packet, Submission
from ordercast.model.roster import Roster
from ordercast.model.service import Service
from ordercast.order.catalogue import entry_of
from ordercast.order.engine import Engine
from ordercast.order.outbox import OVERHEAD
from ordercast.sealing.keys import KeyRing
from ordercast.sealing.layer import Sealing
from ordercast.sim.faults import FaultKind
from ordercast.sim.processor import Processor
from ordercast.sim.segment import Segment
from ordercast.sim.station import Station
from ordercast.trace.client_records import End
from ordercast.trace.records import (
    Crashed,
    DeliveredBatch,
    DeliveredMessage,
    Departed,
    Installed,
    MessageId,
    Noted,
    Started,
    StorageTurned,
    Submitted,
    SubmittedMessage,
    Wanted,
    digest_of,
    message_id_of,
    stamped,
)

if TYPE_CHECKING:
    from ordercast.sim.world import World

SWEEP_EVERY = 16  # inputs between thorough checks of an engine's invariants
READ_MAX = 64  # packets per lane that one look at the network brings
_TURNS = {first: (first, *(lane for lane in Lane if lane is not first)) for first in Lane}  # of lanes


@dataclass(slots=True)
class Life:
    """What ends with a crash."""

    engine: Engine
    process: ProcessId
    inbox: list[dict[Lane, list[deque[bytes]]]]  # what came, by attachment, lane and network
    processor: Processor
    counters: dict[int, int] = field(default_factory=dict)  # messages submitted, by sender
    view: Configuration | None = None  # the last regular view
    wake_at: int | None = None  # the earliest scheduled wake
    busy_until: int = 0
    disk_free_at: int = 0
    waiting: int = 0  # packets in all of the inbox
    is_reading: bool = False  # a look at the network is scheduled
    crash_at_write: FaultKind | None = None
    unwritten: list[Persist] = field(default_factory=list)  # for want of a disk
    station: Station | None = None  # the groups and their clients
    will_pump: bool = False  # what waits at the station is about to be submitted


@dataclass(slots=True)
class Host:
    world: World
    node: int
    make_engine: Callable[[NodeId], Engine]
    segments: list[Segment]  # by attachment
    drift: float = 0.0
    slowness: float = 1.0  # how many times longer everything takes here
    disk: dict[str, bytes] = field(default_factory=dict)
    is_disk_failing: bool = False  # nothing reaches it
    lives: int = 0
    life: Life | None = None
    paused_until: int = 0
    narrow_until: list[int] = field(default_factory=list)  # the receive buffer is nearly full, by attachment
    has_left: bool = False
    roster: Roster | None = None  # what its file says
    reached: dict[Attachment, set[int]] = field(default_factory=dict)  # nodes that packets are sent to; else everybody
    topics: set[int] = field(default_factory=set)  # that its application wants

    def __post_init__(self) -> None:
        self.narrow_until = [0] * len(self.segments)

    # Beginnings and ends

    def start(self) -> None:
        kept_storage = bool(self.disk) or self.lives == 0
        self.has_left = False
        self.reached.clear()
        self.lives += 1
        engine = self.make_engine(NodeId(self.node))
        process = process_id_from(NodeId(self.node), Incarnation(self.lives))
        options = self.world.options
        count = options.networks.count
        inbox: list[dict[Lane, list[deque[bytes]]]] = [
            {lane: [deque() for _ in range(count)] for lane in Lane} for _ in self.segments
        ]
        processor = Processor(options, engine.traffic, self.slowness)
        self.life = Life(engine, process, inbox, processor, station=self._station(process))
        self.world.record(Started(self._at(), process, engine.promises, kept_storage))
        self._carry_out(engine.start(dict(self.disk), Incarnation(self.lives), self.local_now()))
        if self.roster is not None:
            self.enlist(self.roster)
        if self.life is not None and self.topics:
            wanted = [Interest(topic_name(topic), is_wanted=True) for topic in sorted(self.topics)]
            self._input(self.life, engine.interest(wanted, self.local_now()))
        if self.world.replicas is not None:
            self.world.replicas.daemon_started(self.node)

    def enlist(self, roster: Roster) -> None:
        """The file has changed, and is read if the host runs; a list that is not newer is refused."""
        if self.roster is None or roster.version > self.roster.version:
            self.roster = roster
        if self.is_paused:
            self.world.schedule(self.paused_until, self.enlist, roster)
        else:
            for attachment in range(len(self.segments)):
                self._enlist(roster, Attachment(attachment))

    def _enlist(self, roster: Roster, attachment: Attachment) -> None:
        if self.life is not None and not self.has_left:
            with suppress(UsageError):
                self._input(self.life, self.life.engine.enlist(roster, self.local_now(), attachment))

    def reaches(self, node: int, attachment: Attachment) -> bool:
        """Whether packets on this attachment are sent to a node: not where a list does not name it."""
        reached = self.reached.get(attachment)
        return reached is None or node in reached

    def take_keys(self, sealing: Sealing, keys: KeyRing) -> None:
        """The file of keys has changed, and is read."""
        assert self.life is not None
        self._input(self.life, sealing.rekey(keys, self.local_now()))

    def crash(self) -> None:
        if self.life is not None:
            self.world.record(Crashed(self._at(), self.life.process))
            self._close(self.life, End.DAEMON_CRASHED)

    def _close(self, life: Life, how: End) -> None:
        if life.station is not None:
            life.station.close(how)
        if self.world.keeper is not None:
            self.world.keeper.ended(self.node)
        self.life = None

    def _station(self, process: ProcessId) -> Station | None:
        return Station(self, process) if self.world.options.has_clients else None

    @property
    def joins_segments(self) -> bool:
        """Whether segments might fall apart without it. Sites reach each other directly, unless links are few."""
        options = self.world.options
        return len(self.segments) > 1 and (bool(options.site_links) or not entry_of(options.engine).has_sites)

    @property
    def is_router(self) -> bool:
        """Whether others reach each other over this host."""
        return self.life is not None and len(self.segments) > 1

    @property
    def is_paused(self) -> bool:
        return self.world.now < self.paused_until

    def local_now(self) -> Instant:
        return Instant(int(self.world.now * (1 + self.drift)))

    def _global(self, local: int) -> int:
        return int(local / (1 + self.drift)) + 1

    def _at(self) -> Instant:
        return Instant(self.world.now)

    # Inputs

    def submit(
        self, sender: int, service: Service, size: int, filler: bytes, destinations: tuple[str, ...] = EVERYWHERE
    ) -> bool:
        """One message of the application; False when there is no room for it, or nobody to take it."""
        life = self.life
        if life is None or not self._can_submit(life, size):
            return False
        self._submit(life, sender, service, (filler,), destinations)
        return True

    def turn_to(self, topic: int) -> None:
        """The application begins or ceases to want a topic."""
        life, wants = self.life, topic not in self.topics
        if self.is_paused or self.has_left:
            return
        (self.topics.add if wants else self.topics.discard)(topic)
        if life is not None:
            if not wants:
                self._record_wanted(life, (topic_name(topic),), begins=False)
            self._input(life, life.engine.interest([Interest(topic_name(topic), wants)], self.local_now()))

    def _can_submit(self, life: Life, size: int) -> bool:
        return not self.has_left and not self.is_paused and life.engine.room() >= size + OVERHEAD

    def _submit(
        self,
        life: Life,
        sender: int,
        service: Service,
        fillers: Sequence[bytes],
        destinations: tuple[str, ...] = EVERYWHERE,
    ) -> None:
        submissions, submitted = [], []
        for filler in fillers:
            counter = life.counters[sender] = life.counters.get(sender, 0) + 1
            message = MessageId(life.process, sender, counter)
            data = stamped(message, filler)
            submitted.append(SubmittedMessage(message, digest_of(data), int(service), len(data)))
            submissions.append(Submission(data, service, sender, destinations))
        self.world.record(Submitted(self._at(), life.process, tuple(submitted), destinations))
        self._input(life, life.engine.submit(submissions, self.local_now()))

    def submit_for_clients(self) -> None:
        """Have what waits at the station submitted, once the effects at hand are carried out."""
        life = self.life
        if life is not None and life.station is not None and not life.will_pump:
            life.will_pump = True
            self.world.schedule(max(self.world.now, self.paused_until), self._pump, life)

    def _pump(self, life: Life) -> None:
        """Submit as much as there is room for."""
        life.will_pump = False
        if self.is_paused:
            self.submit_for_clients()
            return
        self._tell_interest(life)
        while life is self.life and not self.has_left and (turn := self._next_turn(life)) is not None:
            assert life.station is not None
            life.station.submitting(turn)
            self._submit(life, turn.session, turn.service, turn.payloads, turn.destinations)
            life.station.submitted(turn)

    def _tell_interest(self, life: Life) -> None:
        assert life.station is not None
        interests = life.station.desk.interests
        if interests.has_changes and life is self.life and not self.has_left:
            changes = interests.changes()
            self._record_wanted(life, tuple(change.group for change in changes if not change.is_wanted), begins=False)
            self._input(life, life.engine.interest(changes, self.local_now()))

    def _record_wanted(self, life: Life, destinations: tuple[str, ...], *, begins: bool) -> None:
        """Where nothing is pruned everybody is owed everything, and nobody needs to know."""
        if destinations and life.engine.promises.prunes:
            self.world.record(Wanted(self._at(), life.process, destinations, begins))

    def _next_turn(self, life: Life) -> Turn | None:
        def has_room(size: int) -> bool:
            if life.engine.room() >= size:
                return True
            life.engine.want_room(size)
            return False

        assert life.station is not None
        return life.station.desk.next_turn(has_room)

    def fall_behind(self, is_behind: bool) -> None:
        """Some client here is so far behind that all are to wait for it, or none is any more."""
        self.world.schedule(max(self.world.now, self.paused_until), self._tell_behind, self.life, is_behind)

    def _tell_behind(self, life: Life | None, is_behind: bool) -> None:
        if life is not None and life is self.life and not self.has_left:
            self._input(life, life.engine.behind(is_behind, self.local_now()))

    def leave(self) -> None:
        if self.is_paused:
            self.world.schedule(self.paused_until, self.leave)
        elif self.life is not None and not self.has_left:
            if self.life.station is not None and self.life.station.is_behind:
                self._tell_behind(self.life, False)  # who leaves takes what it is given
            self.has_left = True
            self._input(self.life, self.life.engine.leave(self.local_now()))

    def arrive(self, lane: Lane, packets: list[bytes], network: int = 0, attachment: Attachment = MAIN) -> None:
        life = self.life
        if life is None:
            return
        inbox = life.inbox[attachment][lane][network]
        room = 4 if self.world.now < self.narrow_until[attachment] else self.world.options.receive_buffer
        free = max(0, room - len(inbox))
        taken = packets[:free]
        inbox.extend(taken)
        life.waiting += len(taken)
        if self.world.witness is not None and len(packets) > free:
            self.world.witness.overflowed(self.node, packets[free:])
        self._read_soon(life)

    def _read_soon(self, life: Life) -> None:
        if life.waiting and not life.is_reading:
            life.is_reading = True
            at = max(self.world.now, life.busy_until, self.paused_until)
            self.world.schedule(at, self._read, life)

    def _read(self, life: Life) -> None:
        """Drain the lanes in the order that the engine asks for, links last, then pay the price in time."""
        if life is not self.life:
            return
        life.is_reading = False
        if self.is_paused:
            self._read_soon(life)
            return
        packets: list[Packet] = []
        for number, inbox in enumerate(life.inbox):
            attachment = Attachment(number)
            for lane in _TURNS[life.engine.first_lane(attachment)]:
                packets += _drained(inbox[lane], lane, attachment)
        life.waiting -= len(packets)
        if self.world.keeper is not None:
            packets = joined(packets)
        cost = life.processor.receiving_ns(packets)
        life.busy_until = self.world.now + cost
        if self.world.witness is not None:
            self.world.witness.received(life.process, packets, self.world.now)
        if self.world.slot_witness is not None:
            self.world.slot_witness.received(life.process, packets, self.world.now)
        if self.world.rings_witness is not None:
            self.world.rings_witness.received(life.process, packets)
        self._input(life, life.engine.receive(packets, self.local_now()), delay=cost)
        self._read_soon(life)

    def wake(self, life: Life, at: int) -> None:
        if life is not self.life or life.wake_at != at:
            return
        life.wake_at = None
        if self.is_paused:
            self._arm(life, max(self.paused_until, life.busy_until))
            return
        self._input(life, life.engine.wake(self.local_now()))

    def poke(self, process: ProcessId) -> None:
        """Something other than packets has come for the engine of this process: have it look."""
        life = self.life
        if life is None or life.process != process:
            return
        if self.is_paused:
            self.world.schedule(self.paused_until, self.poke, process)
        else:
            self._input(life, life.engine.wake(self.local_now()))

    def _input(self, life: Life, effects: list[Effect], delay: int = 0) -> None:
        self.world.inputs += 1
        if life is self.life:
            life.engine.check_invariants(thorough=self.world.inputs % SWEEP_EVERY == 0)
            self._carry_out(effects, delay)

    # Effects

    def _carry_out(self, effects: list[Effect], delay: int = 0) -> None:
        """In order; what leaves the host leaves after the processing time."""
        life = self.life
        assert life is not None
        send_ns, departure = self.world.options.send_ns, self.world.now + delay
        for effect in in_order(effects):
            if send_ns and isinstance(effect, Broadcast):
                departure = self._send_slowly(life, effect, departure)
                continue
            if send_ns and isinstance(effect, SendTo | Unicast):
                packets = 1 if isinstance(effect, SendTo) else len(effect.packets)
                departure += life.processor.sending_ns(packets * len(effect.networks))
            self._carry_out_one(life, effect, departure)
            if life is not self.life:
                return
        life.busy_until = max(life.busy_until, departure)
        deadline = life.engine.next_deadline()
        if deadline is not None:
            self._arm(life, max(self.world.now, self._global(deadline)))

    def _send_slowly(self, life: Life, effect: Broadcast, departure: int) -> int:
        """One packet after the other, each on one network after the other."""
        world, send_ns = self.world, life.processor.sending_ns()
        self._witness(life, effect)
        networks = self.segments[effect.attachment].networks
        for packet in effect.packets:
            for number in effect.networks:
                departure += send_ns
                others = world.others(self.node, effect.attachment)
                networks[number].broadcast(self.node, others, [packet], departure)
        return departure

    def _witness(self, life: Life, effect: Effect) -> None:
        world = self.world
        if isinstance(effect, Broadcast | SendTo | Unicast):
            packets = [effect.packet] if isinstance(effect, SendTo) else effect.packets
            size_max = world.options.packet_size_max(is_link=isinstance(effect, Unicast))
            assert max(map(len, packets), default=0) <= size_max, "no network should have to cut a packet"
            world.packets += len(packets) * len(effect.networks)
        if world.witness is not None:
            world.witness.effect(life.process, effect, world.now)
        if world.slot_witness is not None:
            world.slot_witness.effect(life.process, effect, world.now)

    def _carry_out_one(self, life: Life, effect: Act, departure: int) -> None:
        world = self.world
        self._witness(life, effect)
        match effect:
            case Record():
                world.record(Noted(self._at(), life.process, effect.note))
            case Broadcast():
                packets, others = effect.packets, world.others(self.node, effect.attachment)
                for number in effect.networks:
                    self.segments[effect.attachment].networks[number].broadcast(self.node, others, packets, departure)
            case SendTo():
                target, segment = node_of(effect.process), self.segments[effect.attachment]
                if target in segment.attachments and self.reaches(target, effect.attachment):
                    for number in effect.networks:
                        segment.networks[number].unicast(self.node, target, effect.packet, departure)
            case Unicast(target=whom):
                node = int(whom.host) if isinstance(whom, Endpoint) else node_of(whom)
                if self.reaches(node, effect.attachment):
                    segment = self.segments[effect.attachment]
                    segment.carry(self.node, node, Lane.LINK, effect.packets, effect.networks, departure)
            case Deliver():
                self._deliver(life, effect)
            case Install():
                world.record(Installed(self._at(), life.process, effect.configuration))
                if effect.configuration.kind is ConfigurationKind.REGULAR:
                    life.view = effect.configuration
                if life.station is not None:
                    life.station.install(effect)
            case Persist():
                self._persist(life, effect)
            case Alarm():
                world.alarms.append((world.now, life.process, effect))
                if world.keeper is not None:
                    world.keeper.alarmed(self.node, effect)
                if effect.kind in (AlarmKind.WITHOUT_STORAGE, AlarmKind.STORAGE_REPAIRED):
                    in_use = effect.kind is AlarmKind.STORAGE_REPAIRED
                    world.record(StorageTurned(self._at(), life.process, in_use))
            case LeaveDone():
                world.record(Departed(self._at(), life.process))
                self._close(life, End.DAEMON_LEFT)
                world.departed(self)
            case Room():
                self.submit_for_clients()
            case Subscribed():
                self._record_wanted(life, effect.groups, begins=True)
                if life.station is not None and life.station.desk.subscribed(effect.groups):
                    self.submit_for_clients()
            case Parted():
                if life.station is not None:
                    life.station.part(effect)
            case Placed():
                if life.station is not None:
                    life.station.placed(effect)
            case Enlisted():
                self.reached[effect.attachment] = {entry.node for entry in (*effect.roster.entries, *effect.tolerated)}
                if world.rosters is not None:
                    world.rosters.enlisted(self.segments[effect.attachment].number, life.process, effect.roster)
            case _:
                assert_never(effect)

    def _deliver(self, life: Life, effect: Deliver) -> None:
        messages = tuple(
            DeliveredMessage(message_id_of(data), digest_of(data), service, len(data), seq, slot)
            for seq, slot, _, _, service, data in effect.messages()
        )
        self.world.record(DeliveredBatch(self._at(), life.process, effect.configuration, effect.origin, messages))
        if life.station is not None:
            life.station.deliver(effect)

    def _persist(self, life: Life, effect: Persist) -> None:
        world = self.world
        fault = life.crash_at_write
        if fault is not None:
            is_written = fault is FaultKind.CRASH_AFTER_WRITE or (
                fault is FaultKind.CRASH_DURING_WRITE and world.rng.random() < 0.5
            )
            if is_written and not self.is_disk_failing:
                self.disk[effect.key] = effect.value
            self.crash()
            return
        duration = world.rng.randrange(world.options.disk_ns, 2 * world.options.disk_ns + 1)
        life.disk_free_at = max(world.now, life.disk_free_at) + duration  # one write after the other
        world.schedule(life.disk_free_at, self._written, life, effect)

    def _written(self, life: Life, effect: Persist) -> None:
        """The write is complete. A crash before this moment leaves the old value."""
        if life is not self.life:
            return
        if self.is_paused:
            self.world.schedule(self.paused_until, self._written, life, effect)
            return
        if self.is_disk_failing:
            life.unwritten.append(effect)
            return
        self.disk[effect.key] = effect.value
        self._input(life, life.engine.persisted(effect.key, self.local_now()))

    def mend_disk(self) -> None:
        """What waited is written now."""
        self.is_disk_failing = False
        life = self.life
        if life is not None:
            waiting, life.unwritten = life.unwritten, []
            for effect in waiting:
                if life is self.life:  # a write may be where it crashes
                    self._persist(life, effect)

    def _arm(self, life: Life, at: int) -> None:
        if life.wake_at is None or at < life.wake_at:
            life.wake_at = at
            self.world.schedule(at, self.wake, life, at)


def topic_name(topic: int) -> str:
    return f"t{topic}"


def joined(packets: list[Packet]) -> list[Packet]:
    """Return packets of one size that came in a row as one read, as kernels and lanes join them."""
    reads: list[Packet] = []
    for packet in packets:
        last = reads[-1] if reads else None
        if last is not None and packet[2:] == last[2:] and len(packet.data) <= last.segment_size:
            is_whole = len(last.data) % last.segment_size == 0
            if is_whole and packet.data[4:6] == last.data[4:6]:
                reads[-1] = last._replace(data=bytes(last.data) + bytes(packet.data))
                continue
        reads.append(packet)
    return reads


def _drained(inboxes: list[deque[bytes]], lane: Lane, attachment: Attachment) -> list[Packet]:
    """What one look at a lane of an attachment brings, from one network after the other."""
    packets: list[Packet] = []
    for network, inbox in enumerate(inboxes):
        if not inbox:
            continue
        if len(inbox) <= READ_MAX:
            taken = list(inbox)
            inbox.clear()
        else:
            taken = [inbox.popleft() for _ in range(READ_MAX)]
        packets += [Packet(data, len(data), lane, attachment, network) for data in taken]
    return packets
