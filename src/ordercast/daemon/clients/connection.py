"""Connection: one client of a daemon, from its connection to its end.

It moves bytes: what is done with them, and when a client has to go, is decided at the session's desk
(`session/desk.py`). Above it is the transport of asyncio, below it the host, which sends. What is kept for the client
is told to the server, which has one budget for all.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Generator
from functools import partial
from typing import Any, Protocol

from ordercast.daemon import management
from ordercast.daemon.clients.door import ClientGate, Door
from ordercast.daemon.clients.told import ClientTold
from ordercast.daemon.host import GroupHost
from ordercast.daemon.logs import Rationed
from ordercast.groups.layer import MessageRun
from ordercast.model.errors import WireError
from ordercast.model.ids import SECOND
from ordercast.session.batches import frame_size_max
from ordercast.session.counters import ClientRefusal
from ordercast.session.daemon_half import DaemonHalf
from ordercast.session.desk import COSTLY, ClientRules, Ending, Outcome, SessionDesk
from ordercast.session.frames import Hello, encode_closing, encode_document
from ordercast.session.handouts import Handout
from ordercast.session.pieces import FrameKind, frame
from ordercast.session.quota import Quota
from ordercast.session.reader import FrameReader
from ordercast.session.requests import Manage
from ordercast.session.tls import TlsRefused

GREETING_SIZE_MAX = 512  # bytes
LINGER_S = 60.0  # a client that is being closed may take so long to read the reason
FAREWELL_S = 1.0  # and so long when the daemon ends
WRITE_SIZE_MAX = 1 << 18  # bytes that the transport holds before the rest waits within the bound of the policy
HOLD_LOOK_S = 0.25  # how often a client for which all wait is looked at
HOLD_TOLD_NS = 2 * SECOND  # one that holds for longer is named in the log
QUESTIONS_MAX = 16  # of operators, under way at a time
FRAMES_TOGETHER = 256  # of one read, before it is asked whether others should have their turn
FRAMES_FEW = 16  # of one read, which are not worth counting
QUIET_S = 15.0  # a connection over TCP that was silent for so long is asked whether it is alive
SILENCE_MAX_S = 90.0  # and given up after so long
HANDSHAKE_WORK = 100  # a part of a handshake is as much work as so many groups that are joined

_log = logging.getLogger(__name__)
_rationed = Rationed(_log)


class Server(Protocol):
    """What a connection needs of whoever has accepted it."""

    @property
    def room(self) -> bytearray: ...
    @property
    def quota(self) -> Quota: ...
    @property
    def door(self) -> Door: ...
    @property
    def tasks(self) -> set[asyncio.Task[None]]: ...
    @property
    def rules(self) -> ClientRules: ...
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
        self.gate = ClientGate(server.door, is_remote=is_remote)
        self.desk = SessionDesk(self, host, server.rules, server.quota, host.counters.clients, self.gate)
        self._server = server
        self._host = host
        self._is_remote = is_remote
        self._reader = FrameReader(GREETING_SIZE_MAX, server.room, self.half.admit)
        self._transport: asyncio.Transport | None = None
        self.is_closing = False
        self._is_full = False  # the transport asks to wait
        self._is_waiting = False  # with what it has said; nothing more is read
        self._heard_at = 0.0
        self._began_at = 0.0
        self._debt = 0  # as the server was told last
        self._lingering: asyncio.TimerHandle | None = None
        self._holding: asyncio.TimerHandle | None = None  # all wait for it, and this looks after it

    # What the transport tells

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.set_write_buffer_limits(WRITE_SIZE_MAX)
        self._heard_at = self._began_at = asyncio.get_running_loop().time()
        self.gate.open(transport)
        self._server.arrived(self)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._reader.room()

    def buffer_updated(self, nbytes: int) -> None:
        if self.is_closing:
            return  # whatever it still says
        if self.desk.half.name:  # noise is no sign of life
            self._heard_at = asyncio.get_running_loop().time()
        self._host.begin_turn()
        try:
            count = self._take(self._reader.received(nbytes))
        except WireError as error:
            self.leave_with(self.desk.wrong(error))
            return
        finally:
            self._host.end_reading(self)
        if count % FRAMES_TOGETHER > FRAMES_FEW:
            self._server.works(count % FRAMES_TOGETHER)
        self.flush()

    def _take(self, frames: Generator[tuple[int, bytes], None, None]) -> int:
        """Return the number of the last frame that was looked at."""
        count = 0
        for count, (kind, body) in enumerate(frames):
            if self.is_closing:
                continue  # with what came behind its last word, or behind too much
            is_due = count % FRAMES_TOGETHER == 0
            if is_due and count:
                self._server.works(FRAMES_TOGETHER)
            if (is_due or kind in COSTLY) and not self._may_go_on(is_costly=kind in COSTLY):
                frames.close()
                break
            outcome = self.desk.receive(kind, body)
            if self.desk.work:
                work, self.desk.work = self.desk.work, 0
                self._server.works(work)
            if outcome is not None:
                self._act_on(outcome)
        return count

    def _may_go_on(self, *, is_costly: bool) -> bool:
        """Otherwise the rest waits, and no more is read, until its joins and leaves are in the engine, or until the
        event loop has had a turn."""
        assert self._transport is not None
        if (is_costly and not self.desk.may_change) or not self._server.may_work(self):
            self._transport.pause_reading()
            self._is_waiting = True
        return not self._is_waiting

    def go_on(self) -> None:
        """Go on with what waits."""
        if self._is_waiting and not self.is_closing and self._transport is not None:
            self._is_waiting = False
            self._transport.resume_reading()
            self.buffer_updated(0)

    def may_shake_hands(self) -> bool:
        """Handshakes take time, which the engine must have too: the rest waits for the next turn of the event loop."""
        if self._is_waiting or self._may_go_on(is_costly=False):
            self._server.works(HANDSHAKE_WORK)
        return not self._is_waiting

    def on_refused(self, why: TlsRefused) -> None:
        """There is no secure connection: the client was told so by TLS, and has a moment to read it."""
        counters = self._host.counters.clients
        counters.refusals[ClientRefusal.TLS] += 1
        counters.insecure[why.reason] += 1
        self.gate.on_refused(why)
        self._go("", FAREWELL_S)

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

    def _act_on(self, outcome: Outcome) -> None:
        match outcome:
            case Manage():
                self._manage(outcome.document)
            case Hello():
                self._reader.size_max = frame_size_max(self._server.rules.message_size_max)
                self._server.greeted(self)
                self.gate.on_connected(self.name)
            case Ending():
                self.leave_with(outcome)

    def leave_with(self, ending: Ending | None) -> bool:
        """Close if the client has to go; tell whether it has."""
        if ending is None:
            return False
        if ending.is_warned:
            self.disconnect(ending.why)
        else:
            self.close(ending.why)
        return True

    def _manage(self, document: dict[str, Any]) -> None:
        """Find an answer for an operator, which may take a while."""

        def reply(answer: dict[str, Any]) -> None:
            if not self.is_closing:
                self.half.urge(encode_document(FrameKind.MANAGED, answer))
                self._host.touch(self)

        if (why := self.gate.refusal_of(document)) is not None:
            self.desk.deny("manage", (), why)
            reply({"error": why})
            return
        if len(self._server.tasks) >= QUESTIONS_MAX:
            reply({"error": "the daemon is busy with questions of operators: try again"})
            return
        task = asyncio.get_running_loop().create_task(management.answer(self._host, document, reply))
        self._server.tasks.add(task)
        task.add_done_callback(self._server.tasks.discard)

    # What the host tells (see `session/handouts.py`, Session)

    @property
    def half(self) -> DaemonHalf:
        return self.desk.half

    @property
    def number(self) -> int:
        """The number of its session."""
        return self.desk.number

    @property
    def name(self) -> str:
        return self.half.name

    def on_handout(self, handout: Handout) -> None:
        ending = self.desk.give(handout)
        if ending is not None:
            self.leave_with(ending)
        elif self._holding is None and self.desk.is_holding:
            self._look_at_hold()

    def _look_at_hold(self) -> None:
        """All wait for this client, until it is looked at again."""
        desk, now = self.desk, self._host.now()
        if self.leave_with(desk.look(now)):
            return
        if not desk.is_holding:
            self._let_go()
            return
        outbound = desk.half.outbound
        if outbound.hold is not None and now - outbound.hold.since >= HOLD_TOLD_NS:
            _rationed.warn(
                "hold",
                f"everybody has waited for the client {self.name} for {(now - outbound.hold.since) / SECOND:.1f} s: it "
                f"has {outbound.size:,} bytes to read (policy hold)",
            )
        self._host.hold(desk.number, True)
        self._holding = asyncio.get_running_loop().call_later(HOLD_LOOK_S, self._look_at_hold)

    def _let_go(self) -> None:
        if self._holding is not None:
            self._holding.cancel()
            self._holding = None
            self._host.hold(self.desk.number, False)

    @property
    def waiting_size(self) -> int:
        buffered = 0 if self._transport is None else self._transport.get_write_buffer_size()
        return self.half.waiting_size + buffered

    @property
    def received_size(self) -> int:
        return self._reader.begun_size

    def told(self) -> ClientTold:
        """Who this is, and how it is doing."""
        outbound, lasted = self.half.outbound, asyncio.get_running_loop().time() - self._began_at
        return ClientTold(
            self.name,
            self.gate.where,
            round(lasted, 3),
            tuple(sorted(self.half.joined)),
            outbound.policy.name.lower(),
            *(self.waiting_size, outbound.size_max),
            *(self.desk.sent, self.desk.given, outbound.dropped.messages),
            self.desk.is_holding,
        )

    def account(self) -> int:
        """Account for all that is kept for it: what it has not taken, has not said to the end, and what is not sent
        yet. The transport does not tell when it has written: the server asks again before it believes what it was
        told."""
        transport = self._transport
        debt = self.desk.debt(self._reader.begun_size)
        if transport is not None:
            debt += transport.get_write_buffer_size()
        if debt != self._debt:
            self._debt = debt
            self._server.account(self, debt)
        return debt

    def on_confirmed(self, run: MessageRun) -> None:
        self.desk.confirm(run)

    def on_ended(self, why: str) -> None:
        self._let_go()
        self.desk.forget()
        self.close(why)

    def flush(self) -> None:
        if self._transport is None or self.is_closing:
            return
        while not self._is_full and (frames := self.desk.take(WRITE_SIZE_MAX)):
            self._transport.write(frames[0] if len(frames) == 1 else b"".join(frames))
            if not self.desk.half.waiting_size:
                break
        if self._holding is not None and not self.desk.is_holding:
            self._let_go()
        if self._is_waiting and self.desk.may_change:
            self._server.go_on_soon(self)
        self.account()

    # The end

    def forgive(self, seconds: float) -> None:
        self._heard_at += seconds

    def look(self, now: float) -> None:
        """A few times a minute, at a client that is known, or about to be."""
        if self.desk.number and self.half.outbound.look_at_lag():
            self.flush()
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
        if not self.is_closing and self._transport is not None:
            self._go(why, LINGER_S if self.desk.number else FAREWELL_S, closes=not why)

    def _go(self, why: str, patience_s: float, *, closes: bool = False) -> None:
        assert self._transport is not None
        self._end()
        self._server.leaves(self)
        self._lingering = asyncio.get_running_loop().call_later(patience_s, self.abort)
        if closes:
            self._transport.close()
            return
        if why:
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
        number = self.desk.end(partial(self._server.account, self.desk.number, 0))
        if number:
            self._server.account(number, self._host.desk.requests_size_of(number))  # what it has sent is still sent
        self._reader.forget()
        self.account()
