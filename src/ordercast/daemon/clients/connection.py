"""Connection: one client of a daemon, from its connection to its end.

Above it is the transport of asyncio, below it the session's half (`session/daemon_half.py`), which decides what the
client may say, and the host, which sends. What is kept for the client is told to the server, which has one budget for
all.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import struct
from collections.abc import Hashable
from functools import partial
from typing import Any, Protocol

from ordercast.daemon import management
from ordercast.daemon.host import GroupHost
from ordercast.daemon.logs import Rationed
from ordercast.daemon.status.counters import ClientRefusal
from ordercast.groups.layer import MessageRun, join_payload, leave_payload
from ordercast.model.errors import UsageError, WireError
from ordercast.model.ids import SECOND
from ordercast.session.batches import Send, encode_confirm, frame_size_max
from ordercast.session.daemon_half import (
    Bye,
    DaemonHalf,
    JoinGroups,
    LeaveGroups,
    ListGroups,
    ListMembers,
    Manage,
    Request,
)
from ordercast.session.frames import (
    PAGE_MAX,
    Hello,
    Listing,
    Members,
    Refused,
    encode_closing,
    encode_document,
    encode_listing,
    encode_members,
)
from ordercast.session.handouts import Handout
from ordercast.session.pieces import HEADER, FrameKind, frame
from ordercast.session.quota import Quota
from ordercast.session.reader import FrameReader

GREETING_SIZE_MAX = 512  # bytes
LINGER_S = 60.0  # a client that is being closed may take so long to read the reason
FAREWELL_S = 1.0  # and so long when the daemon ends
WRITE_SIZE_MAX = 1 << 18  # bytes that the transport holds before the rest waits within the bound of the policy
HOLD_LOOK_S = 0.25  # how often a client for which all wait is looked at
HOLD_TOLD_NS = 2 * SECOND  # one that holds for longer is named in the log
CHANGES_MAX = 100  # joins and leaves of one client that wait to be ordered before no more is read from it
QUESTIONS_MAX = 16  # of operators, under way at a time
COSTLY = frozenset(
    (FrameKind.JOIN, FrameKind.ENTER, FrameKind.LEAVE, FrameKind.LIST, FrameKind.MEMBERS_OF, FrameKind.MANAGE)
)  # small, and much work
FRAMES_TOGETHER = 256  # of one read, before it is asked whether others should have their turn
FRAMES_FEW = 16  # of one read, which are not worth counting
ANSWER_WORK = 250  # a page of names is as much work as so many groups that are joined
QUIET_S = 15.0  # a connection over TCP that was silent for so long is asked whether it is alive
SILENCE_MAX_S = 90.0  # and given up after so long
PEER_CREDENTIALS = struct.Struct("3i")  # process, user, group

_log = logging.getLogger(__name__)
_rationed = Rationed(_log)


class Server(Protocol):
    """What a connection needs of whoever has accepted it."""

    @property
    def room(self) -> bytearray: ...
    @property
    def quota(self) -> Quota: ...
    @property
    def tasks(self) -> set[asyncio.Task[None]]: ...
    @property
    def is_full(self) -> bool: ...
    @property
    def queue_size_max(self) -> int | None: ...
    @property
    def hold_ns(self) -> int: ...
    def arrived(self, connection: Connection) -> None: ...
    def greeted(self, connection: Connection) -> None: ...
    def leaves(self, connection: Connection) -> None: ...
    def lost(self, connection: Connection) -> None: ...
    def may_work(self, connection: Connection) -> bool: ...
    def works(self, groups: int) -> None: ...
    def go_on_soon(self, connection: Connection) -> None: ...
    def account(self, debtor: Connection | int, debt: int) -> None: ...


class Connection(asyncio.BufferedProtocol):
    def __init__(self, server: Server, host: GroupHost, *, is_remote: bool) -> None:
        self.half = DaemonHalf(host.config.ring.message_size_max, server.quota)
        self.place: Hashable = ""  # where it comes from: a user of this machine, or a host
        self.number = 0  # of its session
        self._server = server
        self._host = host
        self._is_remote = is_remote
        self._reader = FrameReader(GREETING_SIZE_MAX, server.room, self.half.admit)
        self._transport: asyncio.Transport | None = None
        self.is_closing = False
        self._is_full = False  # the transport asks to wait
        self._is_waiting = False  # with what it has said; nothing more is read
        self._changes = 0  # joins and leaves that are not in the engine yet
        self._heard_at = 0.0
        self._debt = 0  # as the server was told last
        self._lingering: asyncio.TimerHandle | None = None
        self._holding: asyncio.TimerHandle | None = None  # all wait for it, and this looks after it

    # What the transport tells

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.set_write_buffer_limits(WRITE_SIZE_MAX)
        self._heard_at = asyncio.get_running_loop().time()
        sock = transport.get_extra_info("socket")
        if self._is_remote:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            self.place = (transport.get_extra_info("peername") or ("",))[0]
        else:
            self.place = _user(sock)
        self._server.arrived(self)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._reader.room()

    def buffer_updated(self, nbytes: int) -> None:
        if self.is_closing:
            return  # whatever it still says
        if self.half.name:  # noise is no sign of life
            self._heard_at = asyncio.get_running_loop().time()
        frames, count = self._reader.received(nbytes), 0
        try:
            for count, (kind, body) in enumerate(frames):
                is_due = count % FRAMES_TOGETHER == 0
                if is_due and count:
                    self._server.works(FRAMES_TOGETHER)
                if (is_due or kind in COSTLY) and not self._may_go_on(is_costly=kind in COSTLY):
                    frames.close()
                    break
                request = self.half.receive(kind, body)
                if request is not None and not self.is_closing:
                    self._carry_out(request, len(body) + HEADER.size)
        except WireError as error:
            self.refuse(ClientRefusal.WRONG, str(error))
            return
        if count % FRAMES_TOGETHER > FRAMES_FEW:
            self._server.works(count % FRAMES_TOGETHER)
        self.flush()

    def _may_go_on(self, *, is_costly: bool) -> bool:
        """Otherwise the rest waits, and no more is read, until its joins and leaves are in the engine, or until the
        event loop has had a turn."""
        assert self._transport is not None
        if (is_costly and self._changes >= CHANGES_MAX) or not self._server.may_work(self):
            self._transport.pause_reading()
            self._is_waiting = True
        return not self._is_waiting

    def go_on(self) -> None:
        """With what waits."""
        if self._is_waiting and not self.is_closing and self._transport is not None:
            self._is_waiting = False
            self._transport.resume_reading()
            self.buffer_updated(0)

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
                self._host.request(self.number, request.payloads, request.service, lambda: self._accepted(size))
            case JoinGroups():
                self._change(join_payload(self.half.name, request.groups), len(request.groups))
                self._server.works(len(request.groups))
            case LeaveGroups():
                self._change(leave_payload(self.half.name, request.groups), len(request.groups))
                self._server.works(len(request.groups))
            case Refused():
                self._host.counters.clients.refusals[ClientRefusal.GROUPS] += 1
                self._server.works(len(request.groups))
            case ListGroups():
                self._server.works(ANSWER_WORK)
                self.half.urge(encode_listing(Listing(*self._host.named.table.page(request.after, PAGE_MAX))))
            case ListMembers():
                self._server.works(ANSWER_WORK)
                page = self._host.named.table.members_page(request.group, request.after, PAGE_MAX)
                self.half.urge(encode_members(Members(*page)))
            case Hello():
                self._greet(request)
            case Manage():
                self._manage(request.document)
            case Bye():
                self.close("")

    def _greet(self, hello: Hello) -> None:
        if self._server.is_full:
            why = "this daemon has as many clients as it may: raise sessions_max in [clients]"
            self.refuse(ClientRefusal.FULL, why)
            return
        try:
            self.number, name = self._host.open_session(self, hello.name)
        except UsageError as error:
            self.refuse(ClientRefusal.NAME, str(error))
            return
        self.half.welcome(name, hello, self._server.queue_size_max, self._server.hold_ns)
        self._reader.size_max = frame_size_max(self._host.config.ring.message_size_max)
        self._server.greeted(self)

    def _manage(self, document: dict[str, Any]) -> None:
        """Find an answer for an operator, which may take a while."""

        def reply(answer: dict[str, Any]) -> None:
            if not self.is_closing:
                self.half.urge(encode_document(FrameKind.MANAGED, answer))
                self._host.touch(self)

        if self._is_remote and document.get("do") != "list":
            reply({"error": "a cluster is changed at the unix socket of a daemon, not over TCP: run this on its host"})
            return
        if len(self._server.tasks) >= QUESTIONS_MAX:
            reply({"error": "the daemon is busy with questions of operators: try again"})
            return
        task = asyncio.get_running_loop().create_task(management.answer(self._host, document, reply))
        self._server.tasks.add(task)
        task.add_done_callback(self._server.tasks.discard)

    def _change(self, payload: bytes, groups: int) -> None:
        """Messages wait within the credit of the client; joins and leaves within what is read."""
        self._changes += 1
        self._host.request(self.number, (payload,), accepted=self._changed, changes=groups)

    def _changed(self) -> None:
        self._changes -= 1
        if self._transport is None or self.is_closing:
            return
        self._host.touch(self)
        if self._is_waiting:
            self._server.go_on_soon(self)

    def _accepted(self, size: int) -> None:
        self.half.accepted(size)
        self._host.touch(self)

    # What the host tells (see `host.Session`)

    @property
    def name(self) -> str:
        return self.half.name

    def on_parcel(self, parcel: Handout) -> None:
        counters, outbound = self._host.counters.clients, self.half.outbound
        dropped = outbound.dropped.messages
        why = outbound.put(parcel.frame(), parcel.messages)
        counters.messages_dropped += outbound.dropped.messages - dropped
        if why is not None:
            counters.too_slow += 1
            self.disconnect(why)
        elif outbound.is_holding and self._holding is None:
            self._look_at_hold()

    def _look_at_hold(self) -> None:
        """All wait for this client, until it is looked at again."""
        outbound, now = self.half.outbound, self._host.now()
        why = outbound.look(now)
        if why is not None:
            self._host.counters.clients.held_too_long += 1
            self.disconnect(why)
            return
        if not outbound.is_holding:
            self._let_go()
            return
        if outbound.hold is not None and now - outbound.hold.since >= HOLD_TOLD_NS:
            _rationed.warn(
                "hold",
                f"everybody has waited for the client {self.name} for {(now - outbound.hold.since) / SECOND:.1f} s: it "
                f"has {outbound.size:,} bytes to read (policy hold)",
            )
        self._host.hold(self.number, True)
        self._holding = asyncio.get_running_loop().call_later(HOLD_LOOK_S, self._look_at_hold)

    def _let_go(self) -> None:
        if self._holding is not None:
            self._holding.cancel()
            self._holding = None
            self._host.hold(self.number, False)

    @property
    def waiting_size(self) -> int:
        buffered = 0 if self._transport is None else self._transport.get_write_buffer_size()
        return self.half.waiting_size + buffered

    @property
    def received_size(self) -> int:
        return self._reader.begun_size

    def account(self) -> int:
        """Of all that is kept for it: what it has not taken, has not said to the end, and what is not sent yet. The
        transport does not tell when it has written: the server asks again before it believes what it was told."""
        received = max(self._reader.begun_size, self.half.extra)  # room that was granted is taken
        debt = self.waiting_size + received + self._host.desk.requests_size_of(self.number)
        if debt != self._debt:
            self._debt = debt
            self._server.account(self, debt)
        return debt

    def on_confirmed(self, run: MessageRun) -> None:
        self.half.urge(encode_confirm(run))

    def on_ended(self, why: str) -> None:
        self._let_go()
        self.number = 0
        self.close(why)

    def flush(self) -> None:
        if self._transport is None or self.is_closing:
            return
        while not self._is_full and (frames := self.half.take(WRITE_SIZE_MAX)):
            self._transport.write(frames[0] if len(frames) == 1 else b"".join(frames))
            if not self.half.waiting_size:
                break
        if self._holding is not None and not self.half.outbound.is_holding:
            self._let_go()
        self.account()

    # The end

    def forgive(self, seconds: float) -> None:
        self._heard_at += seconds

    def look(self, now: float) -> None:
        """A few times a minute, at a client that is known."""
        if self._is_waiting:
            self._heard_at = now  # nothing is read from it now
        silence = now - self._heard_at
        if self._is_remote and silence > SILENCE_MAX_S:
            self.close(f"nothing was heard of the client for {SILENCE_MAX_S:.0f} s")
        elif self._is_remote and silence > QUIET_S:
            self.half.urge(frame(FrameKind.PING))
            self.flush()

    def refuse(self, kind: ClientRefusal, why: str) -> None:
        self._host.counters.clients.refusals[kind] += 1
        self.close(why)

    def disconnect(self, why: str) -> None:
        """A client that has done nothing wrong, but costs too much."""
        _rationed.warn("disconnected", f"client {self.name} is disconnected: {why}")
        self.close(why)

    def push_out(self, why: str) -> None:
        """For another one, at once."""
        if self._transport is not None and not self.is_closing:
            self._host.counters.clients.refusals[ClientRefusal.STRANGERS] += 1
            self._transport.write(encode_closing(why))
            self._end()
        self.abort()

    def close(self, why: str) -> None:
        """Tell the client why, if it is not its own wish, and let it go."""
        if self.is_closing or self._transport is None:
            return
        patience_s = LINGER_S if self.number else FAREWELL_S
        self._end()
        self._server.leaves(self)
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
        self.is_closing = True
        self._let_go()
        number, self.number = self.number, 0
        if number:
            gone = partial(self._server.account, number, 0)
            self._host.close_session(number, self.half.name, len(self.half.joined), gone)
            self._server.account(number, self._host.desk.requests_size_of(number))  # what it has sent is still sent
        self.half.forget()
        self._reader.forget()
        self.account()


def _user(sock: socket.socket) -> int:
    """Who is at the other end of a unix socket, where the kernel tells."""
    if not hasattr(socket, "SO_PEERCRED"):
        return 0
    _, user, _ = PEER_CREDENTIALS.unpack(sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, PEER_CREDENTIALS.size))
    return int(user)
