"""TlsChannel: TLS between a transport of asyncio and a session. Each sees the other as if nothing lay between.

Upwards it is a transport, downwards a protocol. All bytes are handled by `tls.py`. When the other side is refused, or
refuses, the session is told why (`on_refused`), and nothing more that comes is looked at.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from typing import Any, Protocol

from ordercast.session.reader import ROOM
from ordercast.session.tls import RECORD_KIND, TlsHalf, TlsRefused

IDENTITY = "ordercast_certificate"  # the extra information that a transport has: what the other side is called
RefusalWords = Callable[[ssl.SSLError], TlsRefused]  # finds the words for what went wrong


class SecuredSession(Protocol):
    """The protocol above a channel."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None: ...
    def get_buffer(self, sizehint: int) -> memoryview: ...
    def buffer_updated(self, nbytes: int) -> None: ...
    def eof_received(self) -> bool | None: ...
    def pause_writing(self) -> None: ...
    def resume_writing(self) -> None: ...
    def connection_lost(self, exc: Exception | None) -> None: ...
    def on_refused(self, why: TlsRefused) -> None: ...
    def may_shake_hands(self) -> bool:
        """Otherwise the rest waits until reading is resumed."""


class TlsChannel(asyncio.BufferedProtocol, asyncio.Transport):
    def __init__(
        self,
        session: SecuredSession,
        half: TlsHalf,
        words: RefusalWords,
        answer_in_clear: bytes | None = None,
        room: memoryview | None = None,
    ) -> None:
        """`answer_in_clear`: of a daemon, for clients that do not speak TLS. `room`: shared by all channels of one
        event loop."""
        asyncio.Transport.__init__(self)
        self._session = session
        self._half = half
        self._words = words
        self._answer_in_clear = answer_in_clear
        self._room = memoryview(bytearray(ROOM)) if room is None else room
        self._below: asyncio.Transport
        self._kept = b""  # that came, and is looked at later
        self._is_deaf = False  # nothing more that comes matters
        self._is_first = answer_in_clear is not None  # nothing came yet

    # What the transport below tells

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._below = transport
        self._session.connection_made(self)
        if self._answer_in_clear is None:
            self._half.begin()
            self._flush()

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._room

    def buffer_updated(self, nbytes: int) -> None:
        if self._is_deaf:
            return
        if self._is_first and self._room[0] != RECORD_KIND:
            self._below.write(self._answer_in_clear or b"")
            self._refuse(TlsRefused("a client was refused: it does not speak TLS", "no TLS"))
            return
        self._is_first = False
        if self._kept or (not self._half.is_ready and not self._session.may_shake_hands()):
            self._kept += self._room[:nbytes]
            return
        self._receive(self._room[:nbytes])

    def _receive(self, data: memoryview) -> None:
        try:
            for filled in self._half.receive(data, self._session.get_buffer(-1)):
                self._session.buffer_updated(filled)
                if self._is_deaf or self._below.is_closing():
                    return
        except ssl.SSLError as error:
            self._flush()  # the alert, which tells the other side
            self._refuse(self._words(error))
            return
        self._flush()

    def _refuse(self, why: TlsRefused) -> None:
        self._is_deaf = True
        self._kept = b""
        self._half.finish()
        self._session.on_refused(why)

    def eof_received(self) -> bool | None:
        return self._session.eof_received()

    def pause_writing(self) -> None:
        self._session.pause_writing()

    def resume_writing(self) -> None:
        self._session.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self._is_deaf = True
        self._session.connection_lost(exc)

    # What the session asks for

    def _flush(self) -> None:
        if sealed := self._half.take():
            self._below.write(sealed)

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self._half.write(bytes(data) if isinstance(data, bytearray | memoryview) else data)
        self._flush()

    def write_eof(self) -> None:
        """Nothing more will be said, and nothing that comes is looked at: the other side closes when it has read."""
        self._half.finish()
        self._flush()
        self._is_deaf = True
        self._below.write_eof()

    def can_write_eof(self) -> bool:
        return True

    def close(self) -> None:
        self._half.finish()
        self._flush()
        self._is_deaf = True
        self._below.close()

    def abort(self) -> None:
        self._is_deaf = True
        self._below.abort()

    def is_closing(self) -> bool:
        return self._below.is_closing()

    def pause_reading(self) -> None:
        self._below.pause_reading()

    def resume_reading(self) -> None:
        self._below.resume_reading()
        if self._kept and not self._is_deaf:
            kept, self._kept = self._kept, b""
            self._receive(memoryview(kept))

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._below.set_write_buffer_limits(high, low)

    def get_write_buffer_size(self) -> int:
        return self._below.get_write_buffer_size()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        if name == IDENTITY:
            return self._half.peer_name if self._half.is_ready else default
        return self._below.get_extra_info(name, default)
