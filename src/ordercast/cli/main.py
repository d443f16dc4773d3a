"""The `ordercast` command: puts the commands together and turns errors into one sentence and an exit status.

0 all is well; 1 something is not VALID; 2 the command cannot do what was asked; 130 interrupted.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from ordercast import __version__
from ordercast.cli import check, config, daemon, demo, sim, status, swarm, trace
from ordercast.cli.terminal import complain
from ordercast.model.errors import UsageError

INTERRUPTED = 130

# What the library under typer raises for a wrong command line. Its package has changed names over the versions, the
# position of the common base above `BadParameter` has not.
_CommandLineError: type[Any] = typer.BadParameter.__mro__[2]

app = typer.Typer(
    name="ordercast",
    help="Group communication in which everybody delivers the same messages in the same order.",
    epilog="Example: ordercast demo",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command(epilog=sim.EXAMPLE)(sim.sim)
app.command("swarm", epilog=swarm.EXAMPLE)(swarm.swarm_command)
app.command(epilog=check.EXAMPLE)(check.check)
app.add_typer(trace.app)
app.command(epilog=demo.EXAMPLE)(demo.demo)
app.command(epilog=daemon.EXAMPLE)(daemon.daemon)
app.command(epilog=status.EXAMPLE)(status.status)
app.add_typer(config.app, name="config")


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"ordercast {__version__}")
        raise typer.Exit


@app.callback()
def ordercast(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Group communication in which everybody delivers the same messages in the same order."""


def run(arguments: Sequence[str]) -> int:
    """One command; returns the exit status."""
    try:
        status = app(args=list(arguments) or ["--help"], prog_name="ordercast", standalone_mode=False)
    except UsageError as error:
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
