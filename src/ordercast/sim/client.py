"""Client: one simulated client, which speaks with its daemon through its half of a session (`session/client_half.py`).

It records what it asks for when it asks, and what it is told when it reads it. It may read slowly, or not at all for a
while; what comes meanwhile waits in its inbox, within the credit that it has given. What it wants to send waits while
the daemon has given it no credit.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple, Protocol, assert_never

from ordercast.model.events import Batch, Dropped, GroupNews, Left, Piece, Reconnected, Transition, View
from ordercast.model.ids import MILLISECOND
from ordercast.model.service import Service
from ordercast.session.batches import Confirm, send_size
from ordercast.session.client_half import BYE, ClientHalf, Closing, Managed, News, cost_of
from ordercast.session.frames import DeniedSend, Listing, Members, Refused, SlowPolicy, Welcome
from ordercast.session.pieces import FrameKind
from ordercast.session.reader import FrameReader
from ordercast.sim.group_tally import GroupOccurrence as Row
from ordercast.sim.pipe import Pipe
from ordercast.trace.client_records import (
    AskedJoin,
    AskedLeave,
    ClientId,
    End,
    GotConfirmation,
    GotDropped,
    GotLeft,
    GotMessage,
    GotRefusal,
    GotTransition,
    GotView,
    Sent,
)
from ordercast.trace.records import MessageId, digest_of, message_id_of, stamped

if TYPE_CHECKING:
    from ordercast.sim.station import Station

_SLOWLY_NS = (MILLISECOND, 12 * MILLISECOND)  # between two pieces that a slow client reads


class Pace(Enum):
    """How a client reads."""

    AT_ONCE = "at once"
    SLOWLY = "slowly"
    NOT_AT_ALL = "not at all"


class Listener(Protocol):
    """A program behind a client: told everything that the client is told."""

    def got(self, sender: str, data: bytes, is_again: bool) -> None: ...

    def notified(self, news: GroupNews) -> None: ...

    def ended(self, how: End) -> None: ...


class Outgoing(NamedTuple):
    """Messages to be sent in one frame."""

    groups: tuple[str, ...]
    service: Service
    fillers: tuple[bytes, ...]
    self_discard: bool = False
    confirm: bool = False


@dataclass(slots=True, eq=False)
class SimClient:
    station: Station
    half: ClientHalf
    policy: SlowPolicy
    id: ClientId = field(init=False)
    name: str = ""  # in full, once it is welcome
    up: Pipe = field(init=False)
    pace: Pace = Pace.AT_ONCE
    sent: int = 0
    joined: set[str] = field(default_factory=set)  # groups that it has asked for
    _uncertain: set[str] = field(default_factory=set)  # of these, those that may yet be refused
    _leaving: Counter[str] = field(default_factory=Counter)  # left, and not told yet: views may be of the time before
    listener: Listener | None = None
    reconnects: bool = False  # when its daemon sends it away, or ends
    is_rude: bool = False  # it has said something wrong
    is_over: bool = False
    refusal: str = ""  # why it has to go, as its daemon says
    _reader: FrameReader = field(init=False)
    _inbox: deque[tuple[Piece | Closing, int]] = field(default_factory=deque)
    _inbox_size: int = 0  # of this, what takes credit
    _outbox: deque[Outgoing] = field(default_factory=deque)
    _is_short: bool = False  # of credit, for the first of these
    _unconfirmed: deque[MessageId] = field(default_factory=deque)
    _will_read: bool = False

    def __post_init__(self) -> None:
        self._reader = FrameReader(room=self.station.room)

    @property
    def is_idle(self) -> bool:
        return not self._inbox and not self._outbox

    # What it asks for

    def join(self, groups: tuple[str, ...]) -> None:
        wanted = tuple(group for group in groups if group not in self.joined)
        if wanted and not self.refusal:
            self.station.tell(AskedJoin(self.station.clock(), self.id, wanted))
            self.joined.update(wanted)
            if self.station.may_refuse:
                self._uncertain.update(wanted)
            self.up.write(self.half.join(wanted))

    def leave(self, groups: tuple[str, ...]) -> None:
        """Where a join may be refused, it is waited for: a refusal does not say which of several joins it is of."""
        wanted = tuple(group for group in groups if group in self.joined and group not in self._uncertain)
        if wanted and not self.refusal:
            self.station.tell(AskedLeave(self.station.clock(), self.id, wanted))
            self.joined.difference_update(wanted)
            self._leaving.update(wanted)
            self.up.write(self.half.leave(wanted))

    def send(self, outgoing: Outgoing) -> None:
        self._outbox.append(outgoing)
        self._send_on()

    def _send_on(self) -> None:
        """As much as there is credit for."""
        while self._outbox and not self.refusal:
            outgoing = self._outbox[0]
            head = self.half.head(outgoing.groups, self_discard=outgoing.self_discard, confirm=outgoing.confirm)
            data = [
                stamped(MessageId(self.id.process, self.id.session, number), filler)
                for number, filler in enumerate(outgoing.fillers, self.sent + 1)
            ]
            size = send_size(len(data), sum(map(len, data)) + len(head) * len(data))
            if self.half.credit < size:
                self._wait_for_credit(size)
                return
            if self._is_short:
                self.station.tally.count(Row.CREDIT_BACK)
            self._is_short = False
            self._outbox.popleft()
            self._record_sent(outgoing, data)
            self.up.write(self.half.send(outgoing.service, head, data))

    def _wait_for_credit(self, size: int) -> None:
        if not self._is_short:
            self._is_short = True
            self.station.tally.count(Row.CREDIT_EXHAUSTED)
            if (want := self.half.want(size)) is not None:
                self.station.tally.count(Row.CREDIT_WANTED)
                self.up.write(want)

    def _record_sent(self, outgoing: Outgoing, data: list[bytes]) -> None:
        for payload in data:
            self.sent += 1
            message = MessageId(self.id.process, self.id.session, self.sent)
            if outgoing.confirm:
                self._unconfirmed.append(message)
            self.station.tell(
                Sent(
                    self.station.clock(),
                    self.id,
                    message,
                    outgoing.groups,
                    int(outgoing.service),
                    digest_of(payload),
                    outgoing.self_discard,
                    outgoing.confirm,
                )
            )

    def disconnect(self) -> None:
        """In order: what it asked for before is done first."""
        self.up.write(BYE)
        self.station.end(self, End.ORDERLY)

    def crash(self) -> None:
        """Its connection breaks: what has reached the daemon is done all the same."""
        self.station.end(self, End.CRASHED)
        self.up.cut()

    def be_rude(self, frame: bytes) -> None:
        """Say something wrong."""
        self.is_rude = True
        self.up.write(frame)

    # What comes

    def welcome(self, answer: bytes, client: ClientId) -> None:
        for kind, body in self._frames(answer):
            assert isinstance(self.half.receive(kind, body), Welcome)
        self.id, self.name = client, self.half.name

    def ended(self) -> None:
        """The connection is closed: what its daemon had to say has come before."""

    def _frames(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        self._reader.room()[: len(data)] = data
        return self._reader.received(len(data))

    def arrive(self, data: bytes) -> None:
        if self.is_over:
            return
        for kind, body in self._frames(data):
            news = self.half.receive(kind, body)
            if kind == FrameKind.CREDIT:
                self._send_on()
            elif news is not None:
                self._take(news, cost_of(kind, body))
        self._go_on_reading()

    def _take(self, news: News, size: int) -> None:
        match news:
            case Confirm():
                self._confirmed(news)
            case Refused():
                self._refused(news)
            case Closing():
                self.refusal = news.why
                self._outbox.clear()
                self._inbox.append((news, 0))
            case Batch() | View() | Transition() | Left() | Dropped():
                if isinstance(news, View) and not self._leaving[news.group]:
                    self._uncertain.discard(news.group)
                elif isinstance(news, Left):
                    self._leaving[news.group] -= 1
                self._inbox.append((news, size))
                self._inbox_size += size
                self.station.witness.receives(self.id, self._inbox_size, size)
            case Welcome() | Reconnected() | Listing() | Members() | Managed() | DeniedSend():
                raise AssertionError(f"nobody has asked for {news}")
            case _:
                assert_never(news)

    def _confirmed(self, confirm: Confirm) -> None:
        for index in range(confirm.messages):
            message, position = self._unconfirmed.popleft(), confirm.places.at(index)
            self.station.tell(GotConfirmation(self.station.clock(), self.id, message, position))

    def _refused(self, refused: Refused) -> None:
        """It had asked for more groups than it may be in."""
        if refused.joins:
            self.joined.difference_update(refused.groups)
            self._uncertain.difference_update(refused.groups)
            self.station.tally.count(Row.GROUPS_REFUSED)
            self.station.tell(GotRefusal(self.station.clock(), self.id, refused.groups))
        else:
            self._leaving.subtract(refused.groups)

    # What it reads

    def read(self, pace: Pace) -> None:
        self.pace = pace
        self._go_on_reading()

    def _go_on_reading(self) -> None:
        if self.pace is Pace.AT_ONCE:
            while self._inbox and not self.is_over:
                self._read_one()
        elif self.pace is Pace.SLOWLY and self._inbox and not self._will_read:
            self._will_read = True
            self.station.later(self.station.rng.randrange(*_SLOWLY_NS), self._read_slowly)

    def _read_slowly(self) -> None:
        self._will_read = False
        if self._inbox and not self.is_over and self.pace is not Pace.NOT_AT_ALL:
            self._read_one()
        self._go_on_reading()

    def _read_one(self) -> None:
        piece, size = self._inbox.popleft()
        if isinstance(piece, Closing):
            self.station.end(self, End.SENT_AWAY)
            return
        self.station.witness.reads(self.id, self.policy, piece)
        self._record(piece)
        self._inbox_size -= size
        if (credit := self.half.took(size)) is not None:
            self.up.write(credit)

    def _record(self, piece: Piece) -> None:
        tell, now = self.station.tell, self.station.clock()
        match piece:
            case Batch():
                self._record_batch(piece)
                return
            case View():
                tell(GotView(now, self.id, piece))
            case Transition():
                tell(GotTransition(now, self.id, piece))
            case Left():
                tell(GotLeft(now, self.id, piece.group))
            case Dropped():
                tell(GotDropped(now, self.id, piece.messages))
                return
            case Reconnected():
                raise AssertionError("a connection is one client here")
            case _:
                assert_never(piece)
        if self.listener is not None:
            self.listener.notified(piece)

    def _record_batch(self, batch: Batch) -> None:
        for groups, sender, data, position, service, _ in batch:
            if self.is_over:
                return  # whoever listens has ended it
            message, digest = message_id_of(data), digest_of(data)
            now = self.station.clock()
            self.station.tell(GotMessage(now, self.id, message, sender, groups, int(service), digest, position))
            if self.listener is not None:
                self.listener.got(sender, data, batch.places.is_again)
