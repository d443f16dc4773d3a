"""Streams sealed under a secret that both ends have: transfers of states and archives, beside the group.

    donor → fetcher    magic 4, salt 16
    fetcher → donor    salt 16
    both               records: length 4, then up to 64 KiB and a tag, sealed with AES-256-GCM

The secret travels in the group, fresh for each life of a donor: whoever may read the group may fetch, and nobody else
gets anything but a salt. Keys are HKDF-SHA256(secret, both salts, "ordercast transfer 1" and the direction), so that
nothing recorded counts in another connection; nonces count records. Nothing unauthenticated is kept beyond one record.
"""

from __future__ import annotations

import asyncio
import secrets
from struct import Struct
from typing import Final

from ordercast.model.errors import WireError
from ordercast.sealing.cipher import SALT_SIZE, SECRET_SIZE, TAG_SIZE, OneByOne, hkdf

STREAM_MAGIC: Final = b"OCS1"
RECORD_SIZE: Final = 1 << 16
_LENGTH = Struct("!I")
_PURPOSE: Final = b"ordercast transfer 1 "
_QUESTION, _ANSWER = b"question", b"answer"


def new_secret() -> bytes:
    return secrets.token_bytes(SECRET_SIZE)


class SealedReader:
    """One direction, as it is read."""

    def __init__(self, reader: asyncio.StreamReader, key: bytes) -> None:
        from cryptography.exceptions import InvalidTag

        self._forged: type[Exception] = InvalidTag
        self._reader = reader
        self._tag = _cipher(key)
        self._count = 0
        self._opened = bytearray()

    async def readexactly(self, size: int) -> bytes:
        """WireError when something came that nobody with the secret has said; an IncompleteReadError at the end."""
        while len(self._opened) < size:
            self._opened += await self._record()
        found = bytes(memoryview(self._opened)[:size])
        del self._opened[:size]
        return found

    async def _record(self) -> bytes:
        length = await self._reader.readexactly(_LENGTH.size)
        (size,) = _LENGTH.unpack(length)
        if not TAG_SIZE < size <= RECORD_SIZE + TAG_SIZE:
            raise WireError("what came is not sealed")
        sealed = await self._reader.readexactly(size)
        try:
            opened = self._tag.decrypt(_nonce(self._count), sealed, length)
        except self._forged:
            raise WireError("what came is not sealed with the secret of the group") from None
        self._count += 1
        return opened


class SealedWriter:
    """One direction, as it is written."""

    def __init__(self, writer: asyncio.StreamWriter, key: bytes) -> None:
        self._writer = writer
        self._tag = _cipher(key)
        self._count = 0

    @property
    def transport(self) -> asyncio.WriteTransport:
        return self._writer.transport

    def write(self, data: bytes | memoryview) -> None:
        view = memoryview(data)
        for start in range(0, len(view), RECORD_SIZE):
            piece = bytes(view[start : start + RECORD_SIZE])
            length = _LENGTH.pack(len(piece) + TAG_SIZE)
            self._writer.write(length + self._tag.encrypt(_nonce(self._count), piece, length))
            self._count += 1

    async def drain(self) -> None:
        await self._writer.drain()


def _cipher(key: bytes) -> OneByOne:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    return AESGCM(key)


def _nonce(count: int) -> bytes:
    return count.to_bytes(12, "big")


def _key(secret: bytes, donor: bytes, fetcher: bytes, direction: bytes) -> bytes:
    return hkdf(secret, donor + fetcher, _PURPOSE + direction)


async def answer_sealed(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, secret: bytes
) -> tuple[SealedReader, SealedWriter]:
    """Greet a fetcher, at the donor."""
    mine = secrets.token_bytes(SALT_SIZE)
    writer.write(STREAM_MAGIC + mine)
    other = await reader.readexactly(SALT_SIZE)
    return SealedReader(reader, _key(secret, mine, other, _QUESTION)), SealedWriter(
        writer, _key(secret, mine, other, _ANSWER)
    )


async def ask_sealed(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, secret: bytes
) -> tuple[SealedReader, SealedWriter]:
    """Greet a donor, at the fetcher. WireError when this is none, or the secret is not one."""
    if len(secret) != SECRET_SIZE:
        raise WireError("it said no secret in the group: it is of an older version")
    greeting = await reader.readexactly(len(STREAM_MAGIC) + SALT_SIZE)
    if not greeting.startswith(STREAM_MAGIC):
        raise WireError("it does not seal what it sends: it is of an older version, or no donor")
    mine, other = secrets.token_bytes(SALT_SIZE), greeting[len(STREAM_MAGIC) :]
    writer.write(mine)
    return SealedReader(reader, _key(secret, other, mine, _ANSWER)), SealedWriter(
        writer, _key(secret, other, mine, _QUESTION)
    )
