"""Every table and line that the commands print. Nothing here decides anything."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ordercast.checker import Outcome, Verdict
from ordercast.cli.tables import new_table
from ordercast.cli.timeline import Entry, EntryKind, ProcessTally, names
from ordercast.model.ids import MILLISECOND, ProcessId, process_text

OUTCOME_STYLES = {
    Outcome.VALID: "green",
    Outcome.INVALID: "bold red",
    Outcome.UNKNOWN: "bold yellow",
    Outcome.NOT_EXERCISED: "dim yellow",
    Outcome.NOT_PROMISED: "dim",
}
ENTRY_STYLES = {
    EntryKind.LIFE: "bold",
    EntryKind.FAULT: "bold red",
    EntryKind.REPAIR: "bold green",
    EntryKind.STATE: "dim",
    EntryKind.VIEW: "cyan",
    EntryKind.TRANSITIONAL: "blue",
    EntryKind.DELIVERED: "green",
    EntryKind.ALARM: "bold yellow",
    EntryKind.CLUSTER: "bold",
}
_MARKS = {EntryKind.FAULT: "✗ ", EntryKind.REPAIR: "✓ ", EntryKind.ALARM: "! "}


# The timeline


def time_text(at: int) -> str:
    return f"{at / MILLISECOND:10.3f} ms"


def entry_cells(entry: Entry) -> tuple[Text, Text, Text]:
    """Time, who, what."""
    who = names(sorted(entry.processes)) if entry.processes else "·"
    what = _MARKS.get(entry.kind, "") + entry.text
    return Text(time_text(entry.at), "dim"), Text(who, "bold"), Text(what, ENTRY_STYLES[entry.kind])


def draw_timeline(console: Console, entries: Sequence[Entry]) -> None:
    """In columns on a terminal; elsewhere a line each, however long, for grep."""
    width = min(24, max((len(names(entry.processes)) for entry in entries), default=1))
    if console.is_terminal:
        table = Table.grid(padding=(0, 2, 0, 0))
        table.add_column(no_wrap=True)
        table.add_column(width=width)
        table.add_column(ratio=1)
        for entry in entries:
            table.add_row(*entry_cells(entry))
        console.print(table)
        return
    for entry in entries:
        at, who, what = entry_cells(entry)
        who.pad_right(max(0, width - len(who)))
        console.print(Text("  ").join((at, who, what)), soft_wrap=True)


def process_table(tallies: Mapping[ProcessId, ProcessTally]) -> Table:
    numbers = ("views", "submitted", "delivered", "packets retransmitted", "packets asked for")
    table = new_table("process", *numbers, right=numbers)
    for process, tally in sorted(tallies.items()):
        cells = (tally.views, tally.submitted, tally.delivered, tally.retransmitted, tally.requested)
        table.add_row(process_text(process), *(f"{cell:,}" for cell in cells))
    return table


# Verdicts


def outcome_text(outcome: Outcome) -> Text:
    return Text(outcome.value, style=OUTCOME_STYLES[outcome])


def verdict_table(verdicts: Iterable[Verdict]) -> Table:
    table = new_table("promise", "verdict", "why")
    for verdict in verdicts:
        name = "all" if verdict.promise is None else verdict.promise.value
        table.add_row(name, outcome_text(verdict.outcome), Text(verdict.sentence))
    return table


def draw_witnesses(console: Console, verdicts: Iterable[Verdict]) -> None:
    """Draw the witnesses of everything that is neither valid nor simply not promised."""
    for verdict in verdicts:
        if verdict.outcome in (Outcome.INVALID, Outcome.UNKNOWN) and verdict.witnesses:
            name = "all promises" if verdict.promise is None else verdict.promise.value
            console.print(Text(f"{name}: {verdict.outcome.value}", style=OUTCOME_STYLES[verdict.outcome]))
            for witness in verdict.witnesses:
                console.print(Text(f"  {witness}"), soft_wrap=True)


def closing_line(outcome: Outcome, sentence: str, facts: Iterable[str]) -> Text:
    """The one line that says it all."""
    style = OUTCOME_STYLES[outcome]
    line = Text.assemble((f" {outcome.value} ", f"reverse {style}"), (f"  {sentence}", style))
    for fact in facts:
        line.append("  ·  ", style="dim")
        line.append(fact)
    return line


# Swarms


def coverage_table(counts: Mapping[str, int], expected: Sequence[str]) -> Table:
    """What a swarm has met; what it never met stands out."""
    table = new_table("what must have happened", "times", right=("times",))
    for name in expected:
        count = counts.get(name, 0)
        if count:
            table.add_row(Text(name), f"{count:,}")
        else:
            table.add_row(Text(name, style="bold red"), Text("never", style="bold red"))
    return table
