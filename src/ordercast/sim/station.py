"""The groups of one life of a simulated host, with the clients that are connected to it: what a daemon does.

The host gives it the engine's stream and asks it what to submit next. Announcements of the layer go first; what clients
ask for waits while snapshots are awaited; the disconnection of a client that crashed may go at any time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Protocol, assert_never

from ordercast.groups.envelope import decode_head
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
    data_head,
    disconnect_payload,
    join_payload,
    leave_payload,
)
from ordercast.groups.table import Notice
from ordercast.model.configuration import Configuration
from ordercast.model.effects import Deliver, Parcel
from ordercast.model.events import GroupNews, Left, Transition, View
from ordercast.model.ids import Instant, Position, ProcessId, node_of, position_from
from ordercast.model.service import Service
from ordercast.sim.group_tally import GroupTally
from ordercast.trace.client_records import (
    AskedJoin,
    AskedLeave,
    ClientEvent,
    ClientId,
    Connected,
    Disconnected,
    End,
    GotConfirmation,
    GotLeft,
    GotMessage,
    GotTransition,
    GotView,
    KnownGroups,
    Sent,
)
from ordercast.trace.records import STAMP_SIZE, MessageId, digest_of, message_id_of, stamped

LAYER = 0  # the engine's sender for what the layer itself says; sessions are numbered from 1


class Request(NamedTuple):
    """To be submitted to the engine."""

    session: int
    payload: bytes
    service: Service = Service.AGREED
    joins: tuple[str, ...] = ()  # groups


class Listener(Protocol):
    """A program behind a client: told everything that the client is told."""

    def got(self, sender: str, data: bytes) -> None: ...

    def notified(self, news: GroupNews) -> None: ...

    def ended(self, how: End) -> None: ...


@dataclass(slots=True)
class Client:
    id: ClientId
    name: str
    sent: int = 0
    listener: Listener | None = None


@dataclass(slots=True)
class Station:
    process: ProcessId
    groups: Groups
    tally: GroupTally
    tell: Callable[[ClientEvent], None]
    clock: Callable[[], Instant]
    clients: dict[int, Client] = field(default_factory=dict)  # connected ones, by session
    announcements: deque[Request] = field(default_factory=deque)
    farewells: deque[Request] = field(default_factory=deque)
    requests: deque[Request] = field(default_factory=deque)
    sessions: int = 0  # how many there have been
    interests: Interests = field(init=False)

    def __post_init__(self) -> None:
        self.interests = Interests(station_name(self.process), self.groups.table)

    # The engine's stream

    def install(self, view: Configuration) -> None:
        self.tally.installs(self.groups, view)
        self._carry_out(self.groups.install(view))
        self.tally.installed(self.groups)

    def deliver(self, deliver: Deliver) -> None:
        """Payloads as the engine has them, each with the stamp of its daemon before it."""
        parcels: list[Parcel] = [
            (seq, originator, senders, services, [payload[STAMP_SIZE:] for payload in payloads], each)
            for seq, originator, senders, services, payloads, each in deliver.parcels
        ]
        bare = replace(deliver, parcels=parcels)
        self.tally.delivers(self.groups, bare)
        self._carry_out(self.groups.deliver(bare))
        self.tally.delivered(self.groups)

    def _carry_out(self, outputs: list[Output]) -> None:
        for output in outputs:
            match output:
                case MessageRun():
                    self._bring(output)
                case Notice():
                    self._notify(output)
                case Confirmed():
                    self._confirm(output)
                case Announce():
                    self.announcements += [Request(LAYER, payload) for payload in output.payloads]
                case Changed():
                    self.interests.came(output.groups, is_join=output.is_join)
                case Warned():
                    raise AssertionError(f"every host here has a name of its own, yet: {output.text}")
                case Relisted():
                    raise AssertionError("node lists are changed by reloads here")
                case PassedOver():
                    raise AssertionError(f"every host here is honest, yet of {output.originator}: {output.why}")
                case _:
                    assert_never(output)
        self.groups.check_invariants()

    def _bring(self, run: MessageRun) -> None:
        head = decode_head(run.head)
        for service, (data, position) in zip(run.services, _messages(run), strict=True):
            for client in self._those(run.sessions):
                self.tell(
                    GotMessage(
                        self.clock(),
                        client.id,
                        message_id_of(data),
                        head.sender,
                        head.groups,
                        int(service),
                        digest_of(data),
                        position,
                    )
                )
                if client.listener is not None:
                    client.listener.got(head.sender, data)

    def _confirm(self, confirmed: Confirmed) -> None:
        for client in self._those((confirmed.session,)):
            for data, position in _messages(confirmed.run):
                self.tell(GotConfirmation(self.clock(), client.id, message_id_of(data), position))

    def _notify(self, notice: Notice) -> None:
        news = notice.news
        self.tally.notifies(news)
        for client in self._those(notice.sessions):
            match news:
                case View():
                    self.tell(GotView(self.clock(), client.id, news))
                case Transition():
                    self.tell(GotTransition(self.clock(), client.id, news))
                case Left():
                    self.tell(GotLeft(self.clock(), client.id, news.group))
                case _:
                    assert_never(news)
            if client.listener is not None:
                client.listener.notified(news)

    def _those(self, sessions: tuple[int, ...]) -> Iterator[Client]:
        """Those of them who still listen."""
        return (self.clients[session] for session in sessions if session in self.clients)

    # What clients do

    def connect(self, name: str) -> Client:
        """UsageError while the name is in use."""
        session = self.sessions + 1
        full = self.groups.connect(name, session)
        self.sessions = session
        client = self.clients[session] = Client(ClientId(self.process, session), full)
        self.tally.connects(self.process, name)
        self.tell(Connected(self.clock(), client.id, full))
        return client

    def join(self, client: Client, groups: tuple[str, ...]) -> None:
        self.tell(AskedJoin(self.clock(), client.id, groups))
        self.interests.ask(groups)
        self.requests.append(Request(client.id.session, join_payload(client.name, groups), joins=groups))

    def leave(self, client: Client, groups: tuple[str, ...]) -> None:
        self.tell(AskedLeave(self.clock(), client.id, groups))
        self.requests.append(Request(client.id.session, leave_payload(client.name, groups)))

    def send(
        self,
        client: Client,
        groups: tuple[str, ...],
        service: Service,
        filler: bytes,
        *,
        self_discard: bool = False,
        confirm: bool = False,
    ) -> None:
        client.sent += 1
        message = MessageId(self.process, client.id.session, client.sent)
        data = stamped(message, filler)
        digest = digest_of(data)
        self.tell(Sent(self.clock(), client.id, message, groups, int(service), digest, self_discard, confirm))
        head = data_head(client.name, groups, self_discard=self_discard, confirm=confirm)
        self.requests.append(Request(client.id.session, head + data, service))

    def disconnect(self, client: Client) -> None:
        """In order: what it asked for before is done first."""
        farewell = Request(client.id.session, disconnect_payload(client.name))
        is_waiting = any(request.session == client.id.session for request in self.requests)
        (self.requests if is_waiting else self.farewells).append(farewell)
        self._end(client, End.ORDERLY)

    def crash(self, client: Client) -> None:
        """What it asked for and was not yet submitted is forgotten."""
        for request in self.requests:
            if request.session == client.id.session:
                self.interests.came(request.joins, is_join=True)
        self.requests = deque(request for request in self.requests if request.session != client.id.session)
        self.farewells.append(Request(client.id.session, disconnect_payload(client.name)))
        self._end(client, End.CRASHED)

    def close(self, how: End) -> None:
        """The daemon ends, and all its clients with it."""
        for client in list(self.clients.values()):
            self._end(client, how)

    def _end(self, client: Client, how: End) -> None:
        del self.clients[client.id.session]
        self.tally.ends(self.groups, how)
        self.tell(Disconnected(self.clock(), client.id, how))
        if client.listener is not None:
            client.listener.ended(how)

    # What is to be submitted

    def queue(self) -> deque[Request] | None:
        """The one whose first request may be submitted now."""
        if self.announcements:
            return self.announcements
        if self.farewells:
            return self.farewells
        may_go = self.requests and self.groups.is_steady and self.interests.is_ready(self.requests[0].joins)
        return self.requests if may_go else None

    def is_quiet(self) -> bool:
        return self.groups.is_steady and not (self.announcements or self.farewells or self.requests)

    def known(self) -> KnownGroups:
        table = self.groups.table
        return KnownGroups(
            self.clock(), self.process, tuple((name, table.members_of(name)) for name in sorted(table.groups()))
        )


def _messages(run: MessageRun) -> Iterator[tuple[bytes, Position]]:
    for number, payload in enumerate(run.payloads, run.first):
        yield payload[len(run.head) :], position_from(run.ring, run.seq, run.each, number)


def station_name(process: ProcessId) -> str:
    return f"n{node_of(process)}"
