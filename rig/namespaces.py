"""Network namespaces by name: making them, going inside, running programs there, and clearing up after the dead.

A name tells who made it (pid namespace and pid), so that leftovers of a killed process can be told from what somebody
else is using: only names of ours whose maker is dead are removed.
"""

from __future__ import annotations

import ctypes
import os
import re
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path

FOLDER = Path("/run/netns")
CLONE_NEWNET = 0x40000000
_NUMBERS = count(1)
_libc = ctypes.CDLL(None, use_errno=True)


class RigError(Exception):
    """A command of the test network failed."""


def command(*argv: str, stdin: str = "") -> str:
    """Runs to the end; what it said on failure is in the error."""
    done = subprocess.run(argv, input=stdin, capture_output=True, text=True, timeout=60)
    if done.returncode:
        raise RigError(f"{' '.join(argv)}: {done.stderr.strip() or done.stdout.strip()}\n{stdin}".strip())
    return done.stdout


def ip(name: str, *lines: str) -> None:
    """Several `ip` commands in a namespace, by one process."""
    command("ip", "-n", name, "-batch", "-", stdin="\n".join(lines))


def unique_prefix() -> str:
    return f"oc{_pid_namespace()}-{os.getpid()}-{next(_NUMBERS)}"


def _pid_namespace() -> int:
    return os.stat("/proc/self/ns/pid").st_ino


def create(names: Sequence[str]) -> None:
    command("ip", "-batch", "-", stdin="\n".join(f"netns add {name}" for name in names))


def remove(names: Sequence[str]) -> None:
    """Remove those that exist. Somebody else may be removing them at the same time, if they are leftovers."""
    existing = [name for name in names if (FOLDER / name).exists()]
    if existing:
        try:
            command("ip", "-force", "-batch", "-", stdin="\n".join(f"netns delete {name}" for name in existing))
        except RigError:
            if any((FOLDER / name).exists() for name in existing):
                raise


def remove_leftovers() -> None:
    """Namespaces that a process of ours made which was killed before it could remove them."""
    if FOLDER.is_dir():
        remove([path.name for path in FOLDER.iterdir() if _is_leftover(path.name)])


def _is_leftover(name: str) -> bool:
    found = re.fullmatch(r"oc(\d+)-(\d+)-\d+[a-z]\d*", name)
    return found is not None and int(found[1]) == _pid_namespace() and not Path("/proc", found[2]).exists()


@contextmanager
def inside(name: str) -> Iterator[None]:
    """This thread is in the namespace meanwhile. A socket stays where it was made, so it may be used afterwards."""
    home = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    try:
        enter(FOLDER / name)
        try:
            yield
        finally:
            _enter(home)
    finally:
        os.close(home)


def enter(path: Path) -> None:
    """This thread is in that namespace from now on."""
    namespace = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        _enter(namespace)
    finally:
        os.close(namespace)


def _enter(namespace: int) -> None:
    if _libc.setns(namespace, CLONE_NEWNET):
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))


def argv_inside(name: str, argv: Sequence[str]) -> list[str]:
    """The program as seen from outside. It dies with the thread that starts it: a killed test run leaves nothing."""
    return ["nsenter", f"--net={FOLDER / name}", "setpriv", "--pdeathsig", "KILL", "--", *argv]
