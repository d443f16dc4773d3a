"""What seals: a cipher with associated data, passed in from outside. The driver brings one of a library, a simulator a
plain one; nothing of a cipher is written here. Keys are made of other keys by HKDF-SHA256 (RFC 5869).
"""

from __future__ import annotations

import hashlib
import hmac
from typing import Final, Protocol

SECRET_SIZE: Final = 32
SALT_SIZE: Final = 16
TAG_SIZE: Final = 16
PURPOSE: Final = b"ordercast life 1"


class OneByOne(Protocol):
    """One key of a cipher, as a pair of calls that a loop in C can make."""

    def encrypt(self, nonce: bytes, data: bytes, associated_data: bytes | None, /) -> bytes:
        """Return the data sealed, with a tag behind."""

    def decrypt(self, nonce: bytes, data: bytes, associated_data: bytes | None, /) -> bytes:
        """Return what was sealed; raises the cipher's `forged` for whatever was not sealed so."""


class Tag(OneByOne, Protocol):
    """One key of a cipher, for single packets and for whole runs of packets of an engine."""

    def seal_run(
        self,
        data: bytes,
        at: int,
        end: int,
        size: int,
        opening: bytes,
        life: int,
        counter: int,
        networks: int,
        clear: bytes,
        /,
    ) -> bytes:
        """Return the packets of so many bytes that stand there, the last of them perhaps shorter, sealed under counters
        that follow each other; the last bytes of the arguments are authenticated with each."""

    def open_run(self, data: bytes, size: int, head: bytes, clear: bytes, /) -> bytes:
        """Return sealed packets of so many bytes, the last of them perhaps shorter, opened and with this head; in a
        shorter one the head has its length. Raises the cipher's `forged` if one of them was not sealed so."""


class Cipher(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def forged(self) -> type[Exception]:
        """What `decrypt` raises."""

    def keyed(self, secret: bytes) -> Tag: ...


def hkdf(secret: bytes, salt: bytes, info: bytes) -> bytes:
    """Return a key of 32 bytes: one block of HKDF-SHA256."""
    extracted = hmac.digest(salt, secret, hashlib.sha256)
    return hmac.digest(extracted, info + b"\x01", hashlib.sha256)


def life_secret(secret: bytes, salt: bytes, cluster: bytes, generation: int) -> bytes:
    """Return what one life seals with, in one cluster, for one generation of its packets."""
    return hkdf(secret, salt, PURPOSE + cluster + generation.to_bytes(6, "big"))
