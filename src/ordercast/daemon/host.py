"""GroupHost: a participant whose deliveries are cut into named groups for its sessions.

A session is somebody who sends and receives here: the program that embeds a node, or a client that is connected to a
daemon. Requests of sessions are handed to the engine in turns, one of each, whenever there is room; what the groups
themselves have to say goes first. Nobody waits here: a session is told when its request was accepted.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from ordercast.daemon.config import NodeConfig
from ordercast.daemon.participant import Participant
from ordercast.daemon.status_parts import ClientsStatus
from ordercast.groups.layer import Announce, Confirmed, Groups, Output, Run, Warned, disconnect_payload
from ordercast.groups.table import Notice
from ordercast.model.effects import Alarm, AlarmKind, Deliver
from ordercast.model.ids import Instant
from ordercast.model.service import Service
from ordercast.model.view import View
from ordercast.session.batches import encode_messages
from ordercast.session.news import NewsEncoder
from ordercast.stream.payloads import portions
from ordercast.stream.pieces import GroupInbox, events_of, rest_of

OWN = 0  # the sender number of what the groups say


class Parcel:
    """Something for several sessions. The frame of messages is made once, when the first asks for it."""

    __slots__ = ("_frame", "content")

    def __init__(self, content: Run | Notice, frame: bytes | None = None) -> None:
        self.content = content
        self._frame = frame

    @property
    def messages(self) -> int:
        return len(self.content.payloads) if isinstance(self.content, Run) else 0

    def frame(self) -> bytes:
        if self._frame is None:
            assert isinstance(self.content, Run)
            self._frame = encode_messages(self.content)
        return self._frame


class Session(Protocol):
    @property
    def waiting_size(self) -> int:
        """Bytes that it has not taken."""

    def on_parcel(self, parcel: Parcel) -> None: ...
    def on_confirmed(self, run: Run) -> None: ...
    def on_ended(self, why: str) -> None:
        """The host has ended."""

    def flush(self) -> None:
        """That was all for now."""


class _Request(NamedTuple):
    payloads: Sequence[bytes]
    service: Service
    size: int  # in the engine's queue
    accepted: Callable[[], None] | None


class GroupHost(Participant):
    def __init__(
        self,
        config: NodeConfig | None = None,
        on_configuration: Callable[[View], None] | None = None,
        on_alarm: Callable[[Alarm], None] | None = None,
    ) -> None:
        super().__init__(config)
        self.inbox: GroupInbox = GroupInbox(events_of, rest_of, self.config.inbox_size_max, self._on_behind)
        self.named: Groups
        self.sessions: dict[int, Session] = {}
        self._on_configuration = on_configuration
        self._on_alarm = on_alarm
        self._numbers = 0  # sessions so far
        self._announcements: deque[bytes] = deque()
        self._requests: dict[int, deque[_Request]] = {}  # that wait, by session
        self._turns: deque[int] = deque()  # sessions that have some
        self._will_pump = False
        self._is_carrying_out = False
        self._encoder = NewsEncoder()
        self._touched: dict[Session, None] = {}  # have something to write
        self._holding: set[int] = set()  # sessions for which all wait

    # Sessions

    def open_session(self, session: Session, name: str) -> tuple[int, str]:
        """Its number and its full name. UsageError when the name is bad, or in use. Empty: any that is free."""
        self._running()
        number = self._numbers + 1
        while not name and self.named.is_connected(f"c{number}@{self.config.name}"):
            number += 1
        full = self.named.connect(name or f"c{number}", number)
        self._numbers = number
        self.sessions[number] = session
        self.counters.clients.connected += 1
        return number, full

    def close_session(self, number: int, full: str) -> None:
        """It is gone: what it has sent is still sent, and then everybody is told."""
        if self.sessions.pop(number, None) is not None and self.is_running:
            self.request(number, (disconnect_payload(full),))

    def hold(self, number: int, is_holding: bool) -> None:
        """All wait for this session, or no longer."""
        was_behind = self.is_behind
        (self._holding.add if is_holding else self._holding.discard)(number)
        if self.is_behind != was_behind:
            self._tell_behind()

    @property
    def is_behind(self) -> bool:
        return self.inbox.is_behind or bool(self._holding)

    def request(
        self,
        number: int,
        payloads: Sequence[bytes],
        service: Service = Service.AGREED,
        accepted: Callable[[], None] | None = None,
    ) -> None:
        """To be sent in this session's turn, after what it has asked for before."""
        queue = self._requests.setdefault(number, deque())
        if not queue:
            self._turns.append(number)
        start = 0
        for end, size in portions(payloads, self._overhead, self.config.ring.queue_size_max):
            is_last = end == len(payloads)
            queue.append(_Request(payloads[start:end], service, size, accepted if is_last else None))
            start = end
        if self._is_carrying_out:
            self._pump_soon()
        else:
            self._pump()

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
        if not self._has_room_for(request.size):
            return False
        self._turns.popleft()
        queue.popleft()
        if queue:
            self._turns.append(number)
        else:
            del self._requests[number]
        self._hand_over(request.payloads, request.service, number, request.size)
        if request.accepted is not None:
            request.accepted()
        return True

    def clients_status(self) -> ClientsStatus:
        counters = self.counters.clients
        return ClientsStatus(
            len(self.sessions),
            len(self.named.table),
            not self.named.is_steady,
            sum(session.waiting_size for session in self.sessions.values()),
            counters.connected,
            counters.refused,
            counters.too_slow,
            counters.messages_dropped,
        )

    # What the engine brings

    def _opened(self) -> None:
        self.named = Groups(self.process, self.config.name)

    def _delivered(self, deliver: Deliver, size: int) -> None:
        self._carry_out_groups(self.named.deliver(deliver))

    def _viewed(self, view: View) -> None:
        if self._on_configuration is not None:
            self._on_configuration(view)
        self._carry_out_groups(self.named.install(view))

    def on_alarm(self, alarm: Alarm, at: Instant) -> None:
        super().on_alarm(alarm, at)
        if self._on_alarm is not None:
            self._on_alarm(alarm)

    def on_room(self) -> None:
        super().on_room()
        self._pump_soon()

    def _carry_out_groups(self, outputs: list[Output]) -> None:
        self._is_carrying_out = True
        try:
            for output in outputs:
                self._carry_out_one(output)
        finally:
            self._is_carrying_out = False
        if self._announcements or self._turns:
            self._pump_soon()

    def _carry_out_one(self, output: Output) -> None:
        match output:
            case Run():
                self._hand_out(Parcel(output), output.sessions)
            case Notice():
                self._hand_out(Parcel(output, self._encoder.encode(output.news)), output.sessions)
            case Confirmed():
                if (session := self.sessions.get(output.session)) is not None:
                    session.on_confirmed(output.run)
                    self.touch(session)
            case Announce():
                self._announcements.extend(output.payloads)
            case Warned():
                self.counters.alarms.append((self.now(), Alarm(AlarmKind.TWIN_NAMES, output.text)))

    def _hand_out(self, parcel: Parcel, numbers: tuple[int, ...]) -> None:
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
