"""The programs in the documentation run, against real daemons, and print what the pages say."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.ports import free_ports

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted([*DOCS.rglob("*.md"), ROOT / "README.md"])
PATIENCE_S = 150.0
DAEMONS = ("n1", "n2", "n3")

# Embedded nodes of other programs on this machine are to be left alone.
OWN_PORT = """
import functools, ordercast
from ordercast.daemon.config.node import NetworkConfig, NodeConfig
own = NodeConfig(network=NetworkConfig(port={port}))
ordercast.Node = functools.partial(ordercast.Node, own)
ordercast.ThreadedNode = functools.partial(ordercast.ThreadedNode, own)
"""


def programs(page: Path) -> list[str]:
    blocks = re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    return [block for block in blocks if "import ordercast\n" in block or "from ordercast." in block]


def blocks_below(page: Path, heading: str) -> list[str]:
    _, found, rest = page.read_text(encoding="utf-8").partition(f"\n## {heading}\n")
    assert found, heading
    rest = rest.partition("\n## ")[0]
    return [body for _, body in re.findall(r"^```(\w*)\n(.*?)^```", rest, flags=re.DOTALL | re.MULTILINE)]


class Running:
    """A process whose lines are read as they come."""

    def __init__(self, *arguments: str, stream: str = "stdout", folder: Path | None = None) -> None:
        environment = {**os.environ, "PYTHONUNBUFFERED": "1", "NO_COLOR": "1"}
        if folder is not None:
            environment["ORDERCAST_FOLDER"] = str(folder)
        self.stream = stream
        self.process = subprocess.Popen(
            [sys.executable, *arguments],
            text=True,
            cwd=ROOT,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE if stream == "stdout" else subprocess.DEVNULL,
            stderr=subprocess.PIPE if stream == "stderr" else None,
        )

    def until(self, wanted: str) -> list[str]:
        """The lines up to one that has this in it."""
        lines: list[str] = []
        watch = threading.Timer(PATIENCE_S, self.process.kill)
        watch.start()
        try:
            for line in self._lines():
                lines.append(line.rstrip("\n"))
                if wanted in line:
                    return lines
        finally:
            watch.cancel()
        raise AssertionError(f"it ended before {wanted!r}, after {lines}")

    def say(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()

    def _lines(self) -> Iterator[str]:
        source = self.process.stdout if self.stream == "stdout" else self.process.stderr
        assert source is not None
        yield from iter(source.readline, "")

    def end(self, number: signal.Signals = signal.SIGKILL) -> None:
        if self.process.poll() is None:
            self.process.send_signal(number)
        self.process.communicate(timeout=PATIENCE_S)


class Cluster:
    """Three daemons that serve clients in one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        port = free_ports()
        nodes = "".join(
            f'[nodes.{name}]\nid = {number}\naddress = "127.0.0.1"\ntoken_port = {port + 2 * number}\n'
            f"data_port = {port + 2 * number + 1}\n"
            for number, name in enumerate(DAEMONS, 1)
        )
        file = folder / "cluster.toml"
        file.write_text(
            f'cluster = "docs"\n[network]\ntransport = "unicast"\nport = {port}\n[status]\nport = 0\n'
            f'[clients]\nfolder = "."\n{nodes}',
            encoding="utf-8",
        )
        self.daemons = {
            name: Running("-m", "ordercast", "daemon", "--config", str(file), "--name", name, stream="stderr")
            for name in DAEMONS
        }
        for daemon in self.daemons.values():
            daemon.until(" of n1 n2 n3")

    def end(self) -> None:
        for daemon in self.daemons.values():
            daemon.end()


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    made = Cluster(tmp_path)
    yield made
    made.end()


# By page: for each of its programs, what it prints sooner or later, in order.
EXPECTED = {
    "README.md": [["orders has alice@n1", "alice@n1 to orders b'buy 3'"], ["Deliver("]],
    "docs/concepts/replicated-state.md": [["here: b'100'", "latest: b'100'"], ["2 of 3"]],
    "docs/reference/client.md": [
        ["ordered at ", "orders has alice@n1", "alice@n1 to orders b'buy 3'"],
        ["bob@n1 b'sell 3'"],
        ["tea 3 7"],
        ["prices@n1 says 3.20"],
        ["order b'buy 3'", "chat b'hello'"],
        ["quick@n1 b'buy 3'"],
        ["6 in 3"],
    ],
    "docs/reference/replicated.md": [["b'100'"]],
    "docs/guides/durable-replicas.md": [["on the disks of a majority: 100"]],
    "docs/reference/node.md": [["board@n1 is here"], ["b'one'", "b'two'"]],
    "docs/tutorial/first-chat.md": [["in the room: alice@n1 (join: alice@n1)", "alice@n1: hello"]],
}
ARGUMENTS = {"docs/tutorial/first-chat.md": ["alice"]}


