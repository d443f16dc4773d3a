"""A cluster on this machine and its clients, all as processes of their own, as a person starts them.

Each test has ports and a folder of its own, so that other clusters on the machine are strangers to it.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from rig.nursery import forked

from ordercast import Message
from ordercast.api.blocking import BlockingClient
from ordercast.api.connect import connect
from ordercast.cli.daemons import ordercast_command
from tests.ports import free_ports

PATIENCE_S = 150.0
COMMAND = ordercast_command()
IMPORTS = ("ordercast.cli.check", "ordercast.cli.groups", "ordercast.cli.send")


def eventually(is_so: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < end, "it did not come to pass"
        time.sleep(0.02)


class Program:
    """A command that runs, and the lines that it prints."""

    def __init__(self, arguments: tuple[str, ...], stderr: Path) -> None:
        with stderr.open("w", encoding="utf-8") as file:
            self.process = subprocess.Popen(
                [*COMMAND, *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=file,
                text=True,
            )
        self._lines: queue.Queue[str | None] = queue.Queue()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(line.rstrip("\n"))
        self._lines.put(None)

    def line(self, words: str) -> str:
        """The next one with these words."""
        while (line := self._lines.get(timeout=PATIENCE_S)) is not None:
            if words in line:
                return line
        raise AssertionError(f"it ended and did not say {words!r}")

    def rest(self) -> list[str]:
        """All lines to the end."""
        lines = []
        while (line := self._lines.get(timeout=PATIENCE_S)) is not None:
            lines.append(line)
        return lines

    def type(self, text: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(text)
        self.process.stdin.flush()

    def end_input(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()

    def ended(self, number: signal.Signals | None = None) -> int:
        """The exit status, after this signal."""
        if number is not None:
            self.process.send_signal(number)
        return self.process.wait(PATIENCE_S)

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        self._reader.join()
        for stream in (self.process.stdin, self.process.stdout):
            assert stream is not None
            with suppress(BrokenPipeError):
                stream.close()


class Stage:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = free_ports()
        self.programs: list[Program] = []
        self.daemons: dict[str, dict[str, Any]] = {}

    def start(self, *arguments: str, log: str = "err") -> Program:
        program = Program(arguments, self.folder / log)
        self.programs.append(program)
        return program

    def up(self, *arguments: str) -> Program:
        """Returns when the cluster runs."""
        program = self.start("up", "--json", "--port", str(self.port), *arguments, log="up")
        lines = [program.line("{")]
        while lines[-1] != "}":
            lines.append(program.line(""))
        self.daemons = {daemon["name"]: daemon for daemon in json.loads("".join(lines))["daemons"]}
        return program

    def run(self, *arguments: str, said: str = "") -> str:
        """Return what a command says that ends by itself. It is forked: the others show that commands start."""
        errors = self.folder / "errors"
        with errors.open("w") as log:
            command = forked("ordercast.cli.main", *arguments, imports=IMPORTS, stderr=log.fileno())
        assert command.stdin is not None and command.stdout is not None
        with command.stdin, command.stdout:
            command.stdin.write(said.encode())
            command.stdin.close()
            told = command.stdout.read().decode()
        assert command.wait(PATIENCE_S) == 0, errors.read_text(encoding="utf-8")
        return told

    def log(self) -> str:
        return (self.folder / "up").read_text(encoding="utf-8")

    def is_gone(self) -> bool:
        """No daemon runs, no socket is left."""
        alive = [daemon for daemon in self.daemons.values() if Path(f"/proc/{daemon['pid']}").exists()]
        return not alive and not list((self.folder / "run").glob("*.sock"))

    def crash(self, name: str) -> None:
        os.kill(self.daemons[name]["pid"], signal.SIGKILL)


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    monkeypatch.setenv("ORDERCAST_FOLDER", str(tmp_path / "run"))
    made = Stage(tmp_path)
    yield made
    for program in made.programs:
        program.close()


def test_three_daemons_serve_clients_and_end_in_order(stage: Stage) -> None:
    cluster = stage.up("-n", "3")
    assert list(stage.daemons) == ["n1", "n2", "n3"], stage.log()

    listener = stage.start("listen", "news", "--at", "n3", "--name", "ear", "--count", "5")
    assert listener.line("joined") == "news  ·  this client joined; 1 member: ear@n3"
    documents = stage.start("listen", "news", "--at", "n2", "--count", "5", "--json")
    assert json.loads(documents.line("view"))["members"] == ["c1@n2", "ear@n3"]

    assert json.loads(stage.run("groups", "--json")) == {"groups": [{"name": "news", "members": 2}]}
    assert "ear@n3   n3" in stage.run("groups", "news", "--at", "n1")
    assert stage.run("groups", "nothing") == "nobody is in nothing\n"

    assert stage.run("send", "news", "hello", "there") == "1 message sent to news\n"
    sent = stage.run("send", "news,nothing", "--name", "bob", "--service", "safe", "--confirm", "--at", "n2", "hi")
    assert sent.startswith("1 message sent to news and nothing; its place in the order is ")
    assert stage.run("send", "news", said="one\n\x1b[2Jtwo") == "2 messages sent to news\n"
    document = json.loads(stage.run("send", "ear@n3", "just", "you", "--json", "--confirm"))
    assert (document["sent"], document["to"], len(document["position"])) == (1, ["ear@n3"], 4)
    assert stage.run("send", "news", "more", "--count", "3") == "3 messages sent to news\n"

    heard = [line.split("  ", 2) for line in listener.rest()]
    texts = [text for _, sender, text in heard if sender != "·"]
    assert texts == ["hello there", "hi", "one", "\\x1b[2Jtwo", "just you"]
    assert ["news,nothing", "bob@n2", "hi"] in heard
    messages = [event for line in documents.rest() if (event := json.loads(line))["kind"] == "message"]
    assert [message["text"] for message in messages] == ["hello there", "hi", "one", "\x1b[2Jtwo", "more"]
    assert (messages[1]["service"], messages[1]["groups"]) == ("safe", ["news", "nothing"])
    assert messages == sorted(messages, key=lambda message: message["position"])
    assert (listener.ended(), documents.ended()) == (0, 0)

    assert cluster.ended(signal.SIGINT) == 0
    assert stage.log().splitlines()[-1].endswith("up  nothing runs any more: 3 of 3 daemons left in order")
    assert stage.is_gone()


def test_people_chat_and_see_each_other_come_crash_and_go(stage: Stage) -> None:
    cluster = stage.up("-n", "2")
    ann = stage.start("chat", "--name", "ann", "--at", "n1")
    ann.line("You are ann@n1, alone in the room lobby: type `ordercast chat` in another terminal.")
    bob = stage.start("chat", "lobby", "--name", "bob", "--at", "n2")
    bob.line("You are bob@n2 in the room lobby, with ann@n1.")
    ann.line("bob came in.")
    ann.type("hello\n//slash\n")
    for person in (ann, bob):
        person.line("ann: hello")
        person.line("ann: /slash")
    ann.type("/who\n/wave\n")
    ann.line("2 here: ann@n1 (you) and bob@n2")
    ann.line("There is no /wave: /who shows who is here, /quit leaves")

    stage.crash("n2")
    bob.line("The connection to the daemon broke")
    bob.line("You are connected again: what was said meanwhile is missing here.")
    bob.line("You are bob@n1 in the room lobby, with ann@n1")
    ann.line(" came in.")
    bob.type("back")  # no line feed, and then the end
    bob.end_input()
    bob.line("bob")
    assert bob.ended() == 0
    ann.line(": back")
    ann.line(" left.")

    eventually(lambda: "n2 was ended by SIGKILL; n1 goes on" in stage.log())
    assert cluster.ended(signal.SIGTERM) == 1
    assert "nothing runs any more: 1 of 2 daemons left in order" in stage.log()
    assert stage.is_gone()
    ann.line("The daemon n1 is being shut down. Looking for a daemon …")
    assert ann.ended(signal.SIGINT) == 0
    assert ann.rest() == ["You left the room lobby."]


def test_a_daemon_that_cannot_start_is_told_and_the_others_go_on(stage: Stage) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        cluster = stage.up("-n", "2", "--tcp", str(port - 1), "--trace", str(stage.folder / "traces"))
        ((name, daemon),) = stage.daemons.items()
        tcp = daemon["clients"][1]
        assert tcp == f"tcp://127.0.0.1:{port - 1}"
        assert f"could not start (exit status 2); {name} goes on" in stage.log()
        assert f"clients cannot be served at 127.0.0.1 port {port}: the port is taken" in stage.log()
        assert json.loads(stage.run("groups", "--json", "--at", tcp)) == {"groups": []}
        assert cluster.ended(signal.SIGTERM) == 1
    assert stage.is_gone()
    assert " VALID   1 of 1 run is valid" in stage.run("check", str(stage.folder / "traces"))


def test_daemons_do_not_outlive_the_command_that_started_them(stage: Stage) -> None:
    cluster = stage.up("-n", "2")
    assert cluster.ended(signal.SIGKILL) == -signal.SIGKILL
    eventually(stage.is_gone)


def test_two_rings_that_gateways_join_serve_clients_as_one(stage: Stage) -> None:
    """Clients on different rings read the same, before and after one of two gateways is killed."""
    cluster = stage.up("--rings", "2")
    rings = {name: daemon["rings"] for name, daemon in stage.daemons.items()}
    assert rings == {"g1": ["r1", "r2"], "g2": ["r2", "r1"], "n1": ["r1"], "n2": ["r2"]}, stage.log()
    with ExitStack() as stack:
        ears = [stack.enter_context(connect(stage.daemons[name]["clients"][0])) for name in ("n1", "n2", "g1")]
        for ear in ears:
            ear.join("news")
        for number in range(10):
            ears[number % 3].send("news", b"%d" % number, confirm=True)
        stage.crash("g2")
        eventually(lambda: "g2 is gone" in stage.log())
        for number in range(10, 20):
            ears[number % 3].send("news", b"%d" % number, confirm=True)
        heard = [[event.data for event in messages_of(ear, 20)] for ear in ears]
        assert heard == [[b"%d" % number for number in range(20)]] * 3
    cluster.process.send_signal(signal.SIGINT)
    eventually(stage.is_gone)


def messages_of(client: BlockingClient, count: int) -> list[Message]:
    return list(islice((event for event in client if isinstance(event, Message)), count))
