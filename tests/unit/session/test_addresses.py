"""Where daemons are looked for."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from ordercast.model.errors import UsageError
from ordercast.session import addresses
from ordercast.session.addresses import (
    UnixAddress,
    addresses_from,
    is_trusted,
    passed_over,
    serving_folder,
    usual_folder,
)


@pytest.fixture
def system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of the system's daemon, with one; this user is not root and has a folder of its own."""
    folder = tmp_path / "run" / "ordercast"
    folder.mkdir(parents=True, mode=0o755)
    monkeypatch.setattr(addresses, "SYSTEM_FOLDER", folder)
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    monkeypatch.delenv("ORDERCAST_FOLDER", raising=False)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setattr(addresses, "PATH_SIZE_MAX", 1000)
    here = os.open(folder, os.O_RDONLY)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"/proc/self/fd/{here}/alpha.sock")
        yield folder
    os.close(here)


def test_the_daemon_of_the_system_is_found_by_everybody(system: Path) -> None:
    (system.parent).chmod(0o755)
    assert addresses_from(None) == [UnixAddress(system / "alpha.sock")]
    assert UnixAddress(system / "alpha.sock") in addresses_from("alpha")
    assert addresses_from("beta") == [UnixAddress(usual_folder() / "beta.sock")]


def test_what_others_may_write_is_not_trusted(system: Path) -> None:
    system.chmod(0o777)
    assert not is_trusted(system) and addresses_from(None) == []


def test_a_folder_that_is_chosen_is_the_only_one(system: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ORDERCAST_FOLDER", str(tmp_path / "own"))
    monkeypatch.setenv("RUNTIME_DIRECTORY", "/run/other")
    assert addresses_from(None) == []
    assert serving_folder() == tmp_path / "own"


def test_a_daemon_serves_in_the_folder_that_systemd_has_made_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ORDERCAST_FOLDER", raising=False)
    monkeypatch.setenv("RUNTIME_DIRECTORY", "/run/ordercast:/run/other")
    assert serving_folder() == Path("/run/ordercast")
    assert usual_folder() != Path("/run/other")


@pytest.mark.parametrize("text", ["http://a", "https://a:4700", "ssh://a/b"])
def test_another_scheme_is_refused_with_what_to_write(text: str) -> None:
    rest = text.partition("://")[2]
    with pytest.raises(UsageError, match=f"is not spoken: write tcp://{rest}, or unix:///PATH"):
        addresses_from(text)


def test_sockets_that_are_passed_over_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ORDERCAST_FOLDER", str(tmp_path))
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "n1.sock"))
        assert addresses_from(None) == [UnixAddress(tmp_path / "n1.sock")] and passed_over() == []
        tmp_path.chmod(0o777)
        assert addresses_from(None) == []
        (sentence,) = passed_over()
        assert sentence.startswith(f"{tmp_path / 'n1.sock'} was passed over, as others than you and root may have")
