"""Clients of a daemon: listens on a unix socket and, where configured, on TCP; one connection is one session.

What a client sends that is wrong closes its session with a sentence, and nothing else moves. A client that ends, or
whose connection breaks, is gone from its groups at once. Nobody waits for a client, unless it has asked for that and
moves: what it does not take waits within the bound of its policy (`session/outbound.py`).
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import socket
import stat
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from ordercast.daemon import management
from ordercast.daemon.config import ClientsConfig
from ordercast.daemon.descriptors import STRANGERS_MAX
from ordercast.daemon.host import GroupHost, Parcel
from ordercast.groups.layer import Run, join_payload, leave_payload
from ordercast.model.errors import UsageError, WireError
from ordercast.session.batches import Send, encode_confirm, frame_size_max
from ordercast.session.daemon_half import Bye, DaemonHalf, Join, Leave, ListGroups, ListMembers, Manage, Request
from ordercast.session.frames import Hello, encode_closing, encode_document, encode_listing, encode_names
from ordercast.session.pieces import HEADER, FrameKind, frame
from ordercast.session.reader import ROOM, FrameReader
from ordercast.stream.addresses import TcpAddress, UnixAddress, is_trusted, socket_path, usual_folder

GREETING_S = 10.0  # in which a client must have said who it is
GREETING_SIZE_MAX = 512  # bytes
LINGER_S = 60.0  # a client that is being closed may take so long to read the reason
FAREWELL_S = 1.0  # and so long when the daemon ends
WRITE_SIZE_MAX = 1 << 18  # bytes that the transport holds before the rest waits within the bound of the policy
HOLD_S = 2.0  # in which a client for which all wait has to take something
CHANGES_MAX = 100  # joins and leaves of one client that wait to be ordered before no more is read from it
LOOK_EVERY_S = 5.0
QUIET_S = 15.0  # a connection over TCP that was silent for so long is asked whether it is alive
SILENCE_MAX_S = 90.0  # and given up after so long

_log = logging.getLogger(__name__)


class ClientServer:
    """Serves clients of a host while it is entered."""

    def __init__(self, host: GroupHost, config: ClientsConfig, strangers_max: int = STRANGERS_MAX) -> None:
        self._host = host
        self._config = config
        self.strangers_max = strangers_max
        self._servers: list[asyncio.Server] = []
        self._path: Path | None = None
        self._look: asyncio.TimerHandle | None = None
        self._looked_at = 0.0
        self.connections: set[Connection] = set()  # that are served
        self.leaving: set[Connection] = set()  # that were told to go, and have not gone yet
        self._are_gone = asyncio.Event()
        self.room = bytearray(ROOM)  # where every connection reads, one after the other
        self.addresses: list[UnixAddress | TcpAddress] = []
        self.tasks: set[asyncio.Task[None]] = set()  # answers to operators that are being found

    async def __aenter__(self) -> Self:
        try:
            await self._listen_unix()
            if self._config.port is not None:
                await self._listen_tcp(self._config.address, self._config.port)
        except BaseException:
            await self.close()
            raise
        self._look_after()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        for server in self._servers:
            server.close()
        if self._look is not None:
            self._look.cancel()
        for task in self.tasks:
            task.cancel()
        for connection in list(self.connections):
            connection.close(f"the daemon {self._host.config.name} is being shut down")
        await self._let_go()
        if self._path is not None:
            with suppress(OSError):
                self._path.unlink()

    async def _let_go(self) -> None:
        """Of all connections: in order if they are quick."""
        with suppress(TimeoutError):
            async with asyncio.timeout(FAREWELL_S):
                await self._all_gone()
        for connection in self.leaving:
            connection.abort()
        await self._all_gone()

    async def _all_gone(self) -> None:
        while self.connections or self.leaving:
            self._are_gone.clear()
            await self._are_gone.wait()

    def lost(self, connection: Connection) -> None:
        self.connections.discard(connection)
        self.leaving.discard(connection)
        if not self.connections and not self.leaving:
            self._are_gone.set()

    async def _listen_unix(self) -> None:
        path = socket_path(self._host.config.name, self._config.folder)
        loop = asyncio.get_running_loop()
        try:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o755 if os.geteuid() == 0 else 0o700)
            if path.parent == usual_folder() and not is_trusted(path.parent):
                raise UsageError(
                    f"{path.parent} belongs to another user, or others may write there: remove it, or set folder in "
                    "[clients]"
                )
            _remove_stale(path)
            listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            old = os.umask(0o777 & ~self._config.mode)
            try:
                listener.bind(str(path))
            except OSError:
                listener.close()
                raise
            finally:
                os.umask(old)
            self._path = path
            self._servers.append(await loop.create_unix_server(self._accept_local, sock=listener, backlog=1024))
        except OSError as error:
            raise UsageError(
                f"clients cannot be served at {path}: {error.strerror}; set folder in [clients] to one that this user "
                "may write"
            ) from error
        self.addresses.append(UnixAddress(path))

    async def _listen_tcp(self, address: str, port: int) -> None:
        loop = asyncio.get_running_loop()
        try:
            server = await loop.create_server(self._accept_remote, address, port, backlog=1024)
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                why = "the port is taken by another process: choose another port in [clients]"
            else:
                why = error.strerror or str(error)
            raise UsageError(f"clients cannot be served at {address} port {port}: {why}") from error
        self._servers.append(server)
        self.addresses.append(TcpAddress(address, server.sockets[0].getsockname()[1]))

    def _accept_local(self) -> Connection:
        return Connection(self, self._host, is_remote=False)

    def _accept_remote(self) -> Connection:
        return Connection(self, self._host, is_remote=True)

    @property
    def is_full(self) -> bool:
        return len(self._host.sessions) >= self._config.sessions_max

    @property
    def strangers(self) -> int:
        """Connections that are no sessions: not yet, or no longer."""
        return len(self.connections) + len(self.leaving) - len(self._host.sessions)

    @property
    def queue_size_max(self) -> int | None:
        return self._config.queue_size_max

    def _look_after(self) -> None:
        loop = asyncio.get_running_loop()
        now = loop.time()
        pause = now - self._looked_at - LOOK_EVERY_S if self._looked_at else 0.0
        for connection in list(self.connections):
            if pause > LOOK_EVERY_S:
                connection.forgive(pause)  # this process did not run: nobody can have been heard
            connection.look(now)
        self._looked_at = now
        self._look = loop.call_later(LOOK_EVERY_S, self._look_after)


def _remove_stale(path: Path) -> None:
    """A socket that a killed daemon left. One that somebody listens to is in use."""
    try:
        if not stat.S_ISSOCK(path.stat().st_mode):
            raise UsageError(f"{path} is in the way, and not a socket: remove it, or set folder in [clients]")
    except FileNotFoundError:
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            path.unlink()
            return
    raise UsageError(f"another daemon serves clients at {path}: end it, or set folder in [clients]")


class Connection(asyncio.BufferedProtocol):
    """One client, from its connection to its end."""

    def __init__(self, server: ClientServer, host: GroupHost, *, is_remote: bool) -> None:
        self.half = DaemonHalf(host.config.ring.message_size_max)
        self._server = server
        self._host = host
        self._is_remote = is_remote
        self._reader = FrameReader(GREETING_SIZE_MAX, server.room)
        self._transport: asyncio.Transport | None = None
        self._number = 0
        self._is_closing = False
        self._is_full = False  # the transport asks to wait
        self._changes = 0  # joins and leaves that are not in the engine yet
        self._heard_at = 0.0
        self._lingering: asyncio.TimerHandle | None = None
        self._holding: asyncio.TimerHandle | None = None  # all wait for it, and this looks after it

    # What the transport tells

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.set_write_buffer_limits(WRITE_SIZE_MAX)
        self._heard_at = asyncio.get_running_loop().time()
        self._server.connections.add(self)
        if self._is_remote:
            sock = transport.get_extra_info("socket")
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        if self._server.strangers > self._server.strangers_max:
            self.abort()

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._reader.room()

    def buffer_updated(self, nbytes: int) -> None:
        if self._is_closing:
            return  # whatever it still says
        if self.half.name:  # noise is no sign of life
            self._heard_at = asyncio.get_running_loop().time()
        try:
            for kind, body in self._reader.received(nbytes):
                request = self.half.receive(kind, body)
                if request is not None and not self._is_closing:
                    self._carry_out(request, len(body) + HEADER.size)
        except (WireError, UsageError) as error:
            self._host.counters.clients.refused += 1
            self.close(str(error))
            return
        self.flush()

    def eof_received(self) -> bool:
        return False

    def pause_writing(self) -> None:
        self._is_full = True

    def resume_writing(self) -> None:
        self._is_full = False
        self.flush()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end()
        if self._lingering is not None:
            self._lingering.cancel()
        self._server.lost(self)

    # Requests

    def _carry_out(self, request: Request, size: int) -> None:
        match request:
            case Send():
                self._host.request(self._number, request.payloads, request.service, lambda: self._accepted(size))
            case Join():
                self._change(join_payload(self.half.name, request.groups))
            case Leave():
                self._change(leave_payload(self.half.name, request.groups))
            case ListGroups():
                self.half.urge(encode_listing(self._host.named.table.groups()))
            case ListMembers():
                members = self._host.named.table.members_of(request.group)
                self.half.urge(encode_names(FrameKind.MEMBERS, members))
            case Hello():
                if self._server.is_full:
                    raise UsageError("this daemon has as many clients as it may: raise sessions_max in [clients]")
                self._number, name = self._host.open_session(self, request.name)
                self.half.welcome(name, request, self._server.queue_size_max)
                self._reader.size_max = frame_size_max(self._host.config.ring.message_size_max)
            case Manage():
                self._manage(request.document)
            case Bye():
                self.close("")

    def _manage(self, document: dict[str, Any]) -> None:
        """Answers may take a while; what is asked meanwhile is answered in its own time."""

        def reply(answer: dict[str, Any]) -> None:
            if not self._is_closing:
                self.half.urge(encode_document(FrameKind.MANAGED, answer))
                self._host.touch(self)

        if self._is_remote and document.get("do") != "list":
            reply({"error": "a cluster is changed at the unix socket of a daemon, not over TCP: run this on its host"})
            return
        task = asyncio.get_running_loop().create_task(management.answer(self._host, document, reply))
        self._server.tasks.add(task)
        task.add_done_callback(self._server.tasks.discard)

    def _change(self, payload: bytes) -> None:
        """Messages wait within the credit of the client; joins and leaves within what is read."""
        assert self._transport is not None
        self._changes += 1
        if self._changes == CHANGES_MAX:
            self._transport.pause_reading()
        self._host.request(self._number, (payload,), accepted=self._changed)

    def _changed(self) -> None:
        self._changes -= 1
        if self._changes == CHANGES_MAX - 1 and self._transport is not None and not self._is_closing:
            self._transport.resume_reading()

    def _accepted(self, size: int) -> None:
        self.half.accepted(size)
        self._host.touch(self)

    # What the host tells (see `host.Session`)

    def on_parcel(self, parcel: Parcel) -> None:
        counters, outbound = self._host.counters.clients, self.half.outbound
        dropped = outbound.dropped.messages
        why = outbound.put(parcel.frame(), parcel.messages)
        counters.messages_dropped += outbound.dropped.messages - dropped
        if why is not None:
            counters.too_slow += 1
            _log.warning("client %s is disconnected: %s", self.half.name, why)
            self.close(why)
        elif outbound.is_holding and self._holding is None:
            self._hold()

    def _hold(self) -> None:
        """All wait for this client, until it is looked at again."""
        self._host.hold(self._number, True)
        self._holding = asyncio.get_running_loop().call_later(HOLD_S, self._look_at_hold)

    def _look_at_hold(self) -> None:
        self.half.outbound.look()
        if self.half.outbound.is_holding:
            self._hold()
        else:
            self._let_go()

    def _let_go(self) -> None:
        if self._holding is not None:
            self._holding.cancel()
            self._holding = None
            self._host.hold(self._number, False)

    @property
    def waiting_size(self) -> int:
        return self.half.outbound.size

    def on_confirmed(self, run: Run) -> None:
        self.half.urge(encode_confirm(run))

    def on_ended(self, why: str) -> None:
        self._number = 0
        self.close(why)

    def flush(self) -> None:
        if self._transport is None or self._is_closing or self._is_full:
            return
        frames = self.half.take()
        if frames:
            self._transport.write(frames[0] if len(frames) == 1 else b"".join(frames))
            if self._holding is not None and not self.half.outbound.is_holding:
                self._let_go()

    # The end

    def forgive(self, seconds: float) -> None:
        self._heard_at += seconds

    def look(self, now: float) -> None:
        """A few times a minute."""
        if self._changes >= CHANGES_MAX:
            self._heard_at = now  # nothing is read from it now
        silence = now - self._heard_at
        if not self.half.name and silence > GREETING_S:
            self.close("a client of Ordercast says who it is first")
        elif self._is_remote and silence > SILENCE_MAX_S:
            self.close(f"nothing was heard of the client for {SILENCE_MAX_S:.0f} s")
        elif self._is_remote and silence > QUIET_S:
            self.half.urge(frame(FrameKind.PING))
            self.flush()

    def close(self, why: str) -> None:
        """Tell the client why, if it is not its own wish, and let it go."""
        if self._is_closing or self._transport is None:
            return
        patience_s = LINGER_S if self._number else FAREWELL_S
        self._end()
        self._server.connections.discard(self)
        self._server.leaving.add(self)
        self._lingering = asyncio.get_running_loop().call_later(patience_s, self.abort)
        if not why:
            self._transport.close()
            return
        self._transport.write(encode_closing(why))
        # The client closes when it has read this. If this end closed first while something was on its way to it, TCP
        # would throw away what the client has not read.
        self._transport.write_eof()
        self._transport.resume_reading()

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def _end(self) -> None:
        """Gone from its groups."""
        self._is_closing = True
        self._let_go()
        if self._number:
            self._host.close_session(self._number, self.half.name)
            self._number = 0
        self.half.forget()
