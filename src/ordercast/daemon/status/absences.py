"""Who was together with this node and is not now, since when and why; and who is back, in which life. Pure.

A process that comes back as the same process had not crashed: it did not run for a while, or was not heard. One that
comes back under its node's number as another process had ended. Others cannot know more of it, so a view that takes
somebody back says this much, and a status says it of those who are still away.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ordercast.model.configuration import ChangeReason, Configuration, ConfigurationKind
from ordercast.model.ids import SECOND, ConfigurationId, Instant, NodeId, ProcessId, node_of

KEPT_MAX = 1000  # nodes that are away
PAUSE_SLACK_NS = 5 * SECOND  # a pause of this node explains what others seem to have done until so long after it


@dataclass(frozen=True, slots=True)
class Absence:
    process: ProcessId
    since: Instant
    last: ConfigurationId  # the last view that this node had with it
    reason: ChangeReason
    is_own: bool  # this node itself had not run just before


@dataclass(frozen=True, slots=True)
class Return:
    process: ProcessId
    away_ns: int
    is_same_life: bool
    has_left: bool  # in order
    is_own: bool  # this node was away, and not the other


class Absences:
    def __init__(self) -> None:
        self.away: dict[NodeId, Absence] = {}
        self._view: Configuration | None = None
        self._pause_told_at: Instant | None = None

    def pause_told(self, paused_at: Instant | None, lasted: int, now: Instant) -> int | None:
        """How long this node did not run, if that was lately and no view has said it yet."""
        if paused_at is None or now - paused_at > PAUSE_SLACK_NS or paused_at == self._pause_told_at:
            return None
        self._pause_told_at = paused_at
        return lasted

    def observe(self, view: Configuration, now: Instant, paused_at: Instant | None = None) -> list[Return]:
        """Take a new view. Who is back with it? `paused_at`: when this node last noticed that it had not run."""
        if view.kind is not ConfigurationKind.REGULAR:
            return []
        before, self._view = self._view, view
        here = {node_of(process) for process in view.members}
        is_own = paused_at is not None and now - paused_at <= PAUSE_SLACK_NS
        for process in () if before is None else before.members:
            if node_of(process) not in here and before is not None:
                self.away[node_of(process)] = Absence(process, now, before.id, view.reason, is_own)
        while len(self.away) > KEPT_MAX:
            del self.away[next(iter(self.away))]
        found = []
        for process in view.members:
            absence = self.away.pop(node_of(process), None)
            if absence is not None:
                has_left = absence.reason is ChangeReason.LEFT
                is_same_life = process == absence.process
                found.append(Return(process, now - absence.since, is_same_life, has_left, absence.is_own))
        return found


def returns_text(found: list[Return], name_of: Callable[[ProcessId], str], own_pause_ns: int | None) -> str:
    """What a view says of those who are back. `own_pause_ns`: how long this node did not run meanwhile."""
    parts = []
    for back in found:
        name, away = name_of(back.process), f"{back.away_ns / SECOND:.1f} s"
        if not back.is_same_life:
            what = "had left" if back.has_left else "had ended, and was started again"
            parts.append(f"{name} is back in a new life after {away}: it {what}")
        elif own_pause_ns is None and not back.is_own:
            parts.append(f"{name} is back after {away}: it had not crashed, it was paused or cut off")
    if own_pause_ns is not None:
        parts.append(f"this node did not run for {own_pause_ns / SECOND:.1f} s")
    return "; ".join(parts)
