"""Clears a part: shows with whole columns that no checker could find anything in its messages.

Every demand here is at least as strict as the reference checkers taken together, so a part that meets all of them is
valid as far as its messages go; which promise rests on which demand is in docs/internals/pipeline.md. A part that does
not is not invalid yet: `Suspicious` hands it to the reference checkers.
"""

from __future__ import annotations

import numpy as np

from ordercast.model.configuration import Configuration, ConfigurationKind
from ordercast.model.ids import ConfigurationId
from ordercast.model.service import Service
from ordercast.pipeline.verify.facts import NOWHERE, Facts, Life
from ordercast.pipeline.verify.part import Deliveries, Part, Segment, by_view, demand, indexed, segments_of, spans
from ordercast.pipeline.verify.rows import Ints, Rows
from ordercast.pipeline.verify.sets import clear_sets


def clear(facts: Facts, rows: Rows, earlier: Rows | None = None) -> Part:
    """The messages of a part, by process and in the order of each; without `earlier` it is the whole run. Returns the
    index, or raises `Suspicious`."""
    demand(not rows["odd"].any(), "a message without identity or place")
    _alive(facts, rows)
    part = indexed(facts, rows, earlier)
    ordered = part.deliveries.ordered()
    segments = segments_of(ordered)
    _rising(facts, ordered, segments)
    _one_to_one(part)
    _causal(part)
    _without_gaps(part)
    for view, members in by_view(facts, segments).items():
        if part.owed is None:
            _prefixes(part, members)
        _safe(part, view, members)
    _without_holes(part)
    _own(part)
    if not facts.is_plain:
        clear_sets(part, segments)
    return part


def _alive(facts: Facts, rows: Rows) -> None:
    """No message before its process started, after it had gone, or after the end."""
    demand(not len(rows) or rows["n"].max() < facts.ended_n, "events after the end")
    processes, n = rows["process"], rows["n"]
    for process, begin, end in spans(processes):
        index = facts.index(process)
        demand(index is not None, "a process never started")
        life = facts.lives[index or 0]
        demand(life.started_n is not None and life.started_n < n[begin:end].min(), "a message before the start")
        demand(n[begin:end].max() < life.gone_n, "a message after the end of its process")


def _rising(facts: Facts, deliveries: Deliveries, segments: list[Segment]) -> None:
    """Positions rise at each process, views among them (total order), and configurations do not fall (causal)."""
    key = deliveries.key
    is_same = np.diff(deliveries.life) == 0
    demand((~is_same | (np.diff(key) > 0)).all(), "positions that do not rise")
    demand((~is_same | (np.diff(deliveries.home) >= 0)).all(), "configurations that fall")
    for life, stay, begin, end in segments:
        known = facts.lives[life]
        views = deliveries.views[known.offset : known.offset + len(known.stays)]
        demand(stay and views[stay - 1] < key[begin], "a delivery below the place of its view")
        if stay < len(views):
            demand(key[end - 1] < views[stay], "a delivery above the place of the next view")


def _one_to_one(part: Part) -> None:
    """No two messages have one place, and those of a sender lie in its order (total order, fifo, causal)."""
    is_placed = part.placed
    key, stream = part.key[is_placed], part.submissions.stream[is_placed]
    is_other = np.diff(stream) != 0
    demand((is_other | (np.diff(key) > 0)).all(), "messages of a sender out of its order")
    demand((is_other | (np.diff(part.home[is_placed]) >= 0)).all(), "messages of a sender out of its order")
    if len(np.unique(stream)) > 1:
        key = np.sort(key)
        demand((np.diff(key) > 0).all(), "two messages in one place")


def _causal(part: Part) -> None:
    """A message lies above everything that its submitter had delivered, and in no earlier configuration."""
    is_placed = part.placed
    sent = part.submissions
    demand((sent.seen[is_placed] < part.key[is_placed]).all(), "a message below what it depends on")
    demand((sent.home[is_placed] <= part.home[is_placed]).all(), "a message in a configuration before its submission")


def _without_gaps(part: Part) -> None:
    """Who delivers a message has delivered the one that its sender submitted before (fifo), or they were apart."""
    stream, everything = part.submissions.stream, np.arange(len(part.submissions))
    for life, delivered in enumerate(part.delivered):
        asked = part.asked(life, everything)
        had = delivered[asked]
        is_gap = had[1:] & ~had[:-1] & (np.diff(stream[asked]) == 0)
        for number in asked[1:][is_gap].tolist():
            demand(_may_lack(part, life, number), "a gap in the messages of a sender")


