"""The file with the keys of a cluster: one file, the same on every host, for nobody else to read.

It has up to eight keys. One is used; `next` is used as soon as all accept it; every other is accepted. Clear packets
are key 0. A file is never written over by `new_key_file`; changes replace it at once, or not at all. No error that this
module raises has a secret in it.
"""

from __future__ import annotations

import os
import secrets
import stat
import tomllib
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ordercast.daemon.config.node import NodeConfig
from ordercast.model.errors import UsageError
from ordercast.sealing.cipher import SECRET_SIZE
from ordercast.sealing.keys import KEYS_MAX, ClusterKey, KeyRing, listed
from ordercast.wire.head import CLEAR

CIPHER = "AES-256-GCM"
VERSION = 1
KEY_FILE_SIZE_MAX = 1 << 16
PRIVATE = 0o600
_TITLE = "# Keys of an Ordercast cluster. Whoever has this file is trusted with everything: keep it secret.\n"


@dataclass(frozen=True)
class KeyFile:
    ring: KeyRing
    made: tuple[str, ...]  # the day of each key

    def text(self) -> str:
        """What the file says, secrets too."""
        ring = self.ring
        lines = [f"version = {VERSION}", f'cipher = "{CIPHER}"', f"used = {ring.used}"]
        lines += [f"next = {ring.wanted}"] if ring.wanted != ring.used else []
        lines += ["clear = true"] if ring.accepts_clear else []
        for key, day in zip(ring.keys, self.made, strict=True):
            lines += ["", "[[keys]]", f"id = {key.id}", f'secret = "{key.secret.hex()}"', f'made = "{day}"']
        return _TITLE + "\n".join(lines) + "\n"


def _today() -> str:
    return datetime.now(UTC).date().isoformat()


def _fresh(taken: tuple[int, ...] = ()) -> ClusterKey:
    while (key := ClusterKey(secrets.token_bytes(SECRET_SIZE))).id in taken:
        pass
    return key


# Reading


