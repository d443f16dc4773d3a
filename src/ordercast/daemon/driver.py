"""Drives an engine: feeds it what arrives with the time, carries out its effects in order, keeps one timer.

No decision of the protocol is made here. Everything runs on one event loop; nothing here waits.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from time import monotonic_ns
from typing import Protocol, assert_never

from ordercast.daemon.loop import DaemonLoop
from ordercast.daemon.sockets.lanes import LaneSocket
from ordercast.daemon.sockets.network import Sockets
from ordercast.daemon.sockets.wide import WideSockets
from ordercast.daemon.status.counters import Counters
from ordercast.daemon.storage import Storage
from ordercast.model.effects import (
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
from ordercast.model.ids import MAIN, SECOND, Attachment, Instant, node_of
from ordercast.model.inputs import Interest, Lane, Packet, Submission, Submissions
from ordercast.model.notes import Moved, Note, Occurred, PacketDropped
from ordercast.model.roster import Roster
from ordercast.order.engine import Engine
from ordercast.sealing.keys import KeyRing
from ordercast.sealing.layer import Sealing

REASONS_MAX = 100  # for refusing a packet: a stranger must not fill our memory with them
LONE_NS = 1_000_000  # a packet after so long a silence is likely to be alone
SOON_NS = 10_000_000  # a timer that goes off by then is moved when its deadline has moved away,
YOUNG_NS = 500_000  # unless it was only just set: deadlines come and go while there is much to do
LAG_KEPT_NS = 60 * SECOND
LAG_MIN_NS = 5_000_000  # a timer this late says something about the event loop


class Application(Protocol):
    """Whoever is above: told of everything at once, in order, and never waited for."""

    def on_deliver(self, deliver: Deliver, at: Instant) -> None: ...
    def on_view(self, effect: Install, at: Instant) -> None: ...
    def on_room(self) -> None: ...
    def on_enlisted(self, effect: Enlisted) -> None: ...
    def on_subscribed(self, effect: Subscribed) -> None: ...
    def on_parted(self, effect: Parted) -> None: ...
    def on_placed(self, effect: Placed) -> None: ...
    def on_alarm(self, alarm: Alarm, at: Instant) -> None: ...
    def on_note(self, note: Note, at: Instant) -> None: ...
    def on_left(self, at: Instant) -> None: ...
    def on_failure(self, error: BaseException) -> None: ...

    def begin_turn(self) -> None:
        """Packets have come."""

    def end_turn(self) -> None:
        """All that came of the packets was told."""


class Driver:
    def __init__(
        self,
        engine: Engine,
        attachments: Mapping[Attachment, Sequence[Sockets]],
        storage: Storage,
        application: Application,
        counters: Counters,
        wide: WideSockets | None = None,
    ) -> None:
        """`attachments`: of each, its networks in order; `wide`: towards other sites, on an attachment of its own."""
        self._engine = engine
        self._wide = wide
        self._attachments = attachments
        self._sockets = [sockets for networks in attachments.values() for sockets in networks]
        self._storage = storage
        self._application = application
        self._counters = counters
        self._loop = asyncio.get_running_loop()
        self._is_daemon = isinstance(self._loop, DaemonLoop)  # what comes is written to clients at the end of a turn
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = 0  # the deadline that it was set for
        self._due_at = 0  # when it should go off: that deadline, or at once if that was over
        self._armed_at = 0  # when it was set
        self._is_stopped = False
        self._read_at = 0  # when something last came
        self._brought_lone = False  # and it was a lone packet, not yet seen by the application
        self._lag = (0, 0)  # the longest of late: how late a timer was, and when
        self._is_storage_failing = False

    @property
    def loop_lag_ns(self) -> int:
        """How late the latest timer of the last minute was: how long something else kept the event loop."""
        late, at = self._lag
        return late if _now() - at < LAG_KEPT_NS else 0

    def start(self) -> None:
        for sockets in self._sockets:
            self._read(sockets.data, partial(self._readable, sockets.data))
            self._read(sockets.token, partial(self._token_readable, sockets))
            if sockets.link is not None:
                self._read(sockets.link, partial(self._readable, sockets.link))
        if self._wide is not None:
            self._read(self._wide.link, partial(self._readable, self._wide.link))
            if self._wide.streams is not None:
                self._wide.streams.start(self._came_by_stream)
        now = _now()
        self._carry_out(self._engine.start(dict(self._storage.stored), self._storage.incarnation, now), now)

    def _read(self, lane: LaneSocket, read: Callable[[], None]) -> None:
        """The loop of a daemon reads inside its selector; a node is a guest of any other."""
        if isinstance(self._loop, DaemonLoop):
            self._loop.read_in_select(lane.socket.fileno(), read)
        else:
            self._loop.add_reader(lane.socket.fileno(), read)

    def stop(self) -> None:
        """Nothing is read, written or timed any more."""
        self._is_stopped = True
        lanes = [lane for sockets in self._sockets for lane in sockets.lanes]
        for lane in [*lanes, self._wide.link] if self._wide is not None else lanes:
            if isinstance(self._loop, DaemonLoop):
                self._loop.stop_reading(lane.socket.fileno())
            else:
                self._loop.remove_reader(lane.socket.fileno())
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None

    # Inputs

    def submit(self, submissions: Sequence[Submission | Submissions]) -> None:
        now = _now()
        try:
            effects = self._engine.submit(submissions, now)
        except UsageError:
            raise  # refused: nothing has changed
        except Exception as error:
            self._application.on_failure(error)
            return
        self._protected(now, lambda now: effects)

    def behind(self, is_behind: bool) -> None:
        """Told from within an effect too, so not before the effects at hand are carried out."""
        self._loop.call_soon(self._behind, is_behind)

    def _behind(self, is_behind: bool) -> None:
        if not self._is_stopped:
            now = _now()
            self._protected(now, self._engine.behind, is_behind)

    def interest(self, changes: Sequence[Interest]) -> None:
        """Tell the engine what is wanted; not from within an effect."""
        now = _now()
        self._protected(now, self._engine.interest, changes)

    def enlist(self, roster: Roster, attachment: Attachment = MAIN) -> None:
        """UsageError when it is not newer than what the engine has there. Not from within an effect."""
        now = _now()
        effects = self._engine.enlist(roster, now, attachment)
        self._protected(now, lambda now: effects)

    def rekey(self, sealing: Sealing, keys: KeyRing) -> None:
        """Have the layer that seals take other keys."""
        now = _now()
        self._protected(now, lambda now: sealing.rekey(keys, now))

    def leave(self) -> None:
        now = _now()
        self._protected(now, self._engine.leave)

    def _readable(self, lane: LaneSocket) -> None:
        """Data, or packets of links."""
        now = _now()
        is_lone = now - self._read_at > LONE_NS  # nothing came for a while: there is no second packet to look for
        self._receive(lane.read_one() if is_lone else lane.drain(), now)
        self._brought_lone = is_lone

    def _came_by_stream(self, packets: list[Packet]) -> None:
        self._receive(packets, _now())

    def _token_readable(self, sockets: Sockets) -> None:
        """A token is not read ahead of data that came before it, unless the engine asks for that."""
        if self._brought_lone and not self._is_daemon:  # first let the application have what has just come
            self._brought_lone = False
            self._loop.call_soon(self._token_readable, sockets)
            return
        if self._is_stopped:
            return
        now, packets = _now(), list[Packet]()
        is_lone = now - self._read_at > LONE_NS
        if self._engine.first_lane(sockets.attachment) is Lane.DATA:
            packets = sockets.data.drain()
        if not packets or sockets.data.is_drained:
            packets += sockets.token.read_one() if is_lone else sockets.token.drain()
        self._receive(packets, now)

    def _receive(self, packets: list[Packet], now: Instant) -> None:
        if packets and not self._is_stopped:
            self._read_at = now
            self._application.begin_turn()
            self._protected(now, self._engine.receive, packets)
            self._application.end_turn()

    def _wake(self) -> None:
        now = _now()
        late = now - self._due_at
        if late > max(LAG_MIN_NS, self.loop_lag_ns):
            self._lag = late, now
        self._timer = None
        if len(self._sockets) > 1 or self._wide is not None:
            self._read_all(now)
        if not self._is_stopped:  # by what came
            self._protected(now, self._engine.wake)

    def _read_all(self, now: Instant) -> None:
        """Before a timer blames a network: what has come on each and is not read yet."""
        packets: list[Packet] = []
        for sockets in self._sockets:
            packets += sockets.data.drain()
            if sockets.data.is_drained:
                packets += sockets.token.drain()
            if sockets.link is not None:
                packets += sockets.link.drain()
        if self._wide is not None:
            packets += self._wide.link.drain()
        self._receive(packets, now)

    def _written(self, key: str, error: OSError | None) -> None:
        """A write that failed is tried again: how long it is waited for is the engine's decision."""
        if self._is_stopped:
            return
        now = _now()
        if (error is not None) != self._is_storage_failing:
            self._is_storage_failing = error is not None
            self._raise(storage_alarm(self._storage.folder, error), now)
        if error is None:
            self._protected(now, self._engine.persisted, key)

    def _protected(self, now: Instant, step: Callable[..., list[Effect]], *arguments: object) -> None:
        """A step that fails ends the node: an engine that broke in the middle must not go on."""
        try:
            self._carry_out(step(*arguments, now), now)
        except Exception as error:
            self._application.on_failure(error)

    # Effects

    def _carry_out(self, effects: list[Effect], now: Instant) -> None:
        application = self._application
        for effect in in_order(effects):
            match effect:
                case Broadcast() | SendTo() | Unicast():
                    self._send(effect)
                case Deliver():
                    application.on_deliver(effect, now)
                case Record():
                    self._count(effect.note)
                    application.on_note(effect.note, now)
                case Install():
                    self._counters.views.append((now, effect.configuration))
                    application.on_view(effect, now)
                case Persist():
                    self._persist(effect)
                case Room():
                    application.on_room()
                case Enlisted():
                    application.on_enlisted(effect)
                case Subscribed():
                    application.on_subscribed(effect)
                case Parted():
                    application.on_parted(effect)
                case Placed():
                    application.on_placed(effect)
                case Alarm():
                    self._raise(effect, now)
                case LeaveDone():
                    self.stop()
                    application.on_left(now)
                    return
                case _:
                    assert_never(effect)
        self._arm(now)

    def _send(self, effect: Broadcast | SendTo | Unicast) -> None:
        """What cannot be sent is counted, whatever is in the way: to the engine it is a packet that got lost."""
        if self._wide is not None and isinstance(effect, Unicast) and effect.attachment == self._wide.attachment:
            self._send_far(self._wide, effect)
            return
        networks = self._attachments[effect.attachment]
        for number in effect.networks:
            sockets = networks[number]
            try:
                if isinstance(effect, Broadcast):
                    sockets.broadcast(effect.bursts)
                elif isinstance(effect, SendTo):
                    sockets.send_to(node_of(effect.process), effect.packet)
                else:
                    target = effect.target
                    sockets.unicast(target if isinstance(target, Endpoint) else node_of(target), effect.bursts)
            except (OSError, OverflowError, ValueError, UsageError):
                lane = sockets.data if isinstance(effect, Broadcast) else sockets.token
                if isinstance(effect, Unicast) and sockets.link is not None:
                    lane = sockets.link
                lane.counters.send_failures += 1

    def _send_far(self, wide: WideSockets, effect: Unicast) -> None:
        target = effect.target
        try:
            wide.unicast(target if isinstance(target, Endpoint) else node_of(target), effect.bursts)
        except (OSError, OverflowError, ValueError):
            wide.link.counters.send_failures += 1

    def _arm(self, now: Instant) -> None:
        """One timer, moved when the deadline comes nearer: most deadlines move away long before they are due. It moves
        away with its deadline only when it would soon go off for nothing, which wakes a process that is at rest."""
        deadline = self._engine.next_deadline()
        if deadline is None or self._is_stopped:
            return
        if self._timer is not None:
            is_vain = self._timer_at < now + SOON_NS and self._armed_at < now - YOUNG_NS and self._timer_at < deadline
            if self._timer_at <= deadline and not is_vain:
                return
            self._timer.cancel()
        self._timer_at, self._armed_at = deadline, _now()
        self._due_at = max(deadline, self._armed_at)
        self._timer = self._loop.call_later((self._due_at - self._armed_at) / 1e9, self._wake)

    def _persist(self, effect: Persist) -> None:
        def done(error: OSError | None) -> None:
            with suppress(RuntimeError):  # the loop has ended
                self._loop.call_soon_threadsafe(self._written, effect.key, error)

        self._storage.write(effect.key, effect.value, done)

    def _count(self, note: Note) -> None:
        if isinstance(note, PacketDropped):
            refused = self._counters.refused
            refused[note.why if note.why in refused or len(refused) < REASONS_MAX else "other reasons"] += 1
        elif isinstance(note, Occurred):
            self._counters.occurred[note.what.value] += note.count
        elif isinstance(note, Moved):
            self._counters.moves[f"{note.origin} → {note.target}"] += 1

    def _raise(self, alarm: Alarm, now: Instant) -> None:
        counters = self._counters
        counters.alarms.append((now, alarm))
        if alarm.kind is AlarmKind.PAUSED and alarm.duration is not None:
            counters.pauses += 1
            counters.longest_pause_ns = max(counters.longest_pause_ns, alarm.duration)
            counters.last_pause_at, counters.last_pause_ns = now, alarm.duration
        self._application.on_alarm(alarm, now)


def storage_alarm(folder: Path | None, error: OSError | None) -> Alarm:
    if error is None:
        return Alarm(AlarmKind.STORAGE_REPAIRED, f"the state folder {folder} is written again")
    why = error.strerror or error
    text = f"the state folder {folder} cannot be written: {why}; see to the disk; it is tried again until it works"
    return Alarm(AlarmKind.STORAGE_FAILED, text)


def _now() -> Instant:
    return Instant(monotonic_ns())
