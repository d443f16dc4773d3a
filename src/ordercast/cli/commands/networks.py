"""What `ordercast networks` takes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from ordercast.cli.commands.options import Json
from ordercast.cli.declare import Argument, Group

networks = Group(
    "networks",
    "Redundant networks.",
    example="ordercast networks explain /var/lib/ordercast/traces",
)


@networks.command(example="ordercast networks explain /var/lib/ordercast/traces")
def explain(
    folder: Annotated[Path, Argument("DIR", "Folder of live traces of all nodes (level control), or of runs.")],
    as_json: Json = False,
) -> int:
    """Tell what broke, from what all members reported of their networks, in order.

    The first report of a fault is where it was seen; those that follow another member's word are echoes of it.
    A little later each member says whom it does not hear on that network, which tells send faults, receive faults,
    dead networks and partial faults apart.
    """
    from ordercast.cli import networks as work

    return work.explain(folder, as_json)
