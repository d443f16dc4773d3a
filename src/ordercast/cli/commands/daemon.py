"""What `ordercast daemon` takes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from ordercast.cli.commands.options import OtherEngine
from ordercast.cli.declare import Option, command
from ordercast.daemon.config.defaults import LOCAL_PORT_MAX, PORT, TraceLevel


@command(example="ordercast daemon --config /etc/ordercast/cluster.toml")
def daemon(
    config: Annotated[
        Path | None, Option(metavar="FILE", help="The cluster in TOML; without it, the nodes of this machine.")
    ] = None,
    name: Annotated[str | None, Option(help="Which of the file's nodes; by default the one that this host is.")] = None,
    status_port: Annotated[
        int | None,
        Option(min=0, max=65535, help="Of status and metrics over HTTP, instead of the file's; 0: none."),
    ] = None,
    clients_port: Annotated[
        int | None,
        Option(min=0, max=65535, help="Serve clients over TCP, too, instead of the file's port; 0: do not."),
    ] = None,
    port: Annotated[
        int | None,
        Option(min=1, max=LOCAL_PORT_MAX, help=f"Without a file: of the machine's nodes, {PORT} by default."),
    ] = None,
    key: Annotated[
        Path | None, Option(metavar="FILE", help="Seal packets with this key file, instead of the usual one.")
    ] = None,
    engine: OtherEngine = None,
    log: Annotated[Literal["text", "json"], Option(help="Lines for people, or JSON lines, on stderr.")] = "text",
    trace: Annotated[
        Path | None, Option(metavar="DIR", help="Write a trace into this folder, instead of the file's.")
    ] = None,
    trace_level: Annotated[
        TraceLevel | None,
        Option(help="What is traced: nothing, views and alarms, or every message; control when --trace is given."),
    ] = None,
    until_eof: Annotated[
        bool, Option("--until-eof", help="Leave also when stdin ends: for programs that start a daemon.")
    ] = False,
) -> int:
    """Run a node until SIGTERM or SIGINT, then leave in order. It serves clients meanwhile.

    Without --config it finds the other nodes on this machine by itself.
    """
    from ordercast.cli import daemon as work

    return work.daemon(
        config=config,
        name=name,
        status_port=status_port,
        clients_port=clients_port,
        port=port,
        key=key,
        engine=engine,
        log=log,
        trace=trace,
        trace_level=trace_level,
        until_eof=until_eof,
    )
