"""A run too large for one task, judged in steps that each see a little of it, without a shuffle and without a join.

1. Index: each row group by itself; pieces in line show that nothing is missing (`index.py`, `numbering.py`).
2. Views, starts and ends go to the reference checkers, which judge them whatever the length of the run.
3. Parts: cut along the global order (`slicing.py`), each cleared by columns (`clearing.py`) or narrowed down to
   suspects (`suspects.py`); sums and edges of all parts are put together (`totals.py`, `edges.py`).
4. What is suspicious goes to the reference checkers: the history of those messages alone. A history without some of its
   messages is valid if the whole is, and what is wrong in it is wrong in the whole; only fairness counts all, and is
   judged by the sums.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ordercast.checker import Outcome, Verdict, Witness
from ordercast.checker.base import WITNESSES_MAX, sentence_of
from ordercast.checker.fairness import SHARE_MIN, Fairness
from ordercast.checker.history import History
from ordercast.checker.matters import Matter
from ordercast.checker.panel import CHECKERS
from ordercast.model.ids import ProcessId, process_text
from ordercast.model.promises import Promise
from ordercast.pipeline.verify.edges import Conclusion, Edges, conclusions, edges_from
from ordercast.pipeline.verify.facts import Facts, control_verdicts, facts_from
from ordercast.pipeline.verify.index import Chain, GroupIndex, chained, index_group, total_fingerprint
from ordercast.pipeline.verify.live import LiveHistory
from ordercast.pipeline.verify.numbering import NUMBER_RANGE, expected_in
from ordercast.pipeline.verify.rows import (
    IDENTITY,
    MESSAGE,
    NUMBERING,
    SUBMITTED,
    Rows,
    TraceFile,
    TracePath,
    Unsound,
    controls_from,
    joined,
    messages_from,
)
from ordercast.pipeline.verify.slicing import PART_ROWS, Read, Slice, read_slice, slices_of
from ordercast.pipeline.verify.spread import Spread
from ordercast.pipeline.verify.suspects import Stream, Suspect, chosen, needed, suspects_in
from ordercast.pipeline.verify.totals import Totals, fair_shares, matters_of, no_totals, totals_from
from ordercast.trace.arrow import rows_of
from ordercast.trace.columns import COLUMNS, MESSAGE_KINDS
from ordercast.trace.from_rows import events_from
from ordercast.trace.note_rows import NOTE_KINDS
from ordercast.trace.records import Event

EXAMINED_ROWS_MAX = 500_000  # what the reference checkers are given; about 10 µs and 1 KiB each
_OF_VIEWS = {Promise.TRANSITIONAL_SETS, Promise.TRUTHFUL_SETS, Promise.VIEW_MONOTONY}  # whatever the messages say


@dataclass(slots=True)
class PartResult:
    totals: Totals
    edges: Edges
    suspects: list[Suspect]


@dataclass(frozen=True, slots=True)
class LargeVerdicts:
    events: int
    deliveries: int
    verdicts: list[Verdict]


def judge_large(
    path: TracePath,
    groups: int,
    spread: Spread,
    part_rows: int = PART_ROWS,
    examined_max: int = EXAMINED_ROWS_MAX,
    live: LiveHistory | None = None,
) -> LargeVerdicts:
    """`Unsound` when the trace is not whole. `live`: the rows are those of live nodes (`live.py`)."""
    indices: list[GroupIndex] = spread(partial(index_group, path), range(groups))
    rows_of_control = [row for index in indices for row in index.control]
    controls = controls_from(rows_of_control) if live is None else live.controls
    facts = facts_from(controls, is_live=live is not None)
    chain = chained(indices, facts.early)
    if live is None:
        _check_numbers(chain, spread)
    sent = _sent_index(chain)
    parts: list[PartResult] = spread(partial(judge_part, path, facts, sent), slices_of(chain, facts.early, part_rows))
    totals = sum((part.totals for part in parts), no_totals(facts))
    between = list(conclusions(facts, [part.edges for part in parts], totals))
    count = sum(piece.idx[1] - piece.idx[0] + 1 for piece in chain.pieces)
    rows = _Chosen(path, groups, spread, count, examined_max, live)
    matters = matters_of(facts, totals)
    verdicts = _examined(control_verdicts(controls, matters), rows, parts, between)
    deliveries = sum(index.deliveries for index in indices)
    return LargeVerdicts(chain.events, deliveries, _with_fairness(verdicts, facts, totals))


def _check_numbers(chain: Chain, spread: Spread) -> None:
    bounds = [(begin, min(begin + NUMBER_RANGE, chain.events)) for begin in range(0, chain.events, NUMBER_RANGE)]
    if sum(spread(expected_in, bounds)) % (1 << 64) != total_fingerprint(chain.pieces):
        raise Unsound("events are missing or numbered twice")


# Parts

SentIndex = dict[Stream, list[tuple[int, int, int]]]  # of each sender: row group, first and last counter


def _sent_index(chain: Chain) -> SentIndex:
    result: SentIndex = {}
    for piece in chain.pieces:
        for sender, (first, last) in piece.sent.items():
            result.setdefault((piece.process, sender), []).append((piece.group, first, last))
    return result


def judge_part(path: TracePath, facts: Facts, sent: SentIndex, part: Slice) -> PartResult:
    read = read_slice(path, part, facts.early)
    rows, earlier = read.rows, _earlier(path, read, sent)
    return PartResult(totals_from(facts, rows), edges_from(facts, rows, earlier), suspects_in(facts, rows, earlier))


def _earlier(path: TracePath, read: Read, sent: SentIndex) -> Rows:
    """The submissions made before the part that are delivered in it."""
    wanted = needed(read.rows)
    groups = {
        group
        for stream, (first, last) in wanted.items()
        for group, lowest, highest in sent.get(stream, ())
        if lowest <= last and highest >= first and group not in read.groups
    }
    names = (*NUMBERING, *IDENTITY, "destinations")
    found = []
    file = TraceFile(path)
    for group in sorted(groups):
        table = file.table(names, range(group, group + 1))
        table = table.filter(pc.equal(table["kind"], SUBMITTED))
        for name in MESSAGE:
            if name not in names:
                table = table.append_column(name, pa.nulls(len(table), pa.int64()))
        submissions = messages_from(table)
        found.append(submissions.where(chosen(submissions, wanted)))
    return joined([*found, read.earlier.where(chosen(read.earlier, wanted))])


# Suspects


def _suspects(parts: list[PartResult], between: list[Conclusion]) -> list[Suspect]:
    suspects = [suspect for part in parts for suspect in part.suspects]
    for conclusion in between:
        messages: dict[Stream, tuple[int, int]] = {}
        for process, sender, counter in conclusion.messages:
            first, last = messages.get((process, sender), (counter, counter))
            messages[process, sender] = (min(first, counter), max(last, counter))
        suspects.append(Suspect(conclusion.why, messages))
    return suspects


def _examined(views: list[Verdict], rows: _Chosen, parts: list[PartResult], between: list[Conclusion]) -> list[Verdict]:
    """The verdicts, given those on views: what the reference checkers say of all that is suspicious counts, too."""
    suspects = _suspects(parts, between)
    if not suspects:
        return views
    hard = next((conclusion.why for conclusion in between if conclusion.is_hard), None)
    is_all = hard is not None and rows.count <= rows.count_max
    table = rows.all() if is_all else rows.of(suspects)
    if table.num_rows > rows.count_max:
        why = f"{table.num_rows:,} events look suspicious ({suspects[0].why}), too many to be looked at one by one"
        return _in_doubt(views, why)
    fault, found = _reference(table, rows.live)
    if fault:
        return found
    verdicts = [
        mine if mine.outcome.severity >= view.outcome.severity else view
        for view, mine in zip(views, found, strict=True)
    ]
    return _in_doubt(verdicts, f"something is wrong elsewhere: {hard}") if hard and not is_all else verdicts


def _in_doubt(verdicts: list[Verdict], why: str) -> list[Verdict]:
    """Nothing that rests on messages is VALID, nor was it not exercised."""
    return [
        Verdict(verdict.promise, Outcome.UNKNOWN, why, (Witness(why),))
        if verdict.outcome in (Outcome.VALID, Outcome.NOT_EXERCISED) and verdict.promise not in _OF_VIEWS
        else verdict
        for verdict in verdicts
    ]


@dataclass(frozen=True, slots=True)
class _Chosen:
    """Rows of the run, brought together in one place."""

    path: TracePath
    groups: int
    spread: Spread
    count: int
    count_max: int
    live: LiveHistory | None

    def all(self) -> pa.Table:
        return TraceFile(self.path).table(tuple(COLUMNS))

    def of(self, suspects: list[Suspect]) -> pa.Table:
        return pa.concat_tables(self.spread(partial(select_rows, self.path, suspects), range(self.groups)))


def select_rows(path: TracePath, suspects: list[Suspect], group: int) -> pa.Table:
    """Return all events of one row group that are no messages and no notes, and the messages that are suspicious."""
    file = TraceFile(path)
    table = file.table((*NUMBERING, "sender_process", "sender", "counter"), range(group, group + 1))
    rows = Rows({name: pc.fill_null(table[name], 0).to_numpy().astype(np.int64) for name in table.column_names})
    keep = ~np.isin(rows["kind"], NOTE_KINDS)
    is_message = np.isin(rows["kind"], MESSAGE_KINDS)
    wanted = np.zeros(len(rows), np.bool_)
    for suspect in suspects:
        wanted |= chosen(rows, suspect.messages)
        for process, first, last in suspect.rows:
            wanted |= (rows["process"] == process) & (rows["idx"] >= first) & (rows["idx"] <= last)
    keep &= ~is_message | wanted
    if not keep.any():
        return file.table(tuple(COLUMNS), range(0)).slice(0, 0)
    return file.table(tuple(COLUMNS), range(group, group + 1)).filter(pa.array(keep))


def _reference(table: pa.Table, live: LiveHistory | None) -> tuple[bool, list[Verdict]]:
    """The checkers on the history of these rows, and whether it cannot be judged at all."""
    history = History()
    try:
        for event in _events(table) if live is None else live.events(table):
            history.observe(event)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Unsound(f"an event cannot be read: {error}") from error
    return history.fault() is not None, [
        judge.verdict() for judge in (checker(history) for checker in CHECKERS.values()) if judge.is_asked()
    ]


def _events(table: pa.Table) -> list[Event]:
    ranks = np.unique(table["n"].to_numpy(), return_inverse=True)[1]
    table = table.set_column(table.column_names.index("n"), "n", pa.array(ranks.astype(np.int64)))
    return events_from(rows_of(table))


def _with_fairness(verdicts: list[Verdict], facts: Facts, totals: Totals) -> list[Verdict]:
    judged, unfair = fair_shares(facts, totals)
    return [
        _fairness(verdict, facts, totals, judged, unfair) if verdict.promise is Promise.FAIRNESS else verdict
        for verdict in verdicts
    ]


def _fairness(
    verdict: Verdict, facts: Facts, totals: Totals, judged: int, unfair: list[tuple[int, int, int]]
) -> Verdict:
    if verdict.outcome in (Outcome.UNKNOWN, Outcome.NOT_PROMISED):
        return verdict
    witnesses = [witness for share in unfair for witness in _unfair(facts, totals, share)]
    if witnesses:
        shown = tuple(witnesses[:WITNESSES_MAX])
        return Verdict(Promise.FAIRNESS, Outcome.INVALID, sentence_of(witnesses[: WITNESSES_MAX + 1]), shown)
    if not judged:
        return Verdict(Promise.FAIRNESS, Outcome.NOT_EXERCISED, Matter.SATURATION.value)
    return Verdict(Promise.FAIRNESS, Outcome.VALID, Fairness.rule)


def _unfair(facts: Facts, totals: Totals, share: tuple[int, int, int]) -> list[Witness]:
    """The same words as the checker's."""
    window, life, stay = share
    view = facts.lives[life].stays[stay - 1].view
    senders = [process for process in facts.windows[window].senders if process in view.members]
    counts = {process: int(totals.shares[share][facts.index(process) or 0]) for process in senders}
    total = sum(counts.values())
    return [
        Witness(
            f"delivered {counts[process]} messages of {process_text(process)}, of {total} by {len(senders)}",
            ProcessId(facts.lives[life].process),
            None,
            view.id,
        )
        for process in senders
        if counts[process] * len(senders) < SHARE_MIN * total
    ]
