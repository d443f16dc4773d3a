"""What `ordercast engines` takes."""

from __future__ import annotations

from ordercast.cli.commands.options import Json
from ordercast.cli.declare import command


@command(example="ordercast engines")
def engines(
    as_json: Json = False,
) -> int:
    """Show the engines that order messages, and when to choose which.

    All nodes of a cluster run the same one: write `engine = "NAME"` at the top of the cluster's file.
    The last line says which kernel reads and builds packets here, pure or compiled (`ordercast[fast]`).
    """
    from ordercast.cli import engines as work

    return work.engines(as_json)
