"""What a process is owed: everything, unless its engine prunes; then what is sent to destinations that it wants.

Every judge who would hold a missing message against a process asks here first. An engine that prunes brings a message
to those who want one of its destinations, and may bring it to others. A process is owed a message if it wanted one of
the destinations from before the message was submitted until after it was last delivered anywhere; of a message that
nobody has delivered, until now. What is submitted or given up meanwhile may arrive or not. A message without
destinations is owed to all.

Where the engine works in epochs (`Opened`), the epoch of a message decides, which its position names: it is owed to
those who have one of its destinations there. What nobody has delivered is owed to its submitter alone. A message that
was lost with its entry, and ordered again in a later configuration, is owed by its last epoch that the process was in.
"""

from __future__ import annotations

from collections.abc import Iterable

from ordercast.checker.history import History
from ordercast.checker.life import Life


class Owed:
    def __init__(self, history: History) -> None:
        self._history = history

    @property
    def is_everything(self) -> bool:
        """Whether nothing is pruned, so that a judge can take a shorter way."""
        return not self._history.prunes

    def among(self, life: Life | None, numbers: Iterable[int]) -> list[int]:
        """Return those of the messages that this process is owed. For a process without a record nobody knows what it
        wants."""
        if self.is_everything:
            return list(numbers)
        return [number for number in numbers if self.is_owed(life, number)]

    def is_owed(self, life: Life | None, number: int) -> bool:
        history = self._history
        if not history.prunes:
            return True
        bound = history.bound.get(number)
        if bound is None:
            return history.was_submitted(number)
        if life is None:
            return False
        if history.is_by_groups and (epochs := history.epochs_of(number)):
            newest = max((epoch for epoch in epochs if epoch in life.opened), default=None)
            return newest is not None and not life.opened[newest].isdisjoint(bound.destinations)
        if history.is_by_groups and history.identity(number).process != life.process:
            return False
        last = history.last_delivered.get(number, history.now)
        return any(
            begin < bound.submitted and last < end
            for destination in bound.destinations
            for begin, end in life.wanted.get(destination, ())
        )
