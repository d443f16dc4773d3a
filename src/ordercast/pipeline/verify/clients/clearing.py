"""Clears messages of clients: shows with whole columns that no checker of groups could find anything in them.

Every demand is at least as strict as the reference checkers; what does not meet it is `Suspicious`, and they look at
it. What an engine delivers early heeds neither views nor signals: such messages are theirs in any case.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ordercast.model.service import Service
from ordercast.pipeline.verify.clients.facts import NONE, ClientFacts
from ordercast.pipeline.verify.clients.part import ClientPart
from ordercast.pipeline.verify.part import demand, spans
from ordercast.pipeline.verify.rows import Flags, Ints


@dataclass(frozen=True, slots=True)
class Had:
    """What one stay got, by its place in the order; what its client sent and did not want back counts as got."""

    numbers: Ints
    before: int  # how many came before a signal


NOTHING = Had(np.zeros(0, np.int64), 0)


def clear_clients(part: ClientPart, had: dict[int, Had]) -> None:
    """`had` is what each stay had (`had_in`). `Suspicious` when something is not in order."""
    demand(not np.isin(part.sent["service"], part.facts.early).any(), "early messages")
    _inside(part)
    _ordered(part)
    _causal(part)
    _sane(part)
    _confirmed(part)
    for stays in views_of(part, had):
        _clear_view(part, stays, had)


def views_of(part: ClientPart, had: dict[int, Had]) -> list[list[int]]:
    """Return the stays of each view in which somebody got something here."""
    views = list(part.facts.views.values())
    return [views[view] for view in np.unique(part.facts.view[list(had)]).tolist()] if had else []


def _inside(part: ClientPart) -> None:
    """Everybody is in a group of what it gets, or it is its own name (initial view)."""
    facts, got = part.facts, part.got
    is_in = np.zeros(len(got), np.bool_)
    is_in[part.got_in.row[part.got_in.stay != NONE]] = True
    for row in np.flatnonzero(~is_in).tolist():
        name = facts.lives[int(got["client"][row])].name
        demand(name in got.goals[int(got["goal"][row])], "a message to a group that its receiver is not in")


def _ordered(part: ClientPart) -> None:
    """One place for a message, one message in a place; places rise at each client, those of a sender in its order
    (no duplicates, total order, fifo)."""
    demand((part.key[part.number] == part.receipt).all(), "a message in two places")
    placed = np.sort(part.key[part.is_placed])
    demand((np.diff(placed) > 0).all(), "two messages in one place")
    is_same = np.diff(part.got["client"]) == 0
    demand((np.diff(part.receipt)[is_same] > 0).all(), "places that do not rise")
    numbers = np.flatnonzero(part.is_placed)
    order = numbers[np.argsort(part.sent["client"][numbers], kind="stable")]
    is_same = np.diff(part.sent["client"][order]) == 0
    demand((np.diff(part.key[order])[is_same] > 0).all(), "messages of a sender out of its order")


def _causal(part: ClientPart) -> None:
    """A message lies above all that its sender had got before it (causal)."""
    sent, got = part.sent, part.got
    if not len(got) or not len(sent):
        return
    width = int(max(sent["n"].max(), got["n"].max())) + 1
    before = np.searchsorted(got["client"] * width + got["n"], sent["client"] * width + sent["n"]) - 1
    is_mine = (before >= 0) & (got["client"][before] == sent["client"]) & part.is_placed
    demand((part.receipt[before[is_mine]] < part.key[is_mine]).all(), "a message below what it depends on")


def _sane(part: ClientPart) -> None:
    """No agreed message comes in a view before that in which it was sent, and none of a client where another has its
    name (sane view delivery)."""
    facts, pairs = part.facts, part.got_in
    origins = np.full((len(part.sent), part.slots), NONE, np.int64)
    is_in = part.sent_in.stay != NONE
    origins[part.sent_in.row[is_in], part.sent_in.slot[is_in]] = facts.rank[part.sent_in.stay[is_in]]
    chosen = (pairs.stay != NONE) & (part.got["service"][pairs.row] >= Service.AGREED)
    numbers = part.number[pairs.row[chosen]]
    demand(
        (facts.rank[pairs.stay[chosen]] >= origins[numbers, pairs.slot[chosen]]).all(), "a message in an earlier view"
    )
    for later, view in _successors(facts):
        here = (pairs.stay != NONE) & (facts.view[pairs.stay] == view)
        senders = part.got["sender"][pairs.row[here]]
        is_other = (facts.names[senders] == facts.names[later]) & (senders != later)
        demand(not is_other.any(), "a message of a client whose name another has")


def _successors(facts: ClientFacts) -> list[tuple[int, int]]:
    """Each client that is not the first of its name, with its first view in each group."""
    seen: set[int] = set()
    result = []
    for client in np.argsort(facts.connected).tolist():
        name = int(facts.names[client])
        if name in seen:
            first: dict[int, int] = {}
            for stay in np.flatnonzero(facts.client == client).tolist():
                first.setdefault(facts.stays[stay].group, int(facts.view[stay]))
            result += [(client, view) for view in first.values()]
        seen.add(name)
    return result


def _confirmed(part: ClientPart) -> None:
    """A place is told to who asked for it, once, and it is the one that others saw (confirmations)."""
    number = part.confirmed_number
    demand((part.confirmed["client"] == part.sent["client"][number]).all(), "the place of a message not its own")
    demand((part.sent["confirm"][number] != 0).all(), "the place of a message for which nobody asked")
    demand(len(np.unique(number)) == len(number), "a place told twice")
    is_placed = part.is_placed[number]
    demand((part.confirmed_key == part.key[number])[is_placed].all(), "another place than others saw")


# Views


def had_in(part: ClientPart) -> dict[int, Had]:
    facts, pairs = part.facts, part.got_in
    chosen = pairs.stay != NONE
    row, stay = pairs.row[chosen], pairs.stay[chosen]
    number, is_late = part.number[row], part.got["n"][row] > facts.signal[stay]
    own = _discarded(part, number, stay, is_late)
    stay, number, is_late = (np.concatenate(pair) for pair in zip((stay, number, is_late), own, strict=True))
    order = np.lexsort((part.key[number], stay))
    stay, number, is_late = stay[order], number[order], is_late[order]
    return {where: Had(number[begin:end], int((~is_late[begin:end]).sum())) for where, begin, end in spans(stay)}


def _discarded(part: ClientPart, number: Ints, stay: Ints, is_late: Flags) -> tuple[Ints, Ints, Flags]:
    """What others got in a view of a sender that did not want it back, as if the sender had got it."""
    facts = part.facts
    chosen = np.flatnonzero(part.sent["self_discard"][number] != 0)
    found: dict[tuple[int, int], bool] = {}
    for index in chosen.tolist():
        sender, where = int(part.sent["client"][number[index]]), facts.stays[int(stay[index])]
        for own in facts.views[where.group, where.view.id]:
            if facts.stays[own].client == sender:
                found.setdefault((own, int(number[index])), bool(is_late[index]))
    stays, numbers = np.array(list(found), np.int64).reshape(-1, 2).T
    return stays, numbers, np.array(list(found.values()), np.bool_)


def _clear_view(part: ClientPart, stays: list[int], had: dict[int, Had]) -> None:
    all_had = [had.get(stay, NOTHING) for stay in stays]
    longest = max(all_had, key=lambda one: len(one.numbers))
    is_one = all(np.array_equal(one.numbers, longest.numbers) for one in all_had)
    _together(part, stays, had)
    if not is_one:
        _without_holes(part, stays, all_had)
    _safe(part, stays, all_had, is_one)


def _together(part: ClientPart, stays: list[int], had: dict[int, Had]) -> None:
    """Who went on together got the same, before a signal and after it (virtual synchrony, signals)."""
    companies: dict[tuple[int, tuple[str, ...]], Had] = {}
    facts = part.facts
    for stay in stays:
        onward = facts.stays[stay].next
        if onward == NONE:
            continue
        along = facts.stays[onward].view.transitional
        if facts.lives[facts.stays[stay].client].name in along:
            mine = had.get(stay, NOTHING)
            other = companies.setdefault((int(facts.view[onward]), along), mine)
            is_same = np.array_equal(mine.numbers, other.numbers) and mine.before == other.before
            demand(is_same, "those who went on together got different messages")


def _without_holes(part: ClientPart, stays: list[int], all_had: list[Had]) -> None:
    """Who gets an agreed message has got all before it; after a signal, those of senders who come along (agreed)."""
    facts = part.facts
    everything = np.unique(np.concatenate([one.numbers for one in all_had]))
    everything = everything[np.argsort(part.key[everything], kind="stable")]
    for stay, mine in zip(stays, all_had, strict=True):
        missing = everything[~np.isin(everything, mine.numbers)]
        first, late = (_last_agreed(part, numbers) for numbers in np.split(mine.numbers, [mine.before]))
        demand(not (part.key[missing] < first).any(), "a hole before an agreed message")
        onward = facts.stays[stay].next
        if late != NONE and onward != NONE:
            along = facts.stays[onward].view.transitional
            near = missing[part.key[missing] < late].tolist()
            senders = {facts.lives[int(part.sent["client"][number])].name for number in near}
            demand(senders.isdisjoint(along), "a hole before an agreed message after a signal")


def _last_agreed(part: ClientPart, numbers: Ints) -> int:
    agreed = numbers[part.sent["service"][numbers] >= Service.AGREED]
    return int(part.key[agreed[-1]]) if len(agreed) else NONE


def _safe(part: ClientPart, stays: list[int], all_had: list[Had], is_one: bool) -> None:
    """What one gets as safe all members of the view get, or they end; after a signal all who come along (safe)."""
    facts = part.facts
    inside = {facts.lives[facts.stays[stay].client].name: index for index, stay in enumerate(stays)}
    seen: set[tuple[bytes, tuple[str, ...]]] = set()
    for stay, mine in zip(stays, all_had, strict=True):
        onward = facts.stays[stay].next
        early, late = np.split(mine.numbers, [mine.before])
        owed = [(early, facts.stays[stay].view.members)]
        owed += [(late, facts.stays[onward].view.transitional)] if onward != NONE else []
        for numbers, members in owed:
            safe = numbers[part.sent["service"][numbers] >= Service.SAFE]
            if not len(safe) or (safe.tobytes(), members) in seen:
                continue
            seen.add((safe.tobytes(), members))
            for name in members:
                index = inside.get(name)
                if index is not None and (is_one or np.isin(safe, all_had[index].numbers).all()):
                    continue
                demand(_is_excused(part, name, None if index is None else stays[index], safe), "a safe message lacks")


def _is_excused(part: ClientPart, name: str, stay: int | None, safe: Ints) -> bool:
    """Whether the clients of a name have ended, or got the messages elsewhere."""
    facts = part.facts
    if stay is not None:
        clients = [facts.stays[stay].client]
        if facts.lives[clients[0]].has_ended and facts.stays[stay].next == NONE:
            return facts.shares_views  # else the checkers ask whether it had come past their places
    else:
        clients = [index for index, life in enumerate(facts.lives) if life.name == name]
        if not clients or any(facts.lives[client].has_ended for client in clients):
            return True
    got = part.number[np.isin(part.got["client"], clients)]
    return bool(np.isin(safe, got).all())
