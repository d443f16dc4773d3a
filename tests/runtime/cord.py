"""A way to a daemon that can be cut."""

from __future__ import annotations

import asyncio
from pathlib import Path


class Cord:
    """A way to a daemon that can be cut: the client's end breaks, and so does the daemon's."""

    def __init__(self, path: Path, daemon: Path) -> None:
        self.address = f"unix://{path}"
        self._path, self._daemon = path, daemon
        self._writers: list[asyncio.StreamWriter] = []
        self._server: asyncio.Server | None = None

    async def open(self) -> None:
        self._server = await asyncio.start_unix_server(self._accepted, self._path)

    async def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, thither = await asyncio.open_unix_connection(str(self._daemon))
        self._writers += (writer, thither)
        await asyncio.gather(_carry(reader, thither), _carry(there, writer))

    def cut(self) -> None:
        assert self._server is not None
        self._server.close()
        for writer in self._writers:
            writer.transport.abort()


async def _carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
        writer.write_eof()
    except OSError:
        writer.transport.abort()
