"""GroupHost: a participant whose deliveries are cut into named groups for its sessions.

A session is somebody who sends and receives here: the program that embeds a node, or a client that is connected to a
daemon. Requests of sessions are handed to the engine in turns, one of each, whenever there is room; what the groups
themselves have to say goes first. Nobody waits here: a session is told when its request was accepted. Joins and leaves
are small and cost every daemon much: only so many are on their way at a time, and the messages of others pass by them.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple, Protocol

from ordercast.daemon.config.node import NodeConfig
from ordercast.daemon.participant import Participant
from ordercast.daemon.status.counters import ClientRefusal
from ordercast.daemon.status.parts import ClientsStatus, HoldStatus
from ordercast.groups.envelope import destinations_of, joins_of
from ordercast.groups.interests import Interests
from ordercast.groups.layer import (
    Announce,
    Changed,
    Confirmed,
    Groups,
    MessageRun,
    Output,
    PassedOver,
    Relisted,
    Warned,
    disconnect_payload,
)
from ordercast.groups.table import Notice
from ordercast.model.configuration import Configuration
from ordercast.model.effects import Alarm, AlarmKind, Deliver, Subscribed
from ordercast.model.errors import UsageError
from ordercast.model.ids import Instant
from ordercast.model.inputs import EVERYWHERE
from ordercast.model.notes import PacketDropped
from ordercast.model.roster import Claim, Roster
from ordercast.model.service import Service
from ordercast.session.batches import encode_messages
from ordercast.session.news import NewsEncoder
from ordercast.session.payloads import portions

OWN = 0  # the sender number of what the groups say
CHANGING_MAX = 1000  # groups that are being joined or left: each keeps every daemon for some ten microseconds


class Handout:
    """Something for several sessions. The frame of messages is made once, when the first asks for it."""

    __slots__ = ("_frame", "content")

    def __init__(self, content: MessageRun | Notice, frame: bytes | None = None) -> None:
        self.content = content
        self._frame = frame

    @property
    def messages(self) -> int:
        return len(self.content.payloads) if isinstance(self.content, MessageRun) else 0

    def frame(self) -> bytes:
        if self._frame is None:
            assert isinstance(self.content, MessageRun)
            self._frame = encode_messages(self.content)
        return self._frame


class Session(Protocol):
    @property
    def name(self) -> str:
        """In full."""

    @property
    def waiting_size(self) -> int:
        """Bytes that it has not taken."""

    @property
    def received_size(self) -> int:
        """Bytes of what it has not said to the end."""

    def on_parcel(self, parcel: Handout) -> None: ...
    def on_confirmed(self, run: MessageRun) -> None: ...
    def on_ended(self, why: str) -> None:
        """The host has ended."""

    def flush(self) -> None:
        """That was all for now."""


class Serving(Protocol):
    """Whoever serves clients here."""

    @property
    def memory_size(self) -> int:
        """Bytes that are kept for all of them."""

    @property
    def memory_max(self) -> int: ...
    @property
    def memberships(self) -> int: ...
    @property
    def strangers_count(self) -> int: ...


class _Request(NamedTuple):
    payloads: Sequence[bytes]
    service: Service
    size: int  # in the engine's queue
    changes: int  # groups that are joined or left; none: messages
    joins: tuple[str, ...]  # groups that are joined
    accepted: Callable[[], None] | None


class GroupHost(Participant):
    def __init__(
        self,
        config: NodeConfig | None = None,
        on_configuration: Callable[[Configuration], None] | None = None,
        on_alarm: Callable[[Alarm], None] | None = None,
    ) -> None:
        super().__init__(config)
        self.named: Groups
        self.interests: Interests
        self.sessions: dict[int, Session] = {}
        self._on_configuration = on_configuration
        self._on_alarm = on_alarm
        self._leaving: asyncio.Task[None] | None = None
        self.as_loaded: NodeConfig | None = None  # what the file said when this began, to be compared by a reload
        self._numbers = 0  # sessions so far
        self._announcements: deque[bytes] = deque()
        self._requests: dict[int, deque[_Request]] = {}  # that wait, by session
        self._requests_sizes: dict[int, int] = {}  # bytes of these
        self._turns: deque[int] = deque()  # sessions that have some
        self._held_up: deque[int] = deque()  # the same, whose next one has to wait until fewer groups are changing
        self._changing: deque[int] = deque()  # joins and leaves that are on their way: how many groups each
        self._changes_seen = 0
        self._will_pump = False
        self._is_carrying_out = False
        self._encoder = NewsEncoder()
        self._touched: dict[Session, None] = {}  # have something to write
        self._roster_waiters: dict[Claim, list[Callable[[UsageError | None], None]]] = {}
        self._holding: dict[int, Instant] = {}  # sessions for which all wait, and since when
        self.serving: Serving | None = None

    # Sessions

    def open_session(self, session: Session, name: str) -> tuple[int, str]:
        """Its number and its full name. UsageError when the name is bad, or in use. Empty: any that is free."""
        if self.is_removed:
            raise UsageError(f"{self._removal}: connect to another daemon")
        self._running()
        number = self._numbers + 1
        while not name and self.named.is_connected(f"c{number}@{self.config.name}"):
            number += 1
        full = self.named.connect(name or f"c{number}", number)
        self._numbers = number
        self.sessions[number] = session
        self.counters.clients.connected += 1
        return number, full

    def close_session(
        self, number: int, full: str, groups: int = 0, accepted: Callable[[], None] | None = None
    ) -> None:
        """It is gone: what it has sent is still sent, and then everybody is told. It was in so many groups."""
        if self.sessions.pop(number, None) is not None and self.is_running:
            self.request(number, (disconnect_payload(full),), accepted=accepted, changes=1 + groups)

    def hold(self, number: int, is_holding: bool) -> None:
        """All wait for this session, or no longer."""
        was_behind = self.is_behind
        if is_holding:
            self._holding.setdefault(number, self.now())
        else:
            self._holding.pop(number, None)
        if self.is_behind != was_behind:
            self._tell_behind()

    @property
    def is_behind(self) -> bool:
        return self.reading.is_behind or bool(self._holding)

    def request(
        self,
        number: int,
        payloads: Sequence[bytes],
        service: Service = Service.AGREED,
        accepted: Callable[[], None] | None = None,
        changes: int = 0,
    ) -> None:
        """To be sent in this session's turn, after what it has asked for before. `changes`: it is a join or a leave of
        so many groups."""
        queue = self._requests.setdefault(number, deque())
        if not queue:
            self._turns.append(number)
        joins = joins_of(payloads[0]) if changes else ()
        self.interests.ask(joins)
        start = 0
        for end, size in portions(payloads, self._overhead, self.config.ring.queue_size_max):
            is_last = end == len(payloads)
            queue.append(_Request(payloads[start:end], service, size, changes, joins, accepted if is_last else None))
            self._requests_sizes[number] = self._requests_sizes.get(number, 0) + size
            start = end
        if self._is_carrying_out:
            self._pump_soon()
        else:
            self._pump()

    def requests_size(self, number: int) -> int:
        """Bytes that this session has asked to be sent, and that wait."""
        return self._requests_sizes.get(number, 0)

    def drop_requests(self, number: int) -> None:
        """What this session has asked for is not done, but that its end is told."""
        queue = self._requests.get(number)
        if queue:
            kept = [queue[-1]] if number not in self.sessions else []
            for dropped in islice(queue, len(queue) - len(kept)):
                self.interests.came(dropped.joins, is_join=True)
            self._take_back(number, sum(request.size for request in queue) - sum(request.size for request in kept))
            queue.clear()
            queue.extend(kept)
            if not kept:
                del self._requests[number]
                (self._turns if number in self._turns else self._held_up).remove(number)

    @property
    def requests_waiting(self) -> int:
        """That the engine has no room for, or that wait for daemons to come together."""
        return sum(map(len, self._requests.values())) + len(self._announcements)

    def _pump_soon(self) -> None:
        """Not before the effects at hand are carried out: what the engine delivers comes in its order."""
        if not self._will_pump:
            self._will_pump = True
            asyncio.get_running_loop().call_soon(self._pump)

    def _pump(self) -> None:
        """Hand over what there is room for."""
        self._will_pump = False
        if self._is_leaving:
            return  # the engine takes nothing more
        if self.interests.has_changes and self.is_running:
            self._tell_interest(self.interests.changes())
        while self._announcements and self.is_running:
            size = len(self._announcements[0]) + self._overhead
            if not self._has_room_for(size):
                return
            self._hand_over((self._announcements.popleft(),), Service.AGREED, OWN, size)
        while self._turns and self.is_running and self.named.is_steady and self._take_turn():
            pass

    def _take_turn(self) -> bool:
        number = self._turns[0]
        queue = self._requests[number]
        request = queue[0]
        is_crowded = request.changes and self._changing and self.changing + request.changes > CHANGING_MAX
        if is_crowded or not self.interests.is_ready(request.joins):
            self._held_up.append(self._turns.popleft())
            return True
        if not self._has_room_for(request.size):
            return False
        self._turns.popleft()
        queue.popleft()
        self._take_back(number, request.size)
        if queue:
            self._turns.append(number)
        else:
            del self._requests[number]
        if request.changes:
            self._changing.append(request.changes)
        destinations = EVERYWHERE if request.changes else destinations_of(request.payloads[0])
        self._hand_over(request.payloads, request.service, number, request.size, destinations)
        if request.accepted is not None:
            request.accepted()
        return True

    @property
    def changing(self) -> int:
        """Groups that sessions here are joining or leaving, on their way through the ring."""
        return sum(self._changing)

    def _look_at_changes(self) -> None:
        """They come back in the order in which they were sent."""
        seen = self.named.own_changes
        if seen != self._changes_seen:
            self._let_change(seen - self._changes_seen)
            self._changes_seen = seen

    def _let_change(self, seen: int) -> None:
        for _ in range(min(seen, len(self._changing))):
            self._changing.popleft()
        self._turns.extend(self._held_up)
        self._held_up.clear()

    def _take_back(self, number: int, size: int) -> None:
        left = self._requests_sizes[number] - size
        if left:
            self._requests_sizes[number] = left
        else:
            del self._requests_sizes[number]

    def clients_status(self) -> ClientsStatus:
        counters, serving = self.counters.clients, self.serving
        return ClientsStatus(
            sessions=len(self.sessions),
            groups=len(self.named.table),
            is_merging=not self.named.is_steady,
            waiting_size=sum(session.waiting_size for session in self.sessions.values()),
            connected=counters.connected,
            refused=counters.refused,
            too_slow=counters.too_slow,
            messages_dropped=counters.messages_dropped,
            received_size=sum(session.received_size for session in self.sessions.values()),
            requests_size=sum(self._requests_sizes.values()),
            memory_size=0 if serving is None else serving.memory_size,
            memory_max=0 if serving is None else serving.memory_max,
            memberships=0 if serving is None else serving.memberships,
            strangers=0 if serving is None else serving.strangers_count,
            over_memory=counters.over_memory,
            held_too_long=counters.held_too_long,
            refusals={kind.value: counters.refusals[kind] for kind in ClientRefusal},
            holding=tuple(self._holds()),
        )

    # The node list

    def await_roster(self, claim: Claim, told: Callable[[UsageError | None], None]) -> None:
        """Tell when this node list has come in order: None when it was taken, else why not."""
        self._roster_waiters.setdefault(claim, []).append(told)

    def _take_roster(self, roster: Roster) -> None:
        """An ordered change. All daemons of the configuration have it at this place."""
        waiters = self._roster_waiters.pop(roster.claim, [])
        if not self.is_running:
            return
        refusal: UsageError | None = None
        try:
            self.enlist(roster)
        except UsageError as error:
            refusal = UsageError(f"the node list was changed by somebody else meanwhile, try again: {error}")
        for told in waiters:
            told(refusal)
        if refusal is not None:
            return
        if self.config.node not in roster:
            self._leave_for_good(roster)

    def _leave_for_good(self, roster: Roster) -> None:
        """The cluster goes on without this node, which takes leave in order and says why."""
        text = f"version {roster.version} of the node list does not have {self.config.name}: it was removed"
        self.raise_alarm(Alarm(AlarmKind.REMOVED, f"{text} from the cluster and leaves it", self.process))
        self._leaving = asyncio.get_running_loop().create_task(self.leave(f"{text} from the cluster"))

    def _holds(self) -> Iterator[HoldStatus]:
        now = self.now()
        for number, since in self._holding.items():
            session = self.sessions[number]
            yield HoldStatus(session.name, now - since, session.waiting_size)

    # What the engine brings

    def _opened(self) -> None:
        self.named = Groups(self.process, self.config.name)
        self.interests = Interests(self.config.name, self.named.table)

    def _delivered(self, deliver: Deliver, size: int) -> None:
        self._carry_out_groups(self.named.deliver(deliver))

    def _viewed(self, view: Configuration) -> None:
        if self._on_configuration is not None:
            self._on_configuration(view)
        self._let_change(len(self._changing))  # whatever became of them, nobody waits for them for ever
        self._carry_out_groups(self.named.install(view))

    def on_alarm(self, alarm: Alarm, at: Instant) -> None:
        super().on_alarm(alarm, at)
        if self._on_alarm is not None:
            self._on_alarm(alarm)

    def on_room(self) -> None:
        super().on_room()
        self._pump_soon()

    def on_subscribed(self, effect: Subscribed) -> None:
        super().on_subscribed(effect)
        self.interests.subscribed(effect.groups)
        if self._held_up:
            self._let_change(0)
            self._pump_soon()

    def _carry_out_groups(self, outputs: list[Output]) -> None:
        self._is_carrying_out = True
        try:
            for output in outputs:
                self._carry_out_one(output)
        finally:
            self._is_carrying_out = False
        self._look_at_changes()
        if self._announcements or self._turns or self.interests.has_changes:
            self._pump_soon()

    def _carry_out_one(self, output: Output) -> None:
        match output:
            case MessageRun():
                self._hand_out(Handout(output), output.sessions)
            case Notice():
                self._hand_out(Handout(output, self._encoder.encode(output.news)), output.sessions)
            case Confirmed():
                if (session := self.sessions.get(output.session)) is not None:
                    session.on_confirmed(output.run)
                    self.touch(session)
            case Announce():
                self._announcements.extend(output.payloads)
            case Changed():
                self.interests.came(output.groups, is_join=output.is_join)
            case Relisted():
                asyncio.get_running_loop().call_soon(self._take_roster, output.roster)
            case Warned():
                self.counters.alarms.append((self.now(), Alarm(AlarmKind.TWIN_NAMES, output.text)))
            case PassedOver():
                self.counters.refused[output.why] += 1
                self.on_note(PacketDropped(output.why), self.now())

    def _hand_out(self, parcel: Handout, numbers: tuple[int, ...]) -> None:
        for number in numbers:
            if (session := self.sessions.get(number)) is not None:
                session.on_parcel(parcel)
                self.touch(session)

    def touch(self, session: Session) -> None:
        """Have it flushed before the event loop looks at the network again: one write for all that came meanwhile."""
        if not self._touched:
            asyncio.get_running_loop().call_soon(self._flush)
        self._touched[session] = None

    def _flush(self) -> None:
        touched, self._touched = self._touched, {}
        for session in touched:
            session.flush()

    def _close(self) -> None:
        super()._close()
        why = str(self._failure) if self._failure is not None else f"the daemon {self.config.name} has left"
        sessions, self.sessions = self.sessions, {}
        for session in sessions.values():
            session.on_ended(why)
