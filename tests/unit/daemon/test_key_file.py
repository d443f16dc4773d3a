"""The key file: nobody else reads it, nothing is written over, and what is wrong is said without a secret."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from ordercast.daemon.key_file import (
    from_clear,
    key_file_from,
    new_key_file,
    read_key_file,
    with_clear,
    with_new_key,
    with_used,
    without_key,
    write_key_file,
)
from ordercast.model.errors import UsageError
from ordercast.sealing.keys import ClusterKey


def test_a_new_file_is_private_and_says_what_it_has(tmp_path: Path) -> None:
    path = tmp_path / "key"
    made = new_key_file(path)
    assert path.stat().st_mode & 0o777 == 0o600
    assert read_key_file(path).ring == made.ring and made.ring.accepted == (made.ring.used,)
    with pytest.raises(UsageError, match="not written over"):
        new_key_file(path)


def test_a_key_is_added_used_and_retired(tmp_path: Path) -> None:
    path = tmp_path / "key"
    first = new_key_file(path)
    write_key_file(path, with_new_key(first))
    both = read_key_file(path)
    assert both.ring.used == first.ring.used != both.ring.wanted and path.stat().st_mode & 0o777 == 0o600
    for wrong in (with_new_key, with_clear, without_key):
        with pytest.raises(UsageError, match="ordercast key use"):
            wrong(both)
    used = with_used(both)
    with pytest.raises(UsageError, match="the one that is used"):
        without_key(used, used.ring.used)
    last = without_key(used)
    assert last.ring.accepted == (both.ring.wanted,)
    with pytest.raises(UsageError, match="nothing to retire"):
        without_key(last)
    assert [entry.name for entry in tmp_path.iterdir()] == ["key"]


def test_what_cannot_be_retired_is_said_by_its_own_name(tmp_path: Path) -> None:
    file = new_key_file(tmp_path / "key")
    absent = next(number for number in range(1, 256) if number != file.ring.used)
    with pytest.raises(UsageError, match=f"has no key {absent}, it has {file.ring.used}"):
        without_key(file, absent)
    with pytest.raises(UsageError, match="has no key 0"):
        without_key(with_new_key(file), 0)
    with pytest.raises(UsageError, match="nothing to retire"):
        without_key(file)
    with pytest.raises(UsageError, match=f"key {file.ring.used} is the one that is used"):
        without_key(file, file.ring.used)


def test_clear_is_a_key_too() -> None:
    begun = from_clear()
    assert begun.ring.used == 0 and begun.ring.accepts_clear
    sealed = without_key(with_used(begun))
    assert not sealed.ring.accepts_clear
    back = without_key(with_used(with_clear(sealed)))
    assert back.ring.accepted == (0,) and key_file_from(back.text().encode()).ring == back.ring


def _number(secret: str) -> int:
    return ClusterKey(bytes.fromhex(secret)).id


def test_what_is_wrong_is_said_with_what_to_do_and_without_a_secret(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "key"
    with pytest.raises(UsageError, match=f"ordercast key new {path}"):
        read_key_file(path)
    text = new_key_file(path).text()
    secret = re.findall(r'secret = "(\w+)"', text)[0]
    others = [secret[:-4] + end for end in ("0000", "1111", "2222", "3333", "4444")]  # numbers have one byte
    path.chmod(0o644)
    with pytest.raises(UsageError, match=f"chmod 600 {path}"):
        read_key_file(path)
    path.chmod(0o600)
    stranger = os.stat_result((*path.stat()[:4], 4711, *path.stat()[5:10]))
    for me, advice in ((1000, f"#4711: run `chown 1000 {path}`"), (0, "and this is root: run this as that user")):
        monkeypatch.setattr(os, "geteuid", lambda me=me: me)
        with monkeypatch.context() as patched, pytest.raises(UsageError, match=advice):
            patched.setattr(os, "fstat", lambda _: stranger)
            read_key_file(path)
    monkeypatch.undo()
    for wrong in (
        text[:-40],
        text.replace(secret, secret[:-2]),
        text.replace(secret, "zz" + secret[2:]),
        text.replace(secret, next(one for one in others if _number(one) != _number(secret))),
        text.replace("AES-256-GCM", "ROT13"),
        re.sub(r"used = \d+", 'used = "a"', text),
        "\x00" + text,
        text * 300,
    ):
        path.write_text(wrong)
        with pytest.raises(UsageError) as error:
            read_key_file(path)
        assert str(path) in str(error.value) and secret[:8] not in str(error.value)