def _may_lack(part: Part, life: int, number: int) -> bool:
    """Whether this life may deliver `number` without the message before it: the checker of fifo has the rule. What
    lies before the part is not looked at: then it may not."""
    services, stream = part.submissions.rows["service"], part.submissions.stream[number]
    first = int(np.searchsorted(part.submissions.stream, stream))
    if services[number] < Service.FIFO:
        return True
    strong = part.asked(life, np.flatnonzero(services[first:number] >= Service.FIFO) + first)
    if not len(strong):
        return part.is_whole
    had = strong[part.delivered[life, strong]]
    missing = int(strong[-1])
    if len(had) and had[-1] == missing:
        return True
    if part.home[missing] != NOWHERE and part.home[missing] == part.home[number]:
        return False
    if not len(had):
        return part.is_whole
    return not _together(part, life, (int(had[-1]), number))


def _together(part: Part, life: int, numbers: tuple[int, int]) -> bool:
    """The sender came along with this life through every change between these two deliveries of it."""
    mine = np.flatnonzero(part.deliveries.life == life)
    stays = [int(part.deliveries.stay[mine[part.number[mine] == number][0]]) for number in numbers]
    sender = part.facts.lives[int(part.submissions.life[numbers[1]])].process
    between = part.facts.lives[life].stays[stays[0] : stays[1]]
    return all(sender in stay.view.transitional for stay in between if stay.home == stay.view.id)


def _longest(members: list[Segment]) -> Segment:
    return max(members, key=lambda segment: segment[3] - segment[2])


def _prefixes(part: Part, members: list[Segment]) -> None:
    """In a configuration all deliver prefixes of one sequence (agreed delivery)."""
    first = _longest(members)[2]
    for _, _, begin, end in members:
        reference = part.sequence[first : first + end - begin]
        demand(np.array_equal(part.sequence[begin:end], reference), "two sequences in one configuration")


def _safe(part: Part, view: ConfigurationId, members: list[Segment]) -> None:
    """What one delivered as safe, all members did, or failed before they went past the configuration."""
    life, stay, begin, end = _longest(members)
    numbers = part.sequence[begin:end]
    if part.owed is not None:  # nobody need have all
        numbers = np.unique(np.concatenate([part.sequence[begin:end] for *_, begin, end in members]))
    safe = numbers[part.submissions.rows["service"][numbers] >= Service.SAFE]
    if not len(safe):
        return
    facts = part.facts
    configuration: Configuration = facts.lives[life].stays[stay - 1].view
    for member in configuration.members:
        index = facts.index(member)
        demand(index is not None, f"a member of {view} that never started")
        missing = part.lacked(index or 0, safe)
        if len(missing):
            _excused(part, facts.lives[index or 0], missing, "lacks a safe message")


def _excused(part: Part, life: Life, missing: Ints, what: str) -> None:
    demand(not _is_past(part, life, missing), f"a process {what}, and went on")
    demand(not life.is_running or not part.facts.is_complete, f"a process {what}, and still runs")


def _is_past(part: Part, life: Life, missing: Ints) -> bool:
    """Whether a process has installed a regular configuration after the first that has one of these messages, or, where
    those who are cut off may be in different ones, above the place of one of them."""
    facts = part.facts
    if facts.shares_views:
        return life.goes_past(facts.homes[int(part.home[missing].min())])
    views = part.deliveries.views[life.offset : life.offset + len(life.stays)]
    is_regular = np.array([stay.view.kind is ConfigurationKind.REGULAR for stay in life.stays], np.bool_)
    return bool((views[is_regular] > part.key[missing].min()).any())


def _without_holes(part: Part) -> None:
    """Who delivers in a configuration beyond a hole delivers nothing there that may depend on what is missing
    (causal)."""
    placed = np.flatnonzero(part.placed)
    placed = placed[np.argsort(part.key[placed], kind="stable")]
    if (np.diff(part.home[placed]) < 0).any():
        placed = placed[np.argsort(part.home[placed], kind="stable")]
    for _, begin, end in spans(part.home[placed]):
        for life, delivered in enumerate(part.delivered):
            numbers = part.asked(life, placed[begin:end])
            had = delivered[numbers]
            count = int(had.sum())
            if count and not had[:count].all():
                hole = int(np.argmin(had))
                beyond = numbers[hole:][had[hole:]]
                seen = part.submissions.seen[beyond]
                demand((seen < part.key[numbers[hole]]).all(), "a message beyond a hole on which it may depend")


def _own(part: Part) -> None:
    """What others delivered of a sender it delivered itself, or failed before it went past the configuration."""
    sent = part.submissions
    own = sent.life, np.arange(len(sent))
    others = (part.key != NOWHERE) & ~part.delivered[own]
    if part.owed is not None:
        others &= part.owed[own]
    for index in np.unique(sent.life[others]):
        life = part.facts.lives[int(index)]
        demand(not life.departed, "a process left without its own message")
        missing = np.flatnonzero(others & (sent.life == index))
        _excused(part, life, missing, "lacks its own message")
