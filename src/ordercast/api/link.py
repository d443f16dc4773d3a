"""SessionLink: one connection of a client to a daemon, from its greeting to its end; what it does with frames, whatever
carries its bytes. ClientLink: one on an event loop. `blocking_link.py` has the other."""

from __future__ import annotations

import asyncio
import os
import socket
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Protocol, TypeVar

from ordercast.model.errors import ConnectionLost, UsageError, WireError
from ordercast.model.service import Service
from ordercast.session.batches import frame_size_max
from ordercast.session.client_half import BYE, PING, PONG, ClientHalf, Closing, News, cost_of
from ordercast.session.frames import Welcome
from ordercast.session.pieces import FrameKind
from ordercast.session.reader import FrameReader
from ordercast.session.tls import TlsRefused

FAREWELL_S = 5.0  # in which the daemon must have taken what was sent
LOOK_EVERY_S = 5.0
QUIET_LOOKS = 3  # a daemon that was silent for so many looks is asked, over TCP, whether it is alive
SILENCE_LOOKS_MAX = 12  # and given up after so many; looks, not seconds: who is paused does not blame the other side


LinkT = TypeVar("LinkT", contravariant=True)


class LinkOwner(Protocol[LinkT]):
    """Whose link it is."""

    def on_news(self, link: LinkT, news: News, size: int) -> None: ...
    def on_lost(self, link: LinkT, why: str) -> None: ...


class SessionLink(ABC):
    def __init__(self, half: ClientHalf, reader: FrameReader | None = None) -> None:
        """`reader`: of the link whose session this one goes on with."""
        self.half = half
        self.reader = reader or FrameReader()
        self._why = ""  # the daemon closes, as it says
        self._silence = 0  # looks since the daemon was heard

    @abstractmethod
    def write(self, data: bytes) -> None: ...

    @abstractmethod
    def abort(self) -> None: ...

    @abstractmethod
    def on_welcome(self) -> None: ...

    @abstractmethod
    def on_credit(self) -> None: ...

    @abstractmethod
    def on_news(self, news: News, size: int) -> None: ...

    def look(self) -> None:
        """A host that vanishes says nothing: only its silence tells. To be called every LOOK_EVERY_S, over TCP."""
        if self._silence > SILENCE_LOOKS_MAX:
            self._why = f"nothing was heard of the daemon for {SILENCE_LOOKS_MAX * LOOK_EVERY_S:.0f} s"
            self.abort()
            return
        if self._silence >= QUIET_LOOKS:
            self.write(PING)
        self._silence += 1

    def received(self, nbytes: int) -> None:
        """So many bytes lie in the reader's room."""
        self._silence = 0
        try:
            for kind, body in self.reader.received(nbytes):
                news = self.half.receive(kind, body)
                if news is not None:
                    self._take(news, cost_of(kind, body))
                elif kind == FrameKind.PING:
                    self.write(PONG)
                elif kind == FrameKind.CREDIT:
                    self.on_credit()
        except WireError as error:
            self._why = f"the daemon said something that cannot be understood: {error}"
            self.abort()

    def _take(self, news: News, size: int) -> None:
        if isinstance(news, Welcome):
            self.reader.size_max = frame_size_max(news.message_size_max)
            self.on_welcome()
        elif isinstance(news, Closing):
            self._why = news.why
        else:
            self.on_news(news, size)

    def on_refused(self, why: TlsRefused) -> None:
        """There is no secure connection to this daemon."""
        self._why = str(why)
        self.abort()

    def end_from(self, error: BaseException | None) -> str:
        """Why it has ended."""
        return self._why or f"the connection to the daemon broke: {told(error) if error else 'it was closed'}"


