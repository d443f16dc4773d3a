"""Back-pressure: who asks all users of the network to stop sending, and why.

A process holds while the queue of one of its attachments, its undelivered packets or its application is above a mark.
It says so by name, with a reason and a number that rises. Everybody stops its own users while a member of its view
holds. What gateways carry and what rings need never stops, so that no circle of holders can hold itself up. A holder
that leaves the view holds no more.
"""

from __future__ import annotations

from collections.abc import Iterable

from ordercast.model.ids import ProcessId
from ordercast.order.gateways.items import HoldItem, Processes


class Pressure:
    """One reason of this process to hold: a quantity with a high mark, and a low one where it lets go."""

    __slots__ = ("_high", "_is_high", "_low", "reason")

    def __init__(self, reason: str, high: int) -> None:
        self.reason = reason
        self._high = high
        self._low = high * 3 // 4
        self._is_high = False

    def measure(self, amount: int) -> bool:
        """Return whether this is a reason to hold now."""
        self._is_high = amount >= self._high if not self._is_high else amount > self._low
        return self._is_high


class Pressures:
    """All reasons of this process to hold: what waits for each attachment or for its place, and the application."""

    __slots__ = ("_backlog", "_queues", "is_behind")

    def __init__(self, names: Iterable[str], queue_high: int, backlog_high: int) -> None:
        self._queues = [Pressure(f"much waits to be carried onto {name}", queue_high) for name in names]
        self._backlog = Pressure("much waits for its place in the order", backlog_high)
        self.is_behind = False  # the application is

    def reasons(self, sizes: Iterable[int], backlog: int) -> list[str]:
        """Return the reasons to hold now, given the bytes that wait for each attachment and for their place."""
        reasons = [queue.reason for queue, size in zip(self._queues, sizes, strict=True) if queue.measure(size)]
        if self._backlog.measure(backlog):
            reasons.append(self._backlog.reason)
        return [*reasons, "the application is behind"] if self.is_behind else reasons


class Holds:
    """The holds that are in force, and the own one."""

    __slots__ = ("_latest", "_me", "_number")

    def __init__(self, me: ProcessId) -> None:
        self._me = me
        self._number = 0
        self._latest: dict[ProcessId, HoldItem] = {}

    def decide(self, reasons: Iterable[str]) -> HoldItem | None:
        """Return what to say, given the reasons of this process to hold now; None if nothing has changed."""
        reason = "; ".join(reasons)
        mine = self._latest.get(self._me)
        if (mine.reason if mine is not None else "") == reason:
            return None
        self._number += 1
        return HoldItem(self._me, self._number, reason)

    def take(self, hold: HoldItem) -> bool:
        """Take what a process says; return whether it is news."""
        latest = self._latest.get(hold.process)
        if latest is not None and latest.number >= hold.number:
            return False
        self._latest[hold.process] = hold
        return True

    def in_force(self, members: Processes) -> list[HoldItem]:
        """Return the holds of members of a view, sorted by process."""
        latest = self._latest
        return [latest[process] for process in sorted(latest) if latest[process].is_on and process in members]

    def said(self, members: Processes) -> tuple[HoldItem, ...]:
        """Return the latest word of each member of a view, for a topology."""
        return tuple(hold for process, hold in sorted(self._latest.items()) if process in members)

    def forget(self, members: Processes) -> None:
        """Forget processes that are gone."""
        self._latest = {process: hold for process, hold in self._latest.items() if process in members}
