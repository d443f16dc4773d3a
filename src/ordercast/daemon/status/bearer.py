"""The file of a token for those who read the status of daemons on other hosts: one line, for a header of HTTP."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Final

from ordercast.disk.secret_files import read_secret_file, write_new_secret_file
from ordercast.model.errors import UsageError

BEARER_SIZE: Final = 32  # random bytes
BEARER_SIZE_MIN: Final = 16  # characters
_ADVICE: Final = "make one with `ordercast certs bearer FILE`"


def new_bearer_file(path: Path) -> None:
    write_new_secret_file(path, secrets.token_urlsafe(BEARER_SIZE) + "\n", "remove it first, or choose another")


def read_bearer_file(path: Path) -> str:
    """Return the token. UsageError says what is wrong with the file; nothing of what it says is repeated."""
    text = read_secret_file(path, "file of a token", _ADVICE).decode("ascii", "replace").strip()
    if len(text) < BEARER_SIZE_MIN or not text.isprintable() or " " in text or not text.isascii():
        raise UsageError(f"{path} is no file of a token: {_ADVICE}")
    return text
