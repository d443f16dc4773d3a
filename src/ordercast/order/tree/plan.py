"""From reports to a plan: who sends what again, what is implied, and who has delivered what. Pure.

*Held* is what any of those who came along has processed, forwarders too, or knows as the source to be ordered. A
message that a source has sent and not seen ordered, whose later one at the same entry is held, was ordered before that
one: it is *implied*, and the later one names its place. Each held message that somebody is owed and lacks is sent again
by its smallest holder. What a process lacks has a higher place than all it has: ways are in order, and ranks rise. So
it is enough to sort.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ordercast.model.ids import ProcessId
from ordercast.order.tree.blocks import earlier_of, earlier_places
from ordercast.order.tree.reports import CargoIdentity, HeldMark, Order, Report, Unordered

Receivers = Callable[[HeldMark], frozenset[ProcessId]]


@dataclass(frozen=True, slots=True)
class TreePlan:
    marks: Mapping[CargoIdentity, HeldMark]  # all that is held or implied
    senders: Mapping[CargoIdentity, ProcessId]  # who sends again what somebody lacks
    delivered: Mapping[ProcessId, Order]
    implied: int = 0  # how many
    forwarded: int = 0  # how many are sent again by one who is not owed them
    by_source: int = 0  # how many by their source, who alone has them

    def is_before_signal(self, mark: HeldMark, receivers: frozenset[ProcessId]) -> bool:
        """Whether somebody who is owed a message has delivered it before the configuration ended."""
        return any(self.delivered[one] >= mark.order for one in receivers if one in self.delivered)


def plan_of(reports: Mapping[ProcessId, Report], receivers: Receivers) -> TreePlan:
    """Return what those who came along with each other do; the same at all of them."""
    marks, holders = _held(reports)
    implied = _implied(reports, marks)
    for process, mark in implied:
        marks[mark.identity] = mark
        holders[mark.identity] = {process}
    counts = {process: dict(report.counts) for process, report in reports.items()}
    senders: dict[CargoIdentity, ProcessId] = {}
    forwarded = by_source = 0
    for identity in sorted(marks):
        mark, having = marks[identity], holders[identity]
        owed = receivers(mark)
        lacking = [
            one
            for one, report in reports.items()
            if one in owed and one not in having and lacks(report, counts[one], mark)
        ]
        if lacking and having:  # what was settled all have, unless a report is forged
            sender = senders[identity] = min(having)
            forwarded += sender not in owed and sender != mark.originator
            by_source += having == {mark.originator}
    delivered = {process: report.delivered for process, report in reports.items()}
    return TreePlan(marks, senders, delivered, len(implied), forwarded, by_source)


def _held(
    reports: Mapping[ProcessId, Report],
) -> tuple[dict[CargoIdentity, HeldMark], dict[CargoIdentity, set[ProcessId]]]:
    marks: dict[CargoIdentity, HeldMark] = {}
    holders: dict[CargoIdentity, set[ProcessId]] = {}
    for process in sorted(reports):
        for mark in reports[process].held:
            known = marks.setdefault(mark.identity, mark)
            if known[:-1] == mark[:-1]:  # a message has one place in a birth, unless it is forged
                holders.setdefault(mark.identity, set()).add(process)
                if mark.earlier:
                    marks[mark.identity] = mark
        for mark in reports[process].settled:
            marks.setdefault(mark.identity, mark)
            holders.setdefault(mark.identity, set())
    return marks, holders


def _implied(
    reports: Mapping[ProcessId, Report], marks: Mapping[CargoIdentity, HeldMark]
) -> list[tuple[ProcessId, HeldMark]]:
    """Return what was ordered before something that is held, by the entry that both were sent to."""
    found: list[tuple[ProcessId, HeldMark]] = []
    for process in sorted(reports):
        later: dict[tuple[int, ProcessId], list[HeldMark]] = {}
        for mark in marks.values():
            if mark.originator == process:
                later.setdefault((mark.birth, mark.entry), []).append(mark)
        for one in reports[process].unordered:
            if (process, one.source, one.birth) in marks:
                continue
            following = [mark for mark in later.get((one.birth, one.entry), ()) if mark.source > one.source]
            implied = _implied_mark(process, one, min(following, key=lambda mark: mark.source)) if following else None
            if implied is not None:
                found.append((process, implied))
    return found


def _implied_mark(process: ProcessId, one: Unordered, following: HeldMark) -> HeldMark | None:
    """Return what the one that follows says of it. Its source has not heard of its place, so the one that follows names
    it, and those before it, unless it is forged."""
    places = earlier_places(following.earlier, following.rank)
    rank = places.get(one.source)
    if rank is None:
        return None
    earlier = b"".join(earlier_of(source, place) for source, place in places.items() if source < one.source)
    return HeldMark(one.birth, one.entry, 0, process, one.source, one.groups, rank, earlier)


def lacks(report: Report, counts: Mapping[tuple[ProcessId, tuple[int, ...]], int], mark: HeldMark) -> bool:
    """Whether a process has not processed a message that it is owed."""
    if mark.birth == report.birth:
        return not mark.number or counts.get((mark.entry, mark.groups), 0) < mark.number
    return mark.birth > report.opened
