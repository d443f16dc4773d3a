"""Reading: whoever takes deliveries inside the process of a node, and how far behind it is."""

from __future__ import annotations

from typing import Protocol


class Reading(Protocol):
    """Whoever takes deliveries inside this process."""

    @property
    def is_behind(self) -> bool:
        """So much was not taken that all wait."""

    @property
    def taken(self) -> int:
        """Pieces that were taken so far."""

    @property
    def size(self) -> int:
        """Bytes that were not taken."""

    def close(self, failure: BaseException | None) -> None:
        """Nothing more will come."""


class NobodyReads:
    """The reading of a daemon, whose clients have queues of their own."""

    is_behind = False
    taken = size = 0

    def close(self, failure: BaseException | None) -> None:
        pass
