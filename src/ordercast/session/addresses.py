"""Where daemons are found.

unix:///run/ordercast/n1.sock    a unix socket
tcp://10.0.0.1:4700              a host and a port
n1                               the daemon n1 of this machine
* (or nothing)                   any daemon of this machine

Daemons of this user have their sockets in the usual folder, the daemon of the system has its own in `SYSTEM_FOLDER`.
Clients look into both, in this order, unless $ORDERCAST_FOLDER names the one to look into.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from ordercast.groups.names import checked_daemon
from ordercast.model.errors import UsageError

SUFFIX = ".sock"
ANY = "*"
PATH_SIZE_MAX = 107  # of a unix socket's path: the kernel's limit
SYSTEM_FOLDER = Path("/run/ordercast")  # of the daemon that the system runs, for all users
CHOSEN = "ORDERCAST_FOLDER"
GRANTED = "RUNTIME_DIRECTORY"  # folders that systemd has made for a service, with a colon between them


class UnixAddress(NamedTuple):
    path: Path

    def __str__(self) -> str:
        return f"unix://{self.path}"


class TcpAddress(NamedTuple):
    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"tcp://{host}:{self.port}"


Address = UnixAddress | TcpAddress


def usual_folder() -> Path:
    """Where the daemons of this user have their sockets: what $ORDERCAST_FOLDER says, or the system's place for it."""
    if (chosen := _chosen_folder()) is not None:
        return chosen
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    if os.geteuid() == 0:
        return SYSTEM_FOLDER
    return Path(runtime) / "ordercast" if runtime else Path(f"/tmp/ordercast-{os.geteuid()}")


def serving_folder() -> Path:
    """Where a daemon puts its socket unless its file says otherwise: what systemd has made for it, or the usual one."""
    granted = os.environ.get(GRANTED, "").partition(":")[0]
    return Path(granted) if granted and _chosen_folder() is None else usual_folder()


def _chosen_folder() -> Path | None:
    chosen = os.environ.get(CHOSEN)
    return Path(chosen).expanduser().absolute() if chosen else None


def _folders() -> list[Path]:
    """Where a client looks, in order."""
    usual = usual_folder()
    return [usual] if usual == SYSTEM_FOLDER or _chosen_folder() is not None else [usual, SYSTEM_FOLDER]


def socket_path(name: str, folder: Path | None = None) -> Path:
    """Where a daemon of this name has its socket; without a folder: in the one where it would put it."""
    path = (folder or serving_folder()) / f"{checked_daemon(name)}{SUFFIX}"
    if len(os.fsencode(path)) > PATH_SIZE_MAX:
        raise UsageError(f"the path {path} is too long for a unix socket: choose a shorter folder")
    return path


def addresses_from(text: str | None) -> list[Address]:
    """Where to try, in order. UsageError when the text says nothing that can be tried."""
    if text is None or text in ("", ANY):
        return list(_sockets_here())
    if text.startswith("unix:"):
        return [UnixAddress(Path(text.removeprefix("unix:").removeprefix("//")).expanduser())]
    if text.startswith("tcp:"):
        return [_tcp(text)]
    if "://" in text:
        scheme, _, rest = text.partition("://")
        raise UsageError(
            f"{text!r} is no address of a daemon, as {scheme}: is not spoken: write tcp://{rest or 'HOST:PORT'}, or "
            "unix:///PATH"
        )
    if "/" in text:
        return [UnixAddress(Path(text).expanduser())]
    if ":" in text:
        raise UsageError(f"{text!r} is no address: write tcp://{text}, or unix:///PATH")
    paths = [socket_path(text, folder) for folder in _folders()]
    return [UnixAddress(path) for path in paths[:1] + [path for path in paths[1:] if _serves(path)]]


def _tcp(text: str) -> TcpAddress:
    host, colon, port = text.removeprefix("tcp:").removeprefix("//").rpartition(":")
    if not colon or not host or not port.isdigit() or not 0 < int(port) < 65536:
        raise UsageError(f"{text!r} is no address: write tcp://HOST:PORT, such as tcp://10.0.0.1:4700")
    return TcpAddress(host.strip("[]"), int(port))


def _sockets_here() -> list[UnixAddress]:
    folders = [folder for folder in _folders() if is_trusted(folder)]
    found = [path for folder in folders for path in sorted(folder.iterdir()) if path.suffix == SUFFIX]
    return [UnixAddress(path) for path in found if _serves(path)]


def passed_over() -> list[str]:
    """Return a sentence for each socket that is there and is tried only by whoever names it: others may have put it
    there."""
    found = []
    for folder in _folders():
        with suppress(OSError):
            there = [path for path in sorted(folder.iterdir()) if path.suffix == SUFFIX]
            is_safe = is_trusted(folder)
            found += [path for path in there if not (is_safe and _serves(path))]
    return [f"{path} was passed over, as others than you and root may have put it there: name it" for path in found]


def is_trusted(folder: Path) -> bool:
    """Whether nobody but this user and root can have put anything there: in /tmp anybody may make a folder of any name,
    and a daemon that he runs there would hear and say everything in the name of others. In the system's folder it is
    the user to whom root has given it."""
    try:
        found = folder.lstat()
        owners = (os.geteuid(), 0)
        is_granted = folder == SYSTEM_FOLDER and is_trusted(folder.parent)
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and (is_granted or found.st_uid in owners) and not found.st_mode & 0o022


def _serves(path: Path) -> bool:
    """Whether it is a socket, of this user, of root, or of whoever has the system's folder from root."""
    try:
        found, folder = path.lstat(), path.parent.lstat()
    except OSError:
        return False
    owners = [os.geteuid(), 0]
    if path.parent == SYSTEM_FOLDER and is_trusted(path.parent):
        owners.append(folder.st_uid)
    return stat.S_ISSOCK(found.st_mode) and found.st_uid in owners
