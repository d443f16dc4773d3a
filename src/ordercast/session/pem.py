"""Files of certificates, cut into their blocks. Pure, and without any cipher: clients read them."""

from __future__ import annotations

import base64
import binascii
import hashlib
import re

from ordercast.model.errors import UsageError

CERTIFICATE = "CERTIFICATE"
TOKEN = "ORDERCAST TOKEN"
TOKEN_SIZE = 32  # bytes
_BLOCK = re.compile(r"-----BEGIN ([A-Z ]{1,40})-----\n([A-Za-z0-9+/=\n]*)-----END \1-----\n")


def blocks_of(text: str) -> list[tuple[str, str]]:
    """Kind and whole text of each block, in order."""
    return [(found[1], found[0]) for found in _BLOCK.finditer(text.replace("\r\n", "\n") + "\n")]


def pem_text(kind: str, data: bytes) -> str:
    return f"-----BEGIN {kind}-----\n{base64.b64encode(data).decode()}\n-----END {kind}-----\n"


def pem_bytes(block: str) -> bytes:
    try:
        return base64.b64decode("".join(block.splitlines()[1:-1]), validate=True)
    except binascii.Error:
        raise UsageError("a block of it is not in base 64") from None


def token_hash(token: bytes) -> str:
    """What a daemon keeps of a token. Tokens are random, so that no salt is needed."""
    return hashlib.sha256(b"ordercast token 1" + token).hexdigest()
