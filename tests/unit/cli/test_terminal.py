"""How far a long work is, in a log."""

from __future__ import annotations

import time

import pytest

from ordercast.cli.terminal import Meter


def test_off_a_terminal_a_line_a_minute_tells_how_far_it_is(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    with Meter("swarm", 400) as meter:
        for second, done in ((1, 1), (61, 100), (62, 101), (125, 300)):
            clock[0] = 100.0 + second
            meter.show(done, f"{done} of 400, [bold red]1 failed[/]")
    lines = capsys.readouterr().err.splitlines()
    assert lines == ["swarm: 25 % after 61 s  100 of 400, 1 failed", "swarm: 75 % after 125 s  300 of 400, 1 failed"]
