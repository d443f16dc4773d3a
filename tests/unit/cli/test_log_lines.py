"""Lines of several daemons as one stream."""

from __future__ import annotations

import io

from rich.console import Console

from ordercast.cli.log_lines import LogStream, line_from

VIEW = (
    b'{"at": "2026-03-01T12:00:00.123Z", "level": "info", "text": "view 8.n1 of n1 n2", "node": "n1", '
    b'"view": "8.n1", "members": ["n1", "n2"]}\n'
)
BOUND = b'{"at": "2026-03-01T12:00:01Z", "level": "info", "text": "clients at unix:///x", "clients": ["unix:///x"]}\n'
PAUSED = b'{"at": "2026-03-01T12:00:02Z", "level": "warning", "text": "paused: \\u001b[2J"}\n'


def stream(**options: bool) -> tuple[LogStream, io.StringIO]:
    file = io.StringIO()
    return LogStream(Console(file=file, width=60, **options)), file  # type: ignore[arg-type]


def test_what_is_news_and_what_every_daemon_says_at_its_start() -> None:
    assert [line_from(line).is_news for line in (VIEW, BOUND, PAUSED, b"Traceback\n")] == [True, False, True, True]


def test_lines_are_aligned_safe_and_whole() -> None:
    log, file = stream()
    log.write("n10", line_from(VIEW))
    log.write("n2", line_from(PAUSED))
    log.write("#3", line_from(b"ordercast: the port is taken by another process: choose another port in [clients].\n"))
    lines = [line.partition("  ")[2] for line in file.getvalue().splitlines()]
    assert lines == [
        "n10  view 8.n1 of n1 n2",
        "n2   warning: paused: \\x1b[2J",
        "#3   error: the port is taken by another process: choose another port in [clients].",
    ]


def test_an_error_of_several_lines_is_shown_and_not_obeyed() -> None:
    log, file = stream()
    error = (
        b'{"at": "2026-03-01T12:00:02Z", "level": "error", "text": "broken", "error": "Traceback\\n  \\u001b[2J[/x]"}\n'
    )
    log.write("n1", line_from(error))
    assert file.getvalue().splitlines()[1:] == ["Traceback", "  \\x1b[2J[/x]"]


def test_colours_are_for_terminals() -> None:
    for is_terminal in (False, True):
        log, file = stream(force_terminal=is_terminal)
        log.write("n1", line_from(PAUSED))
        log.say("one is gone")
        assert ("\x1b[" in file.getvalue()) is is_terminal


def test_what_is_no_line_of_ours_is_shown_as_it_is() -> None:
    for text in (b"[1, 2]\n", b'{"at": 5}\n', b"\xff\n", b"\n"):
        assert line_from(text).level == "error"
