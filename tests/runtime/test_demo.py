"""The demo as a person runs it: what it says, how it ends, and that nothing is left of it."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ordercast.cli.check import judge
from ordercast.cli.daemons import ordercast_command
from ordercast.cli.main import run
from ordercast.cli.terminal import output
from ordercast.demo import command as demo
from ordercast.demo.on_spark import judge_on_spark
from ordercast.demo.result import draw_on_spark
from ordercast.demo.script import Script
from ordercast.pipeline.spark_session import missing_for_spark
from ordercast.trace.client_records import GotMessage
from ordercast.trace.recording import Recorder
from ordercast.trace.replica_records import Called, Returned

PATIENCE_S = 500.0  # a demo takes half a minute, and much longer beside all other tests
pytestmark = pytest.mark.timeout(600)
COMMAND = ordercast_command("demo")
EVENT = re.compile(r" *\d+\.\d{3} s  [n1234 ]{11}  \S")
STORY = Script(steady_s=0.3, burst_messages=200, burst_commands=250)  # all that the pages show happens, in less time
SMALL = Script(values=4, steady_s=0.1, burst_messages=100, burst_commands=100, commands_at_once=50)
ROOT = Path(__file__).parents[2]
REFERENCE = ROOT / "docs" / "reference" / "cli.md"
PAGES = (ROOT / "README.md", ROOT / "docs" / "tutorial" / "the-demo.md")
MARK = "! "  # of a warning, such as that the machine is busy
TEXT_AT = 24  # in a line of an event


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """For temporary files: everything that belongs to a demo has it in its environment."""
    made = tmp_path / "t"
    made.mkdir()
    yield made
    for process in processes_of(made):
        os.kill(process, signal.SIGKILL)


def processes_of(folder: Path) -> list[int]:
    mark = f"TMPDIR={folder}".encode()
    found = []
    for environment in Path("/proc").glob("[0-9]*/environ"):
        try:
            if mark in environment.read_bytes().split(b"\0"):
                found.append(int(environment.parent.name))
        except OSError:
            continue  # it has just ended, or is another user's
    return found


def eventually(is_so: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < end, "it did not come to pass"
        time.sleep(0.1)


def start(folder: Path, *arguments: str, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*COMMAND, *arguments],
        cwd=folder.parent,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(folder), **environment},
    )


def until(process: subprocess.Popen[str], words: str) -> str:
    assert process.stdout is not None
    for line in process.stdout:
        if words in line:
            return line
    raise AssertionError(f"it never said {words}")


@pytest.mark.long
def test_the_command_shows_all_of_it(folder: Path, tmp_path: Path) -> None:
    """In the sizes that a person sees, and without Java."""
    process = start(folder, "--keep", "kept", JAVA_HOME=str(tmp_path))
    out, err = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, err) == (0, ""), out[-3000:]
    check_story(out, Path("kept"), tmp_path)
    assert any(line.startswith("No verdict of Spark and no report: ") for line in out.splitlines())
    assert not (tmp_path / "kept" / "report").exists()
    assert (list(folder.iterdir()), processes_of(folder)) == ([], [])


@pytest.mark.spark
def test_the_demo_tells_its_story_and_is_valid(
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    request: pytest.FixtureRequest,
) -> None:
    """A short one; Spark judges it too, where there is Spark."""
    has_spark = missing_for_spark() is None
    if has_spark:
        request.getfixturevalue("spark")
    monkeypatch.setattr(demo, "Script", lambda: STORY)
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr("tempfile.tempdir", None)
    keep = tmp_path / "kept"
    status = run(["demo", "--keep", str(keep)])
    out, err = capsys.readouterr()
    assert (status, err) == (0, ""), out[-3000:]
    check_story(out, keep, tmp_path)
    if has_spark:
        check_spark(out, keep)
    assert (list(folder.iterdir()), processes_of(folder)) == ([], [])


def check_story(out: str, keep: Path, folder: Path) -> None:
    """`keep`: as it was asked for, in this folder."""
    assert "\x1b[" not in out
    lines = out.splitlines()
    assert [line.partition(".")[0] for line in lines if re.match(r"\d\. ", line)] == [*"123456789"]
    story = [line for line in lines if EVENT.match(line)]
    told = "\n".join(story)
    for words in (
        "of n1 n2 n3", "chat: alice@n1, bob@n2 and carol@n3", "messages/s", "commands/s",
        "✗ kill -9", "n3 is gone: the token was lost", "the view without n3 came", "it waited, and was not lost",
        "kv@n3 fetches the state from kv@n1", "✗ cut off", "NO primary component", "a write is REFUSED",
        "a read is served", "not current", "✓ the relay carries everything again", "merged", "kv@n2 has fetched all",
        "every one of", "n4 joined", "kv@n4 has fetched all", "kv@n4 takes part", "n4 left: a member left",
    ):  # fmt: skip
        assert words in told, words
    assert any(re.match(r" VALID   \d+ promises kept, \d+ not exercised ", line) for line in lines)
    assert f"  ordercast check {keep}/traces" in lines
    check_document(json.loads((folder / keep / "result.json").read_text()), len(story))
    assert judge(folder / keep / "traces").is_valid
    for page in PAGES:
        missing = shown_by(page.read_text(encoding="utf-8").splitlines()) - {masked(line) for line in story}
        assert not missing, f"{page.name} shows what the demo did not say; paste a real log"


def check_spark(out: str, keep: Path) -> None:
    page = keep / "report" / "report.html"
    assert re.search(r"^ VALID   \d+ promises kept, \d+ not exercised, judged by Spark", out, re.MULTILINE)
    assert f"Its report, a page for a browser: {page}\n" in out
    assert "Who was in which view" in page.read_text(encoding="utf-8")
    document = json.loads((keep / "result.json").read_text())["spark"]
    assert (document["missing"], document["report"], len(document["verdicts"])) == (None, str(page), 47)


def test_where_spark_is_missing_the_demo_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    draw_on_spark(output(), judge_on_spark(tmp_path / "traces", tmp_path / "report", lambda text: None))
    assert capsys.readouterr().out.startswith("No verdict of Spark and no report: ")
    assert not (tmp_path / "report").exists()


def shown_by(lines: list[str]) -> set[str]:
    """Events on a page, but for the first chapter's: how daemons find each other is different each time."""
    begin = next(number for number, line in enumerate(lines) if re.match(r"[2-9]\. ", line))
    return {masked(line) for line in lines[begin:] if EVENT.match(line) and MARK not in line}


