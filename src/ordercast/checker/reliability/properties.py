"""The guarantees: P of delivery, Q of atomicity, R of order. (Thesis, 6.3)

Each is judged for every message and site that it speaks of; where its interval runs past the end of the history,
nothing is decided. P0, Q0 and R0 guarantee nothing. All messages are to one group, so that all pairs are to be ordered.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import combinations

from ordercast.checker.reliability.events import Happening, Kind, Multicasted, Site, SiteHistory
from ordercast.checker.reliability.states import States


@dataclass(slots=True)
class Ruling:
    """What a judge has found: how often a guarantee applied, and how it was broken."""

    applied: int = 0
    broken: list[str] = field(default_factory=list)

    def ask(self, is_kept: bool, sentence: str) -> None:
        self.applied += 1
        if not is_kept:
            self.broken.append(sentence)

    @property
    def is_kept(self) -> bool:
        return not self.broken


@dataclass(frozen=True, slots=True)
class Case:
    """A history, and what its protocol says of it."""

    history: SiteHistory
    states: States
    parents: Mapping[Site, Site | None] = field(default_factory=dict)  # p(b); none where there is no tree

    @classmethod
    def of(cls, history: SiteHistory, parents: Mapping[Site, Site | None] | None = None) -> Case:
        return cls(history, States(history), parents or {})

    def by(self, ruling: Ruling, site: Site, message: Multicasted, start: int, bound: int, why: str) -> None:
        """Ask that a site has delivered a message within a bound."""
        time = self.history.delivered(site, message)
        when = "never" if time is None else f"after {time - start}"
        ruling.ask(
            time is not None and time <= start + bound,
            f"{site} delivers {message} {when}, not within {bound} of {start}, {why}",
        )


Guarantee = Callable[[Case, int], Ruling]


# Delivery


def p1(case: Case, bound: int) -> Ruling:
    """A site delivers what it gets, if it stays up."""
    ruling = Ruling()
    for (site, message), time in case.history.first_gets.items():
        if site in case.history.members and _is_up(case, site, time, bound):
            case.by(ruling, site, message, time, bound, "when it got it")
    return ruling


def p2(case: Case, bound: int) -> Ruling:
    """A site delivers what is multicast, if it stays up and within reach of the source, which stays awake."""
    ruling = Ruling()
    for message, time in case.history.multicasts.items():
        for site in case.history.members:
            if case.states.is_decided(time, bound) and case.states.linked(site, message.source, time, bound):
                case.by(ruling, site, message, time, bound, "when it was multicast")
    return ruling


def p3(case: Case, bound: int, needed: int = 1) -> Ruling:
    """A site delivers what it gets, if it stays up and within reach of so many others that stay awake."""
    ruling = Ruling()
    for (site, message), time in case.history.first_gets.items():
        others = [other for other in case.history.members if other != site]
        near = [other for other in others if case.states.linked(site, other, time, bound)]
        if site in case.history.members and _is_up(case, site, time, bound) and len(near) >= needed:
            case.by(ruling, site, message, time, bound, f"when it got it, within reach of {len(near)} others")
    return ruling


def p4(case: Case, bound: int) -> Ruling:
    """A site delivers what another one has sent it, once it is up and within reach of that one, which is awake."""
    ruling = Ruling()
    for (sender, site, message), time in case.history.first_sends.items():
        start = case.states.first_linked(site, sender, time, bound) if site in case.history.members else None
        if message in case.history.multicasts and start is not None:
            case.by(ruling, site, message, start, bound, f"when {sender} had sent it")
    return ruling


def _is_up(case: Case, site: Site, time: int, bound: int) -> bool:
    return case.states.is_decided(time, bound) and case.states.up(site, time, bound)


# Atomicity


def q1(case: Case, bound: int) -> Ruling:
    """What one delivers and stays awake, all deliver who stay up and within its reach."""
    ruling = Ruling()
    for (one, message), (first, *_) in case.history.deliveries.items():
        for site in case.history.members:
            is_decided = case.states.is_decided(first.time, bound)
            if site != one and is_decided and case.states.linked(site, one, first.time, bound):
                case.by(ruling, site, message, first.time, bound, f"when {one} delivered it")
    return ruling


def q2(case: Case, bound: int) -> Ruling:
    """What anybody delivers, all deliver once they are up and within reach of the source, which is awake."""
    ruling = Ruling()
    for message in dict.fromkeys(message for _, message in case.history.deliveries):
        for site in case.history.members:
            time = case.history.multicasts.get(message)
            start = None if time is None else case.states.first_linked(site, message.source, time, bound)
            if start is not None:
                case.by(ruling, site, message, start, bound, "once within reach of the source")
    return ruling


def q3(case: Case, bound: int) -> Ruling:
    """What its parent has delivered, a site delivers once it is up and within reach of the parent, which is awake."""
    ruling = Ruling()
    for site, parent in case.parents.items():
        for message in case.history.multicasts:
            time = None if parent is None else case.history.delivered(parent, message)
            if parent is None or time is None:
                continue
            start = case.states.first_linked(site, parent, time, bound)
            if start is not None:
                case.by(ruling, site, message, start, bound, f"once within reach of {parent}, which had it")
    return ruling


# Order


def r1(case: Case, bound: int = 0) -> Ruling:
    """Any two sites deliver any two messages in one order, and none twice."""
    return _ordered(case, lambda one, other, first, second: False)


def r2(case: Case, bound: int = 0) -> Ruling:
    """The same, but a site may have delivered in another order before it failed, and others then."""
    failures = case.history.of_kind[Kind.FAIL]

    def failed_between(site: Site, earlier: Happening, later: Happening) -> bool:
        return any(event.site == site and earlier.time < event.time < later.time for event in failures)

    def is_excused(one: Site, other: Site, first: Multicasted, second: Multicasted) -> bool:
        """At one the first came first, at the other the second did."""
        place = {
            (site, message): case.history.deliveries[site, message][0]
            for site in (one, other)
            for message in (first, second)
        }
        return failed_between(other, place[other, first], place[one, first]) or failed_between(
            one, place[one, second], place[other, second]
        )

    return _ordered(case, is_excused)


def _ordered(case: Case, is_excused: Callable[[Site, Site, Multicasted, Multicasted], bool]) -> Ruling:
    ruling = Ruling()
    for (site, message), events in case.history.deliveries.items():
        ruling.ask(len(events) == 1, f"{site} delivers {message} {len(events)} times")
    places = {
        site: {message: place for place, message in enumerate(all_of)}
        for site, all_of in case.history.sequences.items()
    }
    for one, other in combinations(case.history.members, 2):
        common = [message for message in case.history.sequences[one] if message in places[other]]
        for first, second in combinations(common, 2):
            is_same = places[other][first] < places[other][second]
            ruling.ask(
                is_same or is_excused(one, other, first, second),
                f"{one} delivers {first} before {second}, {other} the other way round",
            )
    return ruling


def r3(case: Case, bound: int = 0) -> Ruling:
    """At any time any two sites that are up have delivered any two messages last in one order."""
    ruling = Ruling()
    last: dict[Site, dict[Multicasted, int]] = {site: {} for site in case.history.members}
    for place, event in enumerate(case.history.events):
        if event.kind is Kind.DELIVER:
            assert event.message is not None
            last[event.site][event.message] = place
        if event.kind in (Kind.DELIVER, Kind.RECOVER) and event.site in last:
            _ask_last_orders(case, event, last, ruling)
    return ruling


def _ask_last_orders(
    case: Case, event: Happening, last: Mapping[Site, Mapping[Multicasted, int]], ruling: Ruling
) -> None:
    if not case.states.up(event.site, event.time, 0):
        return
    mine = last[event.site]
    wanted = [event.message] if event.message in mine else list(mine)
    for other, theirs in last.items():
        if other == event.site or not case.states.up(other, event.time, 0):
            continue
        for first in wanted:
            for second in mine:
                if first is None or first == second or first not in theirs or second not in theirs:
                    continue
                is_same = (mine[first] < mine[second]) == (theirs[first] < theirs[second])
                sentence = f"at {event.time} {event.site} and {other}, both up, have {first} and {second} in two orders"
                ruling.ask(is_same, sentence)


GUARANTEES: Mapping[str, Guarantee] = {
    "P1": p1,
    "P2": p2,
    "P3": p3,
    "P4": p4,
    "Q1": q1,
    "Q2": q2,
    "Q3": q3,
    "R1": r1,
    "R2": r2,
    "R3": r3,
}
