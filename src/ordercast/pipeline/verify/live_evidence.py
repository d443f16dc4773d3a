"""What clients and replicas of a live run recorded, merged by columns into tables of a finished run.

`trace/evidence_folder.py` reads the rows of each host in their order. Here they get one numbering: between hosts a
message is got after it was sent, and a command applied after it was called for.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ordercast.model.ids import Instant
from ordercast.pipeline.verify.ordering import Needs, numbered, raised
from ordercast.pipeline.verify.rows import Flags, Ints
from ordercast.trace.arrow import evidence_table
from ordercast.trace.client_rows import CLIENTS
from ordercast.trace.cluster import ClusterEvent, read_cluster_events
from ordercast.trace.columns import RowKind
from ordercast.trace.event_rows import EventTable
from ordercast.trace.evidence_folder import FOREVER, Recorded, cluster_events, gaps_of, over_at_of, recorded_in
from ordercast.trace.parquet import ROW_GROUP_SIZE, RunInfo, evidence_path, parquet_options, run_path, run_schema
from ordercast.trace.records import Ended
from ordercast.trace.replica_rows import REPLICAS

# What must have happened before: kinds that need and that give, and the columns that must be equal.
_BEFORE = {
    CLIENTS.name: (
        (RowKind.GOT_MESSAGE, RowKind.GOT_CONFIRMATION),
        RowKind.SENT,
        ("sender_process", "sender", "counter"),
        ("sender_process", "sender", "counter"),
    ),
    REPLICAS.name: ((RowKind.APPLIED,), RowKind.CALLED, ("caller", "request"), ("life", "request")),
}
_LAST_WORDS = (RowKind.KNOWN_GROUPS, RowKind.REPLICA_KNOWN)


def write_evidence(folder: Path, out: Path, run: int, options: Mapping[str, Any]) -> list[str]:
    """Write `clients-<run>.parquet` and `replicas-<run>.parquet`, if there is anything to write, and return which."""
    tables: tuple[EventTable[Any], ...] = (CLIENTS, REPLICAS)
    found = {table: hosts for table in tables if (hosts := recorded_in(folder, table))}
    info = RunInfo(run, None, options, evidence=[table.name for table in found])
    said = read_cluster_events(folder)
    for table, hosts in found.items():
        schema = run_schema(info, table.columns)
        rows = _merged(table, hosts, said, run, schema).sort_by([(name, "ascending") for name in table.order])
        path = evidence_path(run_path(out, run), table)
        pq.write_table(rows, path, row_group_size=ROW_GROUP_SIZE, **parquet_options(table.columns))
    return info.evidence


def _merged(
    table: EventTable[Any], hosts: list[Recorded], said: list[ClusterEvent], run: int, schema: pa.Schema
) -> pa.Table:
    over_at = over_at_of(said)
    cluster = evidence_table(sorted(cluster_events(said), key=lambda event: event.at), table, schema, run)
    sequences = [*(host.rows for host in hosts), cluster.sort_by([("t", "ascending")])]
    times = [_ints(rows["t"]) for rows in sequences]
    if len(hosts) > 1:
        times = raised(times, _needs(table, sequences))
    kept = [_is_judged(rows, over_at) for rows in sequences]
    times = [each[chosen] for each, chosen in zip(times, kept, strict=True)]
    gaps = gaps_of(hosts)
    placed = [
        _set(_set(rows.filter(pa.array(chosen)), "n", places + len(gaps)), "run", np.full(len(places), run))
        for rows, chosen, places in zip(sequences, kept, numbered(times), strict=True)
    ]
    count = len(gaps) + sum(map(len, placed))
    last = max((int(each.max()) for each in times if len(each)), default=0)
    ended = evidence_table([Ended(Instant(last), over_at < FOREVER)], table, schema, run, count)
    parts = [evidence_table(gaps, table, schema, run), *placed, ended]
    return pa.concat_tables(part.cast(schema) for part in parts)


def _is_judged(rows: pa.Table, over_at: int) -> Flags:
    kinds, times = _ints(rows["kind"]), _ints(rows["t"])
    judged: Flags = (times <= over_at) | np.isin(kinds, [int(kind) for kind in _LAST_WORDS])
    return judged


def _needs(table: EventTable[Any], sequences: list[pa.Table]) -> list[Needs]:
    wanting, giving, wanted, given = _BEFORE[table.name]
    givers = [_chosen(rows, (giving,), given) for rows in sequences]
    found = []
    for sequence, rows in enumerate(sequences):
        places, keys = _chosen(rows, wanting, wanted)
        for giver, (there, known) in enumerate(givers):
            if giver != sequence and len(known) and len(keys):
                order = np.argsort(known)
                at = np.minimum(np.searchsorted(known, keys, sorter=order), len(known) - 1)
                is_there = known[order[at]] == keys
                found.append(Needs(sequence, places[is_there], giver, there[order[at[is_there]]]))
    return found


def _chosen(rows: pa.Table, kinds: tuple[RowKind, ...], columns: tuple[str, ...]) -> tuple[Ints, Any]:
    """The places of rows of these kinds, and their keys as values that can be compared."""
    places = np.flatnonzero(np.isin(_ints(rows["kind"]), [int(kind) for kind in kinds]))
    keys = np.stack([_ints(rows[name])[places] for name in columns], 1).astype(np.int64)
    return places, np.ascontiguousarray(keys).view([(f"{place}", np.int64) for place in range(len(columns))]).reshape(
        -1
    )


def _ints(column: pa.ChunkedArray) -> Ints:
    numbers: Ints = pc.fill_null(column, 0).to_numpy().astype(np.int64, copy=False)
    return numbers


def _set(rows: pa.Table, name: str, values: Ints) -> pa.Table:
    return rows.set_column(rows.column_names.index(name), name, pa.array(values, pa.int64()))
