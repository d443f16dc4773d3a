"""What `ordercast clients` takes."""

from __future__ import annotations

from ordercast.cli.commands.options import At, Json
from ordercast.cli.declare import command


@command(example="ordercast clients --at n1")
def clients(at: At = None, as_json: Json = False) -> int:
    """Show the clients of a daemon: who, from where, what waits for each, how much it sends and gets.

    Rates are those of one second, which is how long it takes. Clients that read too slowly come first.
    """
    from ordercast.cli import clients as work

    return work.clients(at, as_json)
