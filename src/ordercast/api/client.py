"""Client: a session with a daemon, over a unix socket or TCP. See `api/member.py` for its methods.

Everything that arrives is put into the inbox as it comes, within the credit that the daemon was given; the daemon is
told as the application takes it. Sending waits while the daemon has given no credit. Several tasks may use one client;
one at a time may read. A call that is cancelled leaves the client whole: what it had asked for may still happen.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from itertools import chain
from typing import Any, Self

from ordercast.api.awaited import new_future
from ordercast.api.blocking_link import BlockingLink
from ordercast.api.client_state import ClientState
from ordercast.api.link import ClientLink, told
from ordercast.api.session_member import Question, SessionMember
from ordercast.api.target import SOUND_S, DaemonTarget, Hangs, next_pause
from ordercast.groups.turns import portions
from ordercast.model.errors import ConnectionLost, Unreachable, UsageError
from ordercast.model.ids import Position
from ordercast.model.service import Service
from ordercast.session.addresses import Address, UnixAddress
from ordercast.session.batches import send_size
from ordercast.session.client_half import BATCH_SIZE_MAX, News
from ordercast.session.tls_channel import TlsChannel


class Client(SessionMember):
    """One session after the other with some daemon; usually there is only one."""

    def __init__(self, target: DaemonTarget, state: ClientState | None = None) -> None:
        """`state`: of the client whose session this one goes on with; see `go_on`."""
        super().__init__(target, state or ClientState(target.name, new_future))
        if target.on_message is not None:
            self.callback = self.inbox.call(target.on_message)
        self._link: ClientLink | None = None
        self._retrying: asyncio.Task[None] | None = None
        self._connected = asyncio.Event()
        self._asking = asyncio.Lock()
        self._opened_at = 0.0
        self._pause = 0.0  # before the next try

    async def __aenter__(self) -> Self:
        self.check_open()
        return self

    async def __aexit__(self, *how: object) -> None:
        await self.close()

    async def open(self) -> None:
        """Find a daemon, or wait for one. Unreachable says why there is none; UsageError why one would not have us."""
        clock, tell = asyncio.get_running_loop().time, self.target.on_lost
        until, pause = clock() + self.target.wait_s, 0.0
        while True:
            try:
                return await self._find()
            except Unreachable as error:
                left = until - clock()
                if left <= 0:
                    raise
                if not pause and tell is not None:
                    tell(str(error))
            pause = next_pause(pause)
            await asyncio.sleep(min(pause, left))

    async def _find(self, *, again: bool = False) -> None:
        """`again`: a daemon that would not have us, as our name is in use there, is passed over."""
        problems: dict[Address, str] = {}
        hung: list[Address] = []
        for address, seconds in self.target.tries(hung):
            try:
                link = await self._reach(address, seconds)
            except (OSError, UsageError) as error:
                if isinstance(error, UsageError) and not again:
                    raise
                problems[address] = f"{address}: {told(error)}"
                hung += [address] if isinstance(error, Hangs) else []
                continue
            self._begin(link, address)
            return
        raise self.target.unreachable(list(problems.values()), again=again)

    def _begin(self, link: ClientLink, address: Address) -> None:
        self._link = link
        self.state.found(link, address)
        self._opened_at = asyncio.get_running_loop().time()
        self._connected.set()

    async def _reach(self, address: Address, seconds: float) -> ClientLink:
        loop = asyncio.get_running_loop()
        half, tls, words = self.target.halves(address)
        link = ClientLink(self, half)
        try:
            async with asyncio.timeout(seconds):
                if isinstance(address, UnixAddress):
                    await loop.create_unix_connection(lambda: link, str(address.path))
                elif tls is None:
                    await loop.create_connection(lambda: link, address.host, address.port)
                else:
                    secured = TlsChannel(link, tls, words)
                    await loop.create_connection(lambda: secured, address.host, address.port)
                await link.welcome
        except TimeoutError:
            link.abort()
            raise Hangs(seconds) from None
        except ValueError as error:  # a name or a path that cannot be one
            raise UsageError(f"{address} is no address: {error}") from None
        except BaseException:
            link.abort()
            raise
        return link

    async def go_on(self, link: BlockingLink | None, why: str, unconfirmed: int) -> None:
        """Go on with the session of a client that had a blocking socket; without one, look for a daemon again, as that
        client did: `why` it had lost the last, and how many messages were not confirmed."""
        self.state.new_promise = new_future
        if link is None and not self.target.reconnect:
            return
        if link is None:
            self._retrying = asyncio.get_running_loop().create_task(self._reconnect(why, unconfirmed))
            return
        loop, taken = asyncio.get_running_loop(), ClientLink(self, link.half, link.reader)
        carrier = taken if link.tls is None else TlsChannel(taken, link.tls, link.words)
        address = self.state.address
        assert address is not None
        self._begin(taken, address)
        if isinstance(address, UnixAddress):
            await loop.create_unix_connection(lambda: carrier, sock=link.sock)
        else:
            await loop.create_connection(lambda: carrier, sock=link.sock)

    async def close(self) -> None:
        """What was sent is sent; the others see that this client has disconnected."""
        if not self.state.is_closed:
            self._tell_loss("the client was closed")
        self.state.is_closed = True
        if self._retrying is not None:
            self._retrying.cancel()
            await asyncio.gather(self._retrying, return_exceptions=True)
        link, self._link, self.state.link = self._link, None, None
        try:
            if link is not None:
                await link.say_bye()
        finally:
            self.state.give_up(ConnectionLost("the client was closed"))
            self._connected.set()

    # What an application asks for

    async def _answer(self, question: Question) -> Any:
        answers = self.state.answers
        async with self._asking:  # one question after the other: the daemon answers one at a time
            if answers:  # of somebody who has stopped waiting
                await asyncio.wait(answers)
            link = await self._current()  # the last that is waited for: it may not end before it is asked
            future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
            answers.append(future)
            link.write(question(link.half))
            return await asyncio.shield(future)

    async def _ask(self, groups: tuple[str, ...], *, joins: bool) -> None:
        await asyncio.gather(*self.state.changes(groups, joins=joins))

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
        self.state.check_allowed(groups)
        head = link.half.head(groups, self_discard=self_discard, confirm=confirm, headed=headed)
        link.half.check_sizes(head, data)
        waits: list[asyncio.Future[Position]] = []
        sizes = self._put_out(link, service, head, data, waits if confirm else None)
        for size in sizes:
            if not link.may_send(size):
                await link.in_turn(chain((size,), sizes))
        if link.is_full:
            await link.drained()
        return (await asyncio.gather(*waits))[-1] if waits else None

    def _put_out(
        self,
        link: ClientLink,
        service: Service,
        head: bytes,
        data: list[bytes],
        waits: list[asyncio.Future[Position]] | None,
    ) -> Iterator[int]:
        """Yield the credit that the next frame needs, and send it after that. `waits` gets who waits for each frame's
        confirmation, if they are wanted."""
        start = 0
        for end, size in portions(data, len(head), BATCH_SIZE_MAX):
            yield send_size(end - start, size)
            if waits is not None:
                waits.append(self.state.waiters.confirmation(end - start, link.half.sends + 1))
            link.send(service, head, data[start:end] if start or end < len(data) else data)
            start = end

    async def _current(self) -> ClientLink:
        """The session; waits for the next one while there is none but there may be."""
        while self._link is None:
            self._check_usable()
            self._connected.clear()
            await self._connected.wait()
        return self._link

    # What comes

    def on_news(self, link: ClientLink, news: News, size: int) -> None:
        self.state.on_news(link, news, size)

    def on_lost(self, link: ClientLink, why: str) -> None:
        if link is not self._link:
            return
        self._link = self.state.link = None
        self._tell_loss(why)
        may_return = self.target.reconnect and not self.state.is_closed
        if self.target.on_lost is not None and not self.state.is_closed:
            asyncio.get_running_loop().call_soon(self.target.on_lost, why)
        unconfirmed = self.state.lost(ConnectionLost(why), may_return=may_return)
        if may_return:
            self._retrying = asyncio.get_running_loop().create_task(self._reconnect(why, unconfirmed))
        else:
            self._connected.set()

    async def _reconnect(self, why: str, unconfirmed: int) -> None:
        """Try until it works: a daemon that restarts comes back. At once, unless the last one was hardly there."""
        if asyncio.get_running_loop().time() - self._opened_at > SOUND_S:
            self._pause = 0.0
        while True:
            await asyncio.sleep(self._pause)
            self._pause = next_pause(self._pause)
            if self.inbox.is_behind:  # each session may bring as much: who does not read gets no other
                continue
            try:
                await self._find(again=True)
                break
            except (UsageError, Unreachable, ConnectionLost):
                pass
        assert self._link is not None
        self.state.begin_again(self._link, unconfirmed, why)
