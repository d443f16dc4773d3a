"""`up`, `chat`, `send`, `listen` and `groups` where no daemon is. With daemons that run for real: tests/runtime."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ordercast.cli.client_options import first_and_others, service_from
from ordercast.cli.commands import NAMES
from ordercast.cli.main import run
from ordercast.model.errors import UsageError
from ordercast.model.service import Service

Call = Callable[..., tuple[int, str, str]]
NO_DAEMON = "no daemon can be reached (no daemon runs on this machine): start one with `ordercast up`"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where daemons would have their sockets."""
    monkeypatch.setenv("ORDERCAST_FOLDER", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "200")
    return tmp_path


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Call:
    def _call(*arguments: str) -> tuple[int, str, str]:
        status = run(arguments)
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return _call


@pytest.fixture
def stale(folder: Path) -> Iterator[str]:
    """The socket of a daemon that was killed."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(folder / "n1.sock"))
    yield "n1"


@pytest.mark.parametrize("command", ["up", "chat", "send", "listen", "groups"])
def test_help_has_an_example(call: Call, command: str) -> None:
    status, out, _ = call(command, "--help")
    assert status == 0
    assert f"Example: ordercast {command}" in out


def test_all_commands_are_listed(call: Call) -> None:
    out = call("--help")[1]
    assert all(f"\n  {name} " in out for name in NAMES)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["send", "news", "hello"], NO_DAEMON),
        (["groups"], NO_DAEMON),
        (["listen", "news"], NO_DAEMON),
        (["listen", "news", "--wait", "0"], NO_DAEMON),
        (["send", "news", "hello", "--wait", "0.01"], "no daemon can be reached within 0.01 s (no daemon runs on this"),
        (["send", "news", "hello", "--at", "n7", "--wait", "0.01"], "n7.sock: No such file or directory"),
        (["listen", "news", "--wait", "-1"], "--wait"),
        (["chat"], NO_DAEMON),
        (["send", "news", "hello", "--at", "n7"], "no daemon 'n7' runs on this machine: start one with `ordercast up`"),
        (["listen", "news", "--at", "n7"], "no daemon 'n7' runs on this machine"),
        (["groups", "--at", "tcp://127.0.0.1"], "is no address: write tcp://HOST:PORT"),
        (["groups", "--at", "127.0.0.1:4710"], "is no address: write tcp://127.0.0.1:4710"),
        (["groups", "--at", "tcp://127.0.0.1:1"], "tcp://127.0.0.1:1"),
        (["groups", "--at", "unix:///does/not/exist"], "unix:///does/not/exist: No such file or directory"),
        (["send", "a" * 65, "hello"], "has 65 characters: at most 64"),
        (["send", "no blanks", "hello"], "has ' ' in it"),
        (["send", "", "hello"], "a group name has at least one character"),
        (["listen", "alice@n1"], "the group name 'alice@n1' has '@' in it"),
        (["groups", "a b"], "has ' ' in it"),
        (["chat", "ro#om"], "has '#' in it"),
        (["chat", "--name", "me@home"], "the client name 'me@home' has '@' in it"),
        (["send", "news", "hello", "--name", "a" * 33], "has 33 characters: at most 32"),
        (["send", "news", "hello", "--service", "swift"], "there is no service 'swift': choose one of safe, agreed"),
        (["send", "news", "hello", "--service", "unreliable"], "there is no service 'unreliable'"),
        (["send", "news", "hello", "--count", "0"], "--count"),
        (["send", "news", "--count", "2"], "--count needs a text or --file"),
        (["send", "news", "hello", "--file", "x"], "exclude each other"),
        (["send", "news", "--file", "/does/not/exist"], "/does/not/exist cannot be read: No such file or directory"),
        (["send"], "GROUP"),
        (["listen"], "GROUP"),
        (["listen", "news", "--json", "--raw"], "--json and --raw exclude each other"),
        (["listen", "news", "--count", "0"], "--count"),
        (["up", "-n", "0"], "-n"),
        (["up", "-n", "49"], "-n"),
        (["up", "--tcp", "70000"], "--tcp"),
        (["up", "--port", "0"], "--port"),
        (["up", "--trace", "/usr"], "/usr is not empty: give --trace a new folder"),
        (["daemon", "--port", "5000", "--config", "/does/not/exist"], "--port is for a node without a file"),
        (["daemon", "--clients-port", "70000"], "--clients-port"),
    ],
)
def test_what_cannot_be_done_is_one_sentence_and_status_2(call: Call, arguments: list[str], words: str) -> None:
    status, out, err = call(*arguments)
    assert (status, out) == (2, "")
    assert words in err
    assert err.startswith("ordercast: ")
    assert err.count("\n") == 1


def test_a_daemon_that_was_killed_is_told_from_one_that_never_ran(call: Call, stale: str) -> None:
    status, _, err = call("groups", "--at", stale)
    assert status == 2
    assert "n1.sock: Connection refused" in err
    assert "no daemon 'n2' runs on this machine: start one with" in call("groups", "--at", "n2")[2]


def test_who_reconnects_stays_on_this_machine(folder: Path) -> None:
    (folder / "n1.sock").touch()
    assert first_and_others("n1") == "n1 *"
    for address in (None, "", "*", "tcp://h:1", "/path", "n1 n2"):
        assert first_and_others(address) == address
    with pytest.raises(UsageError, match="no daemon 'n2' runs"):
        first_and_others("n2")


def test_services_are_called_by_name() -> None:
    assert [service_from(name) for name in ("safe", "AGREED", "fifo")] == [Service.SAFE, Service.AGREED, Service.FIFO]
