"""The smallest run that still fails, for `ordercast swarm --shrink`: its timeline, what is broken, and its replay."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.text import Text

from ordercast.cli.drawing import draw_timeline, draw_witnesses
from ordercast.cli.recording import Recording, record
from ordercast.cli.terminal import Meter
from ordercast.sim.options import SimOptions
from ordercast.sim.run_options import drawn_text, is_written_out, options_json, replay_command
from ordercast.sim.shrink import TRIES_MAX, Shrunk, shrink


@dataclass(slots=True)
class Smallest:
    seed: int
    shrunk: Shrunk
    recording: Recording

    @property
    def replay(self) -> str | None:
        """None when the command line cannot say it."""
        return self.recording.command or None

    def document(self) -> dict[str, Any]:
        return {
            "seed": self.seed,
            "events": self.shrunk.events,
            "runs": self.shrunk.tries,
            "sentence": self.recording.verdict.sentence,
            "options": options_json(self.shrunk.options),
            "replay": self.replay,
        }


def shrunken(options: SimOptions, seed: int) -> Smallest | None:
    with Meter("shrinking", TRIES_MAX) as meter:
        meter.show(0, f"seed {seed}, up to {TRIES_MAX} runs")
        found = shrink(options, seed)
    if found is None:
        return None
    command = replay_command(found.options, seed, is_hostile=False) if is_written_out(found.options) else ""
    return Smallest(seed, found, record(found.options, seed, command))


def draw_smallest(console: Console, smallest: Smallest) -> None:
    events = "1 event" if smallest.shrunk.events == 1 else f"{smallest.shrunk.events:,} events"
    line = f"\nseed {smallest.seed} shrunk to {events} (messages and faults), in {smallest.shrunk.tries} runs:\n"
    console.print(Text(line, style="bold"), soft_wrap=True)
    draw_timeline(console, smallest.recording.timeline.entries)
    draw_witnesses(console, smallest.recording.verdicts)
    console.print(Text(f"left     {drawn_text(smallest.shrunk.options)}"), soft_wrap=True)
    replay = smallest.replay or "the same command again: what is left cannot be said to `ordercast sim`"
    console.print(Text(f"replay   {replay}"), soft_wrap=True)
