"""Who is heard, and who receives."""

from __future__ import annotations

from collections.abc import Sequence

from ordercast.model.effects import Alarm, AlarmKind
from ordercast.model.ids import Instant, ProcessId, process_text


class Lookout:
    """When anything new of each member came, whoever brought it, and since when its aru stands."""

    __slots__ = ("_heard", "_me", "_stands")

    def __init__(self, members: int, me: int, now: Instant) -> None:
        self._me = me
        self._heard = [now] * members
        self._stands = [(0, now)] * members

    def hear(self, member: int, now: Instant, loss_ns: int) -> bool:
        """Note a sign of life; True when it had been silent for so long that it was doubted."""
        silence, self._heard[member] = now - self._heard[member], now
        return silence >= loss_ns // 2

    def silent(self, now: Instant, loss_ns: int) -> list[int]:
        """Return the members of whom nothing came for so long."""
        return [member for member, at in enumerate(self._heard) if member != self._me and now - at >= loss_ns]

    def due(self, now: Instant, loss_ns: int) -> Instant:
        """Return when to look again: when somebody will be doubted, or silent; now and then in any case, and more often
        when somebody is doubted."""
        ends = [at + loss_ns for member, at in enumerate(self._heard) if member != self._me]
        half = loss_ns // 2
        next_end = min([end if end - half <= now else end - half for end in ends if end > now], default=now + loss_ns)
        is_doubted = any(end - half <= now for end in ends)
        return Instant(min(next_end, now + loss_ns // (8 if is_doubted else 4)))

    def deaf(self, arus: Sequence[int], now: Instant, patience: int) -> int | None:
        """Return a member whose aru has stood for too long below what all others have."""
        for member, aru in enumerate(arus):
            lags = all(aru < other for index, other in enumerate(arus) if index != member)
            if self._stands[member][0] != aru or not lags:
                self._stands[member] = aru, now
            elif member != self._me and now - self._stands[member][1] >= patience:
                return member
        return None

    def forgive(self, now: Instant) -> None:
        """Nobody is to blame for the time until now."""
        self._heard = [now] * len(self._heard)
        self._stands = [(aru, now) for aru, _ in self._stands]


def deaf_alarm(process: ProcessId, patience: int) -> Alarm:
    """Return what is told of a member that does not receive."""
    text = f"{process_text(process)} has not received what all others have for {patience / 1e6:.0f} ms"
    return Alarm(AlarmKind.FAILED_TO_RECEIVE, f"{text}: it is expelled", process)
