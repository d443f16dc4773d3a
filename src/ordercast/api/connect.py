"""`ordercast.connect()`: finds a daemon, and gives a client in asyncio or in blocking form.

async with ordercast.connect(name="alice") as me:     with ordercast.connect(name="alice") as me:
    await me.join("orders")                               me.join("orders")
    async for event in me: ...                            for event in me: ...
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ordercast.api.blocking import BlockingClient
from ordercast.api.callback import OnMessage
from ordercast.api.client import Client
from ordercast.api.credentials import credentials_file
from ordercast.api.target import DaemonTarget
from ordercast.groups.names import checked_client
from ordercast.model.errors import UsageError
from ordercast.session.addresses import Address, addresses_from
from ordercast.session.frames import SlowPolicy

SlowName = Literal["wait", "drop", "disconnect", "hold"]


def connect(
    address: str | None = None,
    *,
    name: str = "",
    slow: SlowPolicy | SlowName = SlowPolicy.WAIT,
    reconnect: bool = False,
    on_lost: Callable[[str], None] | None = None,
    wait: float | None = None,
    on_message: OnMessage | None = None,
    credentials: str | os.PathLike[str] | None = None,
    sinks: bool = False,
) -> Connecting:
    """Enter it with `async with` or with `with`.

    `address`: `tcp://HOST:PORT`, `unix:///PATH`, or the name of a daemon on this machine; without it, any daemon of
    this machine. Several, separated by blanks, are tried in order.
    `name`: of this client at its daemon; the daemon finds one for those who give none.
    `slow`: what the daemon does when this client reads too slowly: `wait` (keep 64 MiB for it, then disconnect it),
    `drop` (keep 8 MiB, then drop the oldest messages, with a `Dropped` in their place), `disconnect` (at 8 MiB) or
    `hold` (as `wait`, and from 16 MiB on nobody in the cluster sends, as long as this client makes progress: half of
    what waits within 10 s).
    `reconnect`: when the connection breaks, find a daemon again, join the same groups again, and put a `Reconnected`
    into the stream that says what may have been missed. Otherwise the stream ends with `ConnectionLost`.
    `on_lost`: called with the reason as soon as the connection breaks, on the client's event loop or, in blocking form,
    in a thread of its own; and when the first daemon has to be waited for.
    `wait`: how many seconds the first daemon may take to come up, `math.inf` for ever; without it, `Unreachable` is
    raised when none is there.
    `on_message`: called with each event, in order, as soon as it comes: there is no stream to read then. It may not
    block. With `async with` only: in blocking form the thread that reads is as quick.
    `credentials`: over TCP, the file that says who this client is (`ordercast certs`), and speaks TLS; without it, what
    $ORDERCAST_CREDENTIALS names, and without that, in the clear.
    `sinks`: show what queries of Spark send to a group, parts and markers of their rows, for
    `ordercast.archive.rows.Receiver`; otherwise it is left out.
    """
    if address is not None and not (isinstance(address, str) and address.strip()):
        raise UsageError(f"{address!r:.80} is no address: write tcp://HOST:PORT, unix:///PATH or the name of a daemon")
    if name:
        checked_client(name)
    if wait is not None and not (isinstance(wait, int | float) and wait >= 0):
        raise UsageError(f"wait={wait!r} is no time to wait: give seconds, such as wait=30, or math.inf")
    for word, choice in (("reconnect", reconnect), ("sinks", sinks)):
        if not isinstance(choice, bool):
            raise UsageError(f"{word}={choice!r:.80} is neither yes nor no: write {word}=True or {word}=False")
    for word, called in (("on_lost", on_lost), ("on_message", on_message)):
        if called is not None and not callable(called):
            raise UsageError(f"{word}={called!r:.80} cannot be called: give a function")
    shown = credentials_file(credentials)
    return Connecting(address, name, _policy(slow), reconnect, on_lost, wait or 0.0, on_message, shown, sinks=sinks)


class Connecting:
    """A client that is not connected yet."""

    def __init__(
        self,
        address: str | None,
        name: str,
        slow: SlowPolicy,
        reconnect: bool,
        on_lost: Callable[[str], None] | None = None,
        wait_s: float = 0.0,
        on_message: OnMessage | None = None,
        credentials: Path | None = None,
        *,
        sinks: bool = False,
    ) -> None:
        self._wanted = (address or "").split() or [""]
        self._addresses()  # those that are wrong are told now
        self._target = DaemonTarget(
            self._addresses, name, slow, reconnect, on_lost, wait_s, on_message, sinks, credentials
        )
        self._client: Client | None = None
        self._blocking: BlockingClient | None = None
        self._is_used = False

    def __repr__(self) -> str:
        where = " ".join(self._wanted) or "a daemon of this machine"
        return f"<connect to {where}: enter it with `with` or `async with`>"

    if not TYPE_CHECKING:  # a type checker says so by itself

        def __getattr__(self, name: str) -> Any:
            if not name.startswith("_") and hasattr(Client, name):
                raise UsageError(f"not connected yet: write `async with ordercast.connect(…) as me`, then me.{name}")
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def _addresses(self) -> list[Address]:
        """Looked up each time: other daemons may run by then."""
        return [address for one in self._wanted for address in addresses_from(one)]

    def _begin(self) -> None:
        if self._is_used:
            raise UsageError("a client is connected once: call connect() again")
        self._is_used = True

    async def __aenter__(self) -> Client:
        self._begin()
        self._client = Client(self._target)
        await self._client.open()
        return self._client

    async def __aexit__(self, *how: object) -> None:
        assert self._client is not None
        await self._client.close()

    def __enter__(self) -> BlockingClient:
        if self._target.on_message is not None:
            raise UsageError("on_message needs an event loop: use `async with`, or read with receive() in this form")
        self._begin()
        self._blocking = BlockingClient(self._target)
        self._blocking.open()
        return self._blocking

    def __exit__(self, *how: object) -> None:
        assert self._blocking is not None
        self._blocking.close()


def _policy(slow: SlowPolicy | SlowName) -> SlowPolicy:
    if isinstance(slow, SlowPolicy):
        return slow
    try:
        return SlowPolicy[slow.upper()]
    except KeyError:
        raise UsageError(f"slow={slow!r} is no policy: it is wait, drop, disconnect or hold") from None
