"""The demo's traces on Spark: judged as `ordercast verify` does, and drawn as `ordercast report` does."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ordercast.checker import Outcome, Verdict, combined
from ordercast.pipeline.spark_session import missing_for_spark, open_session


@dataclass(frozen=True, slots=True)
class OnSpark:
    verdicts: Sequence[Verdict]
    events: int
    seconds: float
    page: Path

    @property
    def outcome(self) -> Outcome:
        return combined(self.verdicts).outcome


def judge_on_spark(traces: Path, out: Path, told: Callable[[str], None]) -> OnSpark | str:
    """Verdicts, and a page in the folder `out`; or one sentence that says why there is no Spark here."""
    begun = time.monotonic()
    if (missing := missing_for_spark()) is not None:
        return missing
    from ordercast.pipeline.report import SMALL_OPTIONS, report
    from ordercast.pipeline.verify.job import found_in, verify

    told("Spark starts …")
    with open_session("demo", options=SMALL_OPTIONS) as session:
        told("Spark judges the daemons' traces …")
        (run,) = verify(session, found_in([traces]))
        made = report(traces, out, told=lambda done, what: told(f"Spark makes the report: {what} …"))
    return OnSpark(run.verdicts, run.events, time.monotonic() - begun, made.page)
