"""Where daemons are found.

unix:///run/ordercast/n1.sock    a unix socket
tcp://10.0.0.1:4700              a host and a port
n1                               the daemon n1 of this machine
* (or nothing)                   any daemon of this machine
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import NamedTuple

from ordercast.groups.names import checked_daemon
from ordercast.model.errors import UsageError

SUFFIX = ".sock"
ANY = "*"
PATH_SIZE_MAX = 107  # of a unix socket's path: the kernel's limit


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
    chosen = os.environ.get("ORDERCAST_FOLDER")
    if chosen:
        return Path(chosen).expanduser().absolute()
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    if os.geteuid() == 0:
        return Path("/run/ordercast")
    return Path(runtime) / "ordercast" if runtime else Path(f"/tmp/ordercast-{os.geteuid()}")


def socket_path(name: str, folder: Path | None = None) -> Path:
    path = (folder or usual_folder()) / f"{checked_daemon(name)}{SUFFIX}"
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
    if "/" in text:
        return [UnixAddress(Path(text).expanduser())]
    if ":" in text:
        raise UsageError(f"{text!r} is no address: write tcp://{text}, or unix:///PATH")
    return [UnixAddress(socket_path(text))]


def _tcp(text: str) -> TcpAddress:
    host, colon, port = text.removeprefix("tcp:").removeprefix("//").rpartition(":")
    if not colon or not host or not port.isdigit() or not 0 < int(port) < 65536:
        raise UsageError(f"{text!r} is no address: write tcp://HOST:PORT, such as tcp://10.0.0.1:4700")
    return TcpAddress(host.strip("[]"), int(port))


def _sockets_here() -> list[UnixAddress]:
    folder = usual_folder()
    if not is_trusted(folder):
        return []
    found = sorted(path for path in folder.iterdir() if path.suffix == SUFFIX and _is_socket(path))
    return [UnixAddress(path) for path in found]


def is_trusted(folder: Path) -> bool:
    """Whether nobody but this user and root can have put anything there: in /tmp anybody may make a folder of any name,
    and a daemon that he runs there would hear and say everything in the name of others."""
    try:
        found = folder.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid in (os.geteuid(), 0) and not found.st_mode & 0o022


def _is_socket(path: Path) -> bool:
    try:
        found = path.lstat()
    except OSError:
        return False
    return stat.S_ISSOCK(found.st_mode) and found.st_uid in (os.geteuid(), 0)
