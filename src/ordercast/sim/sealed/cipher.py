"""A cipher for simulations: it hides nothing, so that faults of networks can go by what packets are, and its tag is as
good as any. It tells a witness of every nonce.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable

from ordercast.sealing.cipher import TAG_SIZE, Tag
from ordercast.sealing.runs import Looped


class NotGenuine(Exception):
    """The tag does not fit."""


class PlainTag:
    __slots__ = ("_secret", "_used")

    def __init__(self, secret: bytes, used: Callable[[bytes, bytes, bytes], None]) -> None:
        self._secret, self._used = secret, used

    def encrypt(self, nonce: bytes, data: bytes, associated_data: bytes | None, /) -> bytes:
        sealed = data + self._tag(nonce, data, associated_data)
        self._used(self._secret, nonce, sealed)
        return sealed

    def decrypt(self, nonce: bytes, data: bytes, associated_data: bytes | None, /) -> bytes:
        body, tag = data[:-TAG_SIZE], data[-TAG_SIZE:]
        if tag != self._tag(nonce, body, associated_data):
            raise NotGenuine
        return body

    def _tag(self, nonce: bytes, data: bytes, clear: bytes | None) -> bytes:
        parts = (nonce, clear or b"", data)
        return hashlib.blake2b(b"".join(parts), key=self._secret, digest_size=TAG_SIZE).digest()


class PlainCipher:
    name = "none: a simulation"
    forged: type[Exception] = NotGenuine

    def __init__(self, used: Callable[[bytes, bytes, bytes], None] = lambda secret, nonce, sealed: None) -> None:
        self._used = used

    def keyed(self, secret: bytes) -> Tag:
        return Looped(PlainTag(secret, self._used))
