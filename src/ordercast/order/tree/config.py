"""Timers, windows and the builder of the tree engine, validated once."""

from __future__ import annotations

from dataclasses import dataclass

from ordercast.model.errors import UsageError
from ordercast.model.ids import MILLISECOND
from ordercast.order.tree.builders import BUILDERS


@dataclass(frozen=True, slots=True)
class TreeConfig:
    builder: str = "centre"  # how the manager makes a forest
    open_gap_ns: int = 20 * MILLISECOND  # between two changes of the forest: what came meanwhile is one change
    channel_window: int = 1 << 20  # bytes of one channel that its entry may have unstable
    entry_window: int = 8 << 20  # bytes of all channels of an entry
    source_window: int = 1 << 18  # bytes that a process may have sent and not seen ordered

    def validate(self) -> None:
        positive = ("open_gap_ns", "channel_window", "entry_window", "source_window")
        problems = [f"{name} must be at least 1" for name in positive if getattr(self, name) < 1]
        if self.builder not in BUILDERS:
            problems.append(f"there is no builder {self.builder!r}: it is one of {', '.join(BUILDERS)}")
        if self.channel_window > self.entry_window:
            problems.append("entry_window must be at least channel_window")
        if problems:
            raise UsageError("; ".join(problems))
