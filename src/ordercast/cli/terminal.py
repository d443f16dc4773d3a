"""Where the command line writes: results to stdout, progress and complaints to stderr, colours only on a terminal."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Self

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from ordercast.cli.plain import complain as complain
from ordercast.cli.plain import note as note
from ordercast.cli.plain import wipe as wipe
from ordercast.cli.plain import write_json as write_json
from ordercast.model.printable import safe_lines

if TYPE_CHECKING:
    from rich.progress import Progress, Task

PIPED_WIDTH = 140  # tables that go to a file or a pipe need not fit a window
SHOWN_AFTER_S = 1.0  # what takes less needs no progress bar
LINE_EVERY_S = 60.0  # of progress, in a log


class SafeConsole(Console):
    """Shows names and texts of others: what is not printable in them comes out as escapes, terminal or not, and nothing
    in them is taken for markup."""

    def __init__(self, *, stderr: bool = False) -> None:
        super().__init__(stderr=stderr, highlight=False, emoji=False, markup=False)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            if segment.control or segment.text.isprintable():
                yield segment
            else:
                yield Segment(safe_lines(segment.text), segment.style)


def output() -> Console:
    """A console on today's stdout: made anew for each command, so that redirection is honoured."""
    console = SafeConsole()
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = PIPED_WIDTH
    return console


class Meter:
    """How far a long work is, on stderr: a bar on a terminal, when there is something to wait for; elsewhere, as in a
    log, a line now and then."""

    def __init__(self, title: str, total: int, shown_after_s: float = SHOWN_AFTER_S) -> None:
        self._console = SafeConsole(stderr=True)
        self._title, self._total, self._shown_after_s = title, total, shown_after_s
        self._began = time.monotonic()
        self._bar: Progress | None = None
        self._task: Any = None
        self._lines = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *how: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    @property
    def seconds(self) -> float:
        return max(time.monotonic() - self._began, 1e-9)

    def show(self, done: int, text: str | Text = "") -> None:
        """Tell how much is done. Nothing in `text` is taken for markup: what is to be coloured is a Text."""
        if not self._console.is_terminal:
            self._write_line(done, text)
            return
        if self._bar is None and self.seconds < self._shown_after_s:
            return
        if self._bar is None:
            self._bar = self._new_bar()
        self._bar.update(self._task, completed=min(done, self._total), note=Text.assemble(text))

    def _write_line(self, done: int, text: str | Text) -> None:
        lines = int(self.seconds / LINE_EVERY_S)
        if lines > self._lines:
            self._lines = lines
            share = 100 * done // max(self._total, 1)
            line = f"{self._title}: {share} % after {self.seconds:.0f} s  "
            self._console.print(Text.assemble(line, text), soft_wrap=True)

    def _new_bar(self) -> Progress:
        from rich.progress import BarColumn, Progress, ProgressColumn, SpinnerColumn, TextColumn, TimeElapsedColumn

        class NoteColumn(ProgressColumn):
            """A text as it is, where a TextColumn would look for markup and emoji."""

            def render(self, task: Task) -> Text:
                note: Text = task.fields["note"]
                return note

        bar = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=30),
            TextColumn("{task.percentage:>3.0f} %"),
            TimeElapsedColumn(),
            NoteColumn(),
            console=self._console,
            transient=True,
        )
        self._task = bar.add_task(self._title, total=self._total, note=Text())
        bar.start()
        return bar


def failed_text(count: int) -> Text:
    """Return how many runs have failed, so that nobody overlooks it."""
    return Text(f"{count} failed", "bold red") if count else Text("none failed")
