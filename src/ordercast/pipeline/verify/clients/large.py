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

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ordercast.checker import Outcome, Verdict, Witness
from ordercast.checker.groups.matters import GroupMatter
from ordercast.model.ids import Position
from ordercast.model.service import Service
from ordercast.pipeline.verify.clients.clearing import NOTHING, Had, clear_clients, had_in, views_of
from ordercast.pipeline.verify.clients.ends import clear_ends, is_owing, matters_in
from ordercast.pipeline.verify.clients.facts import ClientFacts, are_sound, client_facts, said_verdicts
from ordercast.pipeline.verify.clients.judging import Daemons, reference_verdicts
from ordercast.pipeline.verify.clients.part import COUNTER_BITS, ClientPart, client_part, identities
from ordercast.pipeline.verify.clients.rows import (
    GOT,
    MESSAGE,
    SENT,
    Said,
    by_client,
    client_messages,
    is_message,
    no_client_messages,
    said_in,
)
from ordercast.pipeline.verify.index import GRID_ROWS, NO_PLACE, position_at
from ordercast.pipeline.verify.numbering import NUMBER_RANGE, expected_in, fingerprint
from ordercast.pipeline.verify.part import Suspicious, demand, spans
from ordercast.pipeline.verify.positions import LOWEST, POSITION, keys_of
from ordercast.pipeline.verify.rows import Flags, Ints, Rows, Unsound, joined, numbers_from
from ordercast.pipeline.verify.spread import Spread
from ordercast.pipeline.verify.suspects import by_stream
from ordercast.trace.arrow import evidence_events
from ordercast.trace.client_records import ClientEvent, GotDropped
from ordercast.trace.client_rows import CLIENTS
from ordercast.trace.columns import signed

EXAMINED_ROWS_MAX = 500_000  # of messages that are not in order between parts
_STAMP = ("sender_process", "sender", "counter")

Marks = list[tuple[int, Position]]  # so many receipts, and the place of the last of them
Stretch = tuple[int, int]  # of numbers, from first to last


@dataclass(slots=True)
class ClientIndex:
    """What one row group holds."""

    said: pa.Table
    count: int
    fingerprint: int
    marks: Marks
    bounds: tuple[Position, Position] | None  # the lowest place and the highest
    sent: dict[tuple[int, int], Stretch]  # of each client, by its stamp: the counters sent here


@dataclass(slots=True)
class ClientSlice:
    """The part from `first` up to, not including, `last`; `owned`: row groups whose sendings are counted in it."""

    first: Position
    last: Position | None
    groups: list[int] = field(default_factory=list)
    owned: list[int] = field(default_factory=list)


@dataclass(slots=True)
class ClientEdges:
    """What a part says to the parts around it."""

    got: dict[int, Stretch] = field(default_factory=dict)  # of each client, the events in which it got something
    sent: dict[int, Stretch] = field(default_factory=dict)  # and those in which it sent what came here
    counters: dict[int, Stretch] = field(default_factory=dict)  # of the latter
    short: set[int] = field(default_factory=set)  # stays that lack something that others got in the view
    agreed: set[int] = field(default_factory=set)  # stays that got an agreed message
    loose: list[int] = field(default_factory=list)  # messages confirmed here that nobody got here
    matters: set[GroupMatter] = field(default_factory=set)
    pending: Ints = field(default_factory=lambda: np.zeros(0, np.int64))  # owed, sent here, and got elsewhere if at all
    arrived: Ints = field(default_factory=lambda: np.zeros(0, np.int64))  # got here, and sent elsewhere


@dataclass(slots=True)
class ClientResult:
    """`edges` are None when the part could not be indexed; `verdicts` are those of the reference checkers, None when it
    was cleared."""

    edges: ClientEdges | None
    verdicts: list[Verdict] | None


# Index


