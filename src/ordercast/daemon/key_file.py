"""The file with the keys of a cluster: one file, the same on every host, for nobody else to read.

It has up to eight keys. One is used; `next` is used as soon as all accept it; every other is accepted. Clear packets
are key 0. A file is never written over by `new_key_file`; changes replace it at once, or not at all. No error that this
module raises has a secret in it.
"""

from __future__ import annotations

import secrets
import tomllib
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ordercast.daemon.config.node import NodeConfig
from ordercast.daemon.folders import make_socket_folder
from ordercast.disk.secret_files import read_secret_file, replace_secret_file, write_new_secret_file
from ordercast.model.errors import UsageError
from ordercast.sealing.cipher import SECRET_SIZE
from ordercast.sealing.keys import KEYS_MAX, ClusterKey, KeyRing, listed
from ordercast.session.addresses import serving_folder
from ordercast.wire.head import CLEAR

CIPHER = "AES-256-GCM"
USER_KEY = "key"  # the file in the usual folder
VERSION = 1
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


def _advice(path: Path) -> str:
    return f"make one with `ordercast key new {path}`, or copy it"


def read_key_file(path: Path) -> KeyFile:
    """UsageError says what is wrong with the file and how to mend it."""
    data = read_secret_file(path, "key file", _advice(path), is_own=True)
    try:
        return key_file_from(data)
    except UsageError as error:
        raise UsageError(f"the key file {path} cannot be used: {error}") from None


def key_file_from(data: bytes) -> KeyFile:
    """UsageError when this is no sound key file; nothing of what it says is repeated."""
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


def new_key_file(path: Path, *, beside_clear: bool = False) -> KeyFile:
    """Make a file with one key, and never touch one that is there."""
    file = from_clear() if beside_clear else _of_one_key()
    write_new_secret_file(path, file.text(), f"see `ordercast key add {path}`")
    return file


def _of_one_key() -> KeyFile:
    key = _fresh()
    return KeyFile(KeyRing((key,), key.id, key.id), (_today(),))


def write_key_file(path: Path, file: KeyFile) -> None:
    """Put it in the place of the one that is there."""
    replace_secret_file(path, file.text())


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
    if number is not None and number not in ring.accepted:
        raise UsageError(f"the file has no key {number}, it has {listed(ring.accepted)}")
    if number is None and len(ring.accepted) == 1:
        raise UsageError(f"there is nothing to retire: the file has {listed(ring.accepted)} alone")
    if ring.wanted != ring.used:
        raise UsageError(
            f"key {listed((ring.wanted,))} is next, and not used yet: when `ordercast key status` shows that all nodes "
            "use it, run `ordercast key use`, and then this"
        )
    gone = {number} if number is not None else set(ring.accepted) - {ring.used}
    if ring.used in gone:
        raise UsageError(f"key {listed((ring.used,))} is the one that is used: add another first")
    kept = [(key, day) for key, day in zip(ring.keys, file.made, strict=True) if key.id not in gone]
    keys, days = tuple(key for key, _ in kept), tuple(day for _, day in kept)
    return KeyFile(KeyRing(keys, ring.used, ring.wanted, ring.accepts_clear and CLEAR not in gone), days)


def from_clear() -> KeyFile:
    """Return a first key for a cluster that runs in the clear: both are accepted, clear is used until all have the
    file."""
    key = _fresh()
    return KeyFile(KeyRing((key,), CLEAR, key.id, accepts_clear=True), (_today(),))


# Keys of nodes


def user_key_file() -> Path:
    """Where the key of this user is, for nodes of one machine that nobody has given another."""
    return serving_folder() / USER_KEY


def _users_keys(*, makes: bool) -> KeyRing:
    """Return the keys of this user. The first node that looks for them makes them: other users of the machine have
    others, so that their nodes are strangers."""
    path = user_key_file()
    try:
        make_socket_folder(path.parent)
    except OSError as error:
        raise UsageError(
            f"the key of this user cannot be kept in {path.parent}: {error.strerror}; choose another folder in "
            "$ORDERCAST_FOLDER, or name a key file in [security]"
        ) from error
    if makes and not path.exists():
        with suppress(UsageError):  # another node was faster; what else is wrong is told by whoever reads it
            new_key_file(path)
    return read_key_file(path).ring


def keys_of_node(config: NodeConfig, *, makes: bool = False) -> KeyRing | None:
    """Return the keys of a node; None when its packets are clear. `makes`: a user without a key gets one. UsageError
    says what is wrong with the file, or that other hosts reach this node and nobody said what protects it from
    strangers."""
    security = config.security
    if security.key is not None:
        return read_key_file(security.key).ring
    if security.insecure:
        return None
    if config.is_on_one_machine:
        return _users_keys(makes=makes)
    raise UsageError(
        "other hosts reach this node, and it has no key: run `ordercast key new FILE`, copy FILE to every host, "
        'and write key = "FILE" in [security]; or write insecure = true, if everybody there may read and send'
    )
