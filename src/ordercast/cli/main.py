"""The `ordercast` command: puts the commands together and turns errors into one sentence and an exit status.

0 all is well; 1 something is not VALID; 2 the command cannot do what was asked; 130 interrupted.

Only the module of the command that is run is imported: whoever sends a line should not wait for the simulator.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import Annotated, Any

import typer

from ordercast import __version__
from ordercast.cli.terminal import INTERRUPTED, complain
from ordercast.model.errors import ConnectionLost, Unreachable, UsageError

CLUSTER, CLIENT, SIMULATION = "A cluster", "Its clients", "Simulations and verdicts"
# By the command's name: its module, and the function in it, or `app` for one with commands below it.
COMMANDS = {
    "demo": ("demo.command", "demo", CLUSTER),
    "up": ("cli.up", "up", CLUSTER),
    "daemon": ("cli.daemon", "daemon", CLUSTER),
    "status": ("cli.status", "status", CLUSTER),
    "cluster": ("cli.cluster", "app", CLUSTER),
    "reload": ("cli.reload", "reload", CLUSTER),
    "key": ("cli.key", "app", CLUSTER),
    "config": ("cli.config", "app", CLUSTER),
    "networks": ("cli.networks", "app", CLUSTER),
    "topology": ("cli.topology", "app", CLUSTER),
    "sites": ("cli.sites", "app", CLUSTER),
    "graph": ("cli.graph", "app", CLUSTER),
    "engines": ("cli.engines", "engines", CLUSTER),
    "chat": ("cli.chat", "chat", CLIENT),
    "send": ("cli.send", "send", CLIENT),
    "listen": ("cli.listen", "listen", CLIENT),
    "groups": ("cli.groups", "groups", CLIENT),
    "archive": ("cli.archive", "app", CLIENT),
    "sim": ("cli.sim", "sim", SIMULATION),
    "swarm": ("cli.swarm", "swarm_command", SIMULATION),
    "check": ("cli.check", "check", SIMULATION),
    "verify": ("cli.verify", "verify", SIMULATION),
    "trace": ("cli.trace", "app", SIMULATION),
    "report": ("cli.report", "report", SIMULATION),
    "campaign": ("cli.campaign", "campaign", SIMULATION),
}

# What the library under typer raises for a wrong command line. Its package has changed names over the versions, the
# position of the common base above `BadParameter` has not.
_CommandLineError: type[Any] = typer.BadParameter.__mro__[2]


def _app(commands: Iterable[str]) -> typer.Typer:
    app = typer.Typer(
        name="ordercast",
        help="Group communication in which everybody delivers the same messages in the same order.",
        epilog="Example: ordercast up",
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(ordercast)
    for name in commands:
        path, function, panel = COMMANDS[name]
        module = import_module(f"ordercast.{path}")
        if function == "app":
            app.add_typer(module.app, name=name, rich_help_panel=panel)
        else:
            app.command(name, epilog=module.EXAMPLE, rich_help_panel=panel)(getattr(module, function))
    return app


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"ordercast {__version__}")
        raise typer.Exit


def ordercast(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Group communication in which everybody delivers the same messages in the same order."""


def run(arguments: Sequence[str]) -> int:
    """One command; returns the exit status."""
    wanted = list(arguments) or ["--help"]
    try:
        app = _app([name for name in COMMANDS if name == wanted[0]] or ([] if wanted == ["--version"] else COMMANDS))
        status = app(args=wanted, prog_name="ordercast", standalone_mode=False)
    except (UsageError, Unreachable, ConnectionLost) as error:
        complain(str(error))
        return 2
    except _CommandLineError as error:
        command = error.ctx.command_path if getattr(error, "ctx", None) else "ordercast"
        complain(f"{error.format_message().rstrip('.')} (see '{command} --help')")
        return 2
    except (KeyboardInterrupt, typer.Abort):
        status = INTERRUPTED
    if status == INTERRUPTED:
        complain("interrupted")
    return int(status or 0)


def main() -> None:
    """The console entry point."""
    try:
        status = run(sys.argv[1:])
        sys.stdout.flush()
    except BrokenPipeError:  # the reader, such as head, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = 1
    sys.exit(status)


if __name__ == "__main__":
    main()
