"""BlockingLink: one connection to a daemon over a plain socket. Only a thread that waits for something reads it.

One thread at a time waits (`wait`, without the client's lock) and then reads (`read`, with it). Writing never blocks:
what the socket does not take at once goes out when the socket has room, and whoever sent it waits for that.
"""

from __future__ import annotations

import math
import select
import socket
import ssl
import time
from contextlib import suppress

from ordercast.api.link import LOOK_EVERY_S, LinkOwner, SessionLink, is_remote
from ordercast.model.errors import UsageError
from ordercast.session.addresses import Address, UnixAddress
from ordercast.session.client_half import ClientHalf, News
from ordercast.session.reader import ROOM
from ordercast.session.tls import TlsHalf
from ordercast.session.tls_channel import RefusalWords

WAIT_S_MAX = 1e6
UNSENT_SIZE_MAX = 1 << 16  # bytes that may wait for the socket before who sends waits too


class BlockingLink(SessionLink):
    def __init__(
        self,
        owner: LinkOwner[BlockingLink],
        half: ClientHalf,
        sock: socket.socket,
        tls: TlsHalf | None,
        words: RefusalWords,
    ) -> None:
        super().__init__(half)
        self.sock = sock
        self.tls = tls
        self.words = words
        self.unsent = bytearray()
        self.is_open = True
        self._owner = owner
        self._room = self.reader.room() if tls is None else memoryview(bytearray(ROOM))
        self._is_welcome = False
        self._is_aborted = False
        self._is_remote = is_remote(sock)
        self._look_at = time.monotonic() + LOOK_EVERY_S
        self._bell, self._ear = socket.socketpair()  # who waits here is told when something else is to be done
        self._bell.setblocking(False)
        self._ready: list[tuple[int, int]] = []  # as it was found when somebody waited last
        self._asked = select.POLLIN
        self._poll = select.poll()
        self._poll.register(sock, self._asked)
        self._poll.register(self._ear, select.POLLIN)

    def greet(self, until: float) -> None:
        """Return when the daemon has said welcome. UsageError says why the daemon would not have us, OSError what went
        wrong otherwise."""
        if self.tls is not None:
            self.tls.begin()
        self.write(self.half.hello())
        while self.is_open and not self._is_welcome:
            left = until - time.monotonic()
            if left <= 0:
                raise TimeoutError
            self.wait(left)
            self.read()
        if not self._is_welcome:
            raise UsageError(self._why) if self._why else OSError(self.end_from(None))

    # What comes

    def wait(self, seconds: float | None) -> None:
        """Until something can be read or written, somebody nudges, or so many seconds have passed. Without the lock."""
        asked = select.POLLIN | select.POLLOUT if self.unsent else select.POLLIN
        if asked != self._asked:
            self._asked = asked
            self._poll.modify(self.sock, asked)
        self._ready = self._poll.poll(None if seconds is None else math.ceil(1000 * min(seconds, WAIT_S_MAX)))

    def read(self) -> None:
        """What there is. With the lock, by the thread that has waited."""
        if self.unsent:
            self._flush()
        if len(self._ready) != 1 or self._ready[0][0] != self.sock.fileno():
            with suppress(BlockingIOError):
                self._ear.recv(64, socket.MSG_DONTWAIT)
        error: OSError | None = None
        try:
            size = self.sock.recv_into(self._room, 0, socket.MSG_DONTWAIT)
        except BlockingIOError:
            size = -1
        except OSError as broke:
            size, error = 0, broke
        if size > 0:
            self._open(size)
        if size == 0 or self._is_aborted:
            self._end(error)

    def _open(self, size: int) -> None:
        if self.tls is None:
            self.received(size)
            return
        try:
            for filled in self.tls.receive(self._room[:size], self.reader.room()):
                self.received(filled)
        except ssl.SSLError as error:
            self._out(self.tls.take())  # the alert, which tells the other side
            self.tls.finish()
            self.on_refused(self.words(error))
            return
        self._out(self.tls.take())

    def _end(self, error: OSError | None) -> None:
        if self.is_open:
            self.is_open = False
            self._why = self.end_from(error) if self._is_welcome else self._why
            self.release()
            if self._is_welcome:
                self._owner.on_lost(self, self._why)

    def look_if_due(self) -> None:
        """See now and then whether the daemon is still there. To be called with the lock."""
        if self._is_remote and time.monotonic() >= self._look_at:
            self._look_at = time.monotonic() + LOOK_EVERY_S
            self.look()

    def on_welcome(self) -> None:
        self._is_welcome = True

    def on_credit(self) -> None:
        """Whoever waits for credit looks at it after each reading."""

    def on_news(self, news: News, size: int) -> None:
        self._owner.on_news(self, news, size)

    # Writing

    @property
    def is_full(self) -> bool:
        return len(self.unsent) > UNSENT_SIZE_MAX

    @property
    def why(self) -> str:
        return self._why or "the connection to the daemon is closed"

    def write(self, data: bytes) -> None:
        if not self.is_open:
            return
        if self.tls is not None:
            self.tls.write(data)
            data = self.tls.take()
        self._out(data)

    def _out(self, data: bytes) -> None:
        if self.unsent:
            self.unsent += data
            return
        sent = self._sent(data)
        if sent < len(data):
            self.unsent += memoryview(data)[sent:]
            self.nudge()  # whoever waits now waits for the socket to have room too

    def _flush(self) -> None:
        del self.unsent[: self._sent(self.unsent)]

    def _sent(self, data: bytes | bytearray) -> int:
        try:
            return self.sock.send(data, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return 0
        except OSError:
            return len(data)  # it is broken, as whoever reads will find

    def nudge(self) -> None:
        """Whoever waits comes back."""
        with suppress(BlockingIOError):
            self._bell.send(b"!")

    def abort(self) -> None:
        """The next who reads finds the end."""
        self._is_aborted = True
        with suppress(OSError):
            self.sock.shutdown(socket.SHUT_RDWR)

    def release(self, *, keeps_socket: bool = False) -> None:
        """Give back what it has. Nobody may be waiting here."""
        self.is_open = False
        self._bell.close()
        self._ear.close()
        if not keeps_socket:
            self.sock.close()


def connected(address: Address, seconds: float) -> socket.socket:
    """A socket to this address. OSError says why there is none, UsageError why there can be none."""
    try:
        if not isinstance(address, UnixAddress):
            sock = socket.create_connection((address.host, address.port), seconds)
            sock.settimeout(None)
            return sock
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            sock.connect(str(address.path))
        except BaseException:
            sock.close()
            raise
        return sock
    except (ValueError, UnicodeError) as error:  # a name or a path that cannot be one
        raise UsageError(f"{address} is no address: {error}") from None
