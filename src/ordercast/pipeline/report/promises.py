"""The verdicts on all promises, counted over the runs: a table, and the section of the page that shows it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import pyarrow as pa

from ordercast.checker import Outcome, Verdict
from ordercast.pipeline.page.html import Block, PageTable, Section, Text
from ordercast.pipeline.report.tables import Tables

SCHEMA = pa.schema(
    [("promise", pa.string()), ("outcome", pa.string()), ("runs", pa.int64()), ("sentence", pa.string())]
)
_SHOWN = (Outcome.VALID, Outcome.NOT_EXERCISED, Outcome.NOT_PROMISED, Outcome.UNKNOWN, Outcome.INVALID)
_HEADS = ("kept", "not exercised", "not promised", "unknown", "broken")


def promises_table(runs: Iterable[Sequence[Verdict]]) -> pa.Table:
    """One row per promise and outcome, with the sentence of the first such verdict."""
    counts, sentences = Counter[tuple[str, str]](), dict[tuple[str, str], str]()
    for verdict in (verdict for verdicts in runs for verdict in verdicts):
        if verdict.promise is not None:
            key = verdict.promise.value, verdict.outcome.value
            counts[key] += 1
            sentences.setdefault(key, verdict.sentence)
    rows = [
        {"promise": promise, "outcome": outcome, "runs": count, "sentence": sentences[promise, outcome]}
        for (promise, outcome), count in counts.items()
    ]
    return pa.Table.from_pylist(rows, schema=SCHEMA)


def promise_section(tables: Tables) -> Section:
    counts: dict[str, dict[str, int]] = {}
    wrong: dict[str, str] = {}
    for row in tables.promises.to_pylist():
        counts.setdefault(row["promise"], {})[row["outcome"]] = row["runs"]
        if row["outcome"] in (Outcome.INVALID.value, Outcome.UNKNOWN.value):
            wrong.setdefault(row["promise"], row["sentence"])
    rows = [
        [promise, *(str(found.get(outcome.value, 0) or "") for outcome in _SHOWN), wrong.get(promise, "")]
        for promise, found in counts.items()
    ]
    text = Text("In how many runs each promise was kept, as ordercast verify judges it.")
    blocks: list[Block] = [text, PageTable(("promise", *_HEADS, "why"), rows, left=("promise", "why"), wide=("why",))]
    return Section("Promises", blocks)
