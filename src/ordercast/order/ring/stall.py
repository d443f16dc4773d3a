"""Why nothing may be sent on a ring although something waits, in words."""

from __future__ import annotations

from ordercast.model.ids import NOBODY, SECOND, Instant, process_text
from ordercast.order.membership.stall import STALL_NS
from ordercast.order.membership.step import Facts


def why_stalled(facts: Facts, now: Instant) -> str:
    ring, memory = facts.installed, facts.installed.memory
    silence = now - facts.stats.last_visit_at
    if not facts.clock.covers(facts.clock.tick + 1):
        return f"stable storage has not confirmed that the clock may rise above {facts.clock.bound}"
    if facts.is_behind:
        return "the application of this process does not take its deliveries"
    if memory.behind:
        members = "an application of another member does not take its deliveries"
        if memory.behind > 1:
            members = f"applications of {memory.behind} other members do not take their deliveries"
        return f"{members}, look for flow.is_behind in their status"
    if memory.aru_id != NOBODY and memory.forwarded_seq - memory.forwarded_aru >= facts.config.backlog_max:
        return f"{process_text(memory.aru_id)} has not received packet {memory.forwarded_aru + 1}"
    if silence > STALL_NS // 2:
        return f"the token was here {silence / SECOND:.1f} s ago"
    return f"packets that are sent again take all of the window of ring {ring.id}"
