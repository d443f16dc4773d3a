"""Files that hold what was said, or by whom: for their owner alone.

An archive or a trace tells the messages of a cluster whose sockets are closed to other users. So files are made with
mode 0600 and folders with 0700. A folder that is there already is left as it is: somebody chose it.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

FILE_MODE = 0o600
FOLDER_MODE = 0o700
_OTHERS = 0o077


def make_private_folder(folder: Path) -> None:
    """Make a folder, with the folders above it that are missing."""
    try:
        folder.mkdir(FOLDER_MODE, exist_ok=True)
    except FileNotFoundError:
        if folder.parent == folder:
            raise
        make_private_folder(folder.parent)
        folder.mkdir(FOLDER_MODE, exist_ok=True)


def open_private(path: Path | str, flags: int) -> int:
    """A descriptor. Also an `opener` for `open`."""
    return os.open(path, flags | os.O_CLOEXEC, FILE_MODE)


def remark_on_folder(folder: Path) -> str | None:
    """A sentence when others on this machine may look into it."""
    try:
        mode = stat.S_IMODE(folder.stat().st_mode)
    except OSError:
        return None
    if not mode & _OTHERS:
        return None
    return f"{folder} is open to other users of this machine ({mode:04o}): chmod 700 {folder}, unless that is wanted"
