"""What a part says to the parts around it: where each sender's messages begin and end, and who fell short in a view.

Parts are judged one by one. What could go wrong between them is found here, in the driver: each conclusion names the
messages that the reference checkers shall look at. A `hard` one must make them find something; a soft one may be in
order, as a gap is when two were apart, or a message that nobody delivered where an engine prunes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from ordercast.model.ids import NO_CONFIGURATION, ConfigurationId
from ordercast.pipeline.verify.facts import NOWHERE, Facts
from ordercast.pipeline.verify.part import (
    Part,
    Segment,
    Suspicious,
    by_view,
    demand,
    indexed,
    is_early,
    segments_of,
    spans,
)
from ordercast.pipeline.verify.rows import DELIVERED, SUBMITTED, Rows, Unsound
from ordercast.pipeline.verify.sets import agreed_in
from ordercast.pipeline.verify.suspects import Interval, Stream, rows_by_stream
from ordercast.pipeline.verify.totals import Totals, lives_that_owe, unequal

WITNESSES = 8  # as many as a verdict has room for
LOST_MAX = 10_000  # messages never delivered that are looked at one by one

Message = tuple[int, int, int]  # process, sender, counter


@dataclass(slots=True)
class Range:
    """Counters of a sender, and the rows of a process in which they are."""

    first: int
    last: int
    idx: tuple[int, int]


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
    # Of engines that prune
    is_blind: bool = False  # what is owed cannot be told
    short: dict[tuple[int, Stream], Message] = field(default_factory=dict)  # by process and sender: it lacks the last
    pending: set[Message] = field(default_factory=set)  # submitted here, and delivered later if at all
    arrived: set[Message] = field(default_factory=set)  # submitted before, and delivered here


@dataclass(frozen=True, slots=True)
class Conclusion:
    why: str
    messages: tuple[Message, ...]
    is_hard: bool = True


def edges_from(facts: Facts, rows: Rows, earlier: Rows) -> Edges:
    sound = rows.only("process", "idx", "kind", "odd", "service", "sender_process", "sender", "counter").sound
    edges = Edges()
    edges.sent.update(_ranges(sound.where(sound["kind"] == SUBMITTED)))
    deliveries = sound.where(sound["kind"] == DELIVERED)
    for process, begin, end in spans(deliveries["process"]):
        for stream, found in _ranges(deliveries.where(slice(begin, end))):
            edges.delivered[process, stream] = found
    if facts.prunes:
        _add_owed(facts, rows, earlier, edges)
    else:
        _add_views(facts, deliveries.where(~is_early(facts, deliveries)), edges)
    return edges


def _ranges(rows: Rows) -> Iterator[tuple[Stream, Range]]:
    for stream, indices in rows_by_stream(rows):
        counters, idx = rows["counter"][indices], rows["idx"][indices]
        yield stream, Range(int(counters.min()), int(counters.max()), (int(idx.min()), int(idx.max())))


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


def _add_owed(facts: Facts, rows: Rows, earlier: Rows, edges: Edges) -> None:
    """Add what each process is owed and lacks at the end of the part, and what waits to be delivered."""
    try:
        demand(not rows["odd"].any(), "a message without identity or place")
        part = indexed(facts, rows, earlier)
    except (Suspicious, Unsound):
        edges.is_blind = True
        return
    sent, is_placed = part.submissions, part.key != NOWHERE
    edges.pending = {_message(sent.rows, index) for index in np.flatnonzero(sent.here & ~is_placed).tolist()}
    edges.arrived = {_message(sent.rows, index) for index in np.flatnonzero(~sent.here & is_placed).tolist()}
    for index, life in enumerate(facts.lives):
        asked = part.asked(index, np.flatnonzero(is_placed))
        for *_, end in spans(sent.stream[asked]):
            last = int(asked[end - 1])
            if not part.delivered[index, last]:
                message = _message(sent.rows, last)
                edges.short[life.process, message[:2]] = message
    for members in by_view(facts, segments_of(part.deliveries.ordered())).values():
        _add_owed_in_view(part, members, edges)


def _add_owed_in_view(part: Part, members: list[Segment], edges: Edges) -> None:
    facts, messages = part.facts, part.submissions.rows
    starts = {life: (stay, begin) for life, stay, begin, _ in members}
    view = facts.lives[members[0][0]].stays[members[0][1] - 1].view
    absent = [(index, 0, 0, 0) for index in map(facts.index, view.members) if index is not None and index not in starts]
    for life, lacked, reached in agreed_in(part, [*members, *absent]):
        lacks = _message(messages, int(lacked[reached])) if len(lacked) > reached else None
        if life in starts:
            stay, begin = starts[life]
            edges.views[life, stay] = InView(_message(messages, int(part.sequence[begin])), lacks)
        elif lacks is not None:
            edges.lacking[life, view.id] = lacks


def _message(rows: Rows, index: int) -> Message:
    return (int(rows["sender_process"][index]), int(rows["sender"][index]), int(rows["counter"][index]))


# Between parts


def conclusions(facts: Facts, parts: list[Edges], totals: Totals) -> Iterator[Conclusion]:
    """`parts` in the order of the run."""
    if any(edges.is_blind for edges in parts):
        yield Conclusion("what is owed cannot be told part by part", ())
    if facts.prunes:
        yield from _owed_gaps(parts)
        yield from _lost(facts, parts)
    else:
        yield from _gaps(parts)
    if facts.early:
        yield from _reversed(parts)
    yield from _disorder(facts, parts)
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


def _owed_gaps(parts: list[Edges]) -> Iterator[Conclusion]:
    """A process goes on with a sender of whom it lacks something in a part before."""
    short: dict[tuple[int, Stream], tuple[int, Message]] = {}
    last: dict[tuple[int, Stream], int] = {}
    for edges in parts:
        for place, found in edges.delivered.items():
            if place in short:
                before, lacks = short.pop(place)
                messages = (_of(place[1], before), lacks, _of(place[1], found.first))
                yield Conclusion("a gap in the messages of a sender", messages, is_hard=False)
            last[place] = found.last
        for place, lacks in edges.short.items():
            short.setdefault(place, (last.get(place, lacks[2]), lacks))


def _reversed(parts: list[Edges]) -> Iterator[Conclusion]:
    """A process has delivered messages of a sender before those of an earlier part."""
    last: dict[tuple[int, Stream], Range] = {}
    for edges in parts:
        for place, found in edges.delivered.items():
            before = last.get(place)
            if before is not None and found.idx[0] < before.idx[1]:
                messages = (_of(place[1], before.last), _of(place[1], found.first))
                yield Conclusion("messages of a sender out of its order", messages, is_hard=False)
            last[place] = found


def _of(stream: Stream, counter: int) -> Message:
    return (*stream, counter)


def _lost(facts: Facts, parts: list[Edges]) -> Iterator[Conclusion]:
    """Messages that nobody delivered, each with those around it at every process that goes past it."""
    lost = {message: None for edges in parts for message in sorted(edges.pending)}
    for edges in parts:
        for message in edges.arrived:
            lost.pop(message, None)
    if len(lost) > LOST_MAX:
        yield Conclusion("very many messages were never delivered", ())
        return
    for message in lost:
        around = {message}
        for life in facts.lives:
            found = [mine for edges in parts if (mine := edges.delivered.get((life.process, message[:2]))) is not None]
            before = [mine.last for mine in found if mine.last < message[2]]
            after = [mine.first for mine in found if mine.first > message[2]]
            around.update(_of(message[:2], counter) for counter in (*before[-1:], *after[:1]))
        yield Conclusion("a message that nobody delivered", tuple(sorted(around)), is_hard=False)


def _disorder(facts: Facts, parts: list[Edges]) -> Iterator[Conclusion]:
    """Messages of a sender that lie in parts against its order. Early ones may, if each process delivers them in it."""
    reached: dict[Stream, int] = {}
    for edges in parts:
        found: dict[Stream, Interval] = {}
        for (_, stream), mine in edges.delivered.items():
            first, last = found.get(stream, (mine.first, mine.last))
            found[stream] = (min(first, mine.first), max(last, mine.last))
        for stream, (first, last) in found.items():
            if first <= reached.get(stream, 0):
                messages = ((*stream, reached[stream]), (*stream, first))
                yield Conclusion("messages of a sender out of its order", messages, is_hard=not facts.early)
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
                    yield Conclusion(why, (lacking[life, known], here.first), is_hard and facts.is_plain)
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
