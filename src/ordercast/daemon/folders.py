"""Folders that a daemon makes for sockets, and for the key of its user."""

from __future__ import annotations

import os
from pathlib import Path

from ordercast.model.errors import UsageError
from ordercast.session.addresses import is_trusted, serving_folder


def make_socket_folder(folder: Path) -> None:
    """Make it, if it is missing. UsageError when it is the usual one, and others may have put something there; OSError
    when it cannot be made."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o755 if os.geteuid() == 0 else 0o700)
    if folder == serving_folder() and not is_trusted(folder):
        raise UsageError(
            f"{folder} belongs to another user, or others may write there: remove it, or choose another folder in "
            "$ORDERCAST_FOLDER"
        )
