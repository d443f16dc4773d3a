"""Why nothing may be sent although something waits, in words."""

from __future__ import annotations

from ordercast.model.ids import Instant, process_text
from ordercast.order.adaptive.flow import share_left
from ordercast.order.adaptive.merge import Merge
from ordercast.order.membership.step import Facts


def why_stalled(facts: Facts, now: Instant) -> str:
    merge = facts.past
    assert isinstance(merge, Merge)
    if facts.is_behind:
        return "the application of this process does not take its deliveries"
    if merge.behind:
        return "an application of another member does not take its deliveries, look for flow.is_behind in their status"
    members = facts.installed.members
    if not share_left(merge, facts.config.window, facts.config.backlog_max):
        slowest = min(range(len(members)), key=lambda member: merge.arus[member])
        return f"{process_text(members[slowest])} has not acknowledged place {merge.arus[slowest] + 1}"
    silent = min(range(len(members)), key=lambda member: merge.frontiers[member])
    return f"{process_text(members[silent])} has not said whether it uses place {merge.frontiers[silent]}"
