"""Participant: an engine with its sockets, its storage and its trace, driven by the event loop on which it is entered.

It begins, leaves, submits and looks after the application's reading. What is done with deliveries is left to those who
inherit: `raw.py` hands them out as they are, `node.py` cuts named groups out of them.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from time import monotonic_ns
from typing import TYPE_CHECKING, Self

from ordercast.daemon.assembling import assembly_of
from ordercast.daemon.config.node import NodeConfig, TraceLevel, peer_from
from ordercast.daemon.driver import Driver
from ordercast.daemon.key_file import keys_of_node
from ordercast.daemon.reading import NobodyReads, Reading
from ordercast.daemon.sockets.mtu import PathWatch
from ordercast.daemon.sockets.network import Sockets
from ordercast.daemon.sockets.of_node import NodeSockets
from ordercast.daemon.sockets.wide import WideSockets
from ordercast.daemon.stamps import placed_without_stamps, without_stamps
from ordercast.daemon.status.absences import returns_text
from ordercast.daemon.status.beneath import sealing_status_of, storage_status_of
from ordercast.daemon.status.counters import Counters
from ordercast.daemon.status.parts import ClientsStatus, SealingStatus, StorageStatus
from ordercast.daemon.storage import FolderStorage, MemoryStorage, Storage
from ordercast.groups.names import checked_daemon
from ordercast.model.configuration import Configuration, ConfigurationKind
from ordercast.model.effects import (
    Alarm,
    AlarmKind,
    Deliver,
    Enlisted,
    Install,
    Parted,
    Placed,
    Subscribed,
)
from ordercast.model.errors import Error, UsageError
from ordercast.model.extras import missing_extra
from ordercast.model.ids import SECOND, Attachment, Instant, NodeId, ProcessId, node_of, process_id_from, process_text
from ordercast.model.inputs import EVERYWHERE, Interest, Submissions
from ordercast.model.notes import Note
from ordercast.model.roster import Roster
from ordercast.model.service import Service
from ordercast.networks.assembly import Assembly
from ordercast.networks.layer import Networks
from ordercast.order.catalogue import live_entry_of
from ordercast.order.engine import Engine, ObservedEngine
from ordercast.order.outbox import OVERHEAD
from ordercast.order.sites.promised import SITE
from ordercast.sealing.keys import KeyRing
from ordercast.sealing.layer import Sealing
from ordercast.session.payloads import MESSAGE_OVERHEAD
from ordercast.trace.live_stamp import LIVE_STAMP_SIZE
from ordercast.trace.records import (
    STAMPED,
    Crashed,
    Departed,
    Installed,
    Noted,
    Started,
    StorageTurned,
    Wanted,
)
from ordercast.trace.records import Event as TraceEvent

if TYPE_CHECKING:
    from ordercast.daemon.recording import Recording

LEAVE_PATIENCE_S = 5.0  # an orderly leave that takes longer is given up: others will see a failure
TURN_SIZE = 64 << 10  # bytes that may be submitted in one turn of the event loop
PATHS_EVERY_NS = 60 * SECOND  # how often the kernel is asked how wide the ways to the others are
LOOK_EVERY_S = 0.2  # how often the trace is handed to the disk, and the application looked after


class NodeFailed(Error):
    """The node has ended by itself. It says why."""


async def folder_storage(folder: Path, rings: Sequence[str]) -> FolderStorage:
    """Opened beside the event loop, for that waits for the disk. Whoever is cancelled meanwhile waits for it, too, and
    leaves nothing open."""
    opening = asyncio.get_running_loop().run_in_executor(None, FolderStorage, folder, rings)
    try:
        return await asyncio.shield(opening)
    except asyncio.CancelledError:
        while not opening.done():
            with suppress(asyncio.CancelledError):
                await asyncio.wait((opening,))
        if opening.exception() is None:
            opening.result().close()
        raise


class Participant(ABC):
    """One process of the cluster."""

    reading: Reading = NobodyReads()

    def __init__(self, config: NodeConfig | None = None) -> None:
        self.config = (config or NodeConfig()).with_packet_size()
        if self.config.name:
            checked_daemon(self.config.name)
        entry = live_entry_of(self.config.engine)
        if self.config.rings and entry.attachments_max == 1:
            raise UsageError(f"the engine {entry.name!r} is for one ring, and the file has [rings]")
        self.config.sizes.validate()
        for ring in self.config.each_ring:
            ring.layer.validate(ring.ring, ring.nodes_expected)
        self.counters = Counters()
        self.started_at = Instant(0)
        self.engine: ObservedEngine
        self.lines = NodeSockets()
        self.layers: Sequence[Networks | None] = ()  # between the engine and several networks, by attachment
        self.sealing: Sealing | None = None  # beneath them, if packets are sealed
        self.process: ProcessId
        self._storage: Storage
        self._driver: Driver | None = None
        self._recording: Recording | None = None
        self._message_size_max = self.config.sizes.message_size_max
        self._is_used = False
        self._is_leaving = False
        self._is_turn = False  # of packets, or of a session that speaks: sessions are flushed at its end
        self._since_turn = 0  # bytes submitted since the event loop had a turn
        self._has_room = asyncio.Event()
        self._ended = asyncio.Event()
        self._failure: NodeFailed | None = None
        self._removal = ""  # why it leaves by itself
        self._closing: asyncio.Future[None] | None = None  # files are closed beside the loop: that waits for the disk
        self._look: asyncio.TimerHandle | None = None
        self._paths_at = Instant(0)  # when they are looked at again
        self._paths: PathWatch
        self._behind_since: tuple[Instant, int] | None = None  # and what the application had taken by then

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *how: object) -> None:
        await self.leave()

    # Beginning and end

    async def start(self) -> None:
        """Open everything and begin. What is in the way is told by a UsageError, and nothing is left open."""
        if self._is_used:
            raise UsageError("a node is started once: make a new one")
        self._is_used = True
        async with AsyncExitStack() as undo:
            keys = await asyncio.to_thread(keys_of_node, self.config, makes=True)
            undo.callback(self.lines.close)
            self.config = self._within_buffers(self.lines.open(self.config))
            assert self.config.node is not None
            folder = self.config.state_folder
            rings = [SITE] if self.config.has_sites else [ring.name for ring in self.config.my_rings]
            self._storage = MemoryStorage() if folder is None else await folder_storage(folder, rings)
            undo.callback(self._storage.close)
            self.process = process_id_from(self.config.node, self._storage.incarnation)
            self._recording = self._open_recording()
            if self._recording is not None:
                undo.callback(self._recording.close)
            assembly = assembly_of(self.config, self.config.node, is_stamping=self._is_stamping)
            self.engine, self.layers = assembly.engine, assembly.layers
            driven = self._sealed(assembly, self.config.node, keys)
            self.lines.admit(keys)
            self._driver = Driver(driven, self.lines.by_attachment(), self._storage, self, self.counters, self.wide)
            undo.callback(self._forget, self._driver)
            self._opened()
            self.started_at = self.now()
            for alarm in self._storage.alarms:
                self.raise_alarm(alarm)
            self._record(Started(self.started_at, self.process, self.engine.promises, self._storage.kept))
            listed = [ring.roster for ring in self.config.attachments]
            self._driver.start()
            for number, roster in enumerate(listed):
                self._enlist_at_start(self._driver, roster, Attachment(number))
            self._paths = PathWatch(self.config)
            self._look_after()
            undo.pop_all()

    def _enlist_at_start(self, driver: Driver, listed: Roster, attachment: Attachment) -> None:
        """The file's node list; an earlier life may have stored a newer one, which is told and kept."""
        try:
            driver.enlist(listed, attachment)
        except UsageError as error:
            text = f"the stored node list is kept, for the file is not newer: {error}"
            self.raise_alarm(Alarm(AlarmKind.NODE_LISTS_DIFFER, text, self.process))

    @property
    def is_removed(self) -> bool:
        """This node left because it is not on the node list any more."""
        return bool(self._removal)

    def enlist(self, roster: Roster) -> None:
        """Take a newer node list. UsageError, and nothing changed, when it cannot be taken."""
        self.check_roster(roster)
        self._running().enlist(roster)

    def check_roster(self, roster: Roster) -> None:
        """UsageError when this node cannot work with such a node list."""
        if self.config.is_local:
            raise UsageError("the nodes of one machine without a file have no list: any of them may join")
        if self.config.rings:
            which = "each site" if self.config.has_sites else "each ring of a network"
            raise UsageError(f"{which} has a node list of its own: change the file, and reload it")
        if not roster.is_like(self.config.me().entry):
            some = "one address" if len(self.networks) == 1 else f"{len(self.networks)} addresses"
            raise UsageError(f"a node of this cluster has {some}, of the same version of IP as those of all others")
        self.config.layer.validate(self.config.ring, len(roster.entries))

    def enlist_all(self, fresh: NodeConfig) -> None:
        """Take the newer node lists of a file, of each ring that this node is on. UsageError, and nothing changed, when
        they cannot be taken."""
        if not self.config.rings:
            self.enlist(fresh.roster)
            return
        for ring in fresh.attachments:
            ring.layer.validate(ring.ring, ring.nodes_expected)
        for number, ring in enumerate(fresh.attachments):
            self._running().enlist(ring.roster, Attachment(number))
        self.config = replace(self.config, peers=fresh.peers, rings=fresh.rings)

    def take_status_ports(self, fresh: NodeConfig) -> None:
        """Take from a file where each node serves its status, new nodes among them."""
        self.config = replace(self.config, status=replace(self.config.status, ports=fresh.status.ports))

    def raise_alarm(self, alarm: Alarm) -> None:
        """What the driver does with an alarm of the engine, for one of the daemon's own."""
        self.counters.alarms.append((self.now(), alarm))
        self.on_alarm(alarm, self.now())

    def on_enlisted(self, effect: Enlisted) -> None:
        if self.config.is_local:
            return
        # Lists of others, and stored ones, may have nodes that cannot be reached from here.
        me = self.config.attachments[effect.attachment].me()
        entries = (entry for entry in {*effect.roster.entries, *effect.tolerated} if entry.is_like(me.entry))
        peers = tuple(peer_from(entry) for entry in sorted(entries))
        if all(peer.node != node_of(self.process) for peer in peers):
            peers = (*peers, me)  # removed, and still here
        self.config = self.config.with_peers(peers, effect.roster.version, effect.attachment)
        ring = self.config.attachments[effect.attachment]
        for sockets in self.lines.by_attachment()[effect.attachment]:
            sockets.reach(ring.on(sockets.number).peers)

    def _within_buffers(self, config: NodeConfig) -> NodeConfig:
        fitting, alarm = self.lines.within_buffers(config)
        if alarm is not None:
            self.counters.alarms.append((self.now(), alarm))
        return fitting

    @property
    def networks(self) -> list[Sockets]:
        return self.lines.networks

    @property
    def wide(self) -> WideSockets | None:
        return self.lines.wide

    @property
    def sockets(self) -> Sockets:
        """The sockets of the only network, or of the first."""
        return self.lines.networks[0]

    def _forget(self, driver: Driver) -> None:
        driver.stop()
        self._driver = None

    def _sealed(self, assembly: Assembly, node: NodeId, keys: KeyRing | None) -> Engine:
        """Return what is driven: with a seal beneath it, if there are keys."""
        if keys is None:
            return assembly.driven
        from ordercast.daemon.sealed import sealed  # with a cipher, which only those who seal have to have

        self.sealing = sealed(assembly, self.config, node, keys)
        return self.sealing

    def rekey(self, keys: KeyRing) -> None:
        """Take other keys. UsageError, and nothing changed, when this node does not seal."""
        if self.sealing is None:
            raise UsageError("this node was started without a key file: name one in [security], and restart it")
        self.lines.admit(keys)
        self._running().rekey(self.sealing, keys)

    def _open_recording(self) -> Recording | None:
        if self.config.trace.level is TraceLevel.OFF:
            return None
        try:
            from ordercast.daemon.recording import Recording  # Arrow is large: only who records pays for it
        except ModuleNotFoundError as error:
            raise UsageError(missing_extra("a trace", error)) from error

        return Recording(self.config.trace, self.config.name, self.process)

    async def leave(self, why: str = "") -> None:
        """Finish what was submitted, tell the others, close. The others see a leave, not a failure. `why` is for a node
        that leaves by itself."""
        if self._driver is None:
            await self._files_closed()
            return
        if why:
            self._removal = why
        try:
            if not self._ended.is_set() and not self._is_leaving:
                self._is_leaving = True
                self._driver.behind(False)  # who leaves takes what it is given
                self._driver.leave()
            async with asyncio.timeout(LEAVE_PATIENCE_S):
                await self._ended.wait()
        except TimeoutError:
            pass  # the others will see a failure
        finally:
            if self._removal:
                self._failure = self._failure or NodeFailed(self._removal)
            self._ended.set()
            self._close()
        await self._files_closed()

    async def _files_closed(self) -> None:
        if self._closing is not None:
            await asyncio.shield(self._closing)

    def _close(self) -> None:
        driver, self._driver = self._driver, None
        if driver is None:
            return
        driver.stop()
        if self._look is not None:
            self._look.cancel()
        self.lines.close()
        self._closing = asyncio.get_running_loop().run_in_executor(None, self._close_files)
        self.reading.close(self._failure)
        self._has_room.set()

    def _close_files(self) -> None:
        self._storage.close()
        if self._recording is not None:
            self._recording.close()

    def _fail(self, why: str, cause: BaseException | None = None) -> None:
        self._failure = NodeFailed(why)
        self._failure.__cause__ = cause
        self._record(Crashed(self.now(), self.process))
        self._ended.set()
        self._close()

    # Sending

    def _has_room_for(self, size: int) -> bool:
        """If not, `on_room` will tell when there is."""
        if self.engine.room() >= size:
            return True
        self.engine.want_room(size)
        return False

    def _hand_over(
        self,
        payloads: Sequence[bytes],
        service: Service,
        sender: int,
        size: int,
        destinations: tuple[str, ...] = EVERYWHERE,
    ) -> None:
        """To the engine, which has room for them."""
        submissions = Submissions(payloads, service, sender, destinations)
        if self._recording is not None and self._is_stamping:
            submissions = self._recording.submitted(submissions, self.now())
        driver = self._running()
        if self._is_measured:
            self.counters.latency.submitted(service, len(payloads), self.now)
        driver.submit([submissions])
        self.counters.messages_submitted += len(payloads)
        self.counters.bytes_submitted += size - self._overhead * len(payloads)
        self._since_turn += size

    async def _room(self) -> None:
        """Waits until there may be room again."""
        self._has_room.clear()
        await self._has_room.wait()
        self._running()

    async def give_turn(self) -> None:
        """Whoever submits in a loop must not keep the event loop for itself."""
        if self._since_turn > TURN_SIZE:
            self._since_turn = 0
            await asyncio.sleep(0)

    @cached_property
    def _overhead(self) -> int:
        """Return what a message takes of the engine's room beside its bytes; asked for once the recording is open."""
        return OVERHEAD + (LIVE_STAMP_SIZE if self._is_stamping else 0)

    @cached_property
    def _is_measured(self) -> bool:
        """Tell whether this node delivers all that it submits."""
        return not self.engine.promises.prunes

    @property
    def _is_stamping(self) -> bool:
        return self._recording is not None and self._recording.is_full

    def _running(self) -> Driver:
        if self._failure is not None:
            raise self._failure
        if self._driver is None or self._ended.is_set():
            raise UsageError("the node is not running: use it inside `async with`")
        return self._driver

    # What is done with deliveries

    @abstractmethod
    def _opened(self) -> None:
        """Everything is open, and `process` is known; the engine has not begun."""

    @abstractmethod
    def _delivered(self, deliver: Deliver, size: int) -> None: ...

    @abstractmethod
    def _viewed(self, effect: Install) -> None: ...

    def _placed(self, effect: Placed) -> None:
        """A matter of groups, whose clients may have asked for confirmations, on an engine that prunes."""
        assert self.engine.promises.prunes

    # Questions

    def now(self) -> Instant:
        return Instant(monotonic_ns())

    async def wait_ended(self) -> None:
        """Until it has left; NodeFailed when it ended by itself."""
        await self._ended.wait()
        if self._failure is not None:
            raise self._failure

    def check_running(self) -> None:
        self._running()

    @property
    def is_running(self) -> bool:
        return self._driver is not None and not self._ended.is_set()

    @property
    def loop_lag_ns(self) -> int:
        return 0 if self._driver is None else self._driver.loop_lag_ns

    @property
    def members(self) -> tuple[ProcessId, ...]:
        return self.engine.configuration.members

    def clients_status(self) -> ClientsStatus:
        return ClientsStatus()

    def storage_status(self) -> StorageStatus:
        return storage_status_of(self._storage, is_without=self.engine.is_without_storage)

    def sealing_status(self) -> SealingStatus:
        return sealing_status_of(self.sealing, self.config)

    def name_of(self, process: ProcessId) -> str:
        try:
            return self.config.peer(node_of(process)).name
        except UsageError:
            return process_text(process)

    @property
    def trace_error(self) -> str | None:
        """Why the recording has ended before its time."""
        return None if self._recording is None else self._recording.error

    # What the driver tells (see `driver.Application`)

    def on_deliver(self, deliver: Deliver, at: Instant) -> None:
        stamps = size = count = 0
        for _, originator, senders, services, payloads, *_ in deliver.parcels:
            stamps |= senders[0] & STAMPED
            if originator == self.process and self._is_measured:
                self.counters.latency.delivered(services, at)
            size += sum(map(len, payloads))
            count += len(payloads)
        self.counters.messages_delivered += count
        self.counters.bytes_delivered += size
        size += MESSAGE_OVERHEAD * count
        if self._recording is not None and self._recording.is_full:
            self._recording.delivered(deliver, at, size)
        if stamps:
            deliver = without_stamps(deliver)
        self._delivered(deliver, size)

    def begin_turn(self) -> None:
        self._is_turn = True

    def end_turn(self) -> None:
        self._is_turn = False

    def on_view(self, effect: Install, at: Instant) -> None:
        self._record(Installed(at, self.process, effect.configuration))
        if remarks := [*self.engine.roster_differences(at), *self._returned(effect.configuration, at)]:
            self.counters.remark(effect.configuration.id, "; ".join(remarks))
        self._viewed(effect)

    def _returned(self, view: Configuration, at: Instant) -> Iterator[str]:
        """Say who is back with this view, and whether this node did not run before it."""
        counters = self.counters
        found = counters.absences.observe(view, at, counters.last_pause_at)
        is_regular = view.kind is ConfigurationKind.REGULAR
        pause = counters.absences.pause_told(counters.last_pause_at, counters.last_pause_ns, at) if is_regular else None
        if text := returns_text(found, self.name_of, pause):
            yield text

    def on_room(self) -> None:
        self._has_room.set()

    def on_subscribed(self, effect: Subscribed) -> None:
        self._record_wanted(effect.groups, begins=True)

    def on_parted(self, effect: Parted) -> None:
        """A matter of groups, on an engine that prunes."""
        assert self.engine.promises.prunes

    def on_placed(self, effect: Placed) -> None:
        self._placed(placed_without_stamps(effect))

    def _tell_interest(self, changes: Sequence[Interest]) -> None:
        self._record_wanted(tuple(change.group for change in changes if not change.is_wanted), begins=False)
        self._running().interest(changes)

    def _record_wanted(self, destinations: tuple[str, ...], *, begins: bool) -> None:
        """Where nothing is pruned everybody is owed everything, and nobody needs to know."""
        if destinations and self.engine.promises.prunes:
            self._record(Wanted(self.now(), self.process, destinations, begins))

    def on_alarm(self, alarm: Alarm, at: Instant) -> None:
        """The driver has counted it."""
        if alarm.process is not None and alarm.kind in (AlarmKind.WITHOUT_STORAGE, AlarmKind.STORAGE_REPAIRED):
            self._record(StorageTurned(at, self.process, alarm.kind is AlarmKind.STORAGE_REPAIRED))

    def on_note(self, note: Note, at: Instant) -> None:
        if self._recording is not None:
            self._recording.record(Noted(at, self.process, note))

    def on_left(self, at: Instant) -> None:
        if self._removal:
            self._failure = NodeFailed(self._removal)
        self._record(Departed(at, self.process))
        self._ended.set()
        self.reading.close(self._failure)
        self._has_room.set()

    def on_failure(self, error: BaseException) -> None:
        self._fail(f"the node has ended by itself: {error}", error)

    def _record(self, event: TraceEvent) -> None:
        if self._recording is not None:
            self._recording.record(event)

    # The application that takes what is delivered, or does not

    def on_behind(self, is_behind: bool) -> None:
        self._behind_since = (self.now(), self.reading.taken) if is_behind else None
        self._tell_behind()

    @property
    def is_behind(self) -> bool:
        """Whoever takes deliveries here is so far behind that all wait."""
        return self.reading.is_behind

    def _tell_behind(self) -> None:
        if self._driver is not None and not self._ended.is_set() and not self._is_leaving:
            self._driver.behind(self.is_behind)

    def _look_after(self) -> None:
        """A few times a second."""
        now = self.now()
        if now >= self._paths_at:
            self._paths_at = Instant(now + PATHS_EVERY_NS)
            for alarm in self._paths.alarms():
                self.raise_alarm(alarm)
        if self._recording is not None:
            self._recording.flush()
            self._tell_trace_error(now)
        if self._behind_since is not None:
            since, taken = self._behind_since
            if taken != self.reading.taken:
                self._behind_since = now, self.reading.taken
            elif now - since > self.config.stall_ns:
                self._fail(
                    f"the application took none of its deliveries for {self.config.stall_ns / 1e9:.0f} s while "
                    "everybody waited for it, so this node has ended: read the stream, or raise stall_ns"
                )
                return
        self._look = asyncio.get_running_loop().call_later(LOOK_EVERY_S, self._look_after)

    def _tell_trace_error(self, now: Instant) -> None:
        error = self.trace_error
        if error is not None and all(alarm.kind is not AlarmKind.RECORDING_ENDED for _, alarm in self.counters.alarms):
            self.counters.alarms.append((now, Alarm(AlarmKind.RECORDING_ENDED, error, self.process)))
