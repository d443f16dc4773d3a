"""What `ordercast up` takes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from ordercast.cli.commands.options import EngineName
from ordercast.cli.declare import Option, command
from ordercast.daemon.config.defaults import LOCAL_NODES_MAX, LOCAL_PORT_MAX, PORT


@command(example="ordercast up -n 5")
def up(
    count: Annotated[
        int | None,
        Option(
            "--nodes",
            "-n",
            min=1,
            max=LOCAL_NODES_MAX,
            metavar="N",
            help="How many daemons; with --rings or --sites, for each ring or site [default: 3, or 2 for each].",
        ),
    ] = None,
    rings: Annotated[
        int | None,
        Option(
            "--rings", min=1, max=LOCAL_NODES_MAX, metavar="R", help="So many rings, joined by gateways in a circle."
        ),
    ] = None,
    sites: Annotated[
        str | None,
        Option("--sites", metavar="SITES", help="Several sites, joined by links: their number, or east=2,west=2."),
    ] = None,
    delay: Annotated[
        str | None, Option(metavar="TIME", help="With --sites: how long a packet takes from one to another.")
    ] = None,
    tcp: Annotated[
        int | None,
        Option(
            min=1, max=65535 - LOCAL_NODES_MAX, metavar="PORT", help="Serve clients over TCP, too, from this port on."
        ),
    ] = None,
    key: Annotated[
        Path | None, Option(metavar="FILE", help="Seal packets with this key file, instead of the usual one.")
    ] = None,
    engine: EngineName = None,
    trace: Annotated[
        Path | None, Option(metavar="DIR", help="Write traces of everything, for `ordercast check`.")
    ] = None,
    port: Annotated[
        int,
        Option(
            min=1,
            max=LOCAL_PORT_MAX,
            metavar="PORT",
            help="Of the daemons among themselves; another one is another cluster.",
        ),
    ] = PORT,
    as_json: Annotated[
        bool, Option("--json", help="Print what runs as one JSON document, and the log as usual.")
    ] = False,
) -> int:
    """Run a cluster on this machine: daemons that need no configuration and find each other.

    Ctrl-C ends them in order, a second one at once. Their log is on stderr, one line each, with the daemon's name.
    Exit status 1 when a daemon could not start, or ended before it was told to. With --rings the daemons are on several
    rings, with one order over all of them; the last daemon of each ring joins it with the next. With --sites they are
    in several places that links join, as far apart as --delay says.
    """
    from ordercast.cli import up as work

    return work.up(
        count=count,
        rings=rings,
        sites=sites,
        delay=delay,
        tcp=tcp,
        key=key,
        engine=engine,
        trace=trace,
        port=port,
        as_json=as_json,
    )
