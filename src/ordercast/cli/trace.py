"""`ordercast trace`: what can be done with the traces of live nodes beside judging them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from ordercast.cli.terminal import output, write_json
from ordercast.trace.folder import compact as compacted
from ordercast.trace.folder import read_live

EXAMPLE = "Example: ordercast trace compact traces --out runs"

app = typer.Typer(name="trace", help="Work on the traces of live nodes.", epilog=EXAMPLE)


@app.callback()
def trace() -> None:
    """Work on the traces of live nodes."""


@app.command(epilog=EXAMPLE)
def compact(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of live traces, of all nodes of a cluster.")],
    out: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="Where the run goes; default: the same folder.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> int:
    """Turn the live traces of a cluster into one run-<number>.parquet.

    Tells what is missing of them. The live traces stay; remove them when you have what you want.
    """
    run = read_live(folder)
    gaps = run.gaps()
    path = compacted(run, out or folder)
    if as_json:
        write_json({"path": str(path), "size": path.stat().st_size, "missing": gaps})
        return 0
    console = output()
    for gap in gaps:
        console.print(Text(f"missing  {gap}"), soft_wrap=True)
    console.print(Text(f"written  {path} ({path.stat().st_size:,} bytes)"), soft_wrap=True)
    return 0
