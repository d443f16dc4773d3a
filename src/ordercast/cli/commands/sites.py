"""What `ordercast sites` takes."""

from __future__ import annotations

from typing import Annotated

from ordercast.cli.commands.options import STATUS_HERE, Json, Place
from ordercast.cli.declare import Group, Option

sites = Group(
    "sites",
    """Several sites: who is in the view, the links between them, what delivery waits for.

    `ordercast sites ADDRESS` is short for `ordercast sites show ADDRESS`.
    """,
    example="ordercast sites :4791",
    short="show",
    bare=True,
)


@sites.command(example="ordercast sites :4791")
def show(
    address: Place = STATUS_HERE,
    source: Annotated[
        str | None, Option("--source", metavar="SITE", help="Show how what this site sends spreads, too.")
    ] = None,
    as_json: Json = False,
) -> int:
    """Show the sites of the view, their members and representatives, and the links of this daemon.

    Links are those of the daemon that speaks for its site. Exit status 1 when messages do not flow there.
    """
    from ordercast.cli import sites as work

    return work.show(address, source, as_json)


@sites.command(example="ordercast sites explain 10.0.0.1:4790")
def explain(address: Place = STATUS_HERE, as_json: Json = False) -> int:
    """Say in sentences what a message waits for now, which sites and links are missing, and what to do about it."""
    from ordercast.cli import sites as work

    return work.explain(address, as_json)
