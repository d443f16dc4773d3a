"""What `ordercast check` takes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from ordercast.cli.commands.options import Json
from ordercast.cli.declare import Argument, command


@command(example="ordercast sim --hostile --seed 7 --trace runs; ordercast check runs")
def check(
    folder: Annotated[
        Path,
        Argument("DIR", "Folder of run-*.parquet files, one such file, or folder of live traces."),
    ],
    as_json: Json = False,
) -> int:
    """Judge the recorded traces of all runs in a folder.

    The traces of live nodes in a folder, and in those below it, are judged together as one run.
    What clients and replicas saw is judged with what the daemons did, where it was recorded.
    Shows a verdict per promise, and witnesses for what does not hold.
    Exit status 1 unless every run is VALID.
    """
    from ordercast.cli import check as work

    return work.check(folder, as_json)
