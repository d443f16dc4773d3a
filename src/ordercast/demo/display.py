"""How the demo is shown: a line for each event, and on a terminal two panels below them that stay: the daemons with
their views and dictionaries, and the rates of now."""

from __future__ import annotations

import asyncio
from textwrap import wrap

from rich import box
from rich.console import Console, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from ordercast.demo.hosts import DemoHost
from ordercast.demo.log import Entry, Kind
from ordercast.demo.stage import Stage

FRAME_S = 0.25
WHO_WIDTH = 11
CHAPTER_WIDTH = 110
INDENT = 25  # of the text of an event
STYLES = {
    Kind.CHAPTER: "bold",
    Kind.LIFE: "",
    Kind.FAULT: "bold red",
    Kind.REPAIR: "bold green",
    Kind.VIEW: "cyan",
    Kind.GROUP: "blue",
    Kind.STATE: "green",
    Kind.RATE: "magenta",
    Kind.WARNING: "yellow",
}
MARKS = {Kind.FAULT: "✗ ", Kind.REPAIR: "✓ ", Kind.WARNING: "! "}


class Teller:
    """Prints events one below the other."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self._chapters = 0

    def tell(self, entry: Entry) -> None:
        if entry.kind is Kind.CHAPTER:
            self._chapters += 1
            width = min(CHAPTER_WIDTH, self.console.width - 1) if self.console.is_terminal else CHAPTER_WIDTH
            self._print("", *wrap(f"{self._chapters}. {entry.text}", width), style="bold")
            return
        line = Text.assemble((f"{entry.at:7.3f} s  ", "dim"), (f"{' '.join(entry.who):{WHO_WIDTH}}  ", "bold"))
        line.append(MARKS.get(entry.kind, "") + entry.text, STYLES[entry.kind])
        if self.console.is_terminal:  # a window wraps; its lines are easier to read with a margin
            line = Text("\n").join(_with_margin(line, self.console))
        self.console.print(line, soft_wrap=True)

    def _print(self, *lines: str, style: str) -> None:
        for line in lines:
            self.console.print(Text(line, style), soft_wrap=True)


def _with_margin(line: Text, console: Console) -> list[Text]:
    width = max(20, console.width - INDENT - 1)
    first, rest = line[: INDENT - 1], line[INDENT - 1 :]
    parts = rest.wrap(console, width)
    return [Text.assemble(first if n == 0 else " " * (INDENT - 1), part) for n, part in enumerate(parts)]


class Display:
    """The panels, on a terminal alone; `run` until it is cancelled."""

    def __init__(self, console: Console, stage: Stage) -> None:
        self._console, self._stage = console, stage

    async def run(self) -> None:
        tally = self._stage.tally
        if not self._console.is_terminal:
            while True:
                tally.sample()
                await asyncio.sleep(FRAME_S)
        with Live(console=self._console, auto_refresh=False, transient=True, redirect_stderr=False) as live:
            while True:
                tally.sample()
                live.update(self.draw(), refresh=True)
                await asyncio.sleep(FRAME_S)

    def draw(self) -> RenderableType:
        width = self._console.width
        rates_width = 34
        if width < 100:
            return self._daemons(width)
        table = Table.grid(expand=False)
        table.add_row(self._daemons(width - rates_width), self._rates(rates_width))
        return table

    def _daemons(self, width: int) -> Panel:
        table = Table(box=None, padding=(0, 1), show_edge=False, width=width - 4)
        for title in ("", "process", "state", "view", "its dictionary"):
            table.add_column(title, no_wrap=True, overflow="ellipsis", style="" if title else "bold")
        for host in self._stage.hosts.all:
            table.add_row(host.name, *self._row(host))
        return Panel(table, title="daemons", title_align="left", box=box.ROUNDED, width=width)

    def _row(self, host: DemoHost) -> tuple[Text | str, ...]:
        if host.process is None:
            return "-", Text("comes late", "dim"), "", ""
        if not host.runs:
            return f"{host.process.pid}", Text("killed" if host.was_killed else "left", "red"), "", ""
        state = Text("cut off", "red") if host.is_cut else Text("runs", "green")
        view = (
            Text("none yet", "dim")
            if host.view is None
            else Text(f"{host.view.id} of {' '.join(host.members)}", "cyan")
        )
        return f"{host.process.pid}", state, view, self._dictionary(host)

    def _dictionary(self, host: DemoHost) -> Text:
        crew = self._stage.crews.get(host.name)
        if crew is None or not crew.is_here:
            return Text("")
        age = crew.accounts.age
        how = ("current", "green") if age.is_current else ("not current", "yellow")
        return Text.assemble(f"{age.commands:,} commands, ", how)

    def _rates(self, width: int) -> Panel:
        tally = self._stage.tally
        messages, commands = tally.now()
        latency = tally.recent_command_ms()
        table = Table(box=None, padding=(0, 1), show_edge=False, show_header=False, width=width - 4)
        table.add_column()
        table.add_column(justify="right")
        table.add_row("messages/s", f"{messages:,.0f}")
        table.add_row("commands/s", f"{commands:,.0f}")
        table.add_row("a command takes", "-" if latency is None else f"{latency:.2f} ms")
        table.add_row("confirmed", f"{tally.confirmed:,}")
        table.add_row("refused", f"{tally.refused:,}")
        return Panel(table, title="rates", title_align="left", box=box.ROUNDED, width=width)
