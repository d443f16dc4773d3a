"""`ordercast demo`: five processes that lose one, split, merge and are whole again, drawn as it happens."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

import typer
from rich.console import Console
from rich.live import Live
from rich.text import Text

from ordercast.cli.documents import recording_document
from ordercast.cli.drawing import draw_timeline
from ordercast.cli.picture import Picture, narration
from ordercast.cli.recording import Recording, record
from ordercast.cli.sim import check_seed, draw_judgement
from ordercast.cli.terminal import output, write_json
from ordercast.cli.timeline import Entry, EntryKind
from ordercast.model.errors import UsageError
from ordercast.model.ids import MILLISECOND
from ordercast.model.service import Service
from ordercast.sim.fault_text import fault_from
from ordercast.sim.faults import Fault
from ordercast.sim.options import SimOptions
from ordercast.trace.records import Event

EXAMPLE = "Example: ordercast demo --seconds 20"
OPENING = "Five processes start, each in a view of its own. They hear one another and form one ring."
STORY = (
    "0.7s crash n3",
    "1.4s partition n0 n1 | n2 n4",
    "2.2s heal",
    "2.8s restart n3",
)
ENDING = "All are together again. The checkers judge everything that was submitted, delivered and installed."
FRAME_S = 1 / 20
SLOW_MOTION = 6

DEMO = SimOptions(
    nodes=5,
    messages=900,
    services=(Service.AGREED, Service.SAFE),
    faults=tuple(fault_from(line) for line in STORY),
    loss=0.01,
    fault_time_ns=3300 * MILLISECOND,
)


def demo(
    seed: Annotated[int, typer.Option(help="Another seed is another run of the same story.")] = 1,
    seconds: Annotated[float, typer.Option(help="How long the show takes on a terminal.")] = 13.0,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document instead.")] = False,
) -> int:
    """Watch a simulated cluster of five lose a member, split, merge and be judged.

    A box is a view. In a box all processes show the same strip of messages: digits are the nodes that sent them.
    Off a terminal it is told as a plain log.
    """
    check_seed(seed)
    if not 0 <= seconds <= 3600:
        raise UsageError(f"--seconds {seconds:g} cannot be used: write a number of 0 to 3600")
    recording = record(DEMO, seed, keep_events=True)
    if as_json:
        write_json(recording_document(recording))
        return 0 if recording.is_valid else 1
    console = output()
    if console.is_terminal:
        show(console, recording, seconds)
    else:
        _tell(console, recording)
    draw_judgement(console, recording)
    return 0 if recording.is_valid else 1


@dataclass(slots=True)
class Film:
    """The run at the pace of a person: membership changes, which take milliseconds, in slow motion."""

    recording: Recording
    picture: Picture
    _shown: int = 0  # how many happenings

    @property
    def is_over(self) -> bool:
        return self._shown >= len(self.recording.happenings)

    def play_until(self, now: int) -> None:
        while not self.is_over:
            happening = self.recording.happenings[self._shown]
            if _time_of(happening) > now:
                break
            self._shown += 1
            if isinstance(happening, tuple):
                self.picture.caption = narration(happening[1])
                self.picture.strike(*happening)
            else:
                self.picture.observe(happening)
        self.picture.now = min(now, self.recording.virtual_ns)

    def moments(self, seconds: float) -> Iterator[int]:
        """Virtual times to show, one per frame, as real time passes."""
        began, now, speed = time.monotonic(), 0.0, self._weight() / max(seconds, FRAME_S)
        shown_at = began
        while not self.is_over and shown_at - began < 2 * seconds:
            yield int(now)
            time.sleep(FRAME_S)
            elapsed, shown_at = time.monotonic() - shown_at, time.monotonic()
            now += elapsed * speed / (1 if self.picture.is_calm else SLOW_MOTION)

    def _weight(self) -> float:
        """The length of the film: virtual time, slow motion counted as often as it is slower."""
        sketch, weight, last = Picture(self.recording.options.nodes), 0.0, 0
        for happening in self.recording.happenings:
            at = _time_of(happening)
            weight += (at - last) * (1 if sketch.is_calm else SLOW_MOTION)
            last = at
            if not isinstance(happening, tuple):
                sketch.observe(happening)
        return weight


def _time_of(happening: Event | tuple[int, Fault]) -> int:
    return happening[0] if isinstance(happening, tuple) else happening.at


def show(console: Console, recording: Recording, seconds: float) -> None:
    film = Film(recording, Picture(recording.options.nodes, OPENING))
    with Live(console=console, auto_refresh=False, vertical_overflow="crop") as live:
        for now in film.moments(seconds) if seconds else ():
            film.play_until(now)
            live.update(film.picture.draw(console.width, console.height), refresh=True)
        film.play_until(recording.virtual_ns)
        film.picture.caption = ENDING
        live.update(film.picture.draw(console.width, console.height), refresh=True)


def _tell(console: Console, recording: Recording) -> None:
    """The same as a log: the state moves left out, the story put in."""
    story = {str(fault): fault for fault in recording.options.faults}
    entries = [entry for entry in recording.timeline.entries if entry.kind is not EntryKind.STATE]
    caption, told = OPENING, 0
    for place, entry in enumerate(entries):
        if entry.kind in (EntryKind.FAULT, EntryKind.REPAIR) and entry.text in story:
            _tell_chapter(console, caption, entries[told:place])
            caption, told = narration(story[entry.text]), place
    _tell_chapter(console, caption, entries[told:])


def _tell_chapter(console: Console, caption: str, entries: Sequence[Entry]) -> None:
    console.print(Text(caption, style="bold"), soft_wrap=True)
    draw_timeline(console, entries)
    console.print()
