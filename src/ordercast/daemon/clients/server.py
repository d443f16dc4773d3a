"""Clients of a daemon: listens on a unix socket and, where configured, on TCP; one connection is one session.

What a client sends that is wrong closes its session with a sentence, and nothing else moves. A client that ends, or
whose connection breaks, is gone from its groups at once. Nobody waits for a client, unless it has asked for that and
makes progress: what it does not take waits within the bound of its policy (`session/outbound.py`), and all of them
together within one budget (`session/budget.py`). Whatever is refused is counted.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import socket
import stat
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

from ordercast.daemon.audit import Audited
from ordercast.daemon.clients.certificates import Certificates
from ordercast.daemon.clients.connection import FAREWELL_S, Connection
from ordercast.daemon.clients.door import SPEAKS_TLS, Door
from ordercast.daemon.clients.memory import memory_size
from ordercast.daemon.clients.strangers import Strangers
from ordercast.daemon.clients.told import ClientTold
from ordercast.daemon.config.node import ClientsConfig
from ordercast.daemon.descriptors import STRANGERS_MAX
from ordercast.daemon.folders import make_socket_folder
from ordercast.daemon.host import GroupHost
from ordercast.daemon.logs import fields
from ordercast.model.errors import UsageError
from ordercast.session.addresses import TcpAddress, UnixAddress, serving_folder, socket_path
from ordercast.session.budget import Budget
from ordercast.session.counters import ClientRefusal
from ordercast.session.desk import ClientRules
from ordercast.session.quota import Quota
from ordercast.session.reader import ROOM
from ordercast.session.rights import AccessRule, Rights
from ordercast.session.tls_channel import TlsChannel
from ordercast.session.tls_words import refused_client

GREETING_S = 10.0  # in which a client must have said who it is
CROWDED_GREETING_S = 2.0  # the same, once there are many who have not
MEMORY_PART = 4  # clients may take a quarter of the memory, unless the configuration says otherwise
LOOK_EVERY_S = 1.0  # at strangers
LOOKS = 5  # of these, before clients that are known are looked at too
BACKLOG = 1024  # connections that the kernel keeps until they are accepted
WORK_MAX = 2000  # groups that clients may ask to join or leave in one turn of the event loop, or as much other work
IDENTITIES_SHOWN = 20
CERTIFICATE_LOOKS = 60  # at strangers, before certificates are looked at
ACCEPTED_MAX = 64  # of these in one turn of the event loop: who greets at once is heard before the next come

_log = logging.getLogger(__name__)


class ClientServer:
    """Serves clients of a host while it is entered."""

    def __init__(
        self, host: GroupHost, config: ClientsConfig, strangers_max: int | None = None, door: Door | None = None
    ) -> None:
        """Serve clients of a host. Everybody who may connect may do everything when there is no door."""
        self.door = door or Door()
        self._host = host
        self._config = config
        self._servers: list[asyncio.Server] = []
        self._path: Path | None = None
        self._look: asyncio.TimerHandle | None = None
        self._looked_at = 0.0
        self._looks = 0
        self.connections: set[Connection] = set()  # that are served
        self.leaving: set[Connection] = set()  # that were told to go, and have not gone yet
        self._are_gone = asyncio.Event()
        self._strangers_max = STRANGERS_MAX if strangers_max is None else strangers_max
        self.strangers: Strangers[Connection] = Strangers(self._strangers_max, GREETING_S, CROWDED_GREETING_S)
        self.budget: Budget[Connection | int] = Budget(config.memory_max or memory_size() // MEMORY_PART)
        self._is_relieving = False
        self._is_ending = False
        self._work = 0  # in this turn of the event loop
        self._waiting: dict[Connection, None] = {}  # for the next turn
        self._turn: asyncio.Handle | None = None
        self.quota = Quota(config.groups_max, config.memberships_max)
        self.rules = ClientRules(
            host.config.sizes.message_size_max, config.sessions_max, config.queue_size_max, config.hold_ns
        )
        self.room = bytearray(ROOM)  # where every connection reads, one after the other
        self._sealed_room = memoryview(bytearray(ROOM if self.door.certificates else 0))  # the same beneath TLS
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
        self._host.serving = self
        self._look_after()
        return self

    async def __aexit__(self, *how: object) -> None:
        await self.close()

    async def close(self) -> None:
        self._is_ending = True
        for server in self._servers:
            server.close()
        if self._look is not None:
            self._look.cancel()
        for task in self.tasks:
            task.cancel()
        for connection in list(self.connections):
            self._send_away(connection)
        await self._let_go()
        if self._path is not None:
            with suppress(OSError):
                self._path.unlink()

    async def _let_go(self) -> None:
        """Let all connections go: in order if they are quick."""
        with suppress(TimeoutError):
            async with asyncio.timeout(FAREWELL_S):
                await self._all_gone()
        for connection in (*self.connections, *self.leaving):
            connection.abort()
        await self._all_gone()

    def _send_away(self, connection: Connection) -> None:
        connection.close(f"the daemon {self._host.config.name} is being shut down")

    async def _all_gone(self) -> None:
        while self.connections or self.leaving:
            self._are_gone.clear()
            await self._are_gone.wait()

    # What connections tell

    def arrived(self, connection: Connection) -> None:
        self.connections.add(connection)
        self._come(connection)
        if self._is_ending:  # it was accepted before
            self._send_away(connection)

    def _come(self, stranger: Connection) -> None:
        pushed_out = self.strangers.come(stranger, stranger.gate.place, asyncio.get_running_loop().time())
        if pushed_out is not None and not self._is_ending:  # at the end all go, each with its reason
            pushed_out.push_out(
                f"more than {self._strangers_max:,} connections have not said who they are, and this is the oldest of "
                "the user or host that has the most of them: connect again, and greet at once"
            )

    def greeted(self, connection: Connection) -> None:
        self.strangers.gone(connection)

    def leaves(self, connection: Connection) -> None:
        """It was told to go: a stranger again, until it has gone."""
        self.connections.discard(connection)
        self.leaving.add(connection)
        self._come(connection)

    def lost(self, connection: Connection) -> None:
        self.connections.discard(connection)
        self.leaving.discard(connection)
        self.strangers.gone(connection)
        self._waiting.pop(connection, None)
        self.account(connection, 0)
        if not self.connections and not self.leaving:
            self._are_gone.set()

    def may_work(self, connection: Connection) -> bool:
        """Tell whether a connection may work: not when all together have asked for much in this turn of the event loop:
        the engine must have its turn."""
        if self._work >= WORK_MAX:
            self.go_on_soon(connection)
        return self._work < WORK_MAX

    def works(self, groups: int) -> None:
        self._work += groups
        self._have_turn()

    def go_on_soon(self, connection: Connection) -> None:
        self._waiting[connection] = None
        self._have_turn()

    def _have_turn(self) -> None:
        if self._turn is None:
            self._turn = asyncio.get_running_loop().call_soon(self._take_turn)

    def _take_turn(self) -> None:
        """Let everybody who waits go on; who has not had a turn goes first in the next one."""
        self._turn, self._work = None, 0
        waiting, self._waiting = list(self._waiting), {}
        for place, connection in enumerate(waiting):
            if self._work >= WORK_MAX:
                self._waiting = dict.fromkeys(waiting[place:]) | self._waiting
                return
            connection.go_on()

    def account(self, debtor: Connection | int, debt: int) -> None:
        """So many bytes are kept for a client now, or of a session that has ended. The largest debtors go, until the
        others are within the budget."""
        self.budget.owe(debtor, debt)
        self._relieve(self.budget)
        if isinstance(debtor, Connection) and (share := debtor.gate.budget) is not None:
            share.owe(debtor, debt)
            self._relieve(share)

    def _relieve(self, budget: Budget[Any]) -> None:
        while budget.is_exceeded and not self._is_relieving:
            self._is_relieving = True
            self._dismiss(*budget.largest(), budget)
            self._is_relieving = False

    def _dismiss(self, debtor: Connection | int, debt: int, budget: Budget[Any]) -> None:
        if isinstance(debtor, int):
            self._host.desk.drop_requests(debtor)
            self.budget.owe(debtor, 0)
        elif (left := debtor.account()) < debt:
            budget.owe(debtor, left)  # it has taken some of it
        elif debtor.is_closing:
            debtor.abort()
            budget.owe(debtor, 0)
        else:
            self._host.counters.clients.over_memory += 1
            self._host.desk.drop_requests(debtor.number)
            why = budget.reason(debt) if budget is self.budget else debtor.gate.memory_reason(debt)
            debtor.disconnect(why)

    async def _listen_unix(self) -> None:
        path = socket_path(self._host.config.name, self._config.folder)
        loop = asyncio.get_running_loop()
        ready_folder(self._config)
        try:
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
            self._servers.append(await loop.create_unix_server(self._accept_local, sock=listener, backlog=ACCEPTED_MAX))
            listener.listen(BACKLOG)
        except OSError as error:
            raise _cannot_serve(path, error) from error
        self.addresses.append(UnixAddress(path))

    async def _listen_tcp(self, address: str, port: int) -> None:
        loop = asyncio.get_running_loop()
        try:
            family = socket.AF_INET6 if ":" in address else socket.AF_INET
            listener = socket.create_server((address, port), family=family)
            server = await loop.create_server(self._accept_remote, sock=listener, backlog=ACCEPTED_MAX)
            listener.listen(BACKLOG)
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

    def _accept_remote(self) -> asyncio.BufferedProtocol:
        connection = Connection(self, self._host, is_remote=True)
        if self.door.certificates is None:
            return connection
        return TlsChannel(connection, self.door.half(), refused_client, SPEAKS_TLS, self._sealed_room)

    def reread(self) -> bool:
        """Read the certificates again, if there are any; tell whether they are new. UsageError, and nothing changed,
        when they cannot be used."""
        certificates = self.door.certificates
        return certificates is not None and self._reread(certificates)

    def regrant(self, rules: Sequence[AccessRule]) -> None:
        """Take other rights. Who lacks a right now loses what it had by it, and is told."""
        self.door.rights = Rights(rules)
        for connection in [connection for connection in self.connections if connection.name]:
            self._regrant(connection)

    def _regrant(self, connection: Connection) -> None:
        before = connection.gate.budget
        connection.leave_with(connection.desk.regrant())
        if connection.gate.budget is not before:  # the memory of its identity is bounded now, or is no longer
            if before is not None:
                before.owe(connection, 0)
            self.account(connection, connection.account())
        connection.flush()

    @property
    def host(self) -> GroupHost:
        return self._host

    @property
    def memory_size(self) -> int:
        for connection in (*self.connections, *self.leaving):
            connection.account()
        return self.budget.size

    @property
    def memory_max(self) -> int:
        return self.budget.size_max

    @property
    def memberships(self) -> int:
        return self.quota.used

    @property
    def certificate_days(self) -> int | None:
        return None if self.door.certificates is None else self.door.certificates.days_left()

    @property
    def sessions_by_identity(self) -> dict[str, int]:
        return dict(Counter(self.door.shares.sessions).most_common(IDENTITIES_SHOWN))

    def clients(self) -> list[ClientTold]:
        return [connection.told() for connection in self.connections if connection.name]

    @property
    def strangers_count(self) -> int:
        return len(self.strangers)

    def _look_after(self) -> None:
        loop = asyncio.get_running_loop()
        now = loop.time()
        pause = now - self._looked_at - LOOK_EVERY_S if self._looked_at else 0.0
        if pause > LOOKS * LOOK_EVERY_S:  # this process did not run: nobody can have been heard
            self.strangers.forgive(pause)
            for connection in self.connections:
                connection.forgive(pause)
        self.look_at_strangers(now)
        self.door.audit.look()
        if self._looks % CERTIFICATE_LOOKS == 0:
            self._look_at_certificates()
        self._looks += 1
        if self._looks % LOOKS == 0:
            for connection in list(self.connections):
                connection.look(now)
        self._looked_at = now
        self._look = loop.call_later(LOOK_EVERY_S, self._look_after)

    def _look_at_certificates(self) -> None:
        """Renewed ones are taken as they are found."""
        certificates = self.door.certificates
        if certificates is None:
            return
        if certificates.are_stale:
            try:
                self._reread(certificates)
            except UsageError as error:
                self.door.audit.tell(Audited.CERTIFICATES, f"the certificates were not read again: {error}")
        if (warning := certificates.warning()) is not None:
            _log.warning("%s", warning, extra=fields(days=certificates.days_left()))

    def _reread(self, certificates: Certificates) -> bool:
        is_new = certificates.read()
        if is_new:
            ends = certificates.told.ends.date()
            self.door.audit.tell(Audited.CERTIFICATES, f"the certificates were read again: valid until {ends}")
        return is_new

    def look_at_strangers(self, now: float) -> None:
        patience_s = self.strangers.patience_s
        for stranger in self.strangers.overdue(now):
            if not stranger.is_closing:
                why = f"a client of Ordercast says who it is first, within {patience_s:g} s"
                stranger.refuse(ClientRefusal.GREETING, why)


def ready_folder(config: ClientsConfig) -> None:
    """Make the folder of the unix socket. UsageError when none can be made, or used: to be asked before a node joins
    the others, who would see it come and go."""
    folder = config.folder or serving_folder()
    try:
        make_socket_folder(folder)
        if not os.access(folder, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    except OSError as error:
        raise _cannot_serve(folder, error) from error


def _cannot_serve(path: Path, error: OSError) -> UsageError:
    return UsageError(
        f"clients cannot be served at {path}: {error.strerror}; set folder in [clients] to one that this user may write"
    )


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
    raise UsageError(
        f"another daemon serves clients at {path}: end it, or choose another folder, with folder in [clients] or "
        "$ORDERCAST_FOLDER"
    )
