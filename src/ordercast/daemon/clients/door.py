"""The door of a daemon: who its clients are, what they may do, and what is told of it.

One `Door` for all, one `ClientGate` for each connection. On the unix socket the kernel says which user it is; over TCP
the certificate or the token does. Rules and certificates are replaced by a reload, which goes through all clients.
"""

from __future__ import annotations

import asyncio
import grp
import os
import pwd
import socket
import struct
from collections.abc import Hashable, Sequence
from functools import lru_cache
from typing import Any

from ordercast.daemon.audit import Audit, Audited
from ordercast.daemon.clients.certificates import Certificates
from ordercast.session.budget import Budget
from ordercast.session.frames import encode_closing
from ordercast.session.rights import ANYBODY, AccessRule, ClientIdentity, Denied, Granted, Rights, Shares
from ordercast.session.tls import TlsHalf, TlsRefused
from ordercast.session.tls_channel import IDENTITY

PEER_CREDENTIALS = struct.Struct("3i")  # process, user, group
SPEAKS_TLS = encode_closing(
    "this daemon speaks TLS with its clients: make credentials with `ordercast certs client FOLDER NAME`, and connect "
    "with credentials=FILE, or with $ORDERCAST_CREDENTIALS"
)
_WANTED = (
    "this daemon wants to know who its clients are, and this one showed neither a certificate nor a token: make "
    "credentials with `ordercast certs client FOLDER NAME`"
)
_UNKNOWN_TOKEN = (
    "this daemon does not have the token that this client shows: copy tokens.toml to its folder of certificates, and "
    "run `ordercast reload`; or make another token with `ordercast certs token FOLDER NAME`"
)


class Door:
    def __init__(
        self,
        certificates: Certificates | None = None,
        rules: Sequence[AccessRule] = (),
        audit: Audit | None = None,
    ) -> None:
        self.certificates = certificates
        self.audit = audit or Audit()
        self.shares = Shares()
        self.rights = Rights(rules)
        self._budgets: dict[str, Budget[Any]] = {}  # of identities whose memory is bounded

    def half(self) -> TlsHalf:
        """TLS for a connection that begins."""
        assert self.certificates is not None
        return TlsHalf(self.certificates.context)

    def budget_of(self, granted: Granted) -> Budget[Any] | None:
        """The memory that the clients of an identity may take together; None: no bound of its own."""
        if granted.memory is None:
            return None
        budget = self._budgets.setdefault(str(granted.identity), Budget(granted.memory))
        budget.size_max = granted.memory
        return budget


class ClientGate:
    """The gate of one connection."""

    def __init__(self, door: Door, *, is_remote: bool) -> None:
        self.place: Hashable = ""  # where it comes from: a user of this machine, or a host
        self.identity: ClientIdentity | None = None  # once it has greeted
        self.budget: Budget[Any] | None = None
        self._door = door
        self._is_remote = is_remote
        self._is_secured = is_remote and door.certificates is not None
        self._transport: asyncio.BaseTransport

    def open(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        sock = transport.get_extra_info("socket")
        if self._is_remote:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            self.place = (transport.get_extra_info("peername") or ("",))[0]
        else:
            self.place = _user(sock)

    @property
    def where(self) -> str:
        return str(self.place) if self._is_remote else f"user {self.place}"

    def refusal_of(self, document: dict[str, Any]) -> str | None:
        """Why this client may not ask that as an operator, if it may not. Whoever changes a cluster is root, or the
        user of the daemon; or there are no rules, and the mode of the socket has let it in."""
        if document.get("do") in ("list", "clients", "places"):
            return None
        if self._is_remote:
            return "a cluster is changed at the unix socket of a daemon, not over TCP: run this on its host"
        assert self.identity is not None, "who asks is welcome"
        if self._door.rights.of(self.identity).is_everything:
            return None
        return f"{self.identity} may not change the cluster: root may, and the user of the daemon"

    def memory_reason(self, debt: int) -> str:
        """Why the largest debtor of an identity has to go, in a sentence for it."""
        assert self.budget is not None
        return (
            f"the clients of {self.identity} take {self.budget.size:,} bytes of this daemon's memory, and may take "
            f"{self.budget.size_max:,}; this one takes {debt:,}: read faster, or raise memory in [[rights]] for it"
        )

    # What the session's desk asks (`session/desk.py`, SessionGate)

    @property
    def shares(self) -> Shares:
        return self._door.shares

    def admit(self, token: bytes | None) -> Granted:
        self.identity = self._identified(token)
        granted = self._door.rights.of(self.identity)
        self.budget = self._door.budget_of(granted)
        return granted

    def _identified(self, token: bytes | None) -> ClientIdentity:
        if not self._is_remote:
            return user_identity(int(str(self.place)))
        if not self._is_secured:
            return ANYBODY
        name = self._transport.get_extra_info(IDENTITY)
        if name is not None:
            return ClientIdentity("cert", str(name))
        if token is None:
            raise Denied(_WANTED, "connect")
        certificates = self._door.certificates
        name = None if certificates is None else certificates.name_of_token(token)
        if name is None:
            raise Denied(_UNKNOWN_TOKEN, "connect")
        return ClientIdentity("token", name)

    def on_denied(self, right: str, groups: Sequence[str], why: str) -> None:
        self._tell(Audited.DENIED, why, groups, right)

    def on_joined(self, groups: Sequence[str]) -> None:
        self._tell(Audited.JOINED, f"{self.identity} joined {' '.join(groups)}", groups)

    def on_connected(self, name: str) -> None:
        self._tell(Audited.CONNECTED, f"{name} connected: {self.identity}, from {self.where}")

    def on_refused(self, why: TlsRefused) -> None:
        """There is no secure connection."""
        self._door.audit.tell(
            Audited.REFUSED, f"a client at {self.where} was refused: {why.reason}", place=self.where, why=why.reason
        )

    def _tell(self, what: Audited, text: str, groups: Sequence[str] = (), why: str = "") -> None:
        who = "" if self.identity is None else str(self.identity)
        group = groups[0] if len(groups) == 1 else f"{len(groups)} groups" if groups else ""
        self._door.audit.tell(what, text, who=who, place=self.where, group=group, why=why)


def _user(sock: socket.socket) -> int:
    """Who is at the other end of a unix socket, where the kernel tells."""
    if not hasattr(socket, "SO_PEERCRED"):
        return os.geteuid()
    _, user, _ = PEER_CREDENTIALS.unpack(sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, PEER_CREDENTIALS.size))
    return int(user)


@lru_cache(1024)
def user_identity(user: int) -> ClientIdentity:
    """Who a user of this machine is. Users without an entry are called by their numbers."""
    is_owner = user in (0, os.geteuid())
    try:
        entry = pwd.getpwuid(user)
    except KeyError:
        return ClientIdentity("user", str(user), is_owner=is_owner)
    groups = tuple(_group(number) for number in os.getgrouplist(entry.pw_name, entry.pw_gid))
    return ClientIdentity("user", entry.pw_name, groups, is_owner)


def _group(number: int) -> str:
    try:
        return grp.getgrgid(number).gr_name
    except KeyError:
        return str(number)