def index_clients(path: str, group: int) -> ClientIndex:
    file = pq.ParquetFile(path, page_checksum_verification=True)
    table = _read(file, group, (*_STAMP, "n", "kind", *POSITION))
    messages = table.filter(is_message(table))
    rows = Rows({name: numbers_from(messages[name]) for name in messages.column_names})
    said = file.read_row_group(group, use_threads=False) if len(messages) < len(table) else None
    said = table.slice(0, 0) if said is None else said.filter(pc.invert(is_message(said)))
    placed = rows.where(rows["kind"] != SENT)
    marks, bounds = _marks(placed)
    numbers = numbers_from(table["n"])
    return ClientIndex(said, len(table), fingerprint(numbers), marks, bounds, _sent(rows.where(rows["kind"] == SENT)))


def _read(file: pq.ParquetFile, group: int, columns: Sequence[str]) -> pa.Table:
    return file.read_row_group(group, columns=list(columns), use_threads=False)


def _marks(rows: Rows) -> tuple[Marks, tuple[Position, Position] | None]:
    if not len(rows):
        return [], None
    order = np.argsort(keys_of(rows)[0], kind="stable")
    chosen = [*range(GRID_ROWS - 1, len(rows) - 1, GRID_ROWS), len(rows) - 1]
    counts = np.diff([0, *(index + 1 for index in chosen)]).tolist()
    marks = [(count, position_at(rows, int(order[index]))) for count, index in zip(counts, chosen, strict=True)]
    return marks, (position_at(rows, int(order[0])), marks[-1][1])


def _sent(rows: Rows) -> dict[tuple[int, int], Stretch]:
    return {client: (int(counters.min()), int(counters.max())) for client, counters in by_stream(rows)}


def client_slices(indices: list[ClientIndex], part_rows: int) -> list[ClientSlice]:
    marks = sorted((place, count) for index in indices for count, place in index.marks)
    cuts: list[Position] = []
    gathered = 0
    for place, count in marks:
        gathered += count
        if gathered >= part_rows and place != marks[-1][0] and (not cuts or place > cuts[-1]):
            cuts.append(place)
            gathered = 0
    slices = [ClientSlice(*pair) for pair in zip([NO_PLACE, *cuts], [*cuts, None], strict=True)]
    owner = 0
    for group, index in enumerate(indices):
        if index.bounds is not None:
            low, high = (bisect_right(cuts, place) for place in index.bounds)
            for one in slices[low : high + 1]:
                one.groups.append(group)
            owner = low
        slices[owner].owned.append(group)
    return slices


# Parts


@dataclass(frozen=True, slots=True)
class Loss:
    """A client was told that it lost messages: between which places of what it got."""

    said: Said
    after: Position | None
    before: Position | None

    def touches(self, part: ClientSlice) -> bool:
        is_early = part.last is None or self.after is None or self.after < part.last
        return is_early and (self.before is None or self.before >= part.first)


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
        parts = [client_messages(_read(file, group, MESSAGE), self.facts.who) for group in groups]
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
        edges = _edges(index, had)
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


# Between parts


def _edges(part: ClientPart, had: dict[int, Had]) -> ClientEdges:
    edges = ClientEdges(matters=matters_in(part))
    for client, begin, end in spans(part.got["client"]):
        edges.got[client] = int(part.got["n"][begin]), int(part.got["n"][end - 1])
    placed = np.flatnonzero(part.is_placed)
    placed = placed[np.argsort(part.sent["client"][placed], kind="stable")]
    for client, begin, end in spans(part.sent["client"][placed]):
        numbers = placed[begin:end]
        edges.sent[client] = int(part.sent["n"][numbers[0]]), int(part.sent["n"][numbers[-1]])
        counters = part.sent["counter"][numbers]
        edges.counters[client] = int(counters.min()), int(counters.max())
    stamps = identities(part.sent)
    edges.pending = stamps[part.here & ~part.is_placed & is_owing(part)]
    edges.arrived = stamps[~part.here & part.is_placed]
    edges.loose = stamps[part.confirmed_number[~part.is_placed[part.confirmed_number]]].tolist()
    for stays in views_of(part, had):
        sizes = {stay: len(had.get(stay, NOTHING).numbers) for stay in stays}
        everything = len(np.unique(np.concatenate([had.get(stay, NOTHING).numbers for stay in stays])))
        edges.short |= {stay for stay, size in sizes.items() if size < everything}
    services = part.sent["service"]
    edges.agreed = {stay for stay, one in had.items() if (services[one.numbers] >= Service.AGREED).any()}
    return edges


