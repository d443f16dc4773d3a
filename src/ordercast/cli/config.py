"""`ordercast config check`: what is wrong with a configuration file, or what a node would do with it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ordercast.cli.terminal import complain, output, write_json
from ordercast.daemon.config.file import ConfigError, load_config
from ordercast.daemon.config.plan import Plan, plan_lines, plan_of

EXAMPLE = "Example: ordercast config check /etc/ordercast/cluster.toml --name alpha"
STYLES = {"note": "yellow", "fix": "bold yellow"}

app = typer.Typer(help="Look at a configuration file before a node does.", epilog=EXAMPLE, no_args_is_help=True)


@app.callback()
def config() -> None:
    """Look at a configuration file before a node does."""


@app.command(epilog=EXAMPLE)
def check(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A cluster in TOML, the same on every host.")],
    name: Annotated[
        str | None, typer.Option(help="Which of the file's nodes; by default the one that this host is.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> int:
    """Say everything that is wrong with a file, or what the node would do.

    Nothing is opened or written. Exit status 2 when something is wrong.
    """
    try:
        plan = plan_of(load_config(file, name))
    except ConfigError as error:
        if as_json:
            write_json({"valid": False, "problems": list(error.problems), "plan": None})
        else:
            for problem in error.problems:
                complain(problem)
        return 2
    if as_json:
        write_json({"valid": True, "problems": [], "plan": plan.document()})
    else:
        _draw(output(), file, plan)
    return 0


def _draw(console: Console, file: Path, plan: Plan) -> None:
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for title, text in plan_lines(plan):
        table.add_row(Text(title, "bold"), Text(text, STYLES.get(title, "")))
    console.print(Text(f"{file} is sound. {plan.name} would do this:", style="green"), soft_wrap=True)
    console.print(table)
