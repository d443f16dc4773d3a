"""Client: a session with a daemon, over a unix socket or TCP. See `api/member.py` for its methods.

Everything that arrives is put into the inbox as it comes, within the credit that the daemon was given; the daemon is
told as the application takes it. Sending waits while the daemon has given no credit. Several tasks may use one client;
one at a time may read. A call that is cancelled leaves the client whole: what it had asked for may still happen.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Self

from ordercast.api.credentials import Credentials, read_credentials
from ordercast.api.group_inbox import GroupInbox
from ordercast.api.link import ClientLink, told
from ordercast.api.member import Member
from ordercast.api.waiters import Waiters
from ordercast.groups.names import GROUPS_MAX, checked_group
from ordercast.groups.turns import portions
from ordercast.model.errors import ConnectionLost, Unreachable, UsageError
from ordercast.model.events import Batch, Dropped, Left, Piece, Reconnected, Transition, View
from ordercast.model.ids import Position
from ordercast.model.service import Service
from ordercast.session.addresses import Address, UnixAddress
from ordercast.session.batches import Confirm, send_size
from ordercast.session.client_half import BATCH_SIZE_MAX, RECEIVE_CREDIT, ClientHalf, Closing, Managed, News
from ordercast.session.frames import DeniedSend, Listing, Members, Refused, SlowPolicy, Welcome, encode_document
from ordercast.session.pieces import FrameKind
from ordercast.session.tls import TlsHalf
from ordercast.session.tls_channel import TlsChannel
from ordercast.session.tls_words import refused_by_daemon

GREETING_S = 10.0  # in which the daemon must have answered
RETRY_MIN_S = 0.1
RETRY_MAX_S = 2.0
SOUND_S = 5.0  # a session that lasted so long was a sound one


class Client(Member):
    """One session after the other with some daemon; usually there is only one."""

    def __init__(
        self,
        addresses: Callable[[], Sequence[Address]],
        name: str,
        *,
        slow: SlowPolicy,
        reconnect: bool,
        on_lost: Callable[[str], None] | None = None,
        wait_s: float = 0.0,
        credentials: Path | None = None,
    ) -> None:
        """`wait_s`: how long the first daemon may take to come up. `credentials`: over TCP, who this is; read whenever
        a connection begins."""
        super().__init__(memberships_max=None)  # the daemon knows how many it allows
        self.inbox = GroupInbox(2 * RECEIVE_CREDIT, None, self._on_taken)
        self.address: Address | None = None  # of the daemon
        self._addresses = addresses  # where to try now, in order
        self._tell_lost = on_lost
        self._wait_s = wait_s
        self._credentials = credentials
        self._denied: dict[tuple[str, ...], str] = {}  # why messages to these groups were not sent, untold
        self._asked_name = name
        self._policy = slow
        self._reconnects = reconnect
        self._link: ClientLink | None = None
        self._waiters = Waiters()
        self._settled = 0  # bytes in the inbox for which no credit is owed: of a former link, or given in advance
        self._name = name  # in full, once it is known
        self._answers: deque[asyncio.Future[Any]] = deque()  # that are waited for, in the order of the questions
        self._last: Position | None = None  # of the last message that came
        self._is_closed = False
        self._retrying: asyncio.Task[None] | None = None
        self._connected = asyncio.Event()
        self._asking = asyncio.Lock()
        self._opened_at = 0.0
        self._pause = 0.0  # before the next try

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *how: object) -> None:
        await self.close()

    @property
    def name(self) -> str:
        return self._name

    async def open(self) -> None:
        """Find a daemon, or wait for one. Unreachable says why there is none; UsageError why one would not have us."""
        clock = asyncio.get_running_loop().time
        until, pause = clock() + self._wait_s, 0.0
        while True:
            try:
                return await self._find()
            except Unreachable as error:
                left = until - clock()
                if left <= 0:
                    raise
                if not pause and self._tell_lost is not None:
                    self._tell_lost(str(error))
            pause = min(RETRY_MAX_S, max(RETRY_MIN_S, 2 * pause))
            await asyncio.sleep(min(pause, left))

    async def _find(self, *, again: bool = False) -> None:
        """`again`: a daemon that would not have us, as our name is in use there, is passed over."""
        problems = []
        for address in self._addresses():
            try:
                self._link = await self._reach(address)
            except (OSError, UsageError) as error:
                if isinstance(error, UsageError) and not again:
                    raise
                problems.append(f"{address}: {told(error)}")
                continue
            self.address, self._name = address, self._link.half.name
            self._opened_at = asyncio.get_running_loop().time()
            self._connected.set()
            return
        where = "; ".join(problems) or "no daemon runs on this machine"
        waited = f" within {self._wait_s:g} s" if self._wait_s and not again else ""
        raise Unreachable(
            f"no daemon can be reached{waited} ({where}): start one with `ordercast up` or `ordercast daemon`"
        )

    async def _reach(self, address: Address) -> ClientLink:
        loop = asyncio.get_running_loop()
        shown: Credentials | None = None
        if self._credentials is not None and not isinstance(address, UnixAddress):
            shown = read_credentials(self._credentials)
        token = None if shown is None else shown.token
        link = ClientLink(self, ClientHalf(self._asked_name, self._policy, token=token))
        try:
            async with asyncio.timeout(GREETING_S):
                if isinstance(address, UnixAddress):
                    await loop.create_unix_connection(lambda: link, str(address.path))
                elif shown is None:
                    await loop.create_connection(lambda: link, address.host, address.port)
                else:
                    words = partial(refused_by_daemon, where=str(address))
                    secured = TlsChannel(link, TlsHalf(shown.context, address.host), words)
                    await loop.create_connection(lambda: secured, address.host, address.port)
                await link.welcome
        except TimeoutError:
            link.abort()
            raise OSError(f"it did not greet within {GREETING_S:.0f} s: this may not be a daemon") from None
        except ValueError as error:  # a name or a path that cannot be one
            raise UsageError(f"{address} is no address: {error}") from None
        except BaseException:
            link.abort()
            raise
        return link

    async def close(self) -> None:
        """What was sent is sent; the others see that this client has disconnected."""
        if not self._is_closed:
            self._tell_loss("the client was closed")
        self._is_closed = True
        if self._retrying is not None:
            self._retrying.cancel()
            await asyncio.gather(self._retrying, return_exceptions=True)
        link, self._link = self._link, None
        try:
            if link is not None:
                await link.say_bye()
        finally:
            self._give_up(ConnectionLost("the client was closed"))

    # What an application asks for

    async def groups(self) -> dict[str, int]:
        found: dict[str, int] = {}
        is_last = False
        while not is_last:
            link = await self._current()
            page: Listing = await self._answer(link, link.half.list_groups(next(reversed(found), "")))
            found |= page.groups
            is_last = page.is_last
        return found

    async def members(self, group: str) -> tuple[str, ...]:
        checked_group(group)
        found: list[str] = []
        is_last = False
        while not is_last:
            link = await self._current()
            page: Members = await self._answer(link, link.half.members_of(group, found[-1] if found else ""))
            found += page.names
            is_last = page.is_last
        return tuple(found)

    async def manage(self, document: dict[str, Any]) -> dict[str, Any]:
        """Ask the daemon for something that an operator wants; see `daemon/management.py`. UsageError when it will
        not."""
        link = await self._current()
        answer: dict[str, Any] = await self._answer(link, encode_document(FrameKind.MANAGE, document))
        if "error" in answer:
            raise UsageError(str(answer["error"]))
        return answer

    async def _answer(self, link: ClientLink, question: bytes) -> Any:
        async with self._asking:  # one question after the other: the daemon answers one at a time
            if self._answers:  # of somebody who has stopped waiting
                await asyncio.wait(self._answers)
            future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
            self._answers.append(future)
            link.write(question)
            return await asyncio.shield(future)

    def _check_usable(self) -> None:
        if self._link is None and (self._is_closed or not self._reconnects):
            raise ConnectionLost("there is no connection to a daemon: connect again")

    async def _ask(self, groups: tuple[str, ...], *, joins: bool) -> None:
        """While there is no session nothing needs to be said: the next one joins what is wanted then."""
        changes = self._waiters.changes(groups, joins=joins)
        if self._link is not None:
            half = self._link.half
            self._link.write(half.join(groups) if joins else half.leave(groups))
            self._give_advance(self.inbox.size - self._settled)
        await asyncio.gather(*changes)

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
        link = await self._current()
        if why := self._denied.pop(groups, None):
            raise UsageError(why)
        head = link.half.head(groups, self_discard=self_discard, confirm=confirm, headed=headed)
        link.half.check_sizes(head, data)
        waits: list[asyncio.Future[Position]] = []
        start = 0
        for end, size in portions(data, len(head), BATCH_SIZE_MAX):
            await link.credit(send_size(end - start, size))
            if confirm:
                waits.append(self._waiters.confirmation(end - start, link.half.sends + 1))
            link.send(service, head, data[start:end] if start or end < len(data) else data)
            start = end
        if link.is_full:
            await link.drained()
        return (await asyncio.gather(*waits))[-1] if waits else None

    async def _current(self) -> ClientLink:
        """The session; waits for the next one while there is none but there may be."""
        while self._link is None:
            self._check_usable()
            self._connected.clear()
            await self._connected.wait()
        return self._link

    # What comes

    def on_news(self, link: ClientLink, news: News, size: int) -> None:
        match news:
            case Batch() | View() | Transition() | Left() | Dropped() | Reconnected():
                if isinstance(news, Batch):
                    self._last = news.last
                self._put(news, size, link.half.name)
                if self._waiters.await_changes:
                    self._give_advance(size)
                self._waiters.saw(news, link.half.name)
            case Confirm():
                self._waiters.confirmed(news.messages, news.places)
            case Managed():
                self._answered(news.document)
            case Listing() | Members():
                self._answered(news)
            case Refused():
                self._refused(news)
            case DeniedSend():
                self._on_denied(news)
            case Closing() | Welcome():
                pass  # the link has seen to it

    def _put(self, piece: Piece, size: int, me: str) -> None:
        """Replies are for those who wait for them, and never in the stream."""
        if not isinstance(piece, Batch) or not piece.headers or piece.groups != (me,):
            self.inbox.put(piece, size)
            return
        for rest in self._requests.without_replies(piece):
            self.inbox.put(rest, size)
            size = 0
        self.inbox.pass_by(size)

    def _answered(self, answer: Any) -> None:
        if self._answers:
            future = self._answers.popleft()
            if not future.done():
                future.set_result(answer)

    def _refused(self, refused: Refused) -> None:
        """A join that nobody waits for was made by the client itself, after it had found a daemon again."""
        told = self._waiters.refused(refused.groups, UsageError(refused.why), joins=refused.joins)
        if refused.joins:
            for group in refused.groups:
                if not self._waiters.await_join(group):
                    self.joined.discard(group)
                if group not in told:
                    self.inbox.put(Left(group), 0)

    def _on_denied(self, denied: DeniedSend) -> None:
        """Whoever waits for the message is told; otherwise the next who sends there is."""
        if not denied.number:  # taken out of these groups: `Left` comes in the stream
            self.joined.difference_update(denied.groups)
            self._denied |= {(group,): denied.why for group in denied.groups}
        elif not self._waiters.denied(denied.number, UsageError(denied.why)):
            self._denied[denied.groups] = denied.why

    def _on_taken(self, size: int) -> None:
        settled = min(size, self._settled)
        self._settled -= settled
        self._give_credit(size - settled)

    def _give_advance(self, size: int) -> None:
        """While a join or leave is awaited: it comes behind all this, even if nobody reads meanwhile."""
        self._settled += size
        self._give_credit(size)

    def _give_credit(self, size: int) -> None:
        if self._link is not None:
            frame = self._link.half.took(size)
            if frame is not None:
                self._link.write(frame)

    def on_lost(self, link: ClientLink, why: str) -> None:
        if link is not self._link:
            return
        self._link = None
        self._settled = self.inbox.size
        self._tell_loss(why)
        if self._tell_lost is not None and not self._is_closed:
            asyncio.get_running_loop().call_soon(self._tell_lost, why)
        if not self._reconnects or self._is_closed:
            self._give_up(ConnectionLost(why))
            return
        unconfirmed = self._waiters.unconfirmed
        self._waiters.fail_confirmations(ConnectionLost(why))
        self._fail_answers(ConnectionLost(why))
        self._retrying = asyncio.get_running_loop().create_task(self._reconnect(why, unconfirmed))

    async def _reconnect(self, why: str, unconfirmed: int) -> None:
        """Try until it works: a daemon that restarts comes back. At once, unless the last one was hardly there."""
        if asyncio.get_running_loop().time() - self._opened_at > SOUND_S:
            self._pause = 0.0
        while True:
            await asyncio.sleep(self._pause)
            self._pause = min(RETRY_MAX_S, max(RETRY_MIN_S, 2 * self._pause))
            if self.inbox.is_behind:  # each session may bring as much: who does not read gets no other
                continue
            try:
                await self._find(again=True)
                break
            except (UsageError, Unreachable, ConnectionLost):
                pass
        link = self._link
        assert link is not None
        joined = tuple(sorted(self.joined))
        self.inbox.put(Reconnected(link.half.name, joined, unconfirmed, self._last, why), 0)
        self._waiters.begin_again(joined)
        for start in range(0, len(joined), GROUPS_MAX):
            link.write(link.half.join(joined[start : start + GROUPS_MAX]))

    def _give_up(self, error: ConnectionLost) -> None:
        self._waiters.fail(error)
        self._fail_answers(error)
        self._connected.set()
        self.inbox.close(None if self._is_closed else error)

    def _fail_answers(self, error: ConnectionLost) -> None:
        while self._answers:
            future = self._answers.popleft()
            if not future.done():
                future.set_exception(error)
