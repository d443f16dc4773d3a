"""The wide states of a daemon, by name, and the moves between them."""

from __future__ import annotations

STARTING = "Starting"
REGULAR = "Regular"
BROKEN = "Broken"
EXCHANGE = "Exchange"
RECOVERY = "Wide recovery"  # a ring has a state Recovery of its own

MOVES = frozenset(
    {
        (STARTING, REGULAR),
        (REGULAR, BROKEN),
        (REGULAR, EXCHANGE),
        (BROKEN, BROKEN),
        (BROKEN, EXCHANGE),
        (EXCHANGE, BROKEN),
        (EXCHANGE, EXCHANGE),
        (EXCHANGE, RECOVERY),
        (RECOVERY, BROKEN),
        (RECOVERY, EXCHANGE),
        (RECOVERY, REGULAR),
    }
)
