"""The clients of a run too large for one task, in steps that each see a little of it, as in `verify/large.py`.

The file is in the order of the history, and places in the global order rise with it, roughly: so a stretch of the order
lies in a few row groups.

1. Index: each row group by itself gives what is no message, how far it comes in the order, and whose messages it has.
2. Parts: all that was got or confirmed in a stretch of the order, with its sendings. A part is cleared by columns, or
   its history is given to the reference checkers there and then: with all its receipts, and everything that is no
   message, it is a history of its own, valid if the whole is.
3. What lies between parts is compared here: the order of each client's receipts and of each sender's messages, holes.
4. What was sent and never came is a history of its own, too.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ordercast.checker import Outcome, Verdict, Witness
from ordercast.pipeline.verify.clients.clearing import clear_clients, had_in
from ordercast.pipeline.verify.clients.edges import ClientEdges, between, edges_of
from ordercast.pipeline.verify.clients.ends import clear_ends
from ordercast.pipeline.verify.clients.facts import ClientFacts, are_sound, client_facts, said_verdicts
from ordercast.pipeline.verify.clients.index import (
    ClientIndex,
    ClientSlice,
    Loss,
    Stretch,
    client_slices,
    index_clients,
    losses_in,
    read_group,
)
from ordercast.pipeline.verify.clients.judging import Daemons, reference_verdicts
from ordercast.pipeline.verify.clients.part import COUNTER_BITS, client_part, identities
from ordercast.pipeline.verify.clients.rows import (
    GOT,
    MESSAGE,
    SENT,
    Said,
    by_client,
    client_messages,
    no_client_messages,
    said_in,
)
from ordercast.pipeline.verify.numbering import NUMBER_RANGE, expected_in
from ordercast.pipeline.verify.part import Suspicious, demand
from ordercast.pipeline.verify.positions import LOWEST, keys_of
from ordercast.pipeline.verify.rows import Flags, Ints, Rows, Unsound, joined
from ordercast.pipeline.verify.spread import Spread
from ordercast.trace.arrow import evidence_events
from ordercast.trace.client_records import ClientEvent, GotDropped
from ordercast.trace.client_rows import CLIENTS
from ordercast.trace.columns import signed

EXAMINED_ROWS_MAX = 500_000  # of messages that are not in order between parts


@dataclass(slots=True)
class ClientResult:
    """`edges` are None when the part could not be indexed; `verdicts` are those of the reference checkers, None when it
    was cleared."""

    edges: ClientEdges | None
    verdicts: list[Verdict] | None


# Parts


@dataclass(frozen=True, slots=True)
class ClientFile:
    """A table of clients, and what is known of all of it."""

    path: str
    facts: ClientFacts
    said: list[Said]  # without losses
    losses: list[Loss]
    daemons: Daemons
    sent: dict[tuple[int, int], list[tuple[int, Stretch]]]  # of each client: row groups, and the counters sent there
    is_sound: bool  # else the checkers read everything

    def messages(self, groups: Iterable[int]) -> Rows:
        file = pq.ParquetFile(self.path, page_checksum_verification=True)
        parts = [client_messages(read_group(file, group, MESSAGE), self.facts.who) for group in groups]
        return joined([no_client_messages(), *parts])

    def place_of(self, loss: Loss) -> int:
        """Return the client that was told of it."""
        assert isinstance(loss.said.event, GotDropped)
        process, session = loss.said.event.client
        return int(self.facts.who.places(np.array([signed(process)]), np.array([session]))[0][0])

    def groups_of(self, messages: Ints) -> set[int]:
        """Return the row groups in which these were sent."""
        who = self.facts.who
        found = set()
        clients = messages >> COUNTER_BITS
        for client in np.unique(clients).tolist():
            mine = messages[clients == client] & (1 << COUNTER_BITS) - 1
            for group, (low, high) in self.sent.get((int(who.processes[client]), int(who.sessions[client])), ()):
                if low <= mine.max() and high >= mine.min():
                    found.add(group)
        return found

    def events(self, groups: Iterable[int], chosen: Ints, part: ClientSlice | None) -> list[ClientEvent]:
        """The events of these numbers and all that is no message, in order."""
        file = pq.ParquetFile(self.path, page_checksum_verification=True)
        found = {one.n: one.event for one in self.said}
        found |= {loss.said.n: loss.said.event for loss in self.losses if part is None or loss.touches(part)}
        wanted = pa.array(chosen)
        for group in groups:
            table = file.read_row_group(group, use_threads=False)
            found |= evidence_events(table.filter(pc.is_in(table["n"], wanted)), CLIENTS)
        return [event for _, event in sorted(found.items())]


def judge_client_part(file: ClientFile, part: ClientSlice) -> ClientResult:
    groups = {*part.groups, *part.owned}
    here, before = [no_client_messages()], [no_client_messages()]
    for group in sorted(groups):
        rows = file.messages([group])
        is_sent = rows["kind"] == SENT
        is_mine = ~is_sent & _is_in(rows, part)
        here.append(rows.where(is_mine | is_sent if group in part.owned else is_mine))
        before.append(rows.where(is_sent if group not in part.owned else slice(0, 0)))
    rows = by_client(joined(here))
    sound = rows.where(rows["odd"] == 0)
    is_sent = sound["kind"] == SENT
    missing = np.setdiff1d(identities(sound.where(~is_sent)), identities(sound.where(is_sent)))
    earlier = _chosen(joined(before), missing)
    missing = np.setdiff1d(missing, identities(earlier))
    if len(missing):
        more = file.groups_of(missing) - groups
        groups |= more
        found = file.messages(sorted(more))
        earlier = joined([earlier, _chosen(found.where(found["kind"] == SENT), missing)])
    return _judged(file, part, groups, rows, earlier)


def _is_in(rows: Rows, part: ClientSlice) -> Flags:
    if not len(rows):
        return np.zeros(0, np.bool_)
    keys, (first, last) = keys_of(rows, [max(part.first, LOWEST), part.last or LOWEST])
    is_in: Flags = (keys >= first) & ((keys < last) | (part.last is None))
    return is_in


def _chosen(rows: Rows, messages: Ints) -> Rows:
    rows = rows.where(rows["odd"] == 0)
    return rows.where(np.isin(identities(rows), messages))


def _judged(file: ClientFile, part: ClientSlice, groups: set[int], rows: Rows, earlier: Rows) -> ClientResult:
    edges = None
    try:
        index = client_part(file.facts, rows, earlier)
        had = had_in(index)
        edges = edges_of(index, had)
        lossy = {file.place_of(loss) for loss in file.losses if loss.touches(part)}
        edges.short = {stay for stay in edges.short if file.facts.stays[stay].client not in lossy}
        demand(file.is_sound, "the views are not in order")
        clear_clients(index, had)
        clear_ends(index, index.is_placed)
        return ClientResult(edges, None)
    except (Suspicious, Unsound):
        came = rows.where(rows["kind"] != SENT)
        sent = joined([rows.where(rows["kind"] == SENT), earlier])
        numbers = np.concatenate([came["n"], _chosen(sent, identities(came.where(came["odd"] == 0)))["n"]])
        verdicts = reference_verdicts(file.events(sorted(groups), numbers, part), file.daemons)
        return ClientResult(edges, verdicts)


# The run


def judge_large_clients(
    path: str, daemons: Daemons, spread: Spread, part_rows: int, examined_max: int = EXAMINED_ROWS_MAX
) -> tuple[int, list[Verdict]]:
    """How many events there are, and the verdicts. `Unsound` when the table is not whole."""
    groups = pq.ParquetFile(path).num_row_groups
    indices: list[ClientIndex] = spread(partial(index_clients, path), range(groups))
    count = sum(index.count for index in indices)
    _check_numbers(indices, count, spread)
    said = sorted((one for index in indices if len(index.said) for one in said_in(index.said)), key=lambda one: one.n)
    facts = client_facts(said, daemons, count)
    views = said_verdicts(said, daemons, set())
    file = _file(path, facts, said, daemons, (indices, spread), are_sound(facts, views))
    parts: list[ClientResult] = spread(partial(judge_client_part, file), client_slices(indices, part_rows))
    matters = {matter for part in parts if part.edges is not None for matter in part.edges.matters}
    verdicts = said_verdicts(said, daemons, matters)
    for part in parts:
        verdicts = verdicts if part.verdicts is None else _worse(verdicts, part.verdicts)
    why = next(between([part.edges for part in parts]), None)
    if why is not None:
        if count <= examined_max:
            return count, reference_verdicts(file.events(range(groups), np.arange(count), None), daemons)
        return count, _in_doubt(verdicts, f"something is wrong between parts: {why}")
    lost = _lost(parts)
    if len(lost):
        [found] = spread(partial(_judge_lost, file), [lost])
        verdicts = _worse(verdicts, found)
    return count, verdicts


def _file(
    path: str,
    facts: ClientFacts,
    said: list[Said],
    daemons: Daemons,
    read: tuple[list[ClientIndex], Spread],
    is_sound: bool,
) -> ClientFile:
    indices, spread = read
    sent: dict[tuple[int, int], list[tuple[int, Stretch]]] = {}
    for group, index in enumerate(indices):
        for client, stretch in index.sent.items():
            sent.setdefault(client, []).append((group, stretch))
    dropped = [one for one in said if isinstance(one.event, GotDropped)]
    losses = losses_in(path, dropped, len(indices), spread) if dropped else []
    rest = [one for one in said if not isinstance(one.event, GotDropped)]
    return ClientFile(path, facts, rest, losses, daemons, sent, is_sound)


def _check_numbers(indices: list[ClientIndex], count: int, spread: Spread) -> None:
    bounds = [(begin, min(begin + NUMBER_RANGE, count)) for begin in range(0, count, NUMBER_RANGE)]
    total = sum(index.fingerprint for index in indices) % (1 << 64)
    if sum(spread(expected_in, bounds)) % (1 << 64) != total:
        raise Unsound("events are missing or numbered twice")


def _lost(parts: list[ClientResult]) -> Ints:
    """What was sent and never came."""
    edges = [part.edges for part in parts if part.edges is not None]
    nothing = [np.zeros(0, np.int64)]
    pending = np.concatenate([*nothing, *(one.pending for one in edges)])
    return np.setdiff1d(pending, np.concatenate([*nothing, *(one.arrived for one in edges)]))


def _judge_lost(file: ClientFile, lost: Ints) -> list[Verdict]:
    groups = sorted(file.groups_of(lost))
    numbers = [
        _chosen(rows.where(rows["kind"] != GOT), lost)["n"] for group in groups for rows in [file.messages([group])]
    ]
    chosen = np.concatenate([np.zeros(0, np.int64), *numbers])
    return reference_verdicts(file.events(groups, chosen, None), file.daemons)


def _worse(verdicts: list[Verdict], others: list[Verdict]) -> list[Verdict]:
    return [
        other if other.outcome.severity > mine.outcome.severity else mine
        for mine, other in zip(verdicts, others, strict=True)
    ]


def _in_doubt(verdicts: list[Verdict], why: str) -> list[Verdict]:
    """Nothing is VALID, nor was it not exercised."""
    return [
        Verdict(verdict.promise, Outcome.UNKNOWN, why, (Witness(why),))
        if verdict.outcome in (Outcome.VALID, Outcome.NOT_EXERCISED)
        else verdict
        for verdict in verdicts
    ]
