"""The desk of one life of a simulated host, with the clients that are connected to it: what a daemon does.

The host gives it the engine's stream and submits what the desk (`groups/desk.py`) says is next. Here the clients' deeds
become requests, and what comes back is recorded as what they were told.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Protocol, assert_never

from ordercast.groups.desk import DeskOutput, GroupDesk
from ordercast.groups.envelope import decode_head
from ordercast.groups.layer import (
    Confirmed,
    MessageRun,
    PassedOver,
    Relisted,
    Warned,
    data_head,
    join_payload,
    leave_payload,
)
from ordercast.groups.table import Notice
from ordercast.model.configuration import Configuration
from ordercast.model.effects import Deliver, Parcel
from ordercast.model.events import GroupNews, Left, Transition, View
from ordercast.model.ids import Instant, Position, ProcessId, node_of
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
    joined: set[str] = field(default_factory=set)  # groups that it has asked for
    listener: Listener | None = None


@dataclass(slots=True)
class Station:
    process: ProcessId
    desk: GroupDesk
    tally: GroupTally
    tell: Callable[[ClientEvent], None]
    clock: Callable[[], Instant]
    pump: Callable[[], None]  # something may be submitted
    clients: dict[int, Client] = field(default_factory=dict)  # connected ones, by session
    # The engine's stream

    def install(self, view: Configuration) -> None:
        self.tally.installs(self.desk.groups, view)
        self._carry_out(self.desk.install(view))
        self.tally.installed(self.desk.groups)

    def deliver(self, deliver: Deliver) -> None:
        """Payloads as the engine has them, each with the stamp of its daemon before it."""
        parcels: list[Parcel] = [
            (number, originator, senders, services, [payload[STAMP_SIZE:] for payload in payloads], each, base)
            for number, originator, senders, services, payloads, each, base in deliver.parcels
        ]
        bare = replace(deliver, parcels=parcels)
        self.tally.delivers(self.desk.groups, bare)
        self._carry_out(self.desk.deliver(bare))
        self.tally.delivered(self.desk.groups)

    def _carry_out(self, outputs: list[DeskOutput]) -> None:
        for output in outputs:
            match output:
                case MessageRun():
                    self._bring(output)
                case Notice():
                    self._notify(output)
                case Confirmed():
                    self._confirm(output)
                case Warned():
                    raise AssertionError(f"every host here has a name of its own, yet: {output.text}")
                case Relisted():
                    raise AssertionError("node lists are changed by reloads here")
                case PassedOver():
                    raise AssertionError(f"every host here is honest, yet of {output.originator}: {output.why}")
                case _:
                    assert_never(output)
        self.desk.groups.check_invariants()
        if self.desk.has_something:
            self.pump()

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
        session, full = self.desk.open(name)
        client = self.clients[session] = Client(ClientId(self.process, session), full)
        self.tally.connects(self.process, name)
        self.tell(Connected(self.clock(), client.id, full))
        return client

    def join(self, client: Client, groups: tuple[str, ...]) -> None:
        self.tell(AskedJoin(self.clock(), client.id, groups))
        client.joined.update(groups)
        self._request(client, join_payload(client.name, groups), changes=len(groups))

    def leave(self, client: Client, groups: tuple[str, ...]) -> None:
        self.tell(AskedLeave(self.clock(), client.id, groups))
        client.joined.difference_update(groups)
        self._request(client, leave_payload(client.name, groups), changes=len(groups))

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
        self._request(client, head + data, service)

    def _request(self, client: Client, payload: bytes, service: Service = Service.AGREED, changes: int = 0) -> None:
        self.desk.request(client.id.session, (payload,), service, changes=changes)
        self.pump()

    def disconnect(self, client: Client) -> None:
        """In order: what it asked for before is done first."""
        self._end(client, End.ORDERLY)

    def crash(self, client: Client) -> None:
        """Its connection breaks: what has reached the daemon is done all the same."""
        self._end(client, End.CRASHED)

    def close(self, how: End) -> None:
        """The daemon ends, and all its clients with it."""
        for client in list(self.clients.values()):
            self._end(client, how)

    def _end(self, client: Client, how: End) -> None:
        del self.clients[client.id.session]
        self.desk.close(client.id.session, client.name, len(client.joined))
        self.pump()
        self.tally.ends(self.desk.groups, how)
        self.tell(Disconnected(self.clock(), client.id, how))
        if client.listener is not None:
            client.listener.ended(how)

    def is_quiet(self) -> bool:
        return self.desk.is_quiet()

    def known(self) -> KnownGroups:
        table = self.desk.groups.table
        return KnownGroups(
            self.clock(), self.process, tuple((name, table.members_of(name)) for name in sorted(table.groups()))
        )


def _messages(run: MessageRun) -> Iterator[tuple[bytes, Position]]:
    for index, payload in enumerate(run.payloads):
        yield payload[len(run.head) :], run.places.at(index)


def station_name(process: ProcessId) -> str:
    return f"n{node_of(process)}"
