"""What must have come in the end, by columns; and what there was to judge.

Messages are counted twice: to whom they are owed, and who had them. When both come out even, nothing that is owed is
missing (self delivery, termination, confirmations). All receipts of a message are in one part, so this is asked of each
part; what nobody got is in none, and `is_owing` tells whether anybody is owed it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ordercast.checker.groups.matters import GroupMatter
from ordercast.model.service import Service
from ordercast.pipeline.verify.clients.facts import NONE, ClientFacts
from ordercast.pipeline.verify.clients.part import ClientPart, Pairs
from ordercast.pipeline.verify.part import demand
from ordercast.pipeline.verify.rows import Flags, Ints

_SERVICES = {
    GroupMatter.FIFO: Service.FIFO,
    GroupMatter.CAUSAL: Service.CAUSAL,
    GroupMatter.AGREED: Service.AGREED,
    GroupMatter.SAFE: Service.SAFE,
}


def matters_in(part: ClientPart) -> set[GroupMatter]:
    """Return what the messages gave the judges to judge."""
    found = {matter for matter, least in _SERVICES.items() if part.got["service"].max(initial=-1) >= least}
    has = {
        GroupMatter.SENT: len(part.sent) > 0,
        GroupMatter.SENT_INSIDE: bool(_is_wanted(part).any()),
        GroupMatter.GOT: len(part.got) > 0,
        GroupMatter.CONFIRMATION: bool(part.sent["confirm"].any()),
    }
    return found | {matter for matter, is_there in has.items() if is_there}


def clear_ends(part: ClientPart, chosen: Flags) -> None:
    """`Suspicious` when one of the chosen messages did not come to somebody who is owed it."""
    if not part.facts.is_settled:
        return
    own, is_live = _is_own(part), _is_live(part)
    back = part.number[part.got["client"] == part.got["sender"]]
    demand(_all_in(np.flatnonzero(chosen & own), back), "a message did not come back to its sender")
    asked = np.flatnonzero(chosen & is_live & (part.sent["confirm"] != 0))
    demand(_all_in(asked, part.confirmed_number), "a place that was never told")
    _clear_last(part, chosen)
    for client, owed in _private(part):
        mine = part.number[part.got["client"] == client]
        demand(_all_in(np.flatnonzero(chosen & owed), mine), "a private message did not come")


def is_owing(part: ClientPart) -> Flags:
    """Which messages somebody is owed, if nobody gets them."""
    if not part.facts.is_settled:
        return np.zeros(len(part.sent), np.bool_)
    result: Flags = _is_own(part) | (_is_live(part) & (part.sent["confirm"] != 0))
    last = _last(part)
    finals = np.array(sorted({*map(int, part.facts.view[list(final_stays(part.facts).values())])}), np.int64)
    groups = np.array(sorted({slot % len(part.facts.groups) for slot in final_stays(part.facts)}), np.int64)
    is_owed = np.isin(last.view, finals) | (last.is_calm & np.isin(last.pairs.group, groups))
    result[last.pairs.row[is_owed & last.is_live]] = True
    for _, owed in _private(part):
        result |= owed
    return result


def _all_in(numbers: Ints, those: Ints) -> bool:
    return bool(np.isin(numbers, those).all())


def _is_live(part: ClientPart) -> Flags:
    """Which messages are of clients that have not ended."""
    return part.facts.alive[part.sent["client"]]


def _is_own(part: ClientPart) -> Flags:
    """Which messages their sender is owed (self delivery)."""
    own: Flags = _is_wanted(part) & _is_live(part) & (part.sent["self_discard"] == 0)
    return own


def _is_wanted(part: ClientPart) -> Flags:
    """Which messages were sent to a group that the sender wanted to be in."""
    facts, pairs = part.facts, part.sent_in
    result = np.zeros(len(part.sent), np.bool_)
    if len(pairs.row):
        clients, n = part.sent["client"][pairs.row], part.sent["n"][pairs.row]
        slots = clients * len(facts.groups) + pairs.group
        result[pairs.row[facts.in_wanted.at(slots, n) != NONE]] = True
    return result


# Termination


@dataclass(slots=True)
class _Last:
    """Messages with their groups, and whether they were sent in calm or in a last view."""

    pairs: Pairs
    is_live: Flags
    is_calm: Flags
    view: Ints  # the last view in which it was sent; NONE when it was in none, or in calm


def _last(part: ClientPart) -> _Last:
    facts, pairs = part.facts, part.sent_in
    is_calm = part.sent["n"][pairs.row] > facts.calm_n
    view = np.full(len(pairs.row), NONE, np.int64)
    inside = np.flatnonzero((pairs.stay != NONE) & ~is_calm)
    stays = pairs.stay[inside]
    view[inside] = np.where(facts.is_last[stays], facts.view[stays], NONE)
    return _Last(pairs, _is_live(part)[pairs.row], is_calm, view)


def _clear_last(part: ClientPart, chosen: Flags) -> None:
    """What is sent in the last view of a group, or in calm, comes to all who are in it at the end."""
    facts, last = part.facts, _last(part)
    pairs, is_asked = last.pairs, last.is_live & chosen[last.pairs.row]
    owed_in_calm = np.bincount(pairs.group[is_asked & last.is_calm], minlength=len(facts.groups))
    owed_in_view = np.bincount(last.view[is_asked & (last.view != NONE)], minlength=len(facts.views))
    is_own = is_asked & (part.sent["self_discard"][pairs.row] != 0) & (last.is_calm | (last.view != NONE))
    slots = facts.slots(part.sent["client"][pairs.row[is_own]], 0) + pairs.group[is_own]
    had = np.concatenate([slots, _had_at_the_end(part, last, chosen)])
    size = len(facts.lives) * len(facts.groups)
    counts = np.bincount(had, minlength=size) if size else had
    for slot, stay in final_stays(facts).items():
        owed = owed_in_calm[slot % len(facts.groups)] + owed_in_view[facts.view[stay]]
        demand(counts[slot] == owed, "a message of a last view did not come to all")


def _had_at_the_end(part: ClientPart, last: _Last, chosen: Flags) -> Ints:
    """Return for each receipt of such a message the client and the group, as one number."""
    facts, pairs = part.facts, part.got_in
    shape = (len(part.sent), part.slots)
    views, is_calm = np.full(shape, NONE, np.int64), np.zeros(shape, np.bool_)
    views[last.pairs.row, last.pairs.slot] = last.view
    is_calm[last.pairs.row, last.pairs.slot] = last.is_calm
    number, client = part.number[pairs.row], part.got["client"][pairs.row]
    slots = client * len(facts.groups) + pairs.group
    final = np.full(len(facts.lives) * len(facts.groups) + 1, NONE, np.int64)
    for slot, stay in final_stays(facts).items():
        final[slot] = facts.view[stay]
    view = views[number, pairs.slot]
    is_had = is_calm[number, pairs.slot] | ((view != NONE) & (view == final[slots]))
    had: Ints = slots[is_had & (pairs.stay != NONE) & (_is_live(part) & chosen)[number]]
    return had


def final_stays(facts: ClientFacts) -> dict[int, int]:
    """Return by client and group, as one number, the stay that a client that has not ended is in at the end."""
    return {
        client * len(facts.groups) + facts.groups[group]: stay
        for client, life in enumerate(facts.lives)
        if not life.has_ended
        for group, stay in life.last.items()
    }


def _private(part: ClientPart) -> Iterator[tuple[int, Flags]]:
    """Yield each client that was written to by name, and what it is owed of that: what was sent in calm, or by a client
    of the same daemon."""
    facts, sent = part.facts, part.sent
    processes = facts.who.processes
    named = {name: goal for goal in np.unique(sent["goal"]).tolist() for name in sent.goals.get(goal, ())}
    for client, life in enumerate(facts.lives):
        if life.has_ended or life.name not in named:
            continue
        goals = [goal for goal, names in sent.goals.items() if life.name in names]
        is_near = (sent["n"] > facts.calm_n) | (processes[sent["client"]] == processes[client])
        owed = _is_live(part) & is_near & np.isin(sent["goal"], goals) & (sent["n"] > life.connected_n)
        yield client, owed & ((sent["self_discard"] == 0) | (sent["client"] != client))
