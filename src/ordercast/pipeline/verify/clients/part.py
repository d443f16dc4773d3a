"""Messages of clients, indexed: which sending each receipt is, and in which stays of its receiver it came.

A part is all that was got and confirmed between two places of the order, with what was sent of it; or a whole run.
Messages get numbers in the order in which they were sent. `Suspicious` when a receipt is not what was sent.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ordercast.pipeline.verify.clients.facts import NONE, ClientFacts
from ordercast.pipeline.verify.clients.rows import CONFIRMED, GOT, SENT
from ordercast.pipeline.verify.facts import NOWHERE
from ordercast.pipeline.verify.part import demand
from ordercast.pipeline.verify.positions import keys_of
from ordercast.pipeline.verify.rows import Flags, Ints, Rows, joined

COUNTER_BITS = 40


@dataclass(slots=True)
class Pairs:
    """Messages with those of their groups that matter: which row, which of its groups, and in which stay."""

    row: Ints
    slot: Ints  # the place among the groups of the message
    group: Ints
    stay: Ints  # of the client of that row, at that moment


@dataclass(slots=True)
class ClientPart:
    facts: ClientFacts
    sent: Rows  # by number
    here: Flags  # of the messages: it was sent in this part, not before
    got: Rows  # by client, in the order of each
    number: Ints  # of what was got
    receipt: Ints  # its place in the order, as one number
    key: Ints  # of each message, the same; NOWHERE when nobody got it here
    confirmed: Rows
    confirmed_number: Ints
    confirmed_key: Ints
    got_in: Pairs
    sent_in: Pairs  # in the views of the sender, if it is in the group
    slots: int  # as many as the groups of the message with most

    @property
    def is_placed(self) -> Flags:
        placed: Flags = self.key != NOWHERE
        return placed


def client_part(facts: ClientFacts, rows: Rows, earlier: Rows | None) -> ClientPart:
    """`rows` by client and in the order of each; `earlier`: what was sent before and is got here."""
    demand(not rows["odd"].any(), "a message without stamp, place or client")
    demand((rows["n"] > facts.connected[rows["client"]]).all(), "a message before its client had connected")
    keys, _ = keys_of(rows)
    is_got, is_confirmed = rows["kind"] == GOT, rows["kind"] == CONFIRMED
    got, confirmed = rows.where(is_got), rows.where(is_confirmed)
    sent, here = _sent(rows.where(rows["kind"] == SENT), earlier)
    number, confirmed_number = _numbers(sent, got), _numbers(sent, confirmed)
    _unchanged(facts, sent, got, number)
    key = np.full(len(sent), NOWHERE, np.int64)
    key[number] = keys[is_got]
    slots = max((len(names) for names in rows.goals.values()), default=1)
    got_in, sent_in = _pairs(facts, got), _pairs(facts, sent)
    receipts = number, keys[is_got], key
    return ClientPart(
        facts, sent, here, got, *receipts, confirmed, confirmed_number, keys[is_confirmed], got_in, sent_in, slots
    )


def _sent(mine: Rows, earlier: Rows | None) -> tuple[Rows, Flags]:
    here = np.ones(len(mine), np.bool_)
    if earlier is not None and len(earlier):
        mine, here = joined([mine, earlier]), np.concatenate([here, np.zeros(len(earlier), np.bool_)])
    demand((mine["client"] == mine["sender"]).all(), "a message stamped by another client")
    order = np.argsort(mine["n"], kind="stable")
    return mine.where(order), here[order]


def identities(rows: Rows) -> Ints:
    """Return the stamp of each message as one number."""
    demand((rows["counter"] < 1 << COUNTER_BITS).all(), "a counter that nobody reaches")
    return rows["sender"] << COUNTER_BITS | rows["counter"]


def _numbers(sent: Rows, rows: Rows) -> Ints:
    """Return the number of the message of each row."""
    known = identities(sent)
    order = np.argsort(known, kind="stable")
    known = known[order]
    demand((np.diff(known) > 0).all(), "a message sent twice")
    if not len(known):
        demand(not len(rows), "a message that nobody had sent")
        return np.zeros(0, np.int64)
    wanted = identities(rows)
    found = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
    demand((known[found] == wanted).all(), "a message that nobody had sent")
    return order[found]


def _unchanged(facts: ClientFacts, sent: Rows, got: Rows, number: Ints) -> None:
    """What comes was sent before, so, by that client, to its receiver (integrity)."""
    for name in ("digest", "service", "goal"):
        demand((sent[name][number] == got[name]).all(), f"a message with another {name}")
    demand((sent["n"][number] < got["n"]).all(), "a message before it was sent")
    demand((facts.names[got["sender"]] == got["name"]).all(), "a message in the name of another")
    is_back = (sent["self_discard"][number] != 0) & (got["client"] == got["sender"])
    demand(not is_back.any(), "a message came back to a sender that did not want it")


def _pairs(facts: ClientFacts, rows: Rows) -> Pairs:
    """Each row with each of its groups, and the stay of its client there: NONE when it is in none."""
    found: list[tuple[Ints, ...]] = []
    for goal in np.unique(rows["goal"]).tolist():
        names = rows.goals.get(goal, ())
        demand(len(set(names)) == len(names), "a message to one group twice")
        chosen = np.flatnonzero(rows["goal"] == goal)
        for slot, name in enumerate(names):
            group = facts.groups.get(name, NONE)
            if group != NONE:
                stays = facts.in_groups.at(facts.slots(rows["client"][chosen], group), rows["n"][chosen])
                found.append((chosen, np.full(len(chosen), slot), np.full(len(chosen), group), stays))
    if not found:
        return Pairs(*(np.zeros(0, np.int64) for _ in range(4)))
    return Pairs(*(np.concatenate(columns) for columns in zip(*found, strict=True)))
