"""The picture that `ordercast demo` draws while it runs: processes in boxes, one box per view.

Each process has a strip of what it delivered last, newest on the right: one digit per message, that of the node which
sent it. Strips in one box are the same: that is total order, to be seen. A bar in a strip is a change of view.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from textwrap import wrap

from rich import box
from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.text import Text

from ordercast.cli.drawing import ENTRY_STYLES
from ordercast.cli.timeline import Entry, EntryKind, Timeline
from ordercast.model.ids import NO_RING, SECOND, ProcessId, RingId, node_of, process_text
from ordercast.model.notes import Moved
from ordercast.model.view import View, ViewKind
from ordercast.sim.faults import Fault, FaultKind
from ordercast.trace.records import Crashed, DeliveredBatch, Departed, Event, Installed, Noted, Started

STATES_AT_WORK = ("Starting", "Gather", "Commit", "Recovery")  # the membership algorithm is busy
NODE_STYLES = ("bright_cyan", "bright_magenta", "bright_yellow", "bright_green", "bright_blue", "bright_red")
STATE_STYLES = {"Operational": "green", "Gather": "bold yellow", "Commit": "yellow", "Recovery": "yellow"}
STRIP_MAX = 400
_BAR = ("│", "white")


@dataclass(slots=True)
class Portrait:
    """One host as the picture shows it."""

    process: ProcessId
    state: str = "Starting"
    view: View | None = None
    delivered: int = 0
    is_alive: bool = True
    strip: deque[tuple[str, str]] = field(default_factory=lambda: deque(maxlen=STRIP_MAX))


@dataclass(slots=True)
class Picture:
    nodes: int
    caption: str = ""
    now: int = 0
    timeline: Timeline = field(default_factory=Timeline)
    portraits: dict[int, Portrait] = field(default_factory=dict)  # by node

    # What happens

    def strike(self, at: int, fault: Fault) -> None:
        self.now = at
        self.timeline.strike(at, fault)

    def observe(self, event: Event) -> None:
        self.now = event.at
        self.timeline.observe(event)
        match event:
            case Started():
                self._start(event.process)
            case Crashed() | Departed():
                portrait = self._of(event.process)
                portrait.is_alive, portrait.state = False, "crashed" if isinstance(event, Crashed) else "left"
            case Installed():
                self._install(self._of(event.process), event.view)
            case DeliveredBatch():
                portrait = self._of(event.process)
                portrait.delivered += len(event.messages)
                portrait.strip.extend(
                    _mark_of(message.message.process) for message in event.messages if message.message
                )
            case Noted(note=Moved(target=target)):
                self._of(event.process).state = target
            case _:
                pass

    def _of(self, process: ProcessId) -> Portrait:
        return self.portraits[node_of(process)]

    def _start(self, process: ProcessId) -> None:
        self.portraits[node_of(process)] = Portrait(process)

    def _install(self, portrait: Portrait, view: View) -> None:
        if view.kind is ViewKind.REGULAR:
            if portrait.strip:
                portrait.strip.append(_BAR)
            portrait.view = view

    @property
    def is_calm(self) -> bool:
        """No membership change is under way."""
        return not any(portrait.is_alive and portrait.state in STATES_AT_WORK for portrait in self.portraits.values())

    # What is shown

    def draw(self, width: int, height: int) -> RenderableType:
        """As high at every moment, so that nothing jumps: every node in a box of its own is the highest it gets."""
        boxes = list(self._boxes(width))
        missing = 3 * self.nodes - sum(lines for _, lines in boxes)
        filling = [Text("\n" * (missing - 1))] if missing > 0 else []
        log = self._log(width, max(2, min(8, height - 3 * self.nodes - 5)))
        return Group(self._headline(width), *self._caption(width), *(panel for panel, _ in boxes), *filling, *log)

    def _caption(self, width: int) -> list[Text]:
        """Two lines, whether it needs them or not."""
        lines = wrap(self.caption, max(20, width - 2))
        return [Text(f" {line}", style="bold cyan") for line in [*lines, "", ""][:2]]

    def _headline(self, width: int) -> Text:
        title = f" Ordercast · {self.nodes} processes, one order"
        clock = f"{self.now / SECOND:.3f} s "
        return Text.assemble((title, "bold"), (clock.rjust(max(1, width - len(title))), "dim"))

    def _boxes(self, width: int) -> Iterator[tuple[RenderableType, int]]:
        groups: dict[tuple[bool, RingId], list[Portrait]] = {}
        for _, portrait in sorted(self.portraits.items()):
            ring = portrait.view.id if portrait.view is not None and portrait.is_alive else NO_RING
            groups.setdefault((portrait.is_alive, ring), []).append(portrait)
        for (is_alive, ring), members in groups.items():
            rows = Group(*(_row(portrait, width - 4) for portrait in members))
            title, style = (f"view {ring}", "green") if is_alive else ("gone", "red")
            if is_alive and any(portrait.state != "Operational" for portrait in members):
                style = "yellow"
            title = "starting" if is_alive and ring == NO_RING else title
            panel = Panel(rows, title=title, title_align="left", border_style=style, box=box.ROUNDED, width=width)
            yield panel, len(members) + 2

    def _log(self, width: int, lines: int) -> list[Text]:
        told = [entry for entry in self.timeline.entries if entry.kind is not EntryKind.STATE]  # the boxes show states
        shown = [_log_line(entry) for entry in told[-lines:]]
        for line in shown:
            line.truncate(width - 1, overflow="ellipsis")
        return [*shown, *(Text("") for _ in range(lines - len(shown)))]


def narration(fault: Fault) -> str:
    """What a fault of the demo means, in words."""
    match fault.kind:
        case FaultKind.CRASH:
            return (
                f"n{fault.node} crashes. The token is gone with it: the others agree on who is left, "
                "recover what is missing and go on."
            )
        case FaultKind.PARTITION:
            return "The network splits. Each side forms a view of its own and goes on in its own order."
        case FaultKind.HEAL:
            return "The network heals. The sides hear each other and merge; every member is told who came with it."
        case FaultKind.RESTART:
            return f"n{fault.node} comes back: a new process, which joins the ring."
        case _:
            return str(fault)


def _mark_of(process: ProcessId) -> tuple[str, str]:
    node = node_of(process)
    return str(node % 10), NODE_STYLES[node % len(NODE_STYLES)]


def _row(portrait: Portrait, width: int) -> Text:
    name = process_text(portrait.process)
    row = Text.assemble(
        (f"{'●' if portrait.is_alive else '✗'} {name:<6}", _mark_of(portrait.process)[1]),
        (f"{portrait.state.lower():<12}", STATE_STYLES.get(portrait.state, "red")),
        (f"{portrait.delivered:>5} delivered  ", "bold"),
    )
    room = max(0, width - row.cell_len)
    marks = list(portrait.strip)[-room:] if room else []
    row.append(" " * (room - len(marks)))
    for mark, style in marks:
        row.append(mark, style=style if portrait.is_alive else "dim")
    return row


def _log_line(entry: Entry) -> Text:
    who = " ".join(process_text(process) for process in sorted(entry.processes))
    at = f" {entry.at / SECOND:6.3f} s  "
    return Text.assemble((at, "dim"), (f"{who:<15} ", "bold"), (entry.text, ENTRY_STYLES[entry.kind]))
