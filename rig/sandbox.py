"""Runs a program as systemd would run it from a unit, in namespaces of its own, without systemd; root is needed.

    unshare --mount --propagation private python -m rig.sandbox UNIT.service PATH… -- PROGRAM …

What is played: `User`, `UMask`, `LimitNOFILE`, `StateDirectory`, `RuntimeDirectory` with their modes and variables,
`ProtectSystem=strict`, `ProtectHome`, `PrivateTmp`, `PrivateUsers`, `NoNewPrivileges`, `CapabilityBoundingSet=`,
`RestrictAddressFamilies` and `SystemCallFilter`. The rest restricts what Ordercast does not do, and needs a systemd.

/run, /var/lib and /tmp are empty and nobody's but the sandbox's. PATH: what stays where it is although it lies in a
folder that is hidden, as the interpreter of a developer does. A second unit is played beside the first, in the same
folders, with `--inside` before it and `nsenter` instead of `unshare`.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import NoReturn

INSIDE = "--inside"
USER = 61_999  # systemd makes up users from 61184 on
HOMES = ("/home", "/root", "/run/user")
APIS = ("/proc", "/sys", "/dev", "/run", "/tmp", "/var/tmp", "/var/lib")
CAPABILITIES = 64
SET_NO_NEW_PRIVILEGES, DROP_CAPABILITY = 38, 24
ALLOW, ERRNO = 0x7FFF0000, 0x00050000
FAMILIES = {"AF_UNIX": 1, "AF_INET": 2, "AF_INET6": 10, "AF_NETLINK": 16}
FAMILIES_MAX = 46
REFUSED, NO_FAMILY = 1, 97  # EPERM, EAFNOSUPPORT
EQUAL = 4

Unit = dict[str, list[str]]


def why_no_sandbox() -> str | None:
    """Why this machine cannot play a unit's sandbox, in words; None if it can."""
    if sys.platform != "linux" or os.geteuid():
        return "a unit's sandbox needs Linux and root"
    for tool in ("unshare", "nsenter", "mount", "systemd-analyze"):
        if shutil.which(tool) is None:
            return f"the command {tool} is not installed"
    if ctypes.util.find_library("seccomp") is None:
        return "libseccomp is not installed"
    if subprocess.run(("unshare", "--mount", "--propagation", "private", "true"), capture_output=True).returncode:
        return "mount namespaces are not allowed here"
    return None


def unit_from(path: Path) -> Unit:
    """What a unit says, by key; a key that stands several times has several values."""
    unit: Unit = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        key, equals, value = line.partition("=")
        if equals and not line.startswith(("#", ";")):
            unit.setdefault(key.strip(), []).append(value.strip())
    return unit


def program_of(unit: Unit, *, program: list[str], replaced: dict[str, str], environment: dict[str, str]) -> list[str]:
    """What `ExecStart` runs: this program for its own, other words for some, variables split as systemd does."""
    (line,) = unit["ExecStart"]
    words = []
    for word in line.split()[1:]:
        words += environment[word[1:]].split() if word.startswith("$") else [replaced.get(word, word)]
    return program + words


def _one(unit: Unit, key: str, default: str = "") -> str:
    return unit.get(key, [default])[-1]


# File systems


def _mount(*words: str) -> None:
    subprocess.run(("mount", *words), check=True)


def _seal_files(unit: Unit, kept: Iterable[str]) -> None:
    """Hide, make and protect folders; whatever is kept is there again afterwards, read-only."""
    places = list(dict.fromkeys(kept))
    _mount("-t", "tmpfs", "tmpfs", "/mnt")
    for number, place in enumerate(places):
        Path(f"/mnt/{number}").mkdir()
        _mount("--rbind", place, f"/mnt/{number}")
    hidden = ["/run", "/var/lib"]
    hidden += ["/tmp", "/var/tmp"] if _one(unit, "PrivateTmp") == "yes" else []
    hidden += [home for home in HOMES if _one(unit, "ProtectHome") == "yes" and Path(home).is_dir()]
    for folder in hidden:
        if Path(folder).is_dir() and not Path(folder).is_symlink():
            _mount("-t", "tmpfs", "-o", f"mode={'1777' if 'tmp' in folder else '0755'}", "tmpfs", folder)
    for number, place in enumerate(places):
        if not Path(place).exists():
            Path(place).mkdir(parents=True)
            _mount("--rbind", f"/mnt/{number}", place)
    if _one(unit, "ProtectSystem") == "strict":
        _protect()


def _protect() -> None:
    """Everything is read-only but what the kernel shows and what is the sandbox's own."""
    lines = Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines()
    for target in sorted({line.split()[4] for line in lines}, key=len):
        if not target.startswith(APIS):
            subprocess.run(("mount", "-o", "remount,bind,ro", target), capture_output=True)


