"""`ordercast config check`: what is wrong with a configuration file, or what a node would do with it."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ordercast.cli.terminal import complain, output, write_json
from ordercast.daemon.config.file import ConfigError, load_config
from ordercast.daemon.config.plan import Plan, plan_lines, plan_of

STYLES = {"note": "yellow", "fix": "bold yellow"}


def check(file: Path, name: str | None, as_json: bool) -> int:
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
