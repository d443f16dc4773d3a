"""What `ordercast trace` takes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from ordercast.cli.commands.options import Json
from ordercast.cli.declare import Argument, Group, Option

trace = Group(
    "trace",
    "Look at traces, and work on those of live nodes.",
    example="ordercast trace show runs/run-7.parquet --message n0/0#1",
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


@trace.command(example="ordercast trace show runs/run-7.parquet --message n0/0#1 --around 20ms")
def show(
    run: Annotated[Path, Argument("RUN", "A run-….parquet, or a folder of live traces.")],
    message: Annotated[
        str | None, Option("--message", metavar="M", help="What became of this message, named as witnesses do: n0/0#1.")
    ] = None,
    around: Annotated[
        str | None, Option("--around", metavar="TIME", help="With --message: how much before and after it (20ms).")
    ] = None,
    as_json: Json = False,
) -> int:
    """Show the timeline of a run, or a picture in space and time of one message.

    In the picture time goes down and each process has a column: ● sent, ▼ delivered, ◆ a view, ◇ a transitional one.
    """
    from ordercast.cli import trace_show as work

    return work.show(run, message, around, as_json)
