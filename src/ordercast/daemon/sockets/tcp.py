"""A TCP server of the event loop: status, states for replicas and branches for archivers are served so."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from typing import Self


class TcpServer(ABC):
    """Serves whoever connects to one port while it is entered: each connection is a task, and all end with it."""

    def __init__(self, address: str, port: int, buffer_size: int) -> None:
        """`port`: 0 for any that is free. `buffer_size`: bytes that are read ahead of who takes them."""
        self.address, self.port = address, port
        self.connections: set[asyncio.Task[None]] = set()
        self._buffer_size = buffer_size
        self._server: asyncio.Server | None = None

    @abstractmethod
    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection. An OSError, a timeout or a stream that ends too early cuts it."""

    @abstractmethod
    def refused(self, error: OSError) -> Exception:
        """Return what to raise when the port cannot be opened."""

    async def __aenter__(self) -> Self:
        try:
            self._server = await asyncio.start_server(
                self._on_connection, self.address, self.port, limit=self._buffer_size
            )
        except OSError as error:
            raise self.refused(error) from error
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *how: object) -> None:
        assert self._server is not None
        self._server.close()
        tasks = list(self.connections)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _on_connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self.connections.add(task)
        try:
            await self.serve(reader, writer)
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.CancelledError):
            writer.transport.abort()  # the other side is gone, or as good as gone, or all ends: nothing is half said
        finally:
            self.connections.discard(task)
            writer.close()
