"""What `ordercast verify` takes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from ordercast.cli.commands.options import Conf, Json, Master
from ordercast.cli.declare import Argument, command


@command(example="ordercast verify runs --master 'local[4]'")
def verify(
    paths: Annotated[
        list[Path],
        Argument("PATH", "Folders of run-*.parquet files, such files, or folders of live traces."),
    ],
    master: Master = None,
    conf: Conf = None,
    as_json: Json = False,
) -> int:
    """Judge recorded traces as `check` does, on Spark: many runs at once, or one of any length.

    Gives the same verdicts, with witnesses; a run that cannot be read is UNKNOWN and the others are judged.
    Exit status 1 unless every run is VALID.
    """
    from ordercast.cli import verify as work

    return work.verify(paths, master, conf, as_json)
