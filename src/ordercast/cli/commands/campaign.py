"""What `ordercast campaign` takes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from ordercast.cli.commands.options import Json, OtherEngine
from ordercast.cli.declare import Argument, Option, command


@command(example="ordercast campaign campaigns/rotation.toml --out rotation")
def campaign(
    file: Annotated[Path, Argument("FILE", "TOML file that says what to run.")],
    out: Annotated[
        Path | None, Option("--out", metavar="DIR", help="Where results go (default: campaign-NAME).")
    ] = None,
    seeds: Annotated[str | None, Option(metavar="A..B", help="These seeds instead of the file's.")] = None,
    engine: OtherEngine = None,
    rerun_failed: Annotated[bool, Option("--rerun-failed", help="Run again what is there and not VALID.")] = False,
    master: Annotated[
        str | None, Option("--master", metavar="URL", help="Spark master (default: all cores of this machine).")
    ] = None,
    as_json: Json = False,
) -> int:
    """Run the simulations of a campaign on Spark; what is done already is not run again.

    Writes a row per run as Parquet, and one HTML page. Failing seeds are listed with the command that replays each.
    Exit status 1 when any run is not VALID.
    """
    from ordercast.cli import campaign as work

    return work.campaign(
        file=file,
        out=out,
        seeds=seeds,
        engine=engine,
        rerun_failed=rerun_failed,
        master=master,
        as_json=as_json,
    )
