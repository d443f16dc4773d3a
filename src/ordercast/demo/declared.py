"""What `ordercast demo` takes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from ordercast.cli.declare import Option, command


@command(example="ordercast demo --keep demo")
def demo(
    keep: Annotated[
        Path | None,
        Option(metavar="DIR", help="Keep traces and result in this new folder; Spark judges and draws them."),
    ] = None,
    as_json: Annotated[bool, Option("--json", help="Print one JSON document instead.")] = False,
) -> int:
    """Watch a real cluster on this machine: three daemons with clients in groups and a replicated dictionary.

    One daemon is killed with kill -9, one is cut off and healed, one joins late. Then checkers judge everything that
    was recorded. It takes about half a minute, needs no configuration and no root, and leaves nothing behind but
    what --keep asks for. Exit status 1 unless all is VALID.
    """
    from ordercast.demo import command as work

    return work.demo(keep, as_json)
