"""Files with secrets (keys, certificates, credentials): for nobody else to read, and made whole or not at all. No error
that this module raises repeats what a file says.
"""

from __future__ import annotations

import os
import pwd
import secrets
import stat
from contextlib import suppress
from pathlib import Path
from typing import Final

from ordercast.model.errors import UsageError

SECRET_MODE: Final = 0o600
SECRET_FILE_SIZE_MAX: Final = 1 << 16


def read_secret_file(path: Path, noun: str, advice: str, *, is_own: bool = False) -> bytes:
    """Return what the file says. UsageError says what is wrong with it; `noun` is what it is called, `advice` how to
    get one. `is_own`: it must belong to this user, or to root."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        raise UsageError(f"there is no {noun} {path}: {advice}") from None
    except OSError as error:
        raise UsageError(f"the {noun} {path} cannot be read: {error.strerror}") from error
    with os.fdopen(descriptor, "rb") as file:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode) or found.st_size > SECRET_FILE_SIZE_MAX:
            raise UsageError(f"{path} is no {noun}: {advice}")
        if is_own and found.st_uid not in (os.geteuid(), 0):
            raise UsageError(f"the {noun} {path} belongs to {_advice_on_owner(path, found.st_uid)}")
        if found.st_mode & 0o077:
            raise UsageError(f"the {noun} {path} can be read by others: run `chmod 600 {path}`")
        return file.read(SECRET_FILE_SIZE_MAX)


def _advice_on_owner(path: Path, owner: int) -> str:
    """Return whose the file is and what to do: root is told to be that user, whose daemon has to read the file."""
    try:
        name = pwd.getpwuid(owner).pw_name
    except KeyError:
        name = f"#{owner}"  # as sudo takes it
    if os.geteuid() == 0:
        return f"{name}, and this is root: run this as that user, `sudo -u '{name}' …`, or `chown root {path}`"
    return f"{name}: run `chown {os.geteuid()} {path}`"


def write_new_secret_file(path: Path, text: str, advice: str) -> None:
    """Make it, whole for whoever looks, and never touch one that is there: then a UsageError says so, with the
    advice."""
    fresh = _beside(path, text)
    try:
        os.link(fresh, path)
    except FileExistsError:
        raise UsageError(f"{path} is there already, and is not written over: {advice}") from None
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}") from error
    finally:
        fresh.unlink()


def replace_secret_file(path: Path, text: str) -> None:
    """Put it in the place of the one that is there, if there is one."""
    fresh = _beside(path, text)
    try:
        os.replace(fresh, path)
    except OSError as error:
        with suppress(OSError):
            fresh.unlink()
        raise UsageError(f"{path} cannot be written: {error.strerror}") from error


def _beside(path: Path, text: str) -> Path:
    """Write it under a name of its own in the same folder."""
    fresh = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, SECRET_MODE)
        with os.fdopen(descriptor, "w") as file:
            file.write(text)
            file.flush()
            os.fsync(descriptor)
    except OSError as error:
        with suppress(OSError):
            fresh.unlink()
        raise UsageError(f"{path} cannot be written: {error.strerror}") from error
    return fresh
