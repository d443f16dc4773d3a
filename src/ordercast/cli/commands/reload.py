"""What `ordercast reload` takes."""

from __future__ import annotations

from ordercast.cli.commands.options import At, Json
from ordercast.cli.declare import command


@command(example="ordercast reload --at alpha")
def reload(
    at: At = None,
    as_json: Json = False,
) -> int:
    """Have a daemon take the node list, the rights and the certificates of its file, as SIGHUP does.

    Other changes need a restart. Nothing changes when the file is wrong, or its list is older than the daemon's.
    """
    from ordercast.cli import reload as work

    return work.reload(at, as_json)
