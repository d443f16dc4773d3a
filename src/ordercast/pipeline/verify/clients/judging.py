"""The clients of one run in one task: cleared by columns when all is plainly in order, else judged by the checkers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from ordercast.checker import Verdict
from ordercast.checker.groups import GroupCheckers
from ordercast.pipeline.verify.clients.clearing import clear_clients, had_in
from ordercast.pipeline.verify.clients.ends import clear_ends, matters_in
from ordercast.pipeline.verify.clients.facts import are_sound, client_facts, said_verdicts
from ordercast.pipeline.verify.clients.part import client_part
from ordercast.pipeline.verify.clients.rows import by_client, client_messages, said_in
from ordercast.pipeline.verify.part import demand
from ordercast.pipeline.verify.rows import Unsound, numbers_from
from ordercast.trace.client_records import ClientEvent
from ordercast.trace.records import Installed, Started

Daemons = Sequence[Started | Installed]


def judge_clients(table: pa.Table, daemons: Daemons) -> list[Verdict]:
    """`Suspicious` or `Unsound` when it is not cleared."""
    numbers = numbers_from(table["n"])
    if not (np.sort(numbers) == np.arange(len(numbers))).all():
        raise Unsound("events are missing or numbered twice")
    said = said_in(table)
    facts = client_facts(said, daemons, len(table))
    part = client_part(facts, by_client(client_messages(table, facts.who)), None)
    clear_clients(part, had_in(part))
    clear_ends(part, np.ones(len(part.sent), np.bool_))
    verdicts = said_verdicts(said, daemons, matters_in(part))
    demand(are_sound(facts, verdicts), "the views are not in order")
    return verdicts


def reference_verdicts(events: Sequence[ClientEvent], daemons: Daemons) -> list[Verdict]:
    checkers = GroupCheckers()
    for event in (*daemons, *events):
        checkers.observe(event)
    return checkers.verdicts()
