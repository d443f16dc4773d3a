"""The replicated states of a run, judged by the reference checkers: a task for each when there is much of them.

The commands of a state are one sequence, and a sequential model does each of them again: so a state is not cut.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ordercast.checker import Verdict
from ordercast.checker.replicated.states import StateCheckers
from ordercast.pipeline.verify.clients.judging import Daemons
from ordercast.pipeline.verify.rows import numbers_from
from ordercast.pipeline.verify.spread import Spread
from ordercast.trace.arrow import evidence_events
from ordercast.trace.columns import RowKind
from ordercast.trace.parquet import read_evidence_file
from ordercast.trace.records import Started
from ordercast.trace.replica_records import ReplicaEvent
from ordercast.trace.replica_rows import REPLICAS


@dataclass(frozen=True, slots=True)
class State:
    """One replicated state: its lives, as their numbers are in the file, and the event with which it begins."""

    lives: tuple[int, ...]
    begins: int


def judge_states(file: Path, daemons: Daemons) -> tuple[int, list[Verdict]]:
    """All states of a run in one task: how many events there are, and the verdicts."""
    checkers, events = _checkers(daemons), read_evidence_file(file, REPLICAS)
    for event in events:
        checkers.observe(event)
    return len(events), checkers.verdicts()


def judge_large_states(file: Path, daemons: Daemons, spread: Spread) -> tuple[int, list[Verdict]]:
    """The same, a task for each state."""
    [states] = spread(states_in, [file])
    if len(states) < 2:
        [judged] = spread(partial(judge_states, daemons=daemons), [file])
        return int(judged[0]), list(judged[1])
    found: list[list[Verdict]] = spread(partial(judge_state, file, daemons), states)
    worst = [max(verdicts, key=lambda verdict: verdict.outcome.severity) for verdicts in zip(*found, strict=True)]
    return pq.read_metadata(file).num_rows, worst


def _checkers(daemons: Daemons) -> StateCheckers:
    started = [event for event in daemons if isinstance(event, Started)]
    return StateCheckers(started[-1].promises.replicas if started else None)


def states_in(file: Path) -> list[State]:
    """The states in the order of their beginnings; none when they cannot be told apart, since something is missing, or
    somebody did something before it had started."""
    table = pq.read_table(file, columns=["n", "kind", "life", "group"], partitioning=None)
    numbers = np.sort(numbers_from(table["n"]))
    started = table.filter(pc.equal(table["kind"], int(RowKind.REPLICA_STARTED)))
    lives = dict(zip(started["life"].to_pylist(), started["n"].to_pylist(), strict=True))
    own = table.filter(pc.is_valid(table["life"])).group_by("life").aggregate([("n", "min")])
    firsts = dict(zip(own["life"].to_pylist(), own["n_min"].to_pylist(), strict=True))
    if not (numbers == np.arange(len(numbers))).all() or firsts != lives or len(lives) < len(started):
        return []
    groups: dict[str | None, list[int]] = {}
    for life, group in zip(started["life"].to_pylist(), started["group"].to_pylist(), strict=True):
        groups.setdefault(group, []).append(life)
    states = [State(tuple(those), min(lives[life] for life in those)) for those in groups.values()]
    return sorted(states, key=lambda state: state.begins)


def judge_state(file: Path, daemons: Daemons, state: State) -> list[Verdict]:
    """One state: what its lives did, and what is said of the whole cluster since it began."""
    parquet = pq.ParquetFile(file, page_checksum_verification=True)
    found: dict[int, ReplicaEvent] = {}
    for group in range(parquet.num_row_groups):
        table = parquet.read_row_group(group, use_threads=False)
        is_common = pc.and_(pc.is_null(table["life"]), pc.greater(table["n"], state.begins))
        is_own = pc.is_in(table["life"], value_set=pa.array(state.lives, pa.int64()))
        found |= evidence_events(table.filter(pc.or_(is_own, is_common)), REPLICAS)
    checkers = _checkers(daemons)
    for _, event in sorted(found.items()):
        checkers.observe(event)
    return checkers.verdicts()
