"""A part of a run, indexed: every delivery knows its process, its stay, its place, and which submission it is.

A part is a whole run, or all that a run delivered between two places of the global order, with the submissions of it.
Messages get numbers, sender by sender in the order of their counters, so that the message before is the number before.
What does not fit raises `Suspicious`: then the part is not cleared, and the reference checkers look at it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ordercast.model.ids import ConfigurationId
from ordercast.pipeline.verify.facts import NOWHERE, Facts
from ordercast.pipeline.verify.owed import owed_in
from ordercast.pipeline.verify.positions import keys_of
from ordercast.pipeline.verify.rows import DELIVERED, SUBMITTED, Flags, Ints, Rows, joined

_TABLE_MAX = 1 << 22  # entries of a table that is indexed rather than searched


Segment = tuple[int, int, int, int]  # life, stay, and the deliveries of it from where to where


class Suspicious(Exception):
    """Something here is not as it is in a plainly valid run. The text is for people who look for the cause."""


def demand(is_so: object, what: str) -> None:
    if not is_so:
        raise Suspicious(what)


@dataclass(slots=True)
class Deliveries:
    """By process, in its own order."""

    life: Ints
    stay: Ints  # 0: before the first view
    home: Ints  # rank of the configuration to which the stay belongs
    key: Ints  # of the position in the global order
    views: Ints  # keys of all views, as in `Facts.positions`
    rows: Rows
    early: Flags  # before its place in the order

    def __len__(self) -> int:
        return len(self.life)

    def ordered(self) -> Deliveries:
        """Return those that are made at their place in the order; the same when all are."""
        if not self.early.any():
            return self
        keep = ~self.early
        life, stay, home, key = (column[keep] for column in (self.life, self.stay, self.home, self.key))
        return Deliveries(life, stay, home, key, self.views, self.rows.where(keep), self.early[keep])


@dataclass(slots=True)
class Submissions:
    """By number. `seen` is the last place that the submitter had delivered before; NOWHERE when before the part."""

    life: Ints
    stream: Ints
    home: Ints  # rank of the configuration in which it was submitted
    seen: Ints
    here: Flags  # its row is in this part, not only its delivery
    rows: Rows

    def __len__(self) -> int:
        return len(self.life)


@dataclass(slots=True)
class Part:
    facts: Facts
    deliveries: Deliveries
    submissions: Submissions
    number: Ints  # of each delivery
    sequence: Ints  # the same of those that were made at their place in the order
    key: Ints  # of each submission, its place; NOWHERE when nobody delivered it in this part
    home: Ints  # of each submission, the rank of the configuration in which it was delivered; likewise
    delivered: Flags  # by life and number
    owed: Flags | None  # the same; None: everything is owed to everybody
    is_whole: bool = True

    @property
    def placed(self) -> Flags:
        """Return which messages were delivered here, at their place in the order."""
        placed: Flags = (self.key != NOWHERE) & ~is_early(self.facts, self.submissions.rows)
        return placed

    def lacked(self, life: int, numbers: Ints) -> Ints:
        """Return those of the messages that this life is owed and has not delivered."""
        missing: Ints = numbers[~self.delivered[life, numbers]]
        if self.owed is not None:
            missing = missing[self.owed[life, missing]]
        return missing

    def asked(self, life: int, numbers: Ints) -> Ints:
        """Return those of the messages that this life is owed, or has delivered."""
        if self.owed is None:
            return numbers
        asked: Ints = numbers[self.owed[life, numbers] | self.delivered[life, numbers]]
        return asked


def is_early(facts: Facts, rows: Rows) -> Flags:
    """Return which rows are of messages that are delivered before their place in the order."""
    if not facts.early:
        return np.zeros(len(rows), np.bool_)
    return np.isin(rows["service"], facts.early)


def indexed(facts: Facts, rows: Rows, earlier: Rows | None) -> Part:
    """Return the part of these rows, by process and in the order of each; without `earlier` it is the whole run."""
    deliveries = deliveries_from(facts, rows)
    part = matched(facts, deliveries, submissions_from(facts, rows, earlier, deliveries.ordered()))
    part.is_whole = earlier is None
    return part


def lives_of(facts: Facts, processes: Ints) -> Ints:
    """Indices of lives; `Suspicious` when one is of nobody."""
    if not len(processes):
        return np.zeros(0, np.int64)
    found = np.minimum(np.searchsorted(facts.processes, processes), len(facts.processes) - 1)
    demand((facts.processes[found] == processes).all(), "a process never started")
    return found


def deliveries_from(facts: Facts, rows: Rows) -> Deliveries:
    """Finds the stay of each, and checks that it is in the view that the delivery names."""
    rows = rows.where(rows["kind"] == DELIVERED)
    life = lives_of(facts, rows["process"])
    stay = np.zeros(len(rows), np.int64)
    home = np.zeros(len(rows), np.int64)
    for index, begin, end in spans(life):
        known = facts.lives[index]
        here = np.searchsorted(known.begins, rows["idx"][begin:end]) - 1
        stay[begin:end] = here
        home[begin:end] = known.ranks[here]
        view = known.views[here]
        demand((view[:, 0] == rows["configuration_seq"][begin:end]).all(), "a delivery names another view")
        demand((view[:, 1] == rows["configuration_rep"][begin:end]).all(), "a delivery names another view")
    demand((home >= 0).all(), "a delivery outside of all configurations")
    return Deliveries(life, stay, home, *keys_of(rows, facts.positions), rows, is_early(facts, rows))


def spans(values: Ints) -> list[tuple[int, int, int]]:
    """Each value with the begin and end of its run; equal values are neighbours."""
    if not len(values):
        return []
    edges = np.flatnonzero(np.diff(values)) + 1
    begins = [0, *edges.tolist()]
    return [(int(values[begin]), begin, end) for begin, end in zip(begins, [*begins[1:], len(values)], strict=True)]


def segments_of(deliveries: Deliveries) -> list[Segment]:
    """The stays, each with its deliveries."""
    result = []
    for life, begin, end in spans(deliveries.life):
        for stay, first, last in spans(deliveries.stay[begin:end]):
            result.append((life, stay, begin + first, begin + last))
    return result


def by_view(facts: Facts, segments: list[Segment]) -> dict[ConfigurationId, list[Segment]]:
    result: dict[ConfigurationId, list[Segment]] = {}
    for segment in segments:
        view = facts.lives[segment[0]].stays[segment[1] - 1].view.id
        result.setdefault(view, []).append(segment)
    return result


def submissions_from(facts: Facts, rows: Rows, earlier: Rows | None, deliveries: Deliveries) -> Submissions:
    """`rows` are those of the part, `earlier` the submissions before it that are delivered in it; `deliveries` those in
    order."""
    mine = rows.where(rows["kind"] == SUBMITTED)
    life = lives_of(facts, mine["process"])
    seen = _seen(mine, life, deliveries)
    here = np.ones(len(mine), np.bool_)
    if earlier is not None and len(earlier):
        before = lives_of(facts, earlier["process"])
        life = np.concatenate([before, life])
        seen = np.concatenate([np.full(len(before), NOWHERE, np.int64), seen])
        here = np.concatenate([np.zeros(len(before), np.bool_), here])
        mine = joined([earlier, mine])
    demand((mine["process"] == mine["sender_process"]).all(), "a submission stamped by another process")
    home = _homes(facts, mine, life)
    stream = life << 32 | mine["sender"]
    if (np.diff(stream) < 0).any():
        order = np.argsort(stream, kind="stable")
        life, stream, home, seen = life[order], stream[order], home[order], seen[order]
        here, mine = here[order], mine.where(order)
    is_next = (np.diff(stream) != 0) | (np.diff(mine["counter"]) == 1)
    demand(is_next.all(), "the counters of a sender do not rise one by one")
    return Submissions(life, stream, home, seen, here, mine)


def _homes(facts: Facts, mine: Rows, life: Ints) -> Ints:
    """Return the rank of the configuration in which each submission was made."""
    home = np.zeros(len(mine), np.int64)
    for index, begin, end in spans(life):
        known = facts.lives[index]
        home[begin:end] = known.ranks[np.searchsorted(known.begins, mine["idx"][begin:end]) - 1]
    return home


def _seen(mine: Rows, life: Ints, deliveries: Deliveries) -> Ints:
    """The place of the last delivery before each submission at the same process."""
    if not len(deliveries) or not len(mine):
        return np.full(len(mine), NOWHERE, np.int64)
    width = int(max(mine["idx"].max(), deliveries.rows["idx"].max())) + 1
    before = np.searchsorted(deliveries.life * width + deliveries.rows["idx"], life * width + mine["idx"]) - 1
    is_mine = (before >= 0) & (deliveries.life[before] == life)
    return np.where(is_mine, deliveries.key[before], NOWHERE)


def matched(facts: Facts, deliveries: Deliveries, submissions: Submissions) -> Part:
    """Integrity: each delivery is a submission made before, with the same bytes, size and service."""
    rows, sent = deliveries.rows, submissions.rows
    number = _numbers(facts, deliveries, submissions)
    for name in ("sender_process", "counter", "digest", "service", "size"):
        demand((sent[name][number] == rows[name]).all(), f"a delivery with another {name}")
    is_later = sent["n"][number] < rows["n"]
    if facts.is_live:  # else the history is put together so
        is_later |= rows["process"] != rows["sender_process"]
    demand(is_later.all(), "a delivery before the submission")
    key = np.full(len(submissions), NOWHERE, np.int64)
    key[number] = deliveries.key
    demand((key[number] == deliveries.key).all(), "a message in two places")
    home = np.full(len(submissions), NOWHERE, np.int64)
    home[number] = deliveries.home
    demand((home[number] == deliveries.home).all(), "a message in two configurations")
    delivered = np.zeros((len(facts.lives), len(submissions)), np.bool_)
    delivered[deliveries.life, number] = True
    demand(int(delivered.sum()) == len(deliveries), "a message delivered twice")
    owed = owed_in(facts, sent, rows["n"], number)
    sequence = number[~deliveries.early] if deliveries.early.any() else number
    return Part(facts, deliveries, submissions, number, sequence, key, home, delivered, owed)


def _numbers(facts: Facts, deliveries: Deliveries, submissions: Submissions) -> Ints:
    rows = deliveries.rows
    stream = lives_of(facts, rows["sender_process"]) << 32 | rows["sender"]
    streams, firsts = np.unique(submissions.stream, return_index=True)
    if not len(streams):
        demand(not len(rows), "a delivery without a submission")
        return np.zeros(0, np.int64)
    found = np.minimum(_places_in(streams, stream), len(streams) - 1)
    demand((streams[found] == stream).all(), "a delivery of an unknown sender")
    counts = np.diff(np.append(firsts, len(submissions)))
    offset = rows["counter"] - submissions.rows["counter"][firsts][found]
    demand(((offset >= 0) & (offset < counts[found])).all(), "a delivery without a submission")
    return firsts[found] + offset


def _places_in(streams: Ints, stream: Ints) -> Ints:
    """Where each stream is among those known; by a table when that is small, since it is asked for every delivery."""
    senders = int((streams & 0xFFFF_FFFF).max()) + 1
    lives = int((streams >> 32).max()) + 1
    if senders * lives > _TABLE_MAX:
        return np.searchsorted(streams, stream)
    sender, life = stream & 0xFFFF_FFFF, stream >> 32
    if len(stream) and (sender.max() >= senders or life.max() >= lives):
        raise Suspicious("a delivery of an unknown sender")
    table = np.zeros(senders * lives, np.int64)
    table[(streams >> 32) * senders + (streams & 0xFFFF_FFFF)] = np.arange(len(streams))
    return table[life * senders + sender]
