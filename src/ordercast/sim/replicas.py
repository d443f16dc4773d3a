"""All replicas of one simulated state, on the hosts of a run, and what they do next, drawn from the run's generator.

The first replica of each host comes with its daemon and has a voice; others come and go, with a copy and no voice when
weights are configured.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from random import Random
from typing import TYPE_CHECKING

from ordercast.model.errors import UsageError
from ordercast.model.ids import MILLISECOND, SECOND, Instant
from ordercast.replicated.arrival import Patience
from ordercast.replicated.book import Book
from ordercast.replicated.chained import chained
from ordercast.replicated.core import Core
from ordercast.replicated.desk import Desk
from ordercast.replicated.effects import Donor
from ordercast.replicated.journal import Journal
from ordercast.replicated.quorum import LastMajority, Majority, voices_of
from ordercast.replicated.spill import Spill
from ordercast.replicated.structures.base import Applied, Owner, Reloaded
from ordercast.replicated.told import Told
from ordercast.sim.disk import PowerFailed, SimFolder
from ordercast.sim.faults import Fault, FaultKind, halves, muted
from ordercast.sim.options import SimOptions
from ordercast.sim.replica import Replica
from ordercast.sim.replica_journal import SimJournal
from ordercast.sim.replica_tally import Moment, ReplicaOccurrence
from ordercast.sim.replica_witness import GROUP, GROUP_NAME
from ordercast.sim.station import Station
from ordercast.sim.users import TIMED, kind_of, user_of
from ordercast.trace.client_records import Calm
from ordercast.trace.records import Ended, Healed
from ordercast.trace.replica_records import JournalKept, ReplicaEvent, ReplicaStarted

if TYPE_CHECKING:
    from ordercast.sim.world import World

_DEEDS = ("submit", "read", "look", "leave", "break", "crash")
_WEIGHTS = (280, 30, 20, 1, 1, 1)
_BATCHES = (1, 1, 1, 2, 5)  # commands of one turn
PIECE_SIZE = 60  # of pictures: transfers take their time
_DIES_WITH_DAEMON = 0.6
_GIVES_UP = 0.2
_SUBMITTED_MAX = 6  # by one replica, and not answered
PATIENCE = Patience(connect_s=0.01, stall_s=0.03, rounds_max=6, retry_s=0.005)  # with donors
_BLOCK_SIZE = 400  # of a tail that spills: two or three commands
_SLICE_SIZE = 1000  # of held commands: two of them at once
_AMBUSH_PROBABILITY = 0.1
_MUTE_PROBABILITY = 0.3  # that an ambush makes one silent first
_KILL_PROBABILITY = {
    Moment.ROUND: 0.05,
    Moment.JOINING: 0.03,
    Moment.DONATING: 0.03,
    Moment.ATTEMPTED: 0.5,
    Moment.CONFIRMING: 0.01,
}
_KILL_MAX_NS = MILLISECOND  # after the moment
_TICK_NS = 20 * MILLISECOND
_HANG_PROBABILITY = 0.15  # at a view
_HANG_NS = (5 * MILLISECOND, 250 * MILLISECOND)
_SILENT_PROBABILITY = 0.05  # in a deed
_RECKLESS = 0.03  # chance of a kill that may cost the state
_ROUND_NS = 6 * MILLISECOND  # about what a round takes
_APPEAR_MAX_NS = 10 * MILLISECOND
_AGAIN_MAX_NS = 40 * MILLISECOND
_DARK_MAX_NS = 150 * MILLISECOND  # until a host has power again
_SLOWNESS = (1, 1, 1, 12)  # of disks
_LOOK_NS, _LOOKS_MAX = 100_000, 300  # until half of them write
_FUSE_PROBABILITY, _FUSE_MAX = 0.3, 120  # that the power of a host fails around a write, and how many come before
_DISK_LOSS_PROBABILITY = 0.05
_GROWN_MIN = 1500  # bytes of a journal until there is a picture
_OPENING_NS = 200 * MILLISECOND  # in which nobody crashes, so that there is a state to lose


class Replicas:
    def __init__(self, world: World, rng: Random) -> None:
        self._world = world
        self.rng = rng
        self._rule = rule_of(world.options)
        self._running: dict[tuple[int, str], Replica] = {}  # by host and name: those whose memory is there
        self._known: set[tuple[int, str]] = set()  # that ever were
        self._lives = 0
        self._is_healed = False
        self._ambushes = world.options.round_ambushes
        self._is_early_due = world.options.early_ambush
        self._kills = world.options.replica_kills
        self._hangs = world.options.replica_hangs
        self._silent = world.options.silent_members
        self._disks: dict[tuple[int, str], SimFolder] = {}  # of journals, by host and name
        self._memories = 0
        self._disk_losses = 1  # of a second one a state need not recover
        self._plan_power_cuts()
        self._patience = replace(PATIENCE, silence_s=world.options.replica_patience_ns / SECOND)

    # Services for replicas

    def now(self) -> Instant:
        return Instant(self._world.now)

    def schedule(self, delay_ns: int, action: Callable[[], None]) -> None:
        self._world.schedule(self._world.now + delay_ns, action)

    def tell(self, event: ReplicaEvent) -> None:
        self._world.tell_replica(event)

    def count(self, what: ReplicaOccurrence) -> None:
        self._world.group_counts[what.value] += 1

    def find(self, donor: Donor) -> Replica | None:
        for replica in self._running.values():
            if replica.life == donor.life:
                return replica
        return None

    def is_connected(self, life: int) -> bool:
        return any(each.life == life and each.client is not None for each in self._running.values())

    def can_talk(self, one: int, other: int) -> bool:
        return self._world.can_talk(one, other)

    def at(self, node: int, name: str = "r0") -> Replica | None:
        return self._running.get((node, name))

    def is_donating(self, donor: Replica) -> bool:
        return any(replica.desk.pieces and replica.line.donor is donor for replica in self._running.values())

    def forget(self, replica: Replica) -> None:
        self._running = {key: other for key, other in self._running.items() if other is not replica}

    def sends_twice(self) -> bool:
        chance = self._world.options.double_send
        return chance > 0 and self.rng.random() < chance

    def gives_up(self) -> bool:
        return self.rng.random() < _GIVES_UP

    def troubles_transfer(self) -> bool:
        chance = 0.0 if self._is_healed else self._world.options.transfer_trouble
        return chance > 0 and self.rng.random() < chance

    def submit_at(self, node: int) -> None:
        """The daemon there has something of its clients."""
        self._world.hosts[node].submit_for_clients()

    def dies_with_daemon(self) -> bool:
        return self.rng.random() < _DIES_WITH_DAEMON

    # The worst moments

    def view_came(self, replica: Replica) -> None:
        """A round is open: the worst moment for a cut."""
        if self._is_healed or self._world.options.nodes == 1:
            return
        is_early = self._is_early_due and replica.desk.core.lineage is None and self._has_all(replica)
        probability = _AMBUSH_PROBABILITY if self._world.now > _OPENING_NS else _AMBUSH_PROBABILITY / 20
        if is_early or (self._ambushes and self.rng.random() < probability):
            self._is_early_due = self._is_early_due and not is_early
            self._ambushes -= not is_early
            self._cut_round(replica.node, is_muted=is_early or self.rng.random() < _MUTE_PROBABILITY)

    def _has_all(self, replica: Replica) -> bool:
        status = replica.desk.status
        return status is not None and len(status.members) >= self._world.options.nodes

    def _cut_round(self, node: int, *, is_muted: bool) -> None:
        """In two; or one is first heard by nobody, so that it alone knows what it said."""
        world, rng = self._world, self.rng
        at = world.now + rng.randrange(_ROUND_NS)
        sides = halves(world.options.nodes, rng)
        if is_muted:
            links = muted(node, world.options.nodes)
            world.strike_at(world.now, Fault(world.now, FaultKind.CUT, links=links))
            at, sides = world.now + _ROUND_NS, ((node,), tuple(n for n in range(world.options.nodes) if n != node))
        world.strike_at(at, Fault(at, FaultKind.PARTITION, groups=sides))
        until = at + rng.randrange(60 * MILLISECOND, 160 * MILLISECOND)
        world.strike_at(until, Fault(until, FaultKind.HEAL))

    def moment(self, replica: Replica, moment: Moment) -> None:
        """One of those in which a replica may be killed."""
        if not self._kills or self._is_healed or self._world.now < _OPENING_NS:
            return
        if self.rng.random() < _KILL_PROBABILITY[moment] and (
            self._can_spare(replica) or self.rng.random() < _RECKLESS
        ):
            self._kills -= 1
            if moment is Moment.CONFIRMING:
                self.count(ReplicaOccurrence.KILLED_CONFIRMING)
            is_at_once = moment is Moment.CONFIRMING or self.rng.random() < 0.5
            self.schedule(0 if is_at_once else self.rng.randrange(_KILL_MAX_NS), lambda: self._kill(replica))

    # Journals

    def _plan_power_cuts(self) -> None:
        world = self._world
        for _ in range(world.options.power_cuts):
            latest = max(_OPENING_NS + MILLISECOND, world.options.fault_time_ns)
            world.schedule(self.rng.randrange(_OPENING_NS, latest), self._cut_power)

    def _cut_power(self, looks: int = _LOOKS_MAX) -> None:
        """Cut it at all hosts, when half of them write, if that is soon. They come back in any order."""
        if self._is_healed:
            return
        writers = [each for each in self._running.values() if each.journal is not None and each.journal.is_busy]
        if looks and 2 * len(writers) < self._world.options.nodes:
            self.schedule(_LOOK_NS, partial(self._cut_power, looks - 1))
            return
        self.count(ReplicaOccurrence.POWER_CUT)
        world = self._world
        for replica in list(self._running.values()):
            self.power_failed(replica, is_alone=False)
        for node in range(world.options.nodes):
            world.strike_at(world.now, Fault(world.now, FaultKind.CRASH, node=node))
            back = world.now + self.rng.randrange(MILLISECOND, _DARK_MAX_NS)
            world.strike_at(back, Fault(back, FaultKind.RESTART, node=node))

    def power_failed(self, replica: Replica, *, is_alone: bool = True) -> None:
        """Its host is gone, and of its disk what was not safe."""
        self._crash_disk(replica.node, replica.name.partition("@")[0], is_power=True)
        replica.die()
        if is_alone:
            self._again(replica.node, replica.name.partition("@")[0])

    def died(self, replica: Replica) -> None:
        """The process alone, unless the power failed first."""
        self._crash_disk(replica.node, replica.name.partition("@")[0], is_power=False)

    def _crash_disk(self, node: int, name: str, *, is_power: bool) -> None:
        folder = self._disks.get((node, name))
        if folder is not None and is_power and self._disk_losses and self.rng.random() < _DISK_LOSS_PROBABILITY:
            self._disk_losses -= 1
            self.count(ReplicaOccurrence.DISK_LOST)
            self._disks[node, name] = SimFolder(self.rng)
        elif folder is not None:
            found = self._disks[node, name] = folder.crash(is_power=is_power or folder.is_dead)
            if folder.torn:
                self.count(ReplicaOccurrence.TORN)
            if not self._is_healed and self.rng.random() < _FUSE_PROBABILITY:
                found.fuse = self.rng.randrange(_FUSE_MAX)

    def _open_journal(self, node: int, name: str, full: str) -> Journal | None:
        """Read the journal. The power may fail meanwhile: then it is tried once more."""
        if not self._world.options.journals or not self._rule.weight(full):
            return None
        folder = self._disks.setdefault((node, name), SimFolder(self.rng))
        self._memories += 1
        try:
            journal = Journal(folder, GROUP_NAME, full, self._memories)
        except PowerFailed:
            self._disks[node, name] = folder.crash(is_power=True)
            return self._open_journal(node, name, full)
        if journal.remembered.stance is not None:
            self.count(ReplicaOccurrence.REMEMBERED)
        if journal.remembered.picture is not None:
            self.count(ReplicaOccurrence.PICTURED)
        return journal

    def _can_spare(self, replica: Replica) -> bool:
        """The others who have a state are most of those who could have one."""
        if self._world.options.journals:
            return True
        others = [each for each in self._running.values() if each is not replica and each.desk.core.lineage is not None]
        if isinstance(self._rule, Majority):
            return 2 * sum(self._rule.weight(each.name) for each in others) > sum(self._rule.weights.values())
        return 2 * len(others) > len(self._running)

    def _kill(self, replica: Replica) -> None:
        if not (replica.is_dead or self._is_healed):
            replica.die()
            self._again(replica.node, replica.name.partition("@")[0])

    def hangs_now(self, replica: Replica) -> bool:
        """Just when all are to say what they have, or at any time."""
        if not self._hangs or self._is_healed or self.rng.random() > _HANG_PROBABILITY:
            return False
        self._hangs -= 1
        lasts_ns = self.rng.randrange(*_HANG_NS)
        self.schedule(lasts_ns, replica.wake)
        return True

    # Beginnings and ends

    def daemon_started(self, node: int) -> None:
        self.schedule(self.rng.randrange(_APPEAR_MAX_NS), lambda: self._appear(node, "r0"))

    def _appear(self, node: int, name: str) -> None:
        """Connect and join: with what is in memory, or as a new life."""
        station = self._world.station_at(node)
        if station is None:
            return
        replica = self._running.get((node, name))
        if replica is not None and replica.client is not None:
            return
        try:
            client = station.connect(name)
        except UsageError:  # its last connection is not yet known to be gone
            self.schedule(self.rng.randrange(_APPEAR_MAX_NS), lambda: self._appear(node, name))
            return
        if replica is None:
            replica = self._start(node, name, client.name)
        else:
            self.count(ReplicaOccurrence.RECONNECTED)
        replica.connect(client)
        self._world.hosts[node].submit_for_clients()

    def _start(self, node: int, name: str, full: str) -> Replica:
        self._lives += 1
        kind, arguments = kind_of(self._world.options.structure)
        structure = chained(kind, *arguments, piece_size=PIECE_SIZE)
        user = user_of(structure, Owner(full, self._lives), is_timed=self._world.options.structure in TIMED)
        replica = Replica(self, node, full, self._lives, structure, user)
        machine = Told(structure, Ear(lambda: replica.witness.was_loaded()))
        is_first = (node, name) not in self._known
        if not is_first:
            self.count(ReplicaOccurrence.NEW_LIFE)
        self._known.add((node, name))
        self._running[node, name] = replica
        journal = self._open_journal(node, name, full)
        voices, structure_name = voices_of(self._rule), self._world.options.structure
        self.tell(ReplicaStarted(self.now(), replica.life, full, *voices, structure_name))
        if journal is not None:
            self.tell(JournalKept(self.now(), replica.life, journal.owner.memory))
        core = Core(
            full,
            replica.life,
            machine,
            self._rule,
            founding=is_first,
            outstanding_max=20,
            tails=lambda: Spill(block_size=_BLOCK_SIZE),
            slice_size=_SLICE_SIZE,
            remembered=None if journal is None else journal.remembered,
            structure=structure.NAME,
        )
        book = None if journal is None else Book(grown_min=_GROWN_MIN)
        replica.desk = Desk(
            GROUP_NAME, core, machine, self._patience, submitted_max=_SUBMITTED_MAX, tick_ns=_TICK_NS, book=book
        )
        if journal is not None:
            replica.journal = SimJournal(replica, journal, slowness=self.rng.choice(_SLOWNESS))
        replica.witness.begins()
        return replica

    def _again(self, node: int, name: str) -> None:
        self.schedule(self.rng.randrange(_AGAIN_MAX_NS), lambda: self._appear(node, name))

    # Deeds

    def act(self, node: int, station: Station) -> None:
        rng = self.rng
        name = f"r{rng.randrange(self._world.options.replicas)}"
        replica = self._running.get((node, name))
        if replica is None or replica.client is None:
            if replica is not None:
                replica.witness.say_belief()
            self._appear(node, name)
            return
        if replica.is_hung:
            return
        if self._silent and self.rng.random() < _SILENT_PROBABILITY:
            self._place_silent(station)
        is_gentle = self._is_healed or self._world.now < _OPENING_NS
        match "submit" if is_gentle else rng.choices(_DEEDS, _WEIGHTS)[0]:
            case "submit":
                replica.submit(*(replica.user.operation(rng) for _ in range(rng.choice(_BATCHES))))
            case "read":
                replica.read(replica.user.question(rng))
            case "look":
                replica.witness.look(replica.user.question(rng))
            case "leave":
                replica.leave()
            case "break":
                replica.client.crash()
                self._again(node, name)
            case _:
                replica.die()
                self._again(node, name)

    def _place_silent(self, station: Station) -> None:
        self._silent -= 1
        self.count(ReplicaOccurrence.STRANGER)
        station.connect(f"s{self._silent}").join((GROUP,))

    # The end

    def heal(self, healed: Healed) -> None:
        """Nobody crashes any more; most of those who are gone come back."""
        self._is_healed = True
        self.tell(healed)
        for folder in self._disks.values():
            folder.fuse = None
        for key in sorted(self._running):
            self._running[key].wake()
        for node in range(self._world.options.nodes):
            if self.rng.random() < 0.9:
                self._again(node, "r0")

    def speak_last(self, calm: Calm) -> None:
        self.tell(calm)
        for key in sorted(self._running):
            replica = self._running[key]
            if replica.client is not None:
                replica.submit(replica.user.operation(self.rng))
                replica.read(replica.user.question(self.rng))

    def is_quiet(self) -> bool:
        """Nobody is being loaded, has something to apply, or waits for others to say what they have."""
        connected = [replica for replica in self._running.values() if replica.client is not None]
        cores = [replica.desk.core for replica in connected]
        are_busy = any(core.is_behind or core.is_deciding for core in cores)
        return not are_busy and all(replica.desk.is_idle and not replica.desk.is_fetching for replica in connected)

    def end(self, ended: Ended) -> None:
        is_primary = any(replica.desk.core.is_primary for replica in self._running.values())
        self.count(ReplicaOccurrence.ENDED_PRIMARY if is_primary else ReplicaOccurrence.ENDED_BLOCKED)
        for key in sorted(self._running):
            if self._running[key].client is not None:
                witness = self._running[key].witness
                witness.look(self._running[key].user.question(self.rng))
                self.tell(witness.known())
        self.tell(ended)


def rule_of(options: SimOptions) -> Majority | LastMajority:
    if options.replica_weights:
        return Majority({f"r0@n{node}": weight for node, weight in enumerate(options.replica_weights)})
    return LastMajority(frozenset(f"r0@n{node}" for node in range(options.founders)))


class Ear:
    """The machine's audience: of what is applied the structure tells itself."""

    def __init__(self, on_loaded: Callable[[], None]) -> None:
        self._on_loaded = on_loaded

    def want(self, kind: type, /) -> bool:
        return False

    def tell(self, event: Applied | Reloaded, /) -> None:
        self._on_loaded()
