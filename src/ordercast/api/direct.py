"""DirectClient: a session with a daemon over a blocking socket, for threads that wait. No event loop.

Whoever waits for something reads the socket itself, and so gets what has come with one switch of threads less each way.
If several wait, one of them reads and tells the others. While nobody waits a thread of the client reads (`_keep`): it
answers the daemon, notices when the connection breaks and finds another, whatever the program does. It stays away from
a client whose program reads.

Methods are coroutines, as those of every member, and never wait for a loop: `run_now` runs one to its end. One lock
guards everything; a thread that waits in `poll` does not hold it.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Coroutine, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

from ordercast.api.awaited import Awaited
from ordercast.api.blocking_link import BlockingLink, connected
from ordercast.api.client_state import ClientState
from ordercast.api.group_inbox import GroupQueue
from ordercast.api.link import FAREWELL_S, LOOK_EVERY_S, told
from ordercast.api.member import no_reply
from ordercast.api.session_member import Question, SessionMember
from ordercast.api.socket_turns import SocketTurns
from ordercast.api.target import SOUND_S, DaemonTarget, Hangs, next_pause
from ordercast.groups.names import check_may_send, checked_destinations
from ordercast.groups.turns import portions
from ordercast.model.arguments import check_timeout
from ordercast.model.errors import ConnectionLost, Unreachable, UsageError
from ordercast.model.events import Message, Piece
from ordercast.model.ids import Position
from ordercast.model.service import Service
from ordercast.session.addresses import Address
from ordercast.session.batches import send_size
from ordercast.session.client_half import BATCH_SIZE_MAX, BYE, News
from ordercast.session.payloads import Sendable, checked_service

T = TypeVar("T")
CLOSED = "the client is closed: use it inside `with`"
KEEPER_S = 0.5  # a client whose program has not read for so long is read by its own thread


class DirectClient(SessionMember):
    def __init__(self, target: DaemonTarget) -> None:
        super().__init__(target, ClientState(target.name, Awaited))
        self.turns = SocketTurns()
        self.lock = self.turns.lock
        self.inbox.lock_with(self.lock, self.turns.changed)
        self.has_moved = False  # to an event loop
        self._link: BlockingLink | None = None
        self._calls = 0  # under way
        self._is_moving = False  # and waited for
        self._turn = threading.Lock()  # of those who send
        self._asking = threading.Lock()
        self._opened_at = 0.0
        self._pause = 0.0  # before the next try
        self._loss: tuple[str, int] | None = None  # why the session was lost, and messages that were not confirmed
        self._wake = threading.Event()  # the keeper has something to do
        self._keeper = threading.Thread(target=self._keep, name="ordercast client", daemon=True)

    # Beginning and end

    def open(self) -> None:
        """Find a daemon, or wait for one. Unreachable says why there is none; UsageError why one would not have us."""
        until, pause = time.monotonic() + self.target.wait_s, 0.0
        while True:
            try:
                self._find()
                break
            except Unreachable as error:
                left = until - time.monotonic()
                if left <= 0:
                    raise
                if not pause and self.target.on_lost is not None:
                    self.target.on_lost(str(error))
            pause = next_pause(pause)
            self._wake.wait(min(pause, left))
        self._keeper.start()

    def _find(self, *, again: bool = False) -> None:
        """`again`: a daemon that would not have us, as our name is in use there, is passed over."""
        problems: dict[Address, str] = {}
        hung: list[Address] = []
        for address, seconds in self.target.tries(hung):
            try:
                link = self._reach(address, seconds)
            except (OSError, UsageError) as error:
                if isinstance(error, UsageError) and not again:
                    raise
                problems[address] = f"{address}: {told(error)}"
                hung += [address] if isinstance(error, Hangs) else []
                continue
            with self.lock:
                self._begin(link, address)
            return
        raise self.target.unreachable(list(problems.values()), again=again)

    def _begin(self, link: BlockingLink, address: Address) -> None:
        if self.state.is_closed or self.has_moved:
            link.release()
            return
        self._link = self.turns.link = link
        self.state.found(link, address)
        self._opened_at = time.monotonic()
        if self._loss is not None:
            (why, unconfirmed), self._loss = self._loss, None
            self.state.begin_again(link, unconfirmed, why)
        self.lock.notify_all()

    def _reach(self, address: Address, seconds: float) -> BlockingLink:
        until = time.monotonic() + seconds
        half, tls, words = self.target.halves(address)
        link = BlockingLink(self, half, connected(address, seconds), tls, words)
        try:
            link.greet(until)
        except TimeoutError:
            link.release()
            raise Hangs(seconds) from None
        except BaseException:
            link.release()
            raise
        return link

    async def close(self) -> None:
        """What was sent is sent; the others see that this client has disconnected."""
        with self.lock:
            if self.state.is_closed:
                return
            self.state.is_closed = True
            self._tell_loss("the client was closed")
            link, self._link, self.state.link = self._link, None, None
            try:
                if link is not None:
                    link.write(BYE)
                    self.turns.wait(lambda: not link.is_open, FAREWELL_S)
            finally:
                if link is not None and link.is_open:
                    link.abort()
                    self.turns.wait(lambda: not link.is_open)
                self.state.give_up(ConnectionLost("the client was closed"))
                self.lock.notify_all()
        self._wake.set()
        if self._keeper.is_alive() and self._keeper is not threading.current_thread():
            self._keeper.join()

    # Waiting

    def _result(self, promise: Any, until: float | None = None) -> Any:
        with self.lock:
            if not self.turns.wait(promise.done, _left(until)):
                raise TimeoutError
        return promise.result()

    def next_piece(self, queue: GroupQueue, seconds: float | None) -> Piece | None:
        """None at the end of the stream, or when the client has moved to an event loop. TimeoutError when nothing came
        in time."""
        found: list[Piece] = []

        def is_here() -> bool:
            piece = None if self.has_moved else queue.take()
            if piece is not None:
                found.append(piece)
            return piece is not None or self.has_moved

        with self.lock:
            try:
                if not self.turns.wait(is_here, seconds):
                    raise TimeoutError
            except StopAsyncIteration:
                pass
        return found[0] if found else None

    # What an application asks for

    def begin_call(self) -> bool:
        """False: the client has moved to an event loop, and is called there."""
        with self.lock:
            self._calls += not self.has_moved
            return not self.has_moved

    def end_call(self) -> None:
        with self.lock:
            self._calls -= 1
            if not self._calls and self._is_moving:
                self.turns.changed()

    async def _answer(self, question: Question) -> Any:
        with self._asking:  # one question after the other: the daemon answers one at a time
            with self.lock:
                self.turns.wait(lambda: not self.state.answers)  # of somebody who has stopped waiting
                link = self._current()  # the last that is waited for: it may not end before it is asked
                promise = Awaited()
                self.state.answers.append(promise)
                link.write(question(link.half))
            return self._result(promise)

    async def _ask(self, groups: tuple[str, ...], *, joins: bool) -> None:
        self._change(groups, joins, None)

    def _change(self, groups: tuple[str, ...], joins: bool, until: float | None) -> None:
        with self.lock:
            changes = self.state.changes(groups, joins=joins)
        for change in changes:
            self._result(change, until)

    async def leave_within(self, seconds: float, group: str) -> None:
        self._check_usable()
        self._joined.discard(group)
        self._change((group,), False, time.monotonic() + seconds)

    async def _send(
        self,
        groups: tuple[str, ...],
        data: list[bytes],
        service: Service,
        *,
        confirm: bool,
        self_discard: bool,
        headed: bool,
    ) -> Position | None:
        waits = self._put_out(groups, data, service, confirm, self_discard, headed, None)
        return [self._result(wait) for wait in waits][-1] if waits else None

    def _put_out(
        self,
        groups: tuple[str, ...],
        data: list[bytes],
        service: Service,
        confirm: bool,
        self_discard: bool,
        headed: bool,
        until: float | None,
    ) -> list[Any]:
        """Hand it to the daemon. Promises of its confirmations, if they are wanted."""
        with self._turn_to_send(until), self.lock:
            link = self._current(until)
            self.state.check_allowed(groups)
            half, waits, start = link.half, [], 0
            head = half.head(groups, self_discard=self_discard, confirm=confirm, headed=headed)
            half.check_sizes(head, data)
            for end, size in portions(data, len(head), BATCH_SIZE_MAX):
                needed = send_size(end - start, size)
                if half.credit < needed:
                    self._await_credit(link, needed, until)
                if confirm:
                    waits.append(self.state.waiters.confirmation(end - start, half.sends + 1))
                link.write(half.send(service, head, data[start:end] if start or end < len(data) else data))
                start = end
            if link.is_full:
                self.turns.wait(lambda: not link.is_full or not link.is_open, _left(until))
        return waits

    @contextmanager
    def _turn_to_send(self, until: float | None) -> Iterator[None]:
        """One sends after the other. TimeoutError when the others took too long."""
        if not self._turn.acquire(timeout=-1 if until is None else max(0.0, until - time.monotonic())):
            raise TimeoutError
        try:
            yield
        finally:
            self._turn.release()

    def _await_credit(self, link: BlockingLink, needed: int, until: float | None) -> None:
        if (want := link.half.want(needed)) is not None:
            link.write(want)
        if not self.turns.wait(lambda: link.half.credit >= needed or not link.is_open, _left(until)):
            raise TimeoutError
        if not link.is_open:
            raise ConnectionLost(link.why)

    def _current(self, until: float | None = None) -> BlockingLink:
        """The session; waits for the next one while there is none but there may be."""
        while self._link is None:
            self._check_usable()
            if not self.turns.wait(lambda: self._link is not None or self.state.is_closed, _left(until)):
                raise TimeoutError
        return self._link

    async def request(
        self,
        to: str | Iterable[str],
        data: Sendable,
        service: Service = Service.AGREED,
        *,
        timeout: float | None,  # noqa: ASYNC109 - it is the name that every member's has
        headers: Mapping[str, str] | None = None,
    ) -> Message:
        check_timeout(timeout)
        until = None if timeout is None or timeout > threading.TIMEOUT_MAX else time.monotonic() + timeout
        groups = checked_destinations(to)
        checked_service(service)
        check_may_send(groups, self._joined)
        with self.lock:
            number, payload, promise = self._requests.new(data, headers)
        try:
            self._put_out(groups, [payload], service, False, False, True, until)
            reply: Message = self._result(promise, until)
            return reply
        except TimeoutError:
            assert timeout is not None, "nothing else is bounded in time"
            raise no_reply(groups, timeout) from None
        finally:
            with self.lock:
                self._requests.forget(number)

    # What comes, with the lock

    def on_news(self, link: BlockingLink, news: News, size: int) -> None:
        self.state.on_news(link, news, size)

    def on_lost(self, link: BlockingLink, why: str) -> None:
        if link is not self._link:
            return
        self._link = self.state.link = None
        self._tell_loss(why)
        unconfirmed = self.state.lost(ConnectionLost(why), may_return=self.target.reconnect)
        self._loss = why, unconfirmed
        self._wake.set()
        self.lock.notify_all()

    # The keeper

    def _keep(self) -> None:
        readings = -1
        while True:
            self._wake.wait(KEEPER_S)
            self._wake.clear()
            with self.lock:
                if self.state.is_closed or self.has_moved:
                    return
                link, loss = self._link, self._loss
                if link is not None:
                    while self.turns.readings == readings and self.turns.may_keep(link):
                        self.turns.keep(link, LOOK_EVERY_S)
                        link.look_if_due()
                    readings = self.turns.readings
                    link.look_if_due()
                    continue
            assert loss is not None
            self._tell_lost(loss[0])
            if not self.target.reconnect:
                return
            self._reconnect()

    def _tell_lost(self, why: str) -> None:
        """What the application's function raises is reported, and ends nothing."""
        if self.target.on_lost is not None:
            try:
                self.target.on_lost(why)
            except Exception:
                threading.excepthook(threading.ExceptHookArgs((*sys.exc_info(), threading.current_thread())))

    def _reconnect(self) -> None:
        """Try until it works: a daemon that restarts comes back. At once, unless the last one was hardly there."""
        if time.monotonic() - self._opened_at > SOUND_S:
            self._pause = 0.0
        while not self.state.is_closed and not self.has_moved:
            self._wake.wait(self._pause)
            self._pause = next_pause(self._pause)
            if self.inbox.is_behind:  # each session may bring as much: who does not read gets no other
                continue
            with suppress(UsageError, Unreachable, ConnectionLost):
                return self._find(again=True)

    # To an event loop

    def move(self) -> tuple[BlockingLink | None, tuple[str, int] | None]:
        """Calls that are under way are waited for; whoever reads a stream is told. The session, or how it was lost."""
        with self.lock:
            self._is_moving = True
            self.turns.wait(self._may_move)
            self._is_moving = False
            if self.state.is_closed:
                raise UsageError(CLOSED)
            self.has_moved = self.turns.is_over = True
            self._wake.set()
            self.turns.changed()
            self.turns.wait(lambda: not self.turns.is_read)
            link, loss = self._link, self._loss
        self._keeper.join()
        if link is not None:
            link.release(keeps_socket=True)
        return link, loss

    def _may_move(self) -> bool:
        is_quiet = not self._calls and (self._link is None or not self._link.unsent)
        return is_quiet or self.state.is_closed


def _left(until: float | None) -> float | None:
    return None if until is None else until - time.monotonic()


def run_now(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine that never waits for an event loop."""
    try:
        work.send(None)
    except StopIteration as end:
        found: T = end.value
        return found
    work.close()
    raise AssertionError("a blocking client has no event loop to wait for")
