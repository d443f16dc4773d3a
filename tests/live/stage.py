"""What the tests on the loopback interface share: bounds in time, places for nodes, and reading until something comes.

Each cluster has a name of its own, so that other tests on the same machine are strangers to it.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Collection, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from functools import wraps
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

from ordercast import Message, Node, NodeConfig, Reason, View
from ordercast.api.member import Member
from ordercast.daemon.clients.server import ClientServer
from ordercast.daemon.config.node import ClientsConfig, NetworkConfig
from ordercast.daemon.host import GroupHost
from ordercast.model.events import Event
from ordercast.model.ids import MILLISECOND
from ordercast.order.ring.config import RingConfig
from tests.ports import own_ports

PATIENCE_S = 150.0
_NUMBERS = count(1)


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(work, PATIENCE_S))


def live(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    @wraps(test)
    def bounded(*arguments: Any, **options: Any) -> None:
        run(test(*arguments, **options))

    return bounded


def quick_ring(**options: Any) -> RingConfig:
    name = f"test {os.getpid()} {next(_NUMBERS)}"
    return replace(RingConfig(cluster=name, consensus_ns=100 * MILLISECOND, announce_ns=40 * MILLISECOND), **options)


def alone(**ring: Any) -> NodeConfig:
    return local(quick_ring(**ring))


def local(ring: RingConfig, **options: Any) -> NodeConfig:
    """Any free place on this machine, away from the usual ports."""
    return NodeConfig(ring=ring, network=NetworkConfig(port=own_ports()), **options)


# Members of groups


async def entered(stack: AsyncExitStack, ring: RingConfig, *names: str, **options: Any) -> list[Node]:
    """Nodes that have come together."""
    together: asyncio.Queue[None] = asyncio.Queue()
    nodes = [
        Node(
            local(ring, **options),
            name=name,
            on_configuration=lambda view: together.put_nowait(None) if len(view.members) == len(names) else None,
        )
        for name in names
    ]
    for node in nodes:
        await stack.enter_async_context(node)
    for _ in nodes:
        await together.get()
    return nodes


async def joined(members: Collection[Member], *groups: str) -> None:
    """All of them are in all of these groups, and have read so far."""
    names = {member.name for member in members}
    for member in members:
        await member.join(*groups)
    for member in members:
        for group in groups:
            await view_with(member, *names, group=group)


async def until(member: Member, is_it: Callable[[Event], bool]) -> list[Event]:
    """What comes up to the event that is awaited."""
    seen: list[Event] = []
    async for event in member:
        seen.append(event)
        if is_it(event):
            return seen
    raise AssertionError(f"the stream of {member.name} has ended after {seen}")


async def view_with(member: Member, *names: str, group: str | None = None) -> View:
    """The next view with exactly these members."""
    seen = await until(
        member,
        lambda event: isinstance(event, View) and set(event.members) == set(names) and group in (None, event.group),
    )
    found = seen[-1]
    assert isinstance(found, View)
    return found


async def view_because(member: Member, reason: Reason) -> View:
    found = (await until(member, lambda event: isinstance(event, View) and event.reason is reason))[-1]
    assert isinstance(found, View)
    return found


async def messages_of(member: Member, wanted: int) -> list[Message]:
    """The next messages."""
    found: list[Message] = []
    async for event in member:
        if isinstance(event, Message):
            found.append(event)
        if len(found) >= wanted:
            return found
    raise AssertionError(f"the stream of {member.name} has ended after {len(found)} messages")


async def messages_until(member: Member, last: bytes) -> list[Message]:
    """Up to the message that says this."""
    seen = await until(member, lambda event: isinstance(event, Message) and event.data == last)
    return [event for event in seen if isinstance(event, Message)]


# Daemons


class Daemon(NamedTuple):
    host: GroupHost
    server: ClientServer

    @property
    def unix(self) -> str:
        return str(self.server.addresses[0])

    @property
    def tcp(self) -> str:
        return str(self.server.addresses[1])

    def is_empty(self) -> bool:
        """Nothing is left of any client."""
        host, server = self.host, self.server
        return not (
            host.sessions or server.connections or server.leaving or host.requests_waiting or len(host.named.table)
        )


@asynccontextmanager
async def daemon(folder: Path, config: NodeConfig | None = None, **clients: Any) -> AsyncIterator[Daemon]:
    """Serves clients in this process, at a unix socket and over TCP."""
    wanted = ClientsConfig(**{"folder": folder, "port": 0, **clients})
    async with GroupHost(config or alone()) as host, ClientServer(host, wanted) as server:
        yield Daemon(host, server)


async def eventually(is_so: Callable[[], bool]) -> None:
    """What nobody tells is looked at until it is so; the test as a whole is bounded in time."""
    while not is_so():  # noqa: ASYNC110
        await asyncio.sleep(0.005)