class ClientLink(SessionLink, asyncio.BufferedProtocol):
    """One on an event loop."""

    def __init__(self, client: LinkOwner[ClientLink], half: ClientHalf, reader: FrameReader | None = None) -> None:
        super().__init__(half, reader)
        self.welcome: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.is_full = False  # the transport asks to wait
        self._client = client
        self._is_new = reader is None
        self._transport: asyncio.Transport | None = None
        self._turn = asyncio.Lock()  # of calls whose frames wait for credit
        self._calls = 0  # that have their turn or wait for it; a lock that is handed on is free for a moment
        self._paid = asyncio.Event()  # something has happened to it
        self._drain: asyncio.Future[None] | None = None
        self._gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._look: asyncio.TimerHandle | None = None  # over TCP: is the daemon still there?

    # What the transport tells

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        sock = transport.get_extra_info("socket")
        if is_remote(sock):
            self._look_after()
        if self._is_new:
            transport.write(self.half.hello())
        else:
            self.welcome.set_result(None)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self.reader.room()

    def _look_after(self) -> None:
        self._look = asyncio.get_running_loop().call_later(LOOK_EVERY_S, self._look_after)
        self.look()

    def buffer_updated(self, nbytes: int) -> None:
        self.received(nbytes)

    def on_welcome(self) -> None:
        if not self.welcome.done():
            self.welcome.set_result(None)

    def on_credit(self) -> None:
        self._paid.set()

    def on_news(self, news: News, size: int) -> None:
        self._client.on_news(self, news, size)

    def pause_writing(self) -> None:
        self.is_full = True

    def resume_writing(self) -> None:
        self.is_full = False
        if self._drain is not None and not self._drain.done():
            self._drain.set_result(None)

    def connection_lost(self, exc: Exception | None) -> None:
        why = self.end_from(exc)
        if self._look is not None:
            self._look.cancel()
        if not self._gone.done():
            self._gone.set_result(None)
        if not self.welcome.done():
            self.welcome.set_exception(UsageError(why) if self._why else OSError(why))
            return
        self._why = why
        self._paid.set()
        if self._drain is not None and not self._drain.done():
            self._drain.set_exception(ConnectionLost(why))
        self._client.on_lost(self, why)

    def may_shake_hands(self) -> bool:
        return True

    # Writing

    def write(self, data: bytes) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(data)

    def send(self, service: Service, head: bytes, data: Sequence[bytes]) -> None:
        self.write(self.half.send(service, head, data))

    def may_send(self, size: int) -> bool:
        """Tell whether a frame of this size may be sent now. Nobody passes a call that waits for its turn."""
        return self.half.credit >= size and not self._calls and not self._is_closed

    async def in_turn(self, sizes: Iterator[int]) -> None:
        """Send the frames of a call when the daemon takes them, behind the calls that wait already. `sizes` yields what
        the next frame needs, and sends it when it is asked for the one after: at once, before anybody else runs."""
        self._calls += 1
        try:
            async with self._turn:  # one waits for credit, the others behind it
                for size in sizes:
                    await self._credit(size)
        finally:
            self._calls -= 1

    async def _credit(self, size: int) -> None:
        """Waits until the daemon takes a frame of this size."""
        if self.half.credit < size and (want := self.half.want(size)) is not None:
            self.write(want)
        while self.half.credit < size and not self._is_closed:
            self._paid.clear()
            await self._paid.wait()
        if self._is_closed:
            await self._closed()

    async def drained(self) -> None:
        while self.is_full:
            if self._is_closed:
                await self._closed()
            if self._drain is None or self._drain.done():
                self._drain = asyncio.get_running_loop().create_future()
            await asyncio.shield(self._drain)

    @property
    def _is_closed(self) -> bool:
        return self._transport is None or self._transport.is_closing()

    async def _closed(self) -> None:
        """Raise ConnectionLost, and not before the client knows of it: whoever tries again at once would keep the event
        loop from telling it, for ever."""
        if self._transport is not None:
            await asyncio.shield(self._gone)
        raise ConnectionLost(self._why or "the connection to the daemon is closed")

    async def say_bye(self) -> None:
        """The daemon closes when it has read all that was sent. If this end closed first while something was on its way
        to it, TCP would throw away what the daemon has not read."""
        self.write(BYE)
        try:
            async with asyncio.timeout(FAREWELL_S):
                await asyncio.shield(self._gone)
        except TimeoutError:
            pass
        finally:
            self.abort()
        await self._gone

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()


def is_remote(sock: socket.socket) -> bool:
    """Whether it is one of TCP, which is then told to be quick, and to look after itself."""
    if sock.family == socket.AF_UNIX:
        return False
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    return True


def told(error: BaseException) -> str:
    """What the operating system calls it."""
    number = getattr(error, "errno", None)
    return os.strerror(number) if number else str(error) or type(error).__name__