def read_key_file(path: Path) -> KeyFile:
    """UsageError says what is wrong with the file and how to mend it."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        raise UsageError(f"there is no key file {path}: make one with `ordercast key new {path}`, or copy it") from None
    except OSError as error:
        raise UsageError(f"the key file {path} cannot be read: {error.strerror}") from error
    with os.fdopen(descriptor, "rb") as file:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise UsageError(f"{path} is not a file: make one with `ordercast key new FILE`")
        if found.st_uid not in (os.geteuid(), 0):
            raise UsageError(f"the key file {path} belongs to another user: run `chown {os.geteuid()} {path}`")
        if found.st_mode & 0o077:
            raise UsageError(f"the key file {path} can be read by others: run `chmod 600 {path}`")
        data = file.read(KEY_FILE_SIZE_MAX + 1)
    try:
        return key_file_from(data)
    except UsageError as error:
        raise UsageError(f"the key file {path} cannot be used: {error}") from None


def key_file_from(data: bytes) -> KeyFile:
    """UsageError when this is no sound key file; nothing of what it says is repeated."""
    if len(data) > KEY_FILE_SIZE_MAX:
        raise UsageError("it is too large")
    try:
        document = tomllib.loads(data.decode("ascii"))
    except (ValueError, RecursionError):
        raise UsageError("it is not what `ordercast key new` writes") from None
    if document.get("version") != VERSION or document.get("cipher") != CIPHER:
        raise UsageError(f"it is not of version {VERSION} with the cipher {CIPHER}: is it of a later release?")
    entries = document.get("keys", [])
    if not isinstance(entries, list) or len(entries) > KEYS_MAX:
        raise UsageError(f"it has no list of at most {KEYS_MAX} keys")
    keys = tuple(_key_from(entry) for entry in entries)
    used, accepts_clear = document.get("used"), document.get("clear", False)
    wanted = document.get("next", used)
    if type(used) is not int or type(wanted) is not int or type(accepts_clear) is not bool:
        raise UsageError("it does not say which key is used")
    return KeyFile(KeyRing(keys, used, wanted, accepts_clear), tuple(str(entry.get("made", "")) for entry in entries))


def _key_from(entry: Any) -> ClusterKey:
    secret = entry.get("secret") if isinstance(entry, dict) else None
    try:
        key = ClusterKey(bytes.fromhex(secret if isinstance(secret, str) else ""))
    except ValueError:
        raise UsageError("a secret in it is not written in hexadecimal digits") from None
    if entry.get("id") != key.id:
        raise UsageError("a key in it has a number that is not its own: was a line changed?")
    return key


# Writing


def new_key_file(path: Path) -> KeyFile:
    """Make a file with one key, and never touch one that is there."""
    key = _fresh()
    file = KeyFile(KeyRing((key,), key.id, key.id), (_today(),))
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, PRIVATE)
    except FileExistsError:
        raise UsageError(f"{path} is there already, and is not written over: see `ordercast key add {path}`") from None
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}") from error
    _write(descriptor, file.text())
    return file


def _write(descriptor: int, text: str) -> None:
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
        file.flush()
        os.fsync(descriptor)


def write_key_file(path: Path, file: KeyFile) -> None:
    """Put it in the place of the one that is there."""
    fresh = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        _write(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, PRIVATE), file.text())
        os.replace(fresh, path)
    except OSError as error:
        with suppress(OSError):
            fresh.unlink()
        raise UsageError(f"{path} cannot be written: {error.strerror}") from error


def with_new_key(file: KeyFile) -> KeyFile:
    """One key more, to be used as soon as all accept it."""
    ring = file.ring
    _no_change_under_way(ring)
    key = _fresh(ring.accepted)
    return KeyFile(replace(ring, keys=(*ring.keys, key), wanted=key.id), (*file.made, _today()))


def with_clear(file: KeyFile) -> KeyFile:
    """Clear packets, to be used as soon as all accept them."""
    _no_change_under_way(file.ring)
    return replace(file, ring=replace(file.ring, wanted=CLEAR, accepts_clear=True))


def _no_change_under_way(ring: KeyRing) -> None:
    if ring.wanted != ring.used:
        raise UsageError(
            f"a change from key {listed((ring.used,))} to {listed((ring.wanted,))} is under way: finish it with "
            "`ordercast key use` and `ordercast key retire` first"
        )


def with_used(file: KeyFile, number: int | None = None) -> KeyFile:
    """The key that is next, or this one, becomes the one that is used."""
    number = file.ring.wanted if number is None else number
    if number not in file.ring.accepted:
        raise UsageError(f"the file has no key {number}, it has {listed(file.ring.accepted)}")
    return replace(file, ring=replace(file.ring, used=number, wanted=number))


def without_key(file: KeyFile, number: int | None = None) -> KeyFile:
    """Take out this key, or all that are not used."""
    ring = file.ring
    if ring.wanted != ring.used:
        raise UsageError(f"key {listed((ring.wanted,))} is not used yet: run `ordercast key use` first")
    gone = {number} if number is not None else set(ring.accepted) - {ring.used}
    if ring.used in gone:
        raise UsageError(f"key {listed((ring.used,))} is the one that is used: add another first")
    if not gone & set(ring.accepted):
        raise UsageError(f"there is nothing to retire: the file has {listed(ring.accepted)} alone")
    kept = [(key, day) for key, day in zip(ring.keys, file.made, strict=True) if key.id not in gone]
    keys, days = tuple(key for key, _ in kept), tuple(day for _, day in kept)
    return KeyFile(KeyRing(keys, ring.used, ring.wanted, ring.accepts_clear and CLEAR not in gone), days)


def from_clear() -> KeyFile:
    """Return a first key for a cluster that runs in the clear: both are accepted, clear is used until all have the
    file."""
    key = _fresh()
    return KeyFile(KeyRing((key,), CLEAR, key.id, accepts_clear=True), (_today(),))


def keys_of_node(config: NodeConfig) -> KeyRing | None:
    """Return the keys of a node; None when its packets are clear. UsageError says what is wrong with the file, or that
    other hosts reach this node and nobody said what protects it from strangers."""
    security = config.security
    if security.key is not None:
        return read_key_file(security.key).ring
    if not security.insecure and not config.is_on_one_machine:
        raise UsageError(
            "other hosts reach this node, and it has no key: run `ordercast key new FILE`, copy FILE to every host, "
            'and write key = "FILE" in [security]; or write insecure = true, if everybody there may read and send'
        )
    return None
