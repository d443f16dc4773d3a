"""`config check`, `status` and `daemon` as a person runs them. Nodes that run for real: tests/runtime."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ordercast.cli import cluster as cluster_command
from ordercast.cli import status as status_command
from ordercast.cli.main import run
from ordercast.cli.status_drawing import status_line
from ordercast.daemon.config.defaults import STATUS_PORT
from ordercast.daemon.status.http import StatusServer
from ordercast.daemon.status.report import status_of
from ordercast.model.effects import Alarm, AlarmKind
from ordercast.model.ids import Instant
from tests.unit.daemon.fake_node import FakeNode

Call = Callable[..., tuple[int, str, str]]
EXAMPLE = str(Path(__file__).parents[3] / "docs" / "examples" / "cluster.toml")


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Call:
    monkeypatch.setenv("COLUMNS", "200")

    def _call(*arguments: str) -> tuple[int, str, str]:
        status = run(arguments)
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return _call


def test_help_has_an_example(call: Call) -> None:
    for command in (["daemon"], ["status"], ["config"], ["config", "check"]):
        status, out, _ = call(*command, "--help")
        assert status == 0
        assert "Example: ordercast" in out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["config", "chek"], "No such command 'chek'"),
        (["config", "check"], "FILE"),
        (["config", "check", "/does/not/exist"], "/does/not/exist: cannot be read"),
        (["config", "check", EXAMPLE, "--name", "delta"], "the file has alpha, beta, gamma"),
        (["status", "127.0.0.1:1"], "nothing listens at 127.0.0.1:1: start a daemon there"),
        (["status", "a/b"], "'a/b' is not an address: write HOST:PORT"),
        (["status", "nowhere-at-all"], "nowhere-at-all is no host, and no node that is known here: give HOST:PORT"),
        (["status", "127.0.0.1:port"], "is not an address: write HOST:PORT"),
        (["daemon", "--config", "/does/not/exist"], "/does/not/exist: cannot be read"),
        (["daemon", "--name", "alpha"], "--name needs --config"),
        (["daemon", "--status-port", "70000"], "--status-port"),
        (["daemon", "--log", "xml"], "--log"),
        (["daemon", "--trace-level", "some"], "--trace-level"),
    ],
)
def test_what_cannot_be_done_is_one_sentence_and_status_2(call: Call, arguments: list[str], words: str) -> None:
    status, out, err = call(*arguments)
    assert (status, out) == (2, "")
    assert words in err
    assert err.startswith("ordercast: ")
    assert err.count("\n") == 1
    assert "?." not in err


# config check


def test_a_sound_file_says_what_the_node_would_do(call: Call) -> None:
    status, out, err = call("config", "check", EXAMPLE, "--name", "beta")
    assert (status, err) == (0, "")
    for words in (
        "beta, id 2, of cluster shop",
        "10.0.0.2 port 4701",
        "group 239.192.79.67 port 4700, on the interface of 10.0.0.2",
        "a crash is noticed after 800ms of silence; a view without the member follows after about 1.05s",
        "1.3 MiB needed for a rotation, 32 MiB asked for",
        "10.0.0.2 is not an address of this host",
    ):
        assert words in out, words
    document = json.loads(call("config", "check", EXAMPLE, "--name", "beta", "--json")[1])
    assert document["valid"]
    assert document["plan"]["detection_ns"] == 1_050_000_000


def test_every_problem_is_a_line_of_its_own(call: Call, tmp_path: Path) -> None:
    file = tmp_path / "c.toml"
    file.write_text("[network]\nttl = 0\nmut = 1500\n", encoding="utf-8")
    status, out, err = call("config", "check", str(file))
    assert (status, out) == (2, "")
    *lines, last = err.splitlines()
    assert len(lines) == 4
    assert all(line.startswith(f"ordercast: {file}: ") and line.endswith(".") for line in lines)
    assert last == "ordercast: what has to fit together was not judged yet: check again when this is mended."
    status, out, err = call("config", "check", str(file), "--json")
    assert (status, err) == (2, "")
    assert len(json.loads(out)["problems"]) == 4


def test_loopback_is_said(call: Call, tmp_path: Path) -> None:
    file = tmp_path / "c.toml"
    file.write_text('cluster = "x"\n[nodes.a]\nid = 1\naddress = "127.0.0.1"\n', encoding="utf-8")
    out = call("config", "check", str(file), "--name", "a")[1]
    assert "binds to loopback only (127.0.0.1): no other host can be a member" in out
    assert "no state folder" in out


# status


@pytest.fixture
def served() -> Iterator[tuple[FakeNode, int]]:
    """A status server on a thread of its own, as a daemon is another process."""
    node, ports, stop = FakeNode(), list[int](), asyncio.Event()
    ready = threading.Event()

    async def serve() -> None:
        async with StatusServer(node, "127.0.0.1", 0) as server:
            ports.append(server.port)
            loops.append(asyncio.get_running_loop())
            ready.set()
            await stop.wait()

    loops: list[asyncio.AbstractEventLoop] = []
    node.begin()
    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    assert ready.wait(10)
    yield node, ports[0]
    loops[0].call_soon_threadsafe(stop.set)
    thread.join()


def test_status_is_a_page_or_a_document(call: Call, served: tuple[FakeNode, int]) -> None:
    node, port = served
    node.counters.alarms.append((Instant(1), Alarm(AlarmKind.PAUSED, "this process did not run for 530 ms")))
    node.counters.pauses = 1
    status, out, err = call("status", f":{port}")
    assert (status, err) == (0, "")
    for words in (
        "OPERATIONAL",
        "alpha of cluster ordercast",
        "missing: beta gamma",
        "this process did not run",
        "paused",
    ):
        assert words in out, words
    assert "not in the configuration: beta, gamma" in out
    for address in (f"127.0.0.1:{port}", f"http://127.0.0.1:{port}/status", f"localhost:{port}"):
        assert json.loads(call("status", address, "--json")[1])["me"]["name"] == "alpha"


def test_a_node_is_named_where_another_knows_it(
    call: Call, served: tuple[FakeNode, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    port = served[1]
    known = [{"name": "nobody", "status": None}, {"name": "alpha-node", "status": f"127.0.0.1:{port}"}]
    real = status_command.fetch
    monkeypatch.setattr(
        status_command, "fetch", lambda host, at: {"everybody": known} if at == STATUS_PORT else real(host, at)
    )
    assert json.loads(call("status", "alpha-node", "--json")[1])["me"]["name"] == "alpha"
    assert call("status", "nobody")[0] == 2


def test_without_an_address_the_status_is_where_a_daemon_says(
    call: Call, served: tuple[FakeNode, int], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("ORDERCAST_FOLDER", str(tmp_path))
    asked: list[object] = []

    def ask(at: str | None, document: dict[str, str]) -> dict[str, str]:
        asked.append((at, document))
        return {"status": f"127.0.0.1:{served[1]}"}

    monkeypatch.setattr(cluster_command, "ask", ask)
    assert json.loads(call("status", "--json")[1])["me"]["name"] == "alpha"
    assert asked == [(None, {"do": "places"})]


def test_a_node_without_a_ring_is_exit_status_1(call: Call, served: tuple[FakeNode, int]) -> None:
    node, port = served
    node.engine = FakeNode().engine
    status, out, _ = call("status", f":{port}")
    assert status == 1
    assert "no configuration yet" in out


def test_a_line_says_the_essentials() -> None:
    node = FakeNode()
    node.begin()
    line = status_line(status_of(node).document())
    assert "alpha operational ring 4.alpha of alpha; 0 submitted/s, 0 delivered/s" in line
    assert "\n" not in line
