"""Sums over messages of clients: what must have come in the end, and what has; and what there was to judge.

Sums of parts add up to those of the run. A message is counted as owed where it was sent, and as had where it was got:
when both come out even, nothing that is owed is missing (self delivery, termination, confirmations).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from ordercast.checker.groups.matters import GroupMatter
from ordercast.model.service import Service
from ordercast.pipeline.verify.clients.facts import NONE, ClientFacts
from ordercast.pipeline.verify.clients.part import ClientPart
from ordercast.pipeline.verify.rows import Flags, Ints

Slot = tuple[str, int, int]  # what is counted, and of whom: see `_count`
_SERVICES = {
    GroupMatter.FIFO: Service.FIFO,
    GroupMatter.CAUSAL: Service.CAUSAL,
    GroupMatter.AGREED: Service.AGREED,
    GroupMatter.SAFE: Service.SAFE,
}


@dataclass(slots=True)
class ClientTotals:
    owed: Counter[Slot] = field(default_factory=Counter)
    had: Counter[Slot] = field(default_factory=Counter)
    matters: set[GroupMatter] = field(default_factory=set)

    def __add__(self, other: ClientTotals) -> ClientTotals:
        return ClientTotals(self.owed + other.owed, self.had + other.had, self.matters | other.matters)


def client_totals(part: ClientPart) -> ClientTotals:
    totals = ClientTotals(matters=_matters(part))
    facts, sent = part.facts, part.sent
    is_live = facts.alive[sent["client"]]
    is_own = _is_wanted(part) & (sent["self_discard"] == 0)
    if facts.is_settled:
        _count(totals.owed, "own", sent["client"][part.here & is_live & is_own])
        back = (part.got["client"] == part.got["sender"]) & (is_live & is_own)[part.number]
        _count(totals.had, "own", part.got["client"][back])
        _count(totals.owed, "place", sent["client"][part.here & is_live & (sent["confirm"] != 0)])
        _count(totals.had, "place", part.confirmed["client"][is_live[part.confirmed_number]])
        _add_ends(part, totals, is_live)
        _add_private(part, totals, is_live)
    return totals


def _count(counter: Counter[Slot], what: str, first: Ints, second: Ints | int = 0) -> None:
    pairs = np.stack([first, np.broadcast_to(np.asarray(second, np.int64), first.shape)], axis=1)
    found, counts = np.unique(pairs, axis=0, return_counts=True)
    for (one, other), count in zip(found.tolist(), counts.tolist(), strict=True):
        counter[what, one, other] += count


def _matters(part: ClientPart) -> set[GroupMatter]:
    found = {matter for matter, least in _SERVICES.items() if part.got["service"].max(initial=-1) >= least}
    has = {
        GroupMatter.SENT: len(part.sent) > 0,
        GroupMatter.SENT_INSIDE: bool(_is_wanted(part).any()),
        GroupMatter.GOT: len(part.got) > 0,
        GroupMatter.CONFIRMATION: bool(part.sent["confirm"].any()),
    }
    return found | {matter for matter, is_there in has.items() if is_there}


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


def _add_ends(part: ClientPart, totals: ClientTotals, is_live: Flags) -> None:
    """What is sent in the last view of a group, or in calm, comes to all who are in it at the end: counted by group and
    view of the sender where it is owed, by client and group where it is had."""
    facts, sent_in = part.facts, part.sent_in
    is_calm = part.sent["n"] > facts.calm_n
    is_last = np.zeros(len(sent_in.row), np.bool_)
    inside = sent_in.stay != NONE
    is_last[inside] = facts.is_last[sent_in.stay[inside]]
    view = np.where(inside & is_last, facts.view[sent_in.stay] if len(facts.view) else NONE, NONE)
    view[is_calm[sent_in.row]] = NONE
    owed = part.here[sent_in.row] & is_live[sent_in.row] & (is_calm[sent_in.row] | (view != NONE))
    _count(totals.owed, "end", sent_in.group[owed], view[owed])
    is_mine = owed & (part.sent["self_discard"][sent_in.row] != 0)
    _count(totals.had, "discard", facts.slots(part.sent["client"][sent_in.row[is_mine]], 0) + sent_in.group[is_mine])
    views = np.full((len(part.sent), part.slots), NONE, np.int64)
    views[sent_in.row, sent_in.slot] = view
    pairs = part.got_in
    number, client = part.number[pairs.row], part.got["client"][pairs.row]
    final = _finals(facts, client, pairs.group)
    is_had = is_calm[number] | ((views[number, pairs.slot] == final) & (final != NONE))
    is_had &= is_live[number] & (pairs.stay != NONE)
    _count(totals.had, "end", facts.slots(client[is_had], 0) + pairs.group[is_had])


def _finals(facts: ClientFacts, clients: Ints, groups: Ints) -> Ints:
    """Return the view of a group that a client is in at the end."""
    table = np.full(len(facts.lives) * len(facts.groups) + 1, NONE, np.int64)
    for slot, stay in final_stays(facts).items():
        table[slot] = facts.view[stay]
    return table[clients * len(facts.groups) + groups]


def final_stays(facts: ClientFacts) -> dict[int, int]:
    """Return by client and group, as one number, the stay that a client that has not ended is in at the end."""
    return {
        client * len(facts.groups) + facts.groups[group]: stay
        for client, life in enumerate(facts.lives)
        if not life.has_ended
        for group, stay in life.last.items()
    }


def _add_private(part: ClientPart, totals: ClientTotals, is_live: Flags) -> None:
    """What is sent to a client by name comes to it in calm, or from a client of the same daemon."""
    facts, sent = part.facts, part.sent
    processes = facts.who.processes
    for goal in np.unique(sent["goal"]).tolist():
        for client, life in enumerate(facts.lives):
            if life.has_ended or life.name not in sent.goals.get(goal, ()):
                continue
            is_near = (sent["n"] > facts.calm_n) | (processes[sent["client"]] == processes[client])
            owed = is_live & is_near & (sent["goal"] == goal) & (sent["n"] > life.connected_n)
            owed &= (sent["self_discard"] == 0) | (sent["client"] != client)
            totals.owed["name", client, 0] += int((owed & part.here).sum())
            mine = part.number[part.got["client"] == client]
            totals.had["name", client, 0] += int(owed[mine].sum())


def are_even(facts: ClientFacts, totals: ClientTotals) -> bool:
    """Whether all that is owed was had."""
    if not facts.is_settled:
        return True
    for what in ("own", "place", "name"):
        owed, had = (
            {slot: count for slot, count in counter.items() if slot[0] == what and count}
            for counter in (totals.owed, totals.had)
        )
        if owed != had:
            return False
    for slot, stay in final_stays(facts).items():
        group = slot % len(facts.groups)
        owed_here = totals.owed["end", group, NONE] + totals.owed["end", group, int(facts.view[stay])]
        if totals.had["end", slot, 0] + totals.had["discard", slot, 0] != owed_here:
            return False
    return True
