"""`ordercast up`: a cluster on this machine, until Ctrl-C."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from ordercast.cli.daemon import PORT_MAX
from ordercast.cli.daemons import Cluster, Daemon
from ordercast.cli.engine_option import EngineName
from ordercast.cli.event_text import counted, listed, verb
from ordercast.cli.log_lines import LogStream
from ordercast.cli.terminal import note, output, write_json
from ordercast.daemon.config.node import LOCAL_NODES_MAX, PORT
from ordercast.model.errors import UsageError
from ordercast.order.catalogue import DEFAULT, live_entry_of

EXAMPLE = "Example: ordercast up -n 5"


def up(
    count: Annotated[
        int, typer.Option("--nodes", "-n", min=1, max=LOCAL_NODES_MAX, metavar="N", help="How many daemons.")
    ] = 3,
    tcp: Annotated[
        int | None,
        typer.Option(
            min=1, max=65535 - LOCAL_NODES_MAX, metavar="PORT", help="Serve clients over TCP, too, from this port on."
        ),
    ] = None,
    engine: EngineName = DEFAULT,
    trace: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Write traces of everything, for `ordercast check`.")
    ] = None,
    port: Annotated[
        int,
        typer.Option(
            min=1, max=PORT_MAX, metavar="PORT", help="Of the daemons among themselves; another one is another cluster."
        ),
    ] = PORT,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print what runs as one JSON document, and the log as usual.")
    ] = False,
) -> int:
    """Run a cluster on this machine: daemons that need no configuration and find each other.

    Ctrl-C ends them in order, a second one at once. Their log is on stderr, one line each, with the daemon's name.
    Exit status 1 when a daemon could not start, or ended before it was told to.
    """
    if trace is not None and trace.exists() and any(trace.iterdir()):
        raise UsageError(f"{trace} is not empty: give --trace a new folder, so that it holds one run")
    live_entry_of(engine)
    note(f"starting {counted(count, 'daemon')} …")
    daemons = [_arguments(number, tcp, trace, port, engine) for number in range(count)]
    banner = _print_json if as_json else lambda daemons: _print_banner(output(), daemons)
    log = LogStream(Console(stderr=True, highlight=False, emoji=False))
    cluster = Cluster(log, banner)
    if trace is None:
        return asyncio.run(cluster.run(daemons, one_by_one=tcp is not None))  # so that n1 has the first port
    return _run_traced(cluster, daemons, tcp is not None, trace)


def _run_traced(cluster: Cluster, daemons: list[list[str]], one_by_one: bool, folder: Path) -> int:
    """Adds to the trace what only we know: who was killed, and that nobody runs any more, nor is owed anything."""
    from ordercast.trace.cluster import append_cluster_event  # slow to load, and seldom needed

    cluster.on_killed = lambda daemon: append_cluster_event(folder, "crashed", process=daemon.name)
    status = asyncio.run(cluster.run(daemons, one_by_one=one_by_one))
    append_cluster_event(folder, "healed", alive=[])
    append_cluster_event(folder, "ended")
    cluster.log.say(f"what happened is in {folder}: ordercast check {folder}")
    return status


def _arguments(number: int, tcp: int | None, trace: Path | None, port: int, engine: str) -> list[str]:
    arguments: list[str] = []
    if port != PORT:
        arguments += ["--port", str(port)]
    if engine != DEFAULT:
        arguments += ["--engine", engine]
    if tcp is not None:
        arguments += ["--clients-port", str(tcp + number)]
    if trace is not None:
        arguments += ["--trace", str(trace), "--trace-level", "full"]
    return arguments


def _print_json(daemons: list[Daemon]) -> None:
    documents = [
        {"name": daemon.name, "pid": daemon.process.pid, "clients": daemon.clients, "status": daemon.status}
        for daemon in daemons
    ]
    write_json({"daemons": documents})
    sys.stdout.flush()


def _print_banner(console: Console, daemons: list[Daemon]) -> None:
    """What runs, where clients connect, what to type next."""
    names = [daemon.name for daemon in daemons]
    strangers = sorted(frozenset[str]().union(*(daemon.members for daemon in daemons)).difference(names))
    title = f"{counted(len(names), 'daemon')} {verb(names, 'runs', 'run')} on this machine: {listed(names)}"
    if strangers:
        title += f", together with {listed(strangers)}"
    console.print(Text(title, "bold green"), soft_wrap=True)
    width = max(map(len, names))
    for daemon in daemons:
        line = Text.assemble((f"  {daemon.name:{width}}", "bold"), f"  clients at {' and '.join(daemon.clients)}")
        console.print(line.append(f"  (process {daemon.process.pid})", "dim"), soft_wrap=True)
    console.print(Text("\nType this in other terminals:", "bold"))
    hints = _hints(daemons)
    width = max(len(command) for command, _ in hints)
    for command, meaning in hints:
        console.print(Text.assemble((f"  {command:{width}}", "cyan"), f"   {meaning}"), soft_wrap=True)
    console.print(Text("\nCtrl-C ends the cluster. Its log follows.\n"))
    console.file.flush()


def _hints(daemons: list[Daemon]) -> list[tuple[str, str]]:
    first, last = daemons[0], daemons[-1]
    hints = [
        (f"ordercast chat --at {first.name}", "talk to everybody who does the same, at any daemon"),
        ("ordercast listen news", "see what is sent to a group, and who is in it"),
        ("ordercast send news hello", "send something to it"),
        ("ordercast groups", "which groups there are"),
    ]
    if last is not first:
        hints.append((f"kill -9 {last.process.pid}", f"crash {last.name}, and see what the others say"))
    return hints
