"""Clients of live daemons, and a history of what they did and were told, for the checkers of groups.

Everything happens on one event loop, so the order of the history is the order in which it happened: a message is
recorded as sent before it is, and as got when the client has read it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

import ordercast
from ordercast import Client, ConnectionLost, Left, Message, Reconnected, Service, Transition, View
from ordercast.model.ids import Instant, ProcessId
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
            groups = [(group, await client.members(group)) for group in await client.groups()]
            self.tell(KnownGroups(now(), witness.id.process, tuple(groups)))
        self.tell(Ended(now()))


class Told:
    """A client that reads everything at once, and records it."""

    def __init__(self, recorder: Recorder, client: Client) -> None:
        self.client = client
        self.recorder = recorder
        self.id = recorder.new_id(client.name)
        self.heard: asyncio.Queue[bytes] = asyncio.Queue()  # what it was sent, for those who wait for something
        self._sent = 0
        recorder.tell(Connected(now(), self.id, client.name))
        self.reading = asyncio.create_task(self._read())

    async def join(self, *groups: str) -> None:
        self.recorder.tell(AskedJoin(now(), self.id, groups))
        await self.client.join(*groups)

    async def leave(self, *groups: str) -> None:
        self.recorder.tell(AskedLeave(now(), self.id, groups))
        await self.client.leave(*groups)

    async def send(
        self, *to: str, filler: bytes = b"", service: Service, confirm: bool = False, self_discard: bool = False
    ) -> None:
        self._sent += 1
        message = MessageId(self.id.process, self.id.session, self._sent)
        data, me = stamped(message, filler), self.id
        self.recorder.tell(Sent(now(), me, message, to, int(service), digest_of(data), self_discard, confirm))
        position = await self.client.send(to, data, service, confirm=confirm, self_discard=self_discard)
        if position is not None:
            self.recorder.tell(GotConfirmation(now(), me, message, position))

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
        except ConnectionLost:
            self.recorder.tell(Disconnected(now(), self.id, End.CRASHED))

    def _record(self, event: object) -> None:
        tell = self.recorder.tell
        match event:
            case Message(groups, sender, data, position, service):
                message = message_id_of(data)
                tell(GotMessage(now(), self.id, message, sender, groups, int(service), digest_of(data), position))
                self.heard.put_nowait(data[STAMP_SIZE:])
            case View():
                tell(GotView(now(), self.id, event))
            case Transition():
                tell(GotTransition(now(), self.id, event))
            case Left(group):
                tell(GotLeft(now(), self.id, group))
            case Reconnected():  # is another client, for those who judge
                tell(Disconnected(now(), self.id, End.DAEMON_CRASHED))
                self.id, self._sent = self.recorder.new_id(event.name), 0
                tell(Connected(now(), self.id, event.name))
                tell(AskedJoin(now(), self.id, event.joined))
            case _:
                raise AssertionError(f"what is {event}?")


class Cord:
    """A way to a daemon that can be cut: the client's end breaks, and so does the daemon's."""

    def __init__(self, path: Path, daemon: Path) -> None:
        self.address = f"unix://{path}"
        self._path, self._daemon = path, daemon
        self._writers: list[asyncio.StreamWriter] = []
        self._server: asyncio.Server | None = None

    async def open(self) -> None:
        self._server = await asyncio.start_unix_server(self._accepted, self._path)

    async def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, thither = await asyncio.open_unix_connection(str(self._daemon))
        self._writers += (writer, thither)
        await asyncio.gather(_carry(reader, thither), _carry(there, writer))

    def cut(self) -> None:
        assert self._server is not None
        self._server.close()
        for writer in self._writers:
            writer.transport.abort()


async def _carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
        writer.write_eof()
    except OSError:
        writer.transport.abort()


def now() -> Instant:
    return Instant(time.monotonic_ns())


async def told(recorder: Recorder, address: str, name: str, *, reconnect: bool = False) -> Told:
    connecting = ordercast.connect(address, name=name, reconnect=reconnect)
    return Told(recorder, await connecting.__aenter__())
