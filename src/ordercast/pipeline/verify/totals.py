"""Sums over a run: how much each process delivered in each stay, and of its own; who had which share when saturated.

Sums of parts add up to those of the run, whatever else is wrong with a part. `settle` draws the conclusions that need
the whole: equal amounts for those who moved together, nothing of one's own left behind, fair shares.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from ordercast.checker.fairness import MESSAGES_MIN, SHARE_MIN
from ordercast.checker.matters import DELIVERIES, Matter
from ordercast.model.configuration import ConfigurationKind
from ordercast.model.ids import ConfigurationId
from ordercast.model.service import Service
from ordercast.pipeline.verify.facts import Facts
from ordercast.pipeline.verify.part import demand, spans
from ordercast.pipeline.verify.rows import DELIVERED, SUBMITTED, Ints, Rows

Share = tuple[int, int, int]  # window, life, stay


@dataclass(slots=True)
class Totals:
    deliveries: Ints  # of each stay, all lives one after the other
    sent: Ints  # of each life
    own: Ints  # of its own messages, how many each life delivered
    shares: dict[Share, Ints]  # messages of each life
    sent_service: int = -1  # the highest that was asked for
    service: int = -1  # the highest that was delivered

    def __add__(self, other: Totals) -> Totals:
        shares = dict(self.shares)
        for place, counts in other.shares.items():
            shares[place] = shares[place] + counts if place in shares else counts
        return Totals(
            self.deliveries + other.deliveries,
            self.sent + other.sent,
            self.own + other.own,
            shares,
            max(self.sent_service, other.sent_service),
            max(self.service, other.service),
        )


def stay_offsets(facts: Facts) -> list[int]:
    """Where the stays of each life begin in `Totals.deliveries`."""
    return list(accumulate((len(life.begins) for life in facts.lives), initial=0))


def no_totals(facts: Facts) -> Totals:
    lives = len(facts.lives)
    return Totals(np.zeros(stay_offsets(facts)[-1], np.int64), np.zeros(lives, np.int64), np.zeros(lives, np.int64), {})


def totals_from(facts: Facts, rows: Rows) -> Totals:
    """Rows of processes that nobody knows are left out: they are suspicious anyway."""
    totals, offsets = no_totals(facts), stay_offsets(facts)
    for process, begin, end in spans(rows["process"]):
        life = facts.index(process)
        if life is None:
            continue
        here = rows.where(slice(begin, end))
        is_owed = here["service"] >= Service.RELIABLE
        totals.sent[life] += int(((here["kind"] == SUBMITTED) & is_owed).sum())
        is_delivery = here["kind"] == DELIVERED
        totals.own[life] += int((is_delivery & is_owed & (here["sender_process"] == process)).sum())
        sound = here["odd"] == 0
        totals.sent_service = max(totals.sent_service, int(here["service"][sound & ~is_delivery].max(initial=-1)))
        totals.service = max(totals.service, int(here["service"][sound & is_delivery].max(initial=-1)))
        here = here.only("idx", "n", "sender_process").where(is_delivery)
        begins = facts.lives[life].begins
        edges = np.searchsorted(here["idx"], begins).tolist()
        for stay, (first, last) in enumerate(zip(edges, [*edges[1:], len(here)], strict=True)):
            totals.deliveries[offsets[life] + stay] += last - first
            if facts.windows and stay and facts.lives[life].stays[stay - 1].view.kind is ConfigurationKind.REGULAR:
                _add_shares(facts, totals, (life, stay), here.where(slice(first, last)))
    return totals


def _add_shares(facts: Facts, totals: Totals, place: tuple[int, int], here: Rows) -> None:
    for number, window in enumerate(facts.windows):
        first, last = np.searchsorted(here["n"], [window.begins, window.ends]).tolist()
        if first == last:
            continue
        senders, counts = np.unique(here["sender_process"][first:last], return_counts=True)
        share = np.zeros(len(facts.lives), np.int64)
        for sender, count in zip(senders.tolist(), counts.tolist(), strict=True):
            life = facts.index(sender)
            if life is not None:
                share[life] = count
        totals.shares[number, *place] = totals.shares.get((number, *place), 0) + share


@dataclass(frozen=True, slots=True)
class Unequal:
    """Two lives that should have delivered the same amount in these stays."""

    first: tuple[int, int]
    second: tuple[int, int]


def matters_of(facts: Facts, totals: Totals) -> set[Matter]:
    """Return what the messages gave the judges to judge."""
    matters = {matter for matter, service in DELIVERIES.items() if min(totals.sent_service, totals.service) >= service}
    if totals.sent.any():
        matters.add(Matter.SENT)
    if fair_shares(facts, totals)[0]:
        matters.add(Matter.SATURATION)
    return matters


def settle(facts: Facts, totals: Totals) -> None:
    """`Suspicious` when something does not come out even."""
    demand(not unequal(facts, totals), "those who went together delivered different amounts")
    demand(not lives_that_owe(facts, totals), "a process lacks its own messages")
    demand(not fair_shares(facts, totals)[1], "unfair shares")


def unequal(facts: Facts, totals: Totals) -> list[Unequal]:
    """Virtual synchrony; and, at the end of a complete record, liveness. Where amounts do not tell, `sets.py` does."""
    if not facts.is_plain:
        return []
    offsets = stay_offsets(facts)
    known: dict[tuple[ConfigurationId, ConfigurationId | None], tuple[int, int]] = {}
    result = []
    for index, life in enumerate(facts.lives):
        is_to_end = life.is_running and facts.is_complete and facts.is_healed
        for stay in range(1, len(life.begins) if is_to_end else len(life.begins) - 1):
            onward = life.stays[stay].view.id if stay < len(life.stays) else None
            move = (life.stays[stay - 1].view.id, onward)
            other = known.setdefault(move, (index, stay))
            if totals.deliveries[offsets[index] + stay] != totals.deliveries[offsets[other[0]] + other[1]]:
                result.append(Unequal(other, (index, stay)))
    return result


def lives_that_owe(facts: Facts, totals: Totals) -> list[int]:
    """Self delivery: those who did not crash and have not delivered all their own. Where an engine prunes, they need
    not."""
    if facts.prunes:
        return []
    return [
        index
        for index, life in enumerate(facts.lives)
        if totals.own[index] != totals.sent[index] and not life.crashed and (life.departed or facts.is_complete)
    ]


def fair_shares(facts: Facts, totals: Totals) -> tuple[int, list[Share]]:
    """As the checker of fairness: how many were judged, and where a share was too small."""
    judged, unfair = 0, []
    for (number, life, stay), counts in totals.shares.items():
        members = facts.lives[life].stays[stay - 1].view.members
        senders = [process for process in facts.windows[number].senders if process in members]
        indices = [facts.index(process) for process in senders]
        shares = [0 if index is None else int(counts[index]) for index in indices]
        if len(senders) < 2 or sum(shares) < MESSAGES_MIN * len(senders):
            continue
        judged += 1
        if any(share * len(senders) < SHARE_MIN * sum(shares) for share in shares):
            unfair.append((number, life, stay))
    return judged, unfair
