"""What of a part the reference checkers shall look at: intervals of messages, as few as can be told.

A part that is not cleared is halved along the global order until the halves are small, or until both halves are clear
by themselves and the fault lies between them. The neighbours of what is left go with it: a fault is often that a
message stands beside the wrong one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from ordercast.pipeline.verify.clearing import clear
from ordercast.pipeline.verify.facts import NOWHERE, Facts
from ordercast.pipeline.verify.part import Suspicious, is_early, spans
from ordercast.pipeline.verify.positions import keys_of
from ordercast.pipeline.verify.rows import DELIVERED, SUBMITTED, Flags, Ints, Rows, Unsound, joined

SMALL_ROWS = 2_000  # a part of so few rows is handed over as it is
NEIGHBOURS = 4  # messages of the same sender on either side

Stream = tuple[int, int]  # process, sender
Interval = tuple[int, int]  # first and last counter


@dataclass(slots=True)
class Suspect:
    """Messages, and rows that may carry no identity."""

    why: str
    messages: dict[Stream, Interval] = field(default_factory=dict)
    rows: list[tuple[int, int, int]] = field(default_factory=list)  # process, first idx, last idx


def suspects_in(facts: Facts, rows: Rows, earlier: Rows) -> list[Suspect]:
    """None when the part is cleared."""
    try:
        clear(facts, rows, earlier)
        return []
    except (Suspicious, Unsound) as error:
        why = str(error)
    halves = [] if len(rows) <= SMALL_ROWS else _halves(rows, facts)
    found: list[Suspect] = []
    sent = _submissions(joined([earlier, rows.only(*earlier.columns)]))
    for half in halves:
        found += suspects_in(facts, half, _before(half, sent))
    return found or [suspect_of(rows, why)]


def suspect_of(rows: Rows, why: str) -> Suspect:
    suspect = Suspect(why)
    for process, begin, end in spans(rows["process"]):
        idx = rows["idx"][begin:end]
        for first, last in _stretches(idx):
            suspect.rows.append((process, int(idx[first]), int(idx[last])))
    for stream, counters in by_stream(rows.sound):
        suspect.messages[stream] = (int(counters.min()) - NEIGHBOURS, int(counters.max()) + NEIGHBOURS)
    return suspect


def _stretches(idx: Ints) -> list[tuple[int, int]]:
    """The first and the last of each run of neighbours: early deliveries lie apart from the rest of a part."""
    edges = (np.flatnonzero(np.diff(idx) != 1) + 1).tolist()
    return [(begin, end - 1) for begin, end in zip([0, *edges], [*edges, len(idx)], strict=True)]


def by_stream(rows: Rows) -> Iterator[tuple[Stream, Ints]]:
    """The counters of each sender among these rows."""
    for stream, indices in rows_by_stream(rows):
        yield stream, rows["counter"][indices]


def rows_by_stream(rows: Rows) -> Iterator[tuple[Stream, Ints]]:
    """Which of these rows are of each sender."""
    order = np.lexsort((rows["sender"], rows["sender_process"]))
    process, sender = (rows[name][order] for name in ("sender_process", "sender"))
    for _, begin, end in spans(np.cumsum(np.diff(process, prepend=-1) | np.diff(sender, prepend=-1) != 0)):
        yield (int(process[begin]), int(sender[begin])), order[begin:end]


def needed(rows: Rows) -> dict[Stream, Interval]:
    """Submissions that are delivered here, and were made before."""
    sound = rows.only("kind", "odd", "sender_process", "sender", "counter").sound
    here = {stream: int(counters.min()) for stream, counters in by_stream(_submissions(sound))}
    result = {}
    for stream, counters in by_stream(sound.where(sound["kind"] == DELIVERED)):
        first, last = int(counters.min()), here.get(stream, int(counters.max()) + 1) - 1
        if first <= last:
            result[stream] = (first, last)
    return result


def chosen(rows: Rows, messages: dict[Stream, Interval]) -> Flags:
    """Which rows are of these messages."""
    result = np.zeros(len(rows), np.bool_)
    process, sender, counter = rows["sender_process"], rows["sender"], rows["counter"]
    for (whose, which), (first, last) in messages.items():
        result |= (process == whose) & (sender == which) & (counter >= first) & (counter <= last)
    return result


def _submissions(rows: Rows) -> Rows:
    return rows.where(rows["kind"] == SUBMITTED)


def _before(rows: Rows, sent: Rows) -> Rows:
    """Return the submissions that `rows` needs and does not hold."""
    return sent.where(chosen(sent, needed(rows)))


def _halves(rows: Rows, facts: Facts) -> list[Rows]:
    """Below and above the middle of the places that are reached; nothing when there is no middle."""
    keys = _keys(rows, facts)
    middle = np.sort(keys)[len(keys) // 2]
    below = keys < middle
    return [rows.where(below), rows.where(~below)] if below.any() and not below.all() else []


def _keys(rows: Rows, facts: Facts) -> Ints:
    """Return for each row the highest place that its process had reached; of an early delivery, its own."""
    is_delivery = rows["kind"] == DELIVERED
    early, places = is_early(facts, rows) & is_delivery, keys_of(rows)[0]
    keys = np.where(is_delivery & ~early, places, NOWHERE)
    for _, begin, end in spans(rows["process"]):
        keys[begin:end] = np.maximum.accumulate(keys[begin:end])
    return np.where(early, places, keys)
