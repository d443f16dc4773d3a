"""One simulated host: an engine, its clock, its disk, its receive buffers and its single processor.

It carries out effects as a driver would, and writes the history that the checkers read.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, assert_never

from ordercast.groups.layer import Groups
from ordercast.model.configuration import Configuration, ConfigurationKind
from ordercast.model.effects import (
    Alarm,
    AlarmKind,
    Broadcast,
    Deliver,
    Effect,
    Enlisted,
    Install,
    LeaveDone,
    Persist,
    Record,
    Room,
    SendTo,
)
from ordercast.model.errors import UsageError
from ordercast.model.ids import Incarnation, Instant, NodeId, ProcessId, node_of, process_id_from
from ordercast.model.inputs import Lane, Packet, Submission
from ordercast.model.roster import Roster
from ordercast.model.service import Service
from ordercast.order.engine import Engine
from ordercast.sim.faults import FaultKind
from ordercast.sim.group_tally import GroupTally
from ordercast.sim.processor import Processor
from ordercast.sim.station import Station, station_name
from ordercast.trace.client_records import End
from ordercast.trace.records import (
    STAMP_SIZE,
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
    digest_of,
    message_id_of,
    stamped,
)

if TYPE_CHECKING:
    from ordercast.sim.world import World

SWEEP_EVERY = 16  # inputs between thorough checks of an engine's invariants
READ_MAX = 64  # packets per lane that one look at the network brings


@dataclass(slots=True)
class Life:
    """What ends with a crash."""

    engine: Engine
    process: ProcessId
    inbox: dict[Lane, list[deque[bytes]]]  # what came, by lane and network
    processor: Processor
    counters: dict[int, int] = field(default_factory=dict)  # messages submitted, by sender
    view: Configuration | None = None  # the last regular view
    wake_at: int | None = None  # the earliest scheduled wake
    busy_until: int = 0
    disk_free_at: int = 0
    is_reading: bool = False  # a look at the network is scheduled
    crash_at_write: FaultKind | None = None
    unwritten: list[Persist] = field(default_factory=list)  # for want of a disk
    station: Station | None = None  # the groups and their clients
    is_submitting: bool = False  # what the station wants


@dataclass(slots=True)
class Host:
    world: World
    node: int
    make_engine: Callable[[NodeId], Engine]
    drift: float = 0.0
    slowness: float = 1.0  # how many times longer everything takes here
    disk: dict[str, bytes] = field(default_factory=dict)
    is_disk_failing: bool = False  # nothing reaches it
    lives: int = 0
    life: Life | None = None
    paused_until: int = 0
    narrow_until: int = 0  # the receive buffer is nearly full until then
    has_left: bool = False
    roster: Roster | None = None  # what its file says
    reached: set[int] | None = None  # nodes that packets are sent to; None: everybody

    # Beginnings and ends

    def start(self) -> None:
        kept_storage = bool(self.disk) or self.lives == 0
        self.has_left = False
        self.reached = None
        self.lives += 1
        engine = self.make_engine(NodeId(self.node))
        process = process_id_from(NodeId(self.node), Incarnation(self.lives))
        options = self.world.options
        count = options.networks.count
        inbox: dict[Lane, list[deque[bytes]]] = {lane: [deque() for _ in range(count)] for lane in Lane}
        processor = Processor(options, engine.traffic, self.slowness)
        self.life = Life(engine, process, inbox, processor, station=self._station(process))
        self.world.record(Started(self._at(), process, engine.promises, kept_storage))
        self._carry_out(engine.start(dict(self.disk), Incarnation(self.lives), self.local_now()))
        if self.roster is not None:
            self.enlist(self.roster)
        if self.world.replicas is not None:
            self.world.replicas.daemon_started(self.node)

    def enlist(self, roster: Roster) -> None:
        """The file has changed, and is read if the host runs; a list that is not newer is refused."""
        if self.roster is None or roster.version > self.roster.version:
            self.roster = roster
        if self.is_paused:
            self.world.schedule(self.paused_until, self.enlist, roster)
        elif self.life is not None and not self.has_left:
            with suppress(UsageError):
                self._input(self.life, self.life.engine.enlist(roster, self.local_now()))

    def crash(self) -> None:
        if self.life is not None:
            self.world.record(Crashed(self._at(), self.life.process))
            self._close(self.life, End.DAEMON_CRASHED)

    def _close(self, life: Life, how: End) -> None:
        if life.station is not None:
            life.station.close(how)
        self.life = None

    def _station(self, process: ProcessId) -> Station | None:
        world = self.world
        if not world.options.has_clients:
            return None
        tally = GroupTally(world.group_counts, world.names)
        return Station(process, Groups(process, station_name(process)), tally, world.tell, self._at)

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

    def submit(self, sender: int, service: Service, size: int, filler: bytes) -> bool:
        """One message of the application; False when there is no room for it, or nobody to take it."""
        life = self.life
        if life is None or not self._can_submit(life, size):
            return False
        self._submit(life, sender, service, filler)
        return True

    def _can_submit(self, life: Life, size: int) -> bool:
        return not self.has_left and not self.is_paused and life.engine.room() >= size + 64

    def _submit(self, life: Life, sender: int, service: Service, filler: bytes) -> None:
        counter = life.counters.get(sender, 0) + 1
        message = MessageId(life.process, sender, counter)
        data = stamped(message, filler)
        life.counters[sender] = counter
        submitted = SubmittedMessage(message, digest_of(data), int(service), len(data))
        self.world.record(Submitted(self._at(), life.process, (submitted,)))
        submission = Submission(data, service, sender)
        self._input(life, life.engine.submit([submission], self.local_now()))

    def submit_for_clients(self) -> None:
        """What waits at the station, as much as there is room for."""
        life = self.life
        if life is None or life.station is None or life.is_submitting:
            return
        life.is_submitting = True
        while life is self.life and (queue := life.station.queue()) is not None:
            request = queue[0]
            if not self._can_submit(life, len(request.payload) + STAMP_SIZE):
                break
            queue.popleft()
            self._submit(life, request.session, request.service, request.payload)
        life.is_submitting = False

    def leave(self) -> None:
        if self.is_paused:
            self.world.schedule(self.paused_until, self.leave)
        elif self.life is not None and not self.has_left:
            self.has_left = True
            self._input(self.life, self.life.engine.leave(self.local_now()))

    def arrive(self, lane: Lane, packets: list[bytes], network: int = 0) -> None:
        life = self.life
        if life is None:
            return
        inbox = life.inbox[lane][network]
        room = 4 if self.world.now < self.narrow_until else self.world.options.receive_buffer
        free = max(0, room - len(inbox))
        inbox.extend(packets[:free])
        if self.world.witness is not None and len(packets) > free:
            self.world.witness.overflowed(self.node, packets[free:])
        self._read_soon(life)

    def _read_soon(self, life: Life) -> None:
        if not life.is_reading and (any(life.inbox[Lane.DATA]) or any(life.inbox[Lane.TOKEN])):
            life.is_reading = True
            at = max(self.world.now, life.busy_until, self.paused_until)
            self.world.schedule(at, self._read, life)

    def _read(self, life: Life) -> None:
        """Drain the lanes in the order that the engine asks for, then pay the price in time."""
        if life is not self.life:
            return
        life.is_reading = False
        if self.is_paused:
            self._read_soon(life)
            return
        first = life.engine.first_lane()
        second = Lane.TOKEN if first is Lane.DATA else Lane.DATA
        packets = [packet for lane in (first, second) for packet in self._drain(life, lane)]
        cost = life.processor.receiving_ns(packets)
        life.busy_until = self.world.now + cost
        if self.world.witness is not None:
            self.world.witness.received(life.process, packets, self.world.now)
        self._input(life, life.engine.receive(packets, self.local_now()), delay=cost)
        self._read_soon(life)

    def _drain(self, life: Life, lane: Lane) -> list[Packet]:
        packets: list[Packet] = []
        for network, inbox in enumerate(life.inbox[lane]):
            if len(inbox) <= READ_MAX:
                taken = list(inbox)
                inbox.clear()
            else:
                taken = [inbox.popleft() for _ in range(READ_MAX)]
            packets += [Packet(data, len(data), lane, network=network) for data in taken]
        return packets

    def wake(self, life: Life, at: int) -> None:
        if life is not self.life or life.wake_at != at:
            return
        life.wake_at = None
        if self.is_paused:
            self._arm(life, max(self.paused_until, life.busy_until))
            return
        self._input(life, life.engine.wake(self.local_now()))

    def _input(self, life: Life, effects: list[Effect], delay: int = 0) -> None:
        self.world.inputs += 1
        if life is self.life:
            life.engine.check_invariants(thorough=self.world.inputs % SWEEP_EVERY == 0)
            self._carry_out(effects, delay)
            self.submit_for_clients()

    # Effects

    def _carry_out(self, effects: list[Effect], delay: int = 0) -> None:
        """In order; what leaves the host leaves after the processing time."""
        life = self.life
        assert life is not None
        send_ns, departure = self.world.options.send_ns, self.world.now + delay
        for effect in effects:
            if send_ns and isinstance(effect, Broadcast):
                departure = self._send_slowly(life, effect, departure)
                continue
            if send_ns and isinstance(effect, SendTo):
                departure += life.processor.sending_ns(len(effect.networks))
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
        if world.witness is not None:
            world.witness.effect(life.process, effect, world.now)
        for packet in effect.packets:
            for number in effect.networks:
                departure += send_ns
                world.networks[number].broadcast(self.node, world.others(self.node), [packet], departure)
        return departure

    def _carry_out_one(self, life: Life, effect: Effect, departure: int) -> None:
        world = self.world
        if world.witness is not None:
            world.witness.effect(life.process, effect, world.now)
        match effect:
            case Record():
                world.record(Noted(self._at(), life.process, effect.note))
            case Broadcast():
                packets, others = effect.packets, world.others(self.node)
                for number in effect.networks:
                    world.networks[number].broadcast(self.node, others, packets, departure)
            case SendTo():
                target = node_of(effect.process)
                if target < len(world.hosts) and (self.reached is None or target in self.reached):
                    for number in effect.networks:
                        world.networks[number].unicast(self.node, target, effect.packet, departure)
            case Deliver():
                self._deliver(life, effect)
            case Install():
                world.record(Installed(self._at(), life.process, effect.configuration))
                if effect.configuration.kind is ConfigurationKind.REGULAR:
                    life.view = effect.configuration
                if life.station is not None:
                    life.station.install(effect.configuration)
            case Persist():
                self._persist(life, effect)
            case Alarm():
                world.alarms.append((world.now, life.process, effect))
                if effect.kind in (AlarmKind.WITHOUT_STORAGE, AlarmKind.STORAGE_REPAIRED):
                    in_use = effect.kind is AlarmKind.STORAGE_REPAIRED
                    world.record(StorageTurned(self._at(), life.process, in_use))
            case LeaveDone():
                world.record(Departed(self._at(), life.process))
                self._close(life, End.DAEMON_LEFT)
            case Room():
                pass
            case Enlisted():
                self.reached = {entry.node for entry in (*effect.roster.entries, *effect.tolerated)}
                if world.roster_witness is not None:
                    world.roster_witness.enlisted(life.process, effect.roster)
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
