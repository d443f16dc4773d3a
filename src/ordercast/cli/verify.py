"""`ordercast verify`: judges recorded traces of any size and number, on Spark."""

from __future__ import annotations

from pathlib import Path

from ordercast.cli.check import Judged, draw_judged, judged_document
from ordercast.cli.spark_options import conf_from
from ordercast.cli.terminal import Meter, output, write_json
from ordercast.model.errors import UsageError
from ordercast.pipeline.spark_session import missing_for_spark, open_session


def verify(paths: list[Path], master: str | None, conf: list[str] | None, as_json: bool) -> int:
    problem = missing_for_spark()
    if problem is not None:
        raise UsageError(problem)
    from ordercast.pipeline.verify.job import found_in
    from ordercast.pipeline.verify.job import verify as run_job

    options, traces = conf_from(conf), found_in(paths)
    with open_session("verify", master, options) as session, Meter("verifying", 100) as meter:

        def show(done: int, total: int) -> None:
            meter.show(100 * done // max(total, 1), f"{done:,} of {total:,} tasks")

        found = run_job(session, traces, show)
    judged = [
        Judged(
            Path(run.path),
            run.info,
            run.events,
            run.deliveries,
            run.verdicts,
            run.client_events,
            run.replica_events,
        )
        for run in found
    ]
    if as_json:
        write_json(judged_document(judged))
    else:
        draw_judged(output(), judged)
    return 0 if all(run.is_valid for run in judged) else 1