def masked(line: str) -> str:
    """Without numbers, and without those who share the line."""
    return re.sub(r"\b[0-9a-f]{16}\b|[\d.,]*\d", "#", line[TEXT_AT:])


def check_document(document: dict[str, Any], events: int) -> None:
    reference = REFERENCE.read_text(encoding="utf-8")
    assert all(f"`{key}`" in reference for key in (*document, *document["panels"][0], *document["rates"]))
    assert document["valid"] is True
    assert document["error"] is None
    assert len(set(document["digests"].values())) == 1
    assert len(document["digests"]) == 4
    assert sum(event["kind"] != "chapter" for event in document["events"]) == events
    assert min(document["rates"].values()) > 0


# What the judges say


def plant(monkeypatch: pytest.MonkeyPatch, what: str, spoil: Callable[[Any], list[Any]]) -> None:
    """A small demo whose record of clients or replicas (`what`) is not what happened."""
    right = getattr(Recorder, what)

    def spoiled(self: Recorder, event: Any) -> None:
        for each in spoil(event):
            right(self, each)

    monkeypatch.setattr(demo, "Script", lambda: SMALL)
    monkeypatch.setattr(Recorder, what, spoiled)


@pytest.mark.long
def test_what_is_invalid_is_status_1_and_has_witnesses(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    seen: list[Any] = []

    def spoil(event: Any) -> list[Any]:
        is_first = isinstance(event, GotMessage) and not seen
        seen.extend([event] * is_first)
        return [event] * (1 + is_first)

    plant(monkeypatch, "client", spoil)
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr("tempfile.tempdir", None)
    assert run(["demo"]) == 1
    out = capsys.readouterr().out
    assert re.search(r"groups +20 +INVALID", out)
    assert re.search(r"order and views +15 +VALID", out)
    assert "groups: no duplicates: INVALID" in out
    assert re.search(r"^ INVALID   \d+ promises kept, \d+ invalid", out, re.MULTILINE)
    assert list(folder.iterdir()) == []


@pytest.mark.long
def test_json_is_one_document_and_status_1_when_a_confirmed_command_was_not_applied(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    commands: set[tuple[int, int]] = set()  # and no reads
    lost: list[Any] = []

    def spoil(event: Any) -> list[Any]:
        if isinstance(event, Called) and event.operation:
            commands.add((event.life, event.request))
        if isinstance(event, Returned) and (event.life, event.request) in commands and not lost:
            lost.append(event)
            return [replace(event, position=event.position + 100_000)]
        return [event]

    plant(monkeypatch, "replica", spoil)
    assert run(["demo", "--json"]) == 1
    captured = capsys.readouterr()
    document = json.loads(captured.out)
    outcomes = {panel["name"]: panel["verdict"]["outcome"] for panel in document["panels"]}
    assert outcomes == {
        "order and views": "VALID", "groups": "VALID", "replicated state": "INVALID", "dictionaries": "VALID",
    }  # fmt: skip
    assert document["valid"] is False
    assert captured.err == ""


# How it ends


@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.long)])
def test_a_signal_ends_everything_that_was_started(folder: Path, number: signal.Signals) -> None:
    process = start(folder)
    until(process, "chat: alice@n1")
    assert len(processes_of(folder)) == 5  # itself, the relay, three daemons
    process.send_signal(number)
    _, err = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, err) == (130, "ordercast: interrupted.\n")
    assert (list(folder.iterdir()), processes_of(folder)) == ([], [])


def test_nothing_outlives_a_demo_that_is_killed(folder: Path) -> None:
    process = start(folder)
    until(process, "chat: alice@n1")
    process.kill()
    process.communicate(timeout=PATIENCE_S)
    eventually(lambda: not processes_of(folder))


def test_a_daemon_that_dies_by_itself_ends_the_demo_with_one_sentence(folder: Path) -> None:
    process = start(folder)
    daemon = int(until(process, "n1           starts: process").split("process ")[1].split(",")[0])
    until(process, "chat: alice@n1")
    os.kill(daemon, signal.SIGKILL)
    _, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 1
    assert err.startswith("ordercast: the daemon n1 has ended by itself (SIGKILL)")
    assert err.count("\n") == 1
    assert (list(folder.iterdir()), processes_of(folder)) == ([], [])
