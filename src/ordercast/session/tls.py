"""TlsHalf: one end of a TLS connection, in memory. Bytes of the wire in, bytes of frames out, and back.

It lies beneath the halves of a session (`client_half.py`, `daemon_half.py`) and has no socket, so that a test, or a
simulation, can stand between two of them; `tls_channel.py` puts it between a session and a transport of asyncio. TLS
1.3 alone; contexts are passed in. asyncio's own TLS keeps 256 KiB for each connection and cannot say that it has said
all: here the room is shared by all connections, and what is kept for one is a record at most.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from ordercast.model.errors import UsageError

PIECE = 1 << 13  # bytes of the wire that are taken at a time: what OpenSSL keeps for a connection grows with it
RECORD_MAX = 1 << 14  # bytes of frames in one record of the other side
RECORD = 1 << 13  # bytes of frames in one record, at most: likewise
RECORD_KIND = 22  # of the records of a handshake: a client's first byte


class TlsRefused(UsageError):
    """There is no secure connection. It says why, in a sentence for whoever asked for it."""

    def __init__(self, why: str, reason: str = "") -> None:
        super().__init__(why)
        self.reason = reason or why  # in a few words, for those who count


class TlsHalf:
    def __init__(self, context: ssl.SSLContext, host: str | None = None) -> None:
        """`host`: of the daemon, whose certificate must name it; None at the daemon itself."""
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=host is None, server_hostname=host)
        self.is_ready = False  # both know each other
        self.is_over = False  # the other side has said all, or cannot be understood
        self._early: list[bytes] = []  # frames that wait for that
        self._sealed: list[bytes] = []  # bytes for the wire
        self._is_finished = False

    def begin(self) -> None:
        """Say the first word, at the client."""
        self._shake()

    def receive(self, data: memoryview, room: memoryview) -> Iterator[int]:
        """Take bytes of the wire. Yield how many bytes of frames lie in the room, whenever there is no more room and at
        the end. An SSLError: the other side is refused, or has refused this one."""
        filled = 0
        for start in range(0, len(data), PIECE):
            self._incoming.write(data[start : start + PIECE])
            if not self.is_ready and not self._shake():
                continue
            while not self.is_over:
                try:
                    count: Any = self._tls.read(len(room) - filled, room[filled:])  # a number, with a buffer
                except ssl.SSLWantReadError:
                    break
                self.is_over = count == 0  # as the other side has said
                filled += count
                if len(room) - filled < RECORD_MAX:
                    yield filled
                    filled = 0
        if filled:
            yield filled

    def _shake(self) -> bool:
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            return False
        self.is_ready = True
        early, self._early = self._early, []
        for frames in early:
            self.write(frames)
        return True

    @property
    def peer_name(self) -> str | None:
        """What the certificate of the other side calls it; None when it has shown none."""
        certificate = self._tls.getpeercert() or {}
        subject: Any = certificate.get("subject", ())  # pairs of key and value, in parts
        names = [value for part in subject for key, value in part if key == "commonName"]
        return str(names[0]) if names else None

    def write(self, frames: bytes) -> None:
        """Seal frames, or keep them until both sides know each other."""
        if self._is_finished:
            return
        if not self.is_ready:
            self._early.append(frames)
            return
        view = memoryview(frames)
        for start in range(0, len(view), RECORD):
            self._tls.write(view[start : start + RECORD])
            if len(view) > RECORD:
                self._sealed.append(self._outgoing.read())

    def finish(self) -> None:
        """Nothing more will be said. What the other side says may still come."""
        if self.is_ready and not self._is_finished:
            with suppress(ssl.SSLError):
                self._tls.unwrap()
        self._is_finished = True
        self._early = []

    def take(self) -> bytes:
        """What is to be put on the wire."""
        last = self._outgoing.read()
        if not self._sealed:
            return last
        sealed, self._sealed = self._sealed, []
        return b"".join((*sealed, last))
