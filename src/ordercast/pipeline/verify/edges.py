"""What a part says to the parts around it: where each sender's messages begin and end, and who fell short in a view.

Parts are judged one by one. What could go wrong between them is found here, in the driver: each conclusion names the
messages that the reference checkers shall look at. A `hard` one must make them find something; a soft one may be in
order, as a gap is when two were apart.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from ordercast.model.ids import NO_CONFIGURATION, ConfigurationId
from ordercast.pipeline.verify.facts import Facts
from ordercast.pipeline.verify.part import spans
from ordercast.pipeline.verify.rows import DELIVERED, SUBMITTED, Rows
from ordercast.pipeline.verify.suspects import Interval, Stream, by_stream
from ordercast.pipeline.verify.totals import Totals, lives_that_owe, unequal

WITNESSES = 8  # as many as a verdict has room for

Message = tuple[int, int, int]  # process, sender, counter


@dataclass(slots=True)
class Range:
    first: int
    last: int
    count: int


@dataclass(slots=True)
class InView:
    """What one life delivered in one stay, as far as this part goes."""

    first: Message
    lacks: Message | None  # what others delivered there next, when it fell short of them


@dataclass(slots=True)
class Edges:
    delivered: dict[tuple[int, Stream], Range] = field(default_factory=dict)  # by process and sender
    sent: dict[Stream, Range] = field(default_factory=dict)
    views: dict[tuple[int, int], InView] = field(default_factory=dict)  # by life and stay
    lacking: dict[tuple[int, ConfigurationId], Message] = field(default_factory=dict)  # by life and view: nothing


@dataclass(frozen=True, slots=True)
class Conclusion:
    why: str
    messages: tuple[Message, ...]
    is_hard: bool = True


def edges_from(facts: Facts, rows: Rows) -> Edges:
    sound = rows.only("process", "idx", "kind", "odd", "sender_process", "sender", "counter").sound
    edges = Edges()
    for stream, counters in by_stream(sound.where(sound["kind"] == SUBMITTED)):
        edges.sent[stream] = _range(counters)
    deliveries = sound.where(sound["kind"] == DELIVERED)
    for process, begin, end in spans(deliveries["process"]):
        for stream, counters in by_stream(deliveries.where(slice(begin, end))):
            edges.delivered[process, stream] = _range(counters)
    _add_views(facts, deliveries, edges)
    return edges


def _range(counters: np.ndarray[tuple[int], np.dtype[np.int64]]) -> Range:
    return Range(int(counters.min()), int(counters.max()), len(counters))


def _add_views(facts: Facts, deliveries: Rows, edges: Edges) -> None:
    by_view: dict[ConfigurationId, list[tuple[int, int, int, int]]] = {}
    for process, begin, end in spans(deliveries["process"]):
        life = facts.index(process)
        if life is None:
            continue
        stays = np.searchsorted(facts.lives[life].begins, deliveries["idx"][begin:end]) - 1
        for stay, first, last in spans(stays):
            if stay:
                view = facts.lives[life].stays[stay - 1].view.id
                by_view.setdefault(view, []).append((life, stay, begin + first, begin + last))
    for segments in by_view.values():
        _, _, first, last = max(segments, key=lambda segment: segment[3] - segment[2])
        for life, stay, begin, end in segments:
            short = end - begin < last - first
            lacks = _message(deliveries, first + end - begin) if short else None
            edges.views[life, stay] = InView(_message(deliveries, begin), lacks)
        present = {life for life, *_ in segments}
        _add_absent(facts, edges, present, (segments[0][0], segments[0][1]), _message(deliveries, first))


def _add_absent(facts: Facts, edges: Edges, present: set[int], place: tuple[int, int], first: Message) -> None:
    """Add the members of the view who delivered nothing in this part of it."""
    view = facts.lives[place[0]].stays[place[1] - 1].view
    for member in view.members:
        life = facts.index(member)
        if life is not None and life not in present:
            edges.lacking[life, view.id] = first


def _message(rows: Rows, index: int) -> Message:
    return (int(rows["sender_process"][index]), int(rows["sender"][index]), int(rows["counter"][index]))


# Between parts


def conclusions(facts: Facts, parts: list[Edges], totals: Totals) -> Iterator[Conclusion]:
    """`parts` in the order of the run."""
    yield from _gaps(parts)
    yield from _disorder(parts)
    yield from _mixture(facts, parts)
    yield from _shortfalls(facts, parts)
    yield from _unequal(facts, parts, totals)
    for life in lives_that_owe(facts, totals):
        yield _owed(parts, facts.lives[life].process)


def _gaps(parts: list[Edges]) -> Iterator[Conclusion]:
    """A sender's messages at a process do not go on where they ended in the part before."""
    last: dict[tuple[int, Stream], int] = {}
    started: dict[Stream, int] = {}
    for edges in parts:
        for stream, sent in edges.sent.items():
            started.setdefault(stream, sent.first)
        for place, found in edges.delivered.items():
            stream = place[1]
            before = last.get(place, started.get(stream, 1) - 1)
            if found.first != before + 1:
                messages = ((*stream, counter) for counter in (before, found.first - 1, found.first) if counter > 0)
                yield Conclusion("a gap in the messages of a sender", tuple(messages), is_hard=False)
            last[place] = max(found.last, before)


