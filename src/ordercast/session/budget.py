"""The memory that a daemon spends on its clients: one budget over all of them.

Everybody owes what is kept for him. When all together owe more than the budget, the largest debtor has to go first; of
several with the same debt, the one who has been there for longest.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

T = TypeVar("T", bound=Hashable)


class Budget(Generic[T]):
    def __init__(self, size_max: int) -> None:
        self.size_max = size_max
        self.size = 0  # bytes that all owe together
        self._debts: dict[T, int] = {}

    def owe(self, who: T, size: int) -> None:
        """All that is kept for this debtor now; with nothing, it is a debtor no longer."""
        self.size += size - self._debts.get(who, 0)
        if size:
            self._debts[who] = size
        else:
            self._debts.pop(who, None)

    @property
    def is_exceeded(self) -> bool:
        return self.size > self.size_max

    def largest(self) -> tuple[T, int]:
        """The largest debtor, and its debt."""
        who = max(self._debts, key=self._debts.__getitem__)
        return who, self._debts[who]

    def reason(self, debt: int) -> str:
        """Why the largest debtor has to go, in a sentence for it."""
        return (
            f"this client takes the most memory of all clients of this daemon: {debt:,} bytes of {self.size:,}, and "
            f"{self.size_max:,} may be taken by all; read faster, or raise memory_max in [clients]"
        )
