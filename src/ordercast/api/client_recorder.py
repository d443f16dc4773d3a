"""Clients of live daemons, and a history of what they did and were told, for the checkers of groups.

    recorder = Recorder(process_of)
    alice = await told(recorder, "n1", "alice")
    await alice.join("orders")
    await alice.send("orders", service=Service.SAFE)

Everything happens on one event loop, so the order of the history is the order in which it happened: a message is
recorded as sent before it is, and as got when the client has read it. A message says inside who it is.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence

from ordercast.api.client import Client
from ordercast.api.connect import connect
from ordercast.model.errors import ConnectionLost
from ordercast.model.events import Dropped, Event, Left, Message, Reconnected, Transition, View
from ordercast.model.ids import Instant, ProcessId
from ordercast.model.service import Service
from ordercast.trace.client_records import (
    AskedJoin,
    AskedLeave,
    Calm,
    ClientEvent,
    ClientId,
    Connected,
    Disconnected,
    End,
    GotConfirmation,
    GotDropped,
    GotLeft,
    GotMessage,
    GotTransition,
    GotView,
    KnownGroups,
    Sent,
)
from ordercast.trace.records import STAMP_SIZE, Ended, Healed, MessageId, digest_of, message_id_of, stamped


class Recorder:
    def __init__(self, process_of: Callable[[str], ProcessId]) -> None:
        """`process_of`: the life of a daemon that runs now."""
        self.events: list[ClientEvent] = []
        self.groups: set[str] = set()  # that anybody asked to join: those are judged, and have recorded members alone
        self.process_of = process_of
        self._sessions = 0

    def tell(self, event: ClientEvent) -> None:
        self.events.append(event)

    def new_id(self, name: str) -> ClientId:
        self._sessions += 1
        return ClientId(self.process_of(name.partition("@")[2]), self._sessions)

    def calm(self) -> None:
        self.tell(Calm(now()))

    async def ended(self, *witnesses: Told) -> None:
        """One witness at each daemon that runs."""
        self.tell(Healed(now(), tuple(witness.id.process for witness in witnesses)))
        for witness in witnesses:
            client = witness.client
            known = [group for group in await client.groups() if group in self.groups]
            groups = [(group, await client.members(group)) for group in known]
            self.tell(KnownGroups(now(), witness.id.process, tuple(groups)))
        self.tell(Ended(now()))


class Told:
    """A client that reads everything at once, and records it. What it is told is kept for `hear`, or, if there is
    somebody who wants it, handed over."""

    def __init__(self, recorder: Recorder, client: Client, on_event: Callable[[Event], None] | None = None) -> None:
        self.client = client
        self.recorder = recorder
        self.id = recorder.new_id(client.name)
        self.heard: asyncio.Queue[bytes] = asyncio.Queue()  # what it was sent, for those who wait for something
        self._on_event = on_event
        self._sent = 0
        recorder.tell(Connected(now(), self.id, client.name))
        self.reading = asyncio.create_task(self._read())

    async def join(self, *groups: str) -> None:
        self.recorder.tell(AskedJoin(now(), self.id, groups))
        self.recorder.groups.update(groups)
        await self.client.join(*groups)

    async def leave(self, *groups: str) -> None:
        self.recorder.tell(AskedLeave(now(), self.id, groups))
        await self.client.leave(*groups)

    async def send(
        self, *to: str, filler: bytes = b"", service: Service, confirm: bool = False, self_discard: bool = False
    ) -> None:
        message, data = self._record_sent(to, filler, service, self_discard, confirm)
        me = self.id
        position = await self.client.send(to, data, service, confirm=confirm, self_discard=self_discard)
        if position is not None:
            self.recorder.tell(GotConfirmation(now(), me, message, position))

    async def send_many(self, *to: str, fillers: Sequence[bytes], service: Service) -> None:
        payloads = [self._record_sent(to, filler, service)[1] for filler in fillers]
        await self.client.send_many(to, payloads, service)

    def _record_sent(
        self, to: tuple[str, ...], filler: bytes, service: Service, self_discard: bool = False, confirm: bool = False
    ) -> tuple[MessageId, bytes]:
        self._sent += 1
        message = MessageId(self.id.process, self.id.session, self._sent)
        data = stamped(message, filler)
        self.recorder.tell(Sent(now(), self.id, message, to, int(service), digest_of(data), self_discard, confirm))
        return message, data

    async def hear(self, *fillers: bytes) -> None:
        """Until all of these have come."""
        missing = set(fillers)
        while missing:
            missing.discard(await self.heard.get())

    async def close(self) -> None:
        await self.client.close()
        await self.reading
        self.recorder.tell(Disconnected(now(), self.id, End.ORDERLY))

    async def _read(self) -> None:
        try:
            async for event in self.client:
                self._record(event)
                if self._on_event is not None:
                    self._on_event(event)
        except ConnectionLost:
            self.recorder.tell(Disconnected(now(), self.id, End.CRASHED))

    def _record(self, event: Event) -> None:
        tell = self.recorder.tell
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
                self.id, self._sent = self.recorder.new_id(event.name), 0
                tell(Connected(now(), self.id, event.name))
                tell(AskedJoin(now(), self.id, event.joined))
            case _:
                raise AssertionError(f"what is {event}?")


def now() -> Instant:
    return Instant(time.monotonic_ns())


async def told(
    recorder: Recorder,
    address: str,
    name: str,
    *,
    reconnect: bool = False,
    on_event: Callable[[Event], None] | None = None,
) -> Told:
    connecting = connect(address, name=name, reconnect=reconnect)
    return Told(recorder, await connecting.__aenter__(), on_event)