def test_every_program_of_the_documentation_is_run_here() -> None:
    found = {str(page.relative_to(ROOT)): len(programs(page)) for page in PAGES if programs(page)}
    known = {page: len(expected) for page, expected in EXPECTED.items()}
    simulations = {page: count for page, count in found.items() if page not in known}
    assert {page: found.get(page) for page in known} == known
    assert not any("connect(" in text for page in simulations for text in programs(ROOT / page)), simulations


def test_the_programs_print_what_the_pages_say(cluster: Cluster, tmp_path: Path) -> None:
    for page, expectations in EXPECTED.items():
        for text, expected in zip(programs(ROOT / page), expectations, strict=True):
            file = tmp_path / "program.py"
            own_port = OWN_PORT.format(port=free_ports()) if "Node(name=" in text else ""
            placed = text.replace('journal="journal"', f"journal={str(tmp_path / 'journal')!r}")
            file.write_text(own_port + placed, encoding="utf-8")
            program = Running(str(file), *ARGUMENTS.get(page, []), folder=cluster.folder)
            for line in expected:
                program.until(line)
            program.end()


def test_the_story_of_a_group_is_as_the_page_tells_it(cluster: Cluster, tmp_path: Path) -> None:
    (text,) = programs(DOCS / "tutorial" / "first-chat.md")
    file = tmp_path / "room.py"
    file.write_text(text, encoding="utf-8")
    told = blocks_below(DOCS / "concepts" / "groups.md", "Try it")[0].splitlines()
    clients: dict[str, Running] = {}
    read: list[str] = []
    for name, daemon in zip(("alice", "bob", "carol"), DAEMONS, strict=True):
        clients[name] = Running(str(file), name, daemon, folder=cluster.folder)
        clients[name].until(f"{name}@{daemon}: hello")
        if name != "alice":
            read += clients["alice"].until(f"{name}@{daemon}: hello")
    clients["bob"].end(signal.SIGTERM)
    read += clients["alice"].until("(disconnect: bob@n2)")
    cluster.daemons["n3"].end()
    read += clients["alice"].until("(network")
    assert read == told[2:]
    clients["alice"].end()
    clients["carol"].end()


def masked(line: str) -> str:
    """Without numbers and folders, which are others each time."""
    return re.sub(r"\s+", " ", re.sub(r"unix://\S+/", "unix:///", re.sub(r"\d+", "#", line))).strip()


def test_the_chat_of_the_tutorial_is_as_the_page_tells_it(tmp_path: Path) -> None:
    page = DOCS / "tutorial" / "first-chat.md"
    (banner,) = blocks_below(page, "2. A cluster on one machine")
    alone, second, third, lines, change, log, back = blocks_below(page, "3. Talk")
    up = Running("-m", "ordercast", "up", "-n", "3", "--port", str(free_ports()), folder=tmp_path)
    chats: dict[str, Running] = {}
    try:
        printed = up.until("Its log follows")
        chosen = [line for line in printed if "export ORDERCAST_FOLDER=" in line]  # readers have the usual folder
        assert len(chosen) == 1 and str(tmp_path) in chosen[0]
        assert [masked(line) for line in printed if line not in chosen] == [
            masked(line) for line in banner.splitlines()[1:]
        ]
        people = zip(("alice", "bob", "carol"), DAEMONS, (alone, second, third), strict=True)
        for name, daemon, block in people:
            command, *greeting = block.splitlines()
            assert command == f"$ ordercast chat --name {name} --at {daemon}"
            chats[name] = Running("-m", "ordercast", *command.split()[2:], folder=tmp_path)
            assert chats[name].until("You are") == greeting[:1]
        read = chats["alice"].until("carol came in")
        for line in lines.splitlines()[2:]:
            name, _, words = line.partition(": ")
            chats[name].say(words)
            read += chats["alice"].until(line)
        assert read == lines.splitlines()
        chats["carol"].process.send_signal(signal.SIGSTOP)  # so that she comes back after the view, not in the midst
        os.kill(int(re.findall(r"kill -9 (\d+)", "\n".join(printed))[0]), signal.SIGKILL)
        assert chats["alice"].until("out of reach") == change.splitlines()
        chats["carol"].process.send_signal(signal.SIGCONT)
        assert chats["carol"].until("You are carol@n")[-3:] == back.splitlines()
        assert "n3 is gone" in log
    finally:
        for chat in chats.values():
            chat.end()
        up.end(signal.SIGINT)
    shown = (DOCS / "pictures" / "chat.txt").read_text(encoding="utf-8")
    for line in (*lines.splitlines(), *change.splitlines()):
        assert line in shown
