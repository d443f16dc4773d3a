"""What is shown to people, on a terminal and in a log."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from rich.text import Text

from ordercast.cli.listen import JsonWriter, LineWriter
from ordercast.cli.tables import new_table
from ordercast.cli.terminal import Meter, complain, failed_text, note, output
from ordercast.model.events import Message, Reason, View, ViewId
from ordercast.model.ids import ConfigurationId, Position, ProcessId, Seq
from ordercast.model.service import Service


def test_off_a_terminal_a_line_a_minute_tells_how_far_it_is(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    with Meter("swarm", 400) as meter:
        for second, done in ((1, 1), (61, 100), (62, 101), (125, 300)):
            clock[0] = 100.0 + second
            meter.show(done, Text.assemble(f"{done} of 400, ", failed_text(1)))
    lines = capsys.readouterr().err.splitlines()
    assert lines == ["swarm: 25 % after 61 s  100 of 400, 1 failed", "swarm: 75 % after 125 s  300 of 400, 1 failed"]


@pytest.mark.parametrize("is_terminal", [True, False])
def test_a_name_in_brackets_is_no_markup_of_progress(
    is_terminal: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    name = "[/tmp] [bold]runs[/bold] :bomb: \\"
    if is_terminal:
        monkeypatch.setenv("FORCE_COLOR", "1")
        monkeypatch.setenv("NO_COLOR", "1")
        monkeypatch.setenv("COLUMNS", "200")
    clock = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    with Meter(name, 2) as meter:
        clock[0] = 200.0
        meter.show(1, name)
    assert capsys.readouterr().err.count(name) >= 2


HOSTILE = "\x1b]0;PWNED\x07\x1b[31mmallory\x9b2J\N{RIGHT-TO-LEFT OVERRIDE}[bold]@n2"


@pytest.mark.parametrize("is_terminal", [True, False])
def test_names_and_texts_of_others_are_shown_and_not_obeyed(
    is_terminal: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if is_terminal:
        monkeypatch.setenv("FORCE_COLOR", "1")
        monkeypatch.setenv("NO_COLOR", "1")
    console = output()
    assert console.is_terminal is is_terminal
    table = new_table(HOSTILE, title=HOSTILE)
    table.add_row(HOSTILE)
    for shown in (HOSTILE, Text(HOSTILE), table):
        console.print(shown, soft_wrap=True)
    complain(HOSTILE)
    note(HOSTILE, always=True)
    captured = capsys.readouterr()
    for text in (captured.out, captured.err):
        assert not {"\x07", "\x9b", "\N{RIGHT-TO-LEFT OVERRIDE}"} & set(text)
        assert "\x1b]0" not in text and "\x1b[31mmallory" not in text
        assert "mallory" in text and "[bold]@n2" in text


def event_of(*, sender: str, group: str) -> list[Message | View]:
    position = Position(ConfigurationId(8, ProcessId(1 << 48 | 1)), Seq(1), 0)
    view = View(group, (sender,), (sender,), Reason.JOIN, (sender,), ViewId(position.origin, position), why=HOSTILE)
    return [Message((group,), sender, HOSTILE.encode(), position, Service.AGREED), view]


@pytest.mark.parametrize("make", [JsonWriter, lambda: LineWriter(output())])
def test_a_listener_shows_names_and_texts_of_others_and_does_not_obey_them(
    make: Callable[[], JsonWriter | LineWriter], capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    writer = make()
    writer.begin("me@n1")
    for event in event_of(sender=HOSTILE, group=HOSTILE):
        writer.write(event)
    writer.flush()
    out = capsysbinary.readouterr().out.decode()
    assert all(line.isprintable() for line in out.splitlines())
    assert out.count("mallory") >= 5
