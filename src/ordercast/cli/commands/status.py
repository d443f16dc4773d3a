"""What `ordercast status` takes."""

from __future__ import annotations

from typing import Annotated

from ordercast.cli.commands.options import STATUS_HERE
from ordercast.cli.declare import Argument, Option, command


@command(example="ordercast status 10.0.0.1:4790 --watch")
def status(
    address: Annotated[
        str, Argument("ADDRESS", "Where the node serves its status: HOST, HOST:PORT or :PORT; or the name of a node.")
    ] = STATUS_HERE,
    watch: Annotated[bool, Option("--watch", help="Again every second, until interrupted.")] = False,
    everybody: Annotated[
        bool, Option("--all", help="Every node of the cluster, in one table; each is asked for its own word.")
    ] = False,
    as_json: Annotated[bool, Option("--json", help="Print the JSON document; one per line with --watch.")] = False,
) -> int:
    """Show a running node: who is together, rates, buffers, view changes with their reasons, and what is not well.

    Exit status 1 when the node is in no configuration in which messages flow; with `--all`, when a node does not
    answer, or not all are together.
    """
    from ordercast.cli import status as work

    return work.status(address, watch, everybody, as_json)
