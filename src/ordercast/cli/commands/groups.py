"""What `ordercast groups` takes."""

from __future__ import annotations

from typing import Annotated

from ordercast.cli.commands.options import At, Json
from ordercast.cli.declare import Argument, Option, command


@command(example="ordercast groups orders")
def groups(
    group: Annotated[str | None, Argument("GROUP", "Whose members are shown; without it, all groups.")] = None,
    at: At = None,
    show_all: Annotated[
        bool, Option("--all", help="Also those in which replicas and archivers meet: names with $.")
    ] = False,
    as_json: Json = False,
) -> int:
    """Show the groups of the cluster, or the members of one. A group exists as long as somebody is in it."""
    from ordercast.cli import groups as work

    return work.groups(group, at, show_all, as_json)