def _between(parts: list[ClientResult]) -> Iterator[str]:
    """What is not in order between parts, which are given in the order of the run."""
    got: dict[int, int] = {}
    sent: dict[int, int] = {}
    counters: dict[int, int] = {}
    short: set[int] = set()
    for part in parts:
        edges = part.edges
        if edges is None:
            yield "a message is not what was sent"
            continue
        if any(edges.got[client][0] <= got.get(client, -1) for client in edges.got):
            yield "places that do not rise"
        if any(edges.got[client][0] <= sent.get(client, -1) for client in edges.got):
            yield "a message below what it depends on"
        if any(edges.sent[client][0] <= sent.get(client, -1) for client in edges.sent):
            yield "messages of a sender out of its order"
        if any(edges.counters[client][0] <= counters.get(client, -1) for client in edges.counters):
            yield "a message in two places"
        if edges.agreed & short:
            yield "a hole before an agreed message"
        got |= {client: last for client, (_, last) in edges.got.items()}
        sent |= {client: last for client, (_, last) in edges.sent.items()}
        counters |= {client: last for client, (_, last) in edges.counters.items()}
        short |= edges.short
    yield from _loose([part.edges for part in parts if part.edges is not None])


def _loose(parts: list[ClientEdges]) -> Iterator[str]:
    """Confirmations of messages that nobody got there: told twice, or got elsewhere."""
    seen: set[int] = set()
    for edges in parts:
        for message in edges.loose:
            client, counter = message >> COUNTER_BITS, message & (1 << COUNTER_BITS) - 1
            is_elsewhere = any(
                low <= counter <= high for other in parts for low, high in [other.counters.get(client, (1, 0))]
            )
            if message in seen or is_elsewhere:
                yield "another place than others saw"
            seen.add(message)


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
    why = next(_between(parts), None)
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
    losses = _losses(path, dropped, len(indices), spread) if dropped else []
    rest = [one for one in said if not isinstance(one.event, GotDropped)]
    return ClientFile(path, facts, rest, losses, daemons, sent, is_sound)


def _check_numbers(indices: list[ClientIndex], count: int, spread: Spread) -> None:
    bounds = [(begin, min(begin + NUMBER_RANGE, count)) for begin in range(0, count, NUMBER_RANGE)]
    total = sum(index.fingerprint for index in indices) % (1 << 64)
    if sum(spread(expected_in, bounds)) % (1 << 64) != total:
        raise Unsound("events are missing or numbered twice")


def _losses(path: str, dropped: list[Said], groups: int, spread: Spread) -> list[Loss]:
    """Each with the places of what its client got last before it and first after it."""
    around = spread(partial(_around, path, dropped), range(groups))
    result = []
    for number, one in enumerate(dropped):
        before = max((found[number][0] for found in around if found[number][0] is not None), default=None)
        after = min((found[number][1] for found in around if found[number][1] is not None), default=None)
        result.append(Loss(one, before and before[1], after and after[1]))
    return result


_Around = list[tuple[tuple[int, Position] | None, tuple[int, Position] | None]]


def _around(path: str, dropped: list[Said], group: int) -> _Around:
    table = _read(pq.ParquetFile(path), group, ("process", "session", "n", "kind", *POSITION))
    table = table.filter(pc.equal(table["kind"], GOT))
    rows = Rows({name: numbers_from(table[name]) for name in table.column_names})
    result: _Around = []
    for one in dropped:
        assert isinstance(one.event, GotDropped)
        process, session = signed(one.event.client.process), one.event.client.session
        mine = np.flatnonzero((rows["process"] == process) & (rows["session"] == session))
        split = int(np.searchsorted(rows["n"][mine], one.n))
        ends = mine[:split][-1:].tolist(), mine[split:][:1].tolist()
        found = [(int(rows["n"][end[0]]), position_at(rows, end[0])) if end else None for end in ends]
        result.append((found[0], found[1]))
    return result


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
