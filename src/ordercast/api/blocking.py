"""The client in blocking form, for scripts and threads: the same names, without `await`.

Underneath is a blocking socket, which whoever waits reads itself (`direct.py`). A client that carries replicas, or runs
coroutines of the application (`run`), moves to an event loop in a thread of its own first, with its session, groups and
stream, and stays there. Several threads may use a client; one at a time may read each stream.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, Literal, Self, TypeVar, overload

from ordercast.api.blocking_stream import BlockingStream, Start
from ordercast.api.client import Client
from ordercast.api.client_loop import ClientLoop
from ordercast.api.direct import CLOSED, DirectClient, run_now
from ordercast.api.group_reader import GroupReader
from ordercast.api.session_member import SessionMember
from ordercast.api.target import DaemonTarget
from ordercast.model.errors import UsageError
from ordercast.model.events import Message
from ordercast.model.ids import Position
from ordercast.model.service import Service
from ordercast.session.payloads import Sendable

T = TypeVar("T")


class BlockingClient(BlockingStream):
    def __init__(self, target: DaemonTarget) -> None:
        direct = DirectClient(target)
        super().__init__(direct, direct.inbox.main, self._start_there)
        self._target = target
        self._moving = threading.Lock()
        self._client: Client | None = None  # on the event loop
        self._loop: ClientLoop | None = None

    def __repr__(self) -> str:
        return repr(self._direct).replace("<DirectClient", "<BlockingClient", 1)

    @property
    def joined(self) -> frozenset[str]:
        """The groups that were asked for."""
        return frozenset(self._direct.joined)

    def open(self) -> None:
        self._direct.open()

    def close(self) -> None:
        """Whoever waits in another thread gets a ConnectionLost."""
        with self._moving:
            if self._loop is not None and self._client is not None:
                self._loop.close(self._client.close())
            else:
                run_now(self._direct.close())

    @property
    def name(self) -> str:
        return self._direct.name

    def join(self, *groups: str) -> None:
        self._do(lambda me: me.join(*groups))

    def leave(self, *groups: str) -> None:
        self._do(lambda me: me.leave(*groups))

    @overload
    def send(
        self,
        to: str | Iterable[str],
        data: Sendable,
        service: Service = Service.AGREED,
        *,
        confirm: Literal[False] = False,
        self_discard: bool = False,
        headers: Mapping[str, str] | None = None,
    ) -> None: ...

    @overload
    def send(
        self,
        to: str | Iterable[str],
        data: Sendable,
        service: Service = Service.AGREED,
        *,
        confirm: Literal[True],
        self_discard: bool = False,
        headers: Mapping[str, str] | None = None,
    ) -> Position: ...

    @overload
    def send(
        self,
        to: str | Iterable[str],
        data: Sendable,
        service: Service = Service.AGREED,
        *,
        confirm: bool,
        self_discard: bool = False,
        headers: Mapping[str, str] | None = None,
    ) -> Position | None: ...

    def send(
        self,
        to: str | Iterable[str],
        data: Sendable,
        service: Service = Service.AGREED,
        *,
        confirm: bool = False,
        self_discard: bool = False,
        headers: Mapping[str, str] | None = None,
    ) -> Position | None:
        return self._do(
            lambda me: me.send(to, data, service, confirm=confirm, self_discard=self_discard, headers=headers)
        )

    @overload
    def send_many(
        self,
        to: str | Iterable[str],
        payloads: Sequence[Sendable],
        service: Service = Service.AGREED,
        *,
        confirm: Literal[False] = False,
        self_discard: bool = False,
        headers: Mapping[str, str] | None = None,
    ) -> None: ...

    @overload
    def send_many(
        self,
        to: str | Iterable[str],
        payloads: Sequence[Sendable],
        service: Service = Service.AGREED,
        *,
        confirm: Literal[True],
        self_discard: bool = False,
        headers: Mapping[str, str] | None = None,
    ) -> Position | None: ...

    @overload
    def send_many(
        self,
        to: str | Iterable[str],
        payloads: Sequence[Sendable],
        service: Service = Service.AGREED,
        *,
        confirm: bool,
        self_discard: bool = False,
        headers: Mapping[str, str] | None = None,
    ) -> Position | None: ...

    def send_many(
        self,
        to: str | Iterable[str],
        payloads: Sequence[Sendable],
        service: Service = Service.AGREED,
        *,
        confirm: bool = False,
        self_discard: bool = False,
        headers: Mapping[str, str] | None = None,
    ) -> Position | None:
        return self._do(
            lambda me: me.send_many(to, payloads, service, confirm=confirm, self_discard=self_discard, headers=headers)
        )

    def request(
        self,
        to: str | Iterable[str],
        data: Sendable,
        service: Service = Service.AGREED,
        *,
        timeout: float | None,
        headers: Mapping[str, str] | None = None,
    ) -> Message:
        return self._do(lambda me: me.request(to, data, service, timeout=timeout, headers=headers))

    def reply(
        self,
        message: Message,
        data: Sendable,
        service: Service = Service.AGREED,
        *,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self._do(lambda me: me.reply(message, data, service, headers=headers))

    def drain(self) -> None:
        self._do(lambda me: me.drain())

    def groups(self) -> dict[str, int]:
        return self._do(lambda me: me.groups())

    def members(self, group: str) -> tuple[str, ...]:
        return self._do(lambda me: me.members(group))

    def manage(self, document: dict[str, Any]) -> dict[str, Any]:
        return self._do(lambda me: me.manage(document))

    def group(self, group: str) -> BlockingGroup:
        """Reads one group apart from the others: enter it with `with`, and iterate, in this thread or another."""
        return BlockingGroup(self._direct, GroupReader(self._direct, group), self._do, self._start_there)

    @property
    def member(self) -> Client:
        """A client on an event loop, with the session of this one. It belongs to that loop: call its methods with
        `run` only."""
        with self._moving:
            if self._client is None:
                if self._direct.state.is_closed:
                    raise UsageError(CLOSED)
                self._move()
            assert self._client is not None
            return self._client

    def _move(self) -> None:
        link, loss = self._direct.move()
        self._loop = ClientLoop()
        self._client = Client(self._target, self._direct.state)
        why, unconfirmed = loss or ("", 0)
        self._loop.run(self._client.go_on(link, why, unconfirmed))

    def run(self, work: Coroutine[Any, Any, T], /) -> T:
        """Run a coroutine on the client's event loop, and return what it returns."""
        try:
            self.member  # noqa: B018 - it has moved there, or does now
        except BaseException:
            work.close()
            raise
        assert self._loop is not None
        return self._loop.run(work)

    def _start_there(self, work: Coroutine[Any, Any, T]) -> Future[T] | None:
        """None when the client is closed. It has moved, or moves just now."""
        with self._moving:
            loop = self._loop
        if loop is None:
            work.close()
            return None
        return loop.start(work)

    def _do(self, ask: Callable[[SessionMember], Coroutine[Any, Any, T]]) -> T:
        if self._direct.begin_call():
            try:
                if self._direct.state.is_closed:
                    raise UsageError(CLOSED)
                return run_now(ask(self._direct))
            finally:
                self._direct.end_call()
        return self.run(ask(self.member))


class BlockingGroup(BlockingStream):
    """One group of a blocking client."""

    def __init__(
        self,
        direct: DirectClient,
        reader: GroupReader,
        do: Callable[[Callable[[SessionMember], Coroutine[Any, Any, object]]], object],
        start: Start,
    ) -> None:
        super().__init__(direct, reader.queue, start)
        self.group = reader.group
        self._reader = reader
        self._do = do

    def __repr__(self) -> str:
        return repr(self._reader).replace("<GroupReader", "<BlockingGroup", 1)

    def __enter__(self) -> Self:
        self._do(lambda me: self._with(me).__aenter__())
        return self

    def __exit__(self, *how: object) -> None:
        with suppress(UsageError):  # the client was closed before: so is the group
            self._do(lambda me: self._with(me).__aexit__(None, None, None))

    def _with(self, me: SessionMember) -> GroupReader:
        """Members are where the client is now."""
        self._reader.member = me
        return self._reader
