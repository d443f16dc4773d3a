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


class Tag(Protocol):
    """One key of a cipher, as a pair of calls that a loop in C can make."""

    def encrypt(self, nonce: bytes, data: bytes, associated_data: bytes | None, /) -> bytes:
        """Return the data sealed, with a tag behind."""

    def decrypt(self, nonce: bytes, data: bytes, associated_data: bytes | None, /) -> bytes:
        """Return what was sealed; raises the cipher's `forged` for whatever was not sealed so."""


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
