"""Where amounts do not tell what was delivered: an engine that prunes, or that delivers before the place in the order.

Then nobody need have all, and sets of messages are compared, each part by itself: all deliveries of a message are in
one part. The demands are again at least as strict as the reference checkers; who may lack a message is asked of
`Part.owed`.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ordercast.model.configuration import ConfigurationKind
from ordercast.model.ids import NO_CONFIGURATION, ConfigurationId
from ordercast.model.service import Service
from ordercast.pipeline.verify.facts import NOWHERE, Facts, Life
from ordercast.pipeline.verify.part import Part, Segment, by_view, demand, spans
from ordercast.pipeline.verify.rows import Flags, Ints

Place = tuple[int, int]  # life and stay
Step = tuple[ConfigurationId, ...]


def clear_sets(part: Part, segments: list[Segment]) -> None:
    """`segments` are those of the deliveries in order."""
    if part.facts.early:
        _rising_streams(part)
    for members in by_view(part.facts, segments).values():
        if part.owed is not None:
            for life, numbers, reached in agreed_in(part, members):
                demand(not len(numbers[:reached]), f"life {life} delivered beyond what it is owed and lacks")
    _together(part)
    _at_the_end(part)


def _rising_streams(part: Part) -> None:
    """The messages of a sender that ask for fifo order come in its order, early or not (fifo)."""
    rows = part.deliveries.rows["service"] >= Service.FIFO
    number, life = part.number[rows], part.deliveries.life[rows]
    stream = part.submissions.stream[number]
    order = np.lexsort((stream, life))  # stable: in the order of each process
    is_same = (np.diff(stream[order]) == 0) & (np.diff(life[order]) == 0)
    demand((np.diff(number[order])[is_same] > 0).all(), "messages of a sender out of its order")


def agreed_in(part: Part, members: list[Segment]) -> Iterator[tuple[int, Ints, int]]:
    """Yield each life that delivered in a view, the messages delivered there by others that it is owed and has not
    delivered there, by their places, and how many of them lie before its last delivery (agreed delivery)."""
    services = part.submissions.rows["service"]
    everything = np.unique(np.concatenate([part.sequence[begin:end] for *_, begin, end in members]))
    everything = everything[services[everything] >= Service.AGREED]
    everything = everything[np.argsort(part.key[everything], kind="stable")]
    for life, _, begin, end in members:
        has = np.isin(everything, part.sequence[begin:end])
        last = int(np.flatnonzero(has)[-1]) if has.any() else 0
        is_lacked = ~has if part.owed is None else ~has & part.owed[life, everything]
        lacked = np.flatnonzero(is_lacked)
        yield life, everything[lacked], int(np.searchsorted(lacked, last))


# Virtual synchrony


def _together(part: Part) -> None:
    """Who went together from one configuration to the next has delivered in the first what it is owed of what the
    others delivered there; of early messages, in the regular one and the transitional one after it."""
    early = part.deliveries.early
    by_stay = {False: _by_stay(part, ~early), True: _by_stay(part, early)}
    for is_early, step in ((False, _moves), (True, _early_moves)):
        delivered, companies = by_stay[is_early], dict[Step, list[list[Place]]]()
        for index, life in enumerate(part.facts.lives):
            for key, stays in step(life):
                companies.setdefault(key, []).append([(index, stay) for stay in stays])
        for company in companies.values():
            sets = [_union([delivered[place] for place in places if place in delivered]) for places in company]
            everything = _union(sets)
            for places, mine in zip(company, sets, strict=True):
                missing = np.setdiff1d(everything, mine, assume_unique=True)
                if part.owed is not None:
                    missing = missing[part.owed[places[0][0], missing]]
                demand(not len(missing), "those who went together delivered different messages")


def _union(sets: list[Ints]) -> Ints:
    return np.unique(np.concatenate(sets)) if sets else np.zeros(0, np.int64)


def _by_stay(part: Part, is_chosen: Flags) -> dict[Place, Ints]:
    """Return the reliable messages delivered in each stay of each life."""
    chosen = np.flatnonzero(is_chosen & (part.deliveries.rows["service"] >= Service.RELIABLE))
    life, stay, number = part.deliveries.life[chosen], part.deliveries.stay[chosen], part.number[chosen]
    result = {}
    for index, begin, end in spans(life):
        for where, first, last in spans(stay[begin:end]):
            result[index, where] = number[begin + first : begin + last]
    return result


def _moves(life: Life) -> Iterator[tuple[Step, tuple[int, ...]]]:
    """Each step from one configuration to the next, with the stay that it ends. Stays count from 1 here."""
    for stay in range(1, len(life.stays)):
        yield (life.stays[stay - 1].view.id, life.stays[stay].view.id), (stay,)


def _early_moves(life: Life) -> Iterator[tuple[Step, tuple[int, ...]]]:
    """Each step to a regular configuration, with the transitional stay that it ends and the one before that."""
    for stay in range(1, len(life.stays)):
        left, entered = life.stays[stay - 1].view, life.stays[stay].view
        if entered.kind is ConfigurationKind.REGULAR:
            is_pair = stay > 1 and left.kind is not ConfigurationKind.REGULAR
            before = life.stays[stay - 2].view.id if is_pair else NO_CONFIGURATION
            yield (before, left.id, entered.id), (stay - 1, stay) if is_pair else (stay,)


# The end


def _at_the_end(part: Part) -> None:
    """Processes that run at the healed end have what they are owed of what was delivered in their last configuration,
    and of what they submitted in it (liveness); none is owed one of its own that nobody delivered (self delivery)."""
    facts, sent = part.facts, part.submissions
    is_reliable, is_placed = sent.rows["service"] >= Service.RELIABLE, part.key != NOWHERE
    running = [index for index, life in enumerate(facts.lives) if life.is_running and life.stays]
    if facts.is_complete and facts.is_healed:
        owed = _of_last_stay(part, running) & (is_placed | part.is_whole)
        owed[part.number[_in_last_stay(part, running)]] = True
        for index in running:
            missing = part.lacked(index, np.flatnonzero(owed & is_reliable))
            demand(not len(missing), "a process lacks a message of its last configuration")
    if part.is_whole:
        lost = np.flatnonzero(~is_placed & is_reliable)
        for index, life in enumerate(facts.lives):
            own = lost[sent.life[lost] == index]
            demand(life.crashed or not len(part.lacked(index, own)), "nobody delivered a message that is owed")


def _in_last_stay(part: Part, running: list[int]) -> Flags:
    """Which deliveries were made in the last stay of a process that runs."""
    deliveries = part.deliveries
    is_last: Flags = deliveries.stay == _last_stays(part.facts)[deliveries.life]
    return np.isin(deliveries.life, running) & is_last


def _of_last_stay(part: Part, running: list[int]) -> Flags:
    """Which messages were submitted in the last stay of their submitter."""
    sent = part.submissions
    begins = np.array([life.stays[-1].begins if life.stays else -1 for life in part.facts.lives], np.int64)
    return np.isin(sent.life, running) & (sent.rows["idx"] > begins[sent.life])


def _last_stays(facts: Facts) -> Ints:
    return np.array([len(life.stays) for life in facts.lives], np.int64)
