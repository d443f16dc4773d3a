"""Daemons with clients in this process, on loopback, strangers to those of other tests; and cables that can be cut."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import wraps
from itertools import count
from pathlib import Path
from typing import Any

from ordercast import NodeConfig
from ordercast.daemon.clients.server import ClientServer
from ordercast.daemon.config.node import ClientsConfig, NetworkConfig
from ordercast.daemon.host import GroupHost
from ordercast.model.ids import MILLISECOND
from ordercast.order.catalogue import DEFAULT
from ordercast.order.ring.config import RingConfig
from tests.ports import own_ports

PATIENCE_S = 100.0
_NUMBERS = count(1)


def live(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    @wraps(test)
    def bounded(*arguments: Any, **options: Any) -> None:
        asyncio.run(asyncio.wait_for(test(*arguments, **options), PATIENCE_S))

    return bounded


@asynccontextmanager
async def daemons(folder: Path, *names: str, engine: str = DEFAULT, **clients: Any) -> AsyncIterator[dict[str, str]]:
    """Addresses by name."""
    ring = RingConfig(cluster=f"daemons {os.getpid()} {next(_NUMBERS)}", consensus_ns=100 * MILLISECOND)
    network = NetworkConfig(port=own_ports())
    async with AsyncExitStack() as stack:
        addresses = {}
        for name in names:
            host = GroupHost(NodeConfig(name=name, ring=ring, network=network, engine=engine))
            await host.start()
            stack.push_async_callback(host.leave)
            server = await stack.enter_async_context(ClientServer(host, ClientsConfig(folder=folder, **clients)))
            addresses[name] = str(server.addresses[0])
        yield addresses


class Cable:
    """Between a client and its daemon: a socket that passes everything on until it is cut."""

    def __init__(self, address: str, path: Path) -> None:
        self.address = f"unix://{path}"
        self._path = path
        self._target = address.removeprefix("unix://")
        self._server: asyncio.Server | None = None
        self._ends: set[asyncio.StreamWriter] = set()

    async def __aenter__(self) -> Cable:
        self._server = await asyncio.start_unix_server(self._connected, self._path)
        return self

    async def __aexit__(self, *error: object) -> None:
        assert self._server is not None
        self._server.close()
        self.cut()

    def cut(self) -> None:
        """What is on its way is lost. The next connection works again."""
        for end in self._ends:
            end.transport.abort()
        self._ends.clear()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, onward = await asyncio.open_unix_connection(self._target)
        self._ends |= {writer, onward}
        await asyncio.gather(_pass_on(reader, onward), _pass_on(there, writer))


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
    writer.close()