def _disorder(parts: list[Edges]) -> Iterator[Conclusion]:
    """Messages of a sender that lie in parts against its order."""
    reached: dict[Stream, int] = {}
    for edges in parts:
        found: dict[Stream, Interval] = {}
        for (_, stream), mine in edges.delivered.items():
            first, last = found.get(stream, (mine.first, mine.last))
            found[stream] = (min(first, mine.first), max(last, mine.last))
        for stream, (first, last) in found.items():
            if first <= reached.get(stream, 0):
                messages = ((*stream, reached[stream]), (*stream, first))
                yield Conclusion("messages of a sender out of its order", messages)
            reached[stream] = max(last, reached.get(stream, 0))


def _mixture(facts: Facts, parts: list[Edges]) -> Iterator[Conclusion]:
    """A configuration comes back in a part behind one with a later configuration: what depends on what cannot be told
    part by part then."""
    highest = NO_CONFIGURATION
    for edges in parts:
        homes = {facts.lives[life].stays[stay - 1].home or NO_CONFIGURATION for life, stay in edges.views}
        if homes and min(homes) < highest:
            yield Conclusion("positions do not follow the order of configurations", ())
        highest = max(highest, *homes) if homes else highest


def _shortfalls(facts: Facts, parts: list[Edges]) -> Iterator[Conclusion]:
    """Who fell short in a view delivers nothing more in it, nor anything that may depend on that."""
    lacking: dict[tuple[int, ConfigurationId], Message] = {}
    for edges in parts:
        for (life, stay), here in edges.views.items():
            view = facts.lives[life].stays[stay - 1]
            for known, is_hard in ((view.view.id, True), (view.home, False)):
                if known is not None and (life, known) in lacking:
                    why = "a process delivers beyond what it lacks"
                    yield Conclusion(why, (lacking[life, known], here.first), is_hard)
        for (life, stay), here in edges.views.items():
            if here.lacks is not None:
                lacking.setdefault((life, facts.lives[life].stays[stay - 1].view.id), here.lacks)
        for place, message in edges.lacking.items():
            lacking.setdefault(place, message)


def _unequal(facts: Facts, parts: list[Edges], totals: Totals) -> Iterator[Conclusion]:
    for pair in unequal(facts, totals):
        found: list[Message] = []
        for edges in parts:
            for life, stay in (pair.first, pair.second):
                here = edges.views.get((life, stay))
                lacks = here.lacks if here else edges.lacking.get((life, facts.lives[life].stays[stay - 1].view.id))
                if lacks is not None:
                    found.append(lacks)
        yield Conclusion("those who went together delivered different amounts", tuple(found[:WITNESSES]))


def _owed(parts: list[Edges], process: int) -> Conclusion:
    """The first of its own messages that it has not delivered."""
    sent: dict[Stream, Interval] = {}
    had: dict[Stream, list[Interval]] = {}
    for edges in parts:
        for stream, found in edges.sent.items():
            if stream[0] == process:
                first, last = sent.get(stream, (found.first, found.last))
                sent[stream] = (min(first, found.first), max(last, found.last))
        for (whose, stream), found in edges.delivered.items():
            if whose == process == stream[0]:
                had.setdefault(stream, []).append((found.first, found.last))
    missing: list[Message] = []
    for stream, (first, last) in sent.items():
        bounds = sorted([(first - 1, first - 1), *had.get(stream, []), (last + 1, last + 1)])
        for (_, before), (after, _) in pairwise(bounds):
            missing += [(*stream, counter) for counter in range(before + 1, min(after, before + 1 + WITNESSES))]
    return Conclusion("a process lacks its own messages", tuple(missing[:WITNESSES]))
