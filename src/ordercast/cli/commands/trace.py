"""What `ordercast trace` takes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from ordercast.cli.commands.options import Json
from ordercast.cli.declare import Argument, Group, Option

trace = Group(
    "trace",
    "Work on the traces of live nodes.",
    example="ordercast trace compact traces --out runs",
)


@trace.command(example="ordercast trace compact traces --out runs")
def compact(
    folder: Annotated[Path, Argument("DIR", "Folder of live traces, of all nodes of a cluster.")],
    out: Annotated[
        Path | None, Option("--out", metavar="DIR", help="Where the run goes; default: the same folder.")
    ] = None,
    as_json: Json = False,
) -> int:
    """Turn the live traces of a cluster into one run-<number>.parquet.

    Tells what is missing of them. The live traces stay; remove them when you have what you want.
    """
    from ordercast.cli import trace as work

    return work.compact(folder, out, as_json)
