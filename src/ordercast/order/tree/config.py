"""Timers, windows and the builder of the tree engine, validated once."""

from __future__ import annotations

from dataclasses import dataclass

from ordercast.model.errors import UsageError
from ordercast.model.ids import MILLISECOND, SECOND
from ordercast.model.quantities import duration_text
from ordercast.order.links.config import PAYLOAD_MAX
from ordercast.order.tree.builders import BUILDERS

PAUSE = "the ring's pause"
CARGO_SIZE_MAX = PAYLOAD_MAX // 2  # a link carries it, with all that is said of it


@dataclass(frozen=True, slots=True)
class TreeConfig:
    builder: str = "auto"  # how the manager makes a forest
    open_gap_ns: int = 20 * MILLISECOND  # between two changes of the forest: what came meanwhile is one change
    build_budget: int = 1  # slices of planning that the manager does between other things
    rebuild_gap_ns: int = 10 * SECOND  # between two looks at whether another forest would cost less
    close_patience_ns: int = 500 * MILLISECOND  # with trees that do not close, before all of them are ended
    link_patience_ns: int = 300 * MILLISECOND  # with a link on which nothing moves, before others are told
    load_gap_ns: int = 10 * SECOND  # between two words of a process on how much it sends
    channel_window: int = 1 << 20  # bytes of one channel that its entry may have unstable
    entry_window: int = 8 << 20  # bytes of all channels of an entry
    source_window: int = 1 << 18  # bytes that a process may have sent and not seen ordered
    cargo_size: int = 1 << 15  # bytes of messages in a row that travel as one; larger ones go in parts

    def validate(self) -> None:
        """Every key by itself, and what the engine rests on; all that is wrong is said at once."""
        times = ("open_gap_ns", "rebuild_gap_ns", "close_patience_ns", "link_patience_ns", "load_gap_ns")
        positive = (*times, "build_budget", "channel_window", "entry_window", "source_window", "cargo_size")
        problems = [f"{name} must be at least 1" for name in positive if getattr(self, name) < 1]
        rules = [
            (self.builder in BUILDERS, f"builder must be one of {', '.join(BUILDERS)}"),
            (self.channel_window <= self.entry_window, "entry_window must be at least channel_window"),
            (self.cargo_size <= CARGO_SIZE_MAX, f"cargo_size must be at most {CARGO_SIZE_MAX}"),
        ]
        problems += [text for holds, text in rules if not holds]
        if problems:
            raise UsageError("; ".join(problems))

    def validate_beside(self, pause_ns: int) -> None:
        """What keeps a live cluster calm, too. `pause_ns`: how long a member of the ring may do nothing unnoticed; a
        link to it must not be given up meanwhile. And a tree that cannot close because of a link must be found by the
        link, which is then avoided, not by the close."""
        self.validate()
        rules = [
            (
                self.link_patience_ns > pause_ns,
                f"link_patience_ns must be more than {PAUSE}, {duration_text(pause_ns)}",
            ),
            (self.link_patience_ns <= self.close_patience_ns, "close_patience_ns must be at least link_patience_ns"),
        ]
        if problems := [text for holds, text in rules if not holds]:
            raise UsageError("; ".join(problems))
