"""What the comparison engines can be set to, validated once."""

from __future__ import annotations

from dataclasses import dataclass

from ordercast.model.errors import UsageError
from ordercast.model.ids import MILLISECOND

FANOUTS = ("multicast", "unicast")
DUMMIES = ("none", "weight", "slot")
SEQUENCES = ("drawn", "even")


@dataclass(frozen=True, slots=True)
class BaselineConfig:
    fanout: str = "multicast"  # what is for everybody goes out once; "unicast": once for each of the others
    in_flight: int = 256  # messages of all members that may be sent and not delivered
    rest_ns: int = 10 * MILLISECOND  # after so long a time without a packet everybody says what it has delivered
    null_ns: int = 20 * MILLISECOND  # timestamps: whoever was silent for so long, and is waited for, sends a null
    close_ns: int = 500 * MILLISECOND  # all-ack and atop: when nothing has come for so long, a run is at its end

    # Of the engine `atop`
    dummies: str = (
        "slot"  # when a silent member fills a slot: never, as often as its weight says, when its slot is next
    )
    sequence: str = "drawn"  # of slots: drawn one by one, as in the paper, or even
    window: int = 50  # messages for each member in the book-keeper's window (the paper's N)
    floor: int = 1  # what every member has beside (the paper's epsilon)
    threshold: float = 0.1  # half the sum of differences of shares that makes a new distribution
    adapt_ns: int = 100 * MILLISECOND  # the book-keeper compares so often

    def validate(self) -> None:
        """Every key; all that is wrong is said at once."""
        choices = {"fanout": FANOUTS, "dummies": DUMMIES, "sequence": SEQUENCES}
        problems = [
            f"there is no {name} {getattr(self, name)!r}; there are: {', '.join(known)}"
            for name, known in choices.items()
            if getattr(self, name) not in known
        ]
        numbers = ("in_flight", "rest_ns", "null_ns", "close_ns", "window", "floor", "adapt_ns")
        problems += [f"{name} must be at least 1" for name in numbers if getattr(self, name) < 1]
        problems += [] if 0 < self.threshold < 1 else ["threshold must be above 0 and below 1"]
        if problems:
            raise UsageError("; ".join(problems))