def _folders(unit: Unit) -> dict[str, str]:
    """The folders that the service may write, and the variables that name them."""
    variables = {}
    for kind, above in ("State", "/var/lib"), ("Runtime", "/run"):
        names = _one(unit, f"{kind}Directory").split()
        for name in names:
            folder = Path(above, name)
            folder.mkdir(parents=True)
            folder.chmod(int(_one(unit, f"{kind}DirectoryMode", "0755"), 8))
            os.chown(folder, USER, USER)
        if names:
            variables[f"{kind.upper()}_DIRECTORY"] = ":".join(str(Path(above, name)) for name in names)
    return variables


# Privileges and system calls


def _drop_privileges(unit: Unit) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if "CapabilityBoundingSet" in unit:
        for number in range(CAPABILITIES):
            libc.prctl(DROP_CAPABILITY, number, 0, 0, 0)  # those that this kernel does not know are refused
    if limit := _one(unit, "LimitNOFILE"):
        resource.setrlimit(resource.RLIMIT_NOFILE, (int(limit), int(limit)))
    os.umask(int(_one(unit, "UMask", "0022"), 8))
    os.setgroups([])
    os.setresgid(USER, USER, USER)
    os.setresuid(USER, USER, USER)
    if _one(unit, "PrivateUsers") == "yes":
        _hide_users(libc)
    if _one(unit, "NoNewPrivileges") == "yes" and libc.prctl(SET_NO_NEW_PRIVILEGES, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "NoNewPrivileges")


def _hide_users(libc: ctypes.CDLL) -> None:
    """A user namespace that knows this user alone; all others are nobody in it."""
    new_user = 0x10000000
    if libc.unshare(new_user):
        raise OSError(ctypes.get_errno(), "PrivateUsers")
    Path("/proc/self/setgroups").write_text("deny", encoding="ascii")
    for kind in ("uid", "gid"):
        Path(f"/proc/self/{kind}_map").write_text(f"{USER} {USER} 1", encoding="ascii")


def calls_of(words: Iterable[str]) -> set[str]:
    """The system calls that are meant, sets of systemd among them."""
    found: set[str] = set()
    for word in words:
        if not word.startswith("@"):
            found.add(word)
            continue
        told = subprocess.run(("systemd-analyze", "syscall-filter", word), capture_output=True, text=True, check=True)
        members = [line.strip() for line in told.stdout.splitlines()[1:]]
        found |= calls_of(member for member in members if member and not member.startswith("#"))
    return found


class _Comparison(ctypes.Structure):
    _fields_ = (
        ("argument", ctypes.c_uint),
        ("operator", ctypes.c_int),
        ("value", ctypes.c_uint64),
        ("more", ctypes.c_uint64),
    )


class CallFilter:
    """What the kernel lets through, as the unit says; everything is asked before privileges are dropped."""

    def __init__(self, unit: Unit) -> None:
        self._allowed: set[str] = set()
        for line in unit.get("SystemCallFilter", []):
            if line.startswith("~"):
                self._allowed -= calls_of(line[1:].split())
            else:
                self._allowed |= calls_of([*line.split(), "@default"])
        families = {FAMILIES[name] for name in _one(unit, "RestrictAddressFamilies").split()}
        self._refused_families = set(range(FAMILIES_MAX)) - families if families else set()
        name = ctypes.util.find_library("seccomp")
        self._library = ctypes.CDLL(name)
        self._library.seccomp_init.restype = ctypes.c_void_p

    def load(self) -> None:
        library = self._library
        context = ctypes.c_void_p(library.seccomp_init(ERRNO | REFUSED if self._allowed else ALLOW))
        number_of = {name: library.seccomp_syscall_resolve_name(name.encode()) for name in self._allowed | {"socket"}}
        for name in sorted(self._allowed - ({"socket"} if self._refused_families else set())):
            library.seccomp_rule_add_array(context, ALLOW, number_of[name], 0, None)  # unknown here: refused anyway
        for family in range(FAMILIES_MAX) if self._refused_families else ():
            action = ERRNO | NO_FAMILY if family in self._refused_families else ALLOW
            if action == ALLOW and not self._allowed:
                continue
            only = _Comparison(0, EQUAL, family, 0)
            if library.seccomp_rule_add_array(context, action, number_of["socket"], 1, ctypes.byref(only)):
                raise OSError("RestrictAddressFamilies")
        if library.seccomp_load(context):
            raise OSError("SystemCallFilter")


def main() -> NoReturn:
    is_inside = sys.argv[1] == INSIDE
    path, *words = sys.argv[2:] if is_inside else sys.argv[1:]
    split = words.index("--")
    kept, program = words[:split], words[split + 1 :]
    unit = unit_from(Path(path))
    calls = CallFilter(unit)
    if not is_inside:
        _seal_files(unit, kept)
    environment = dict(os.environ) | _folders(unit)
    _drop_privileges(unit)
    calls.load()
    os.execvpe(program[0], program, environment)


if __name__ == "__main__":
    main()
