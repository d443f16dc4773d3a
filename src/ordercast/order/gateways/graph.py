"""The graph of a network: who can still be heard, as far as it follows from ENDs and births.

Two attachments of one domain are *together* when they have the same base, which is the newest ring of the domain in
the logical past that lists them, and are named by the same later ENDs. Whoever is together hears one another; gateways
carry on from one domain to the next. A pure function of what is known: whoever knows the same comes to the same.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from ordercast.model.ids import ConfigurationId, ProcessId
from ordercast.order.gateways.items import EndItem, Processes, domain_of

Attachments = Mapping[tuple[ProcessId, int], ConfigurationId]  # (process, domain) -> base ring


def together(bases: Attachments, ends: Iterable[EndItem]) -> list[list[ProcessId]]:
    """Return the sets of processes that are together, each on one domain."""
    by_domain: dict[int, list[EndItem]] = defaultdict(list)
    for end in ends:
        by_domain[domain_of(end.ring)].append(end)
    groups: dict[tuple[int, ConfigurationId, frozenset[object]], list[ProcessId]] = defaultdict(list)
    for (process, domain), base in bases.items():
        later = frozenset(
            (end.ring, end.half, end.successor.id)
            for end in by_domain[domain]
            if process in end.half and end.successor.id > base
        )
        groups[domain, base, later].append(process)
    return list(groups.values())


def reachable(me: ProcessId, bases: Attachments, ends: Iterable[EndItem]) -> Processes:
    """Return the processes that can be heard from here, over any number of gateways; this one among them."""
    return around((me,), bases, ends)


def around(processes: Iterable[ProcessId], bases: Attachments, ends: Iterable[EndItem]) -> Processes:
    """Return some processes and all that can be heard from them."""
    return _walk(together(bases, ends), processes)


def beyond(me: ProcessId, domain: int, bases: Attachments, ends: Iterable[EndItem]) -> Processes:
    """Return the processes that can be heard over one attachment, without coming back through this process."""
    others = {at: base for at, base in bases.items() if at[0] != me or at[1] == domain}
    return reachable(me, others, ends) - {me}


def _walk(groups: list[list[ProcessId]], processes: Iterable[ProcessId]) -> Processes:
    groups_of: dict[ProcessId, list[int]] = defaultdict(list)
    for number, group in enumerate(groups):
        for process in group:
            groups_of[process].append(number)
    found = set(processes)
    entered: set[int] = set()
    todo = [number for process in found for number in groups_of[process]]
    while todo:
        number = todo.pop()
        if number in entered:
            continue
        entered.add(number)
        for process in groups[number]:
            if process not in found:
                found.add(process)
                todo += groups_of[process]  # a process of one attachment leads nowhere else
    return frozenset(found)
