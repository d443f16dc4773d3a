"""What `ordercast report` takes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from ordercast.cli.commands.options import Json
from ordercast.cli.declare import Argument, Option, command


@command(example="ordercast sim --fault '0.3s crash n1' --trace runs; ordercast report runs --out report")
def report(
    path: Annotated[
        Path,
        Argument("PATH", "Folder of run-*.parquet files, one such file, or folder of live traces."),
    ],
    out: Annotated[Path, Option("--out", metavar="DIR", help="Where page and tables go.")] = Path("report"),
    master: Annotated[
        str | None, Option("--master", metavar="URL", help="Spark master (default: all cores of this machine).")
    ] = None,
    as_json: Json = False,
) -> int:
    """Latency, throughput, view changes, and what the engine has of its own, of recorded traces.

    Writes one HTML page, which needs no network, and the numbers in it as Parquet tables.
    """
    from ordercast.cli import report as work

    return work.report(path, out, master, as_json)
