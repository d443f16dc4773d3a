"""Clients of live daemons that record what they ask for and are told, for the judges of groups.

    recorder = Recorder(folder, "till-3")
    clients = RecordedClients(recorder.client, process_of)
    alice = await recorded(clients, "n1", "alice")
    await alice.join("orders")
    await alice.send("orders", service=Service.SAFE)

A message is recorded as sent before it is, and as got when the client has read it. A message says inside who it is: all
members of a judged group must be recorded clients.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Sequence

from ordercast.api.client import Client
from ordercast.api.connect import connect
from ordercast.model.errors import ConnectionLost, UsageError
from ordercast.model.events import Dropped, Event, Left, Message, Reconnected, Transition, View
from ordercast.model.ids import ProcessId
from ordercast.model.service import Service
from ordercast.trace.client_records import (
    AskedJoin,
    AskedLeave,
    ClientEvent,
    ClientId,
    Connected,
    Disconnected,
    End,
    GotConfirmation,
    GotDropped,
    GotLeft,
    GotMessage,
    GotRefusal,
    GotTransition,
    GotView,
    KnownGroups,
    Sent,
)
from ordercast.trace.recording import now
from ordercast.trace.records import STAMP_SIZE, MessageId, digest_of, message_id_of, stamped


class RecordedClients:
    """What the recorded clients of a program have in common."""

    def __init__(self, tell: Callable[[ClientEvent], None], process_of: Callable[[str], ProcessId]) -> None:
        """`process_of`: the life of a daemon that runs now."""
        self.tell = tell
        self.groups: set[str] = set()  # that anybody asked to join: those are judged, and have recorded members alone
        self.process_of = process_of

    def new_id(self, name: str) -> ClientId:
        """Other programs have clients of the same daemon: sessions are told apart by chance."""
        return ClientId(self.process_of(name.partition("@")[2]), secrets.randbits(31))

    async def known(self, *witnesses: RecordedClient) -> list[KnownGroups]:
        """What their daemons know of the judged groups: to be told when nothing changes any more, one witness each."""
        found = []
        for witness in witnesses:
            client = witness.client
            groups = [group for group in await client.groups() if group in self.groups]
            members = [(group, await client.members(group)) for group in groups]
            found.append(KnownGroups(now(), witness.id.process, tuple(members)))
        return found


class RecordedClient:
    """A client that reads everything at once, and records it. What it is told is kept for `hear`, or, if there is
    somebody who wants it, handed over."""

    def __init__(
        self, recorded: RecordedClients, client: Client, on_event: Callable[[Event], None] | None = None
    ) -> None:
        self.client = client
        self.recorded = recorded
        self.id = recorded.new_id(client.name)
        self.heard: asyncio.Queue[bytes] = asyncio.Queue()  # what it was sent, for those who wait for something
        self._on_event = on_event
        self._sent = 0
        recorded.tell(Connected(now(), self.id, client.name))
        self.reading = asyncio.create_task(self._read())

    async def join(self, *groups: str) -> None:
        self.recorded.tell(AskedJoin(now(), self.id, groups))
        self.recorded.groups.update(groups)
        try:
            await self.client.join(*groups)
        except UsageError:
            refused = tuple(group for group in groups if group not in self.client.joined)
            self.recorded.tell(GotRefusal(now(), self.id, refused))
            raise

    async def leave(self, *groups: str) -> None:
        self.recorded.tell(AskedLeave(now(), self.id, groups))
        await self.client.leave(*groups)

    async def send(
        self, *to: str, filler: bytes = b"", service: Service, confirm: bool = False, self_discard: bool = False
    ) -> None:
        message, data = self._record_sent(to, filler, service, self_discard, confirm)
        me = self.id
        position = await self.client.send(to, data, service, confirm=confirm, self_discard=self_discard)
        if position is not None:
            self.recorded.tell(GotConfirmation(now(), me, message, position))

    async def send_many(self, *to: str, fillers: Sequence[bytes], service: Service) -> None:
        payloads = [self._record_sent(to, filler, service)[1] for filler in fillers]
        await self.client.send_many(to, payloads, service)

    def _record_sent(
        self, to: tuple[str, ...], filler: bytes, service: Service, self_discard: bool = False, confirm: bool = False
    ) -> tuple[MessageId, bytes]:
        self._sent += 1
        message = MessageId(self.id.process, self.id.session, self._sent)
        data = stamped(message, filler)
        self.recorded.tell(Sent(now(), self.id, message, to, int(service), digest_of(data), self_discard, confirm))
        return message, data

    async def hear(self, *fillers: bytes) -> None:
        """Until all of these have come."""
        missing = set(fillers)
        while missing:
            missing.discard(await self.heard.get())

    async def close(self) -> None:
        await self.client.close()
        await self.reading
        self.recorded.tell(Disconnected(now(), self.id, End.ORDERLY))

    async def _read(self) -> None:
        try:
            async for event in self.client:
                self._record(event)
                if self._on_event is not None:
                    self._on_event(event)
        except ConnectionLost:
            self.recorded.tell(Disconnected(now(), self.id, End.CRASHED))

    def _record(self, event: Event) -> None:
        tell = self.recorded.tell
        match event:
            case Message(groups, sender, data, position, service):
                message = message_id_of(data)
                tell(GotMessage(now(), self.id, message, sender, groups, int(service), digest_of(data), position))
                if self._on_event is None:
                    self.heard.put_nowait(data[STAMP_SIZE:])
            case View():
                tell(GotView(now(), self.id, event))
            case Transition():
                tell(GotTransition(now(), self.id, event))
            case Left(group):
                tell(GotLeft(now(), self.id, group))
            case Dropped(messages):
                tell(GotDropped(now(), self.id, messages))
            case Reconnected():  # is another client, for those who judge
                tell(Disconnected(now(), self.id, End.DAEMON_CRASHED))
                self.id, self._sent = self.recorded.new_id(event.name), 0
                tell(Connected(now(), self.id, event.name))
                tell(AskedJoin(now(), self.id, event.joined))
            case _:
                raise AssertionError(f"what is {event}?")


async def recorded(
    clients: RecordedClients,
    address: str,
    name: str,
    *,
    reconnect: bool = False,
    on_event: Callable[[Event], None] | None = None,
) -> RecordedClient:
    connecting = connect(address, name=name, reconnect=reconnect)
    return RecordedClient(clients, await connecting.__aenter__(), on_event)
