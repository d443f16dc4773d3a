"""`ordercast config check`: what is wrong with a configuration file, or what a node would do with it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ordercast.cli.terminal import complain, output, write_json
from ordercast.daemon.config.file import ConfigError, load_config
from ordercast.daemon.config.node import NodeConfig
from ordercast.daemon.config.plan import Plan, plan_lines, plan_of
from ordercast.daemon.key_file import keys_of_node
from ordercast.daemon.status.guard import guard_of
from ordercast.model.errors import UsageError

STYLES = {"note": "yellow", "fix": "bold yellow"}


def check(file: Path, name: str | None, as_json: bool) -> int:
    here: list[str] = []
    is_partial = False
    try:
        config = load_config(file, name)
        everywhere, here = refusals(config)
        problems = [f"{file}: {why}" for why in everywhere]
    except ConfigError as error:
        problems, is_partial = list(error.problems), error.is_partial
    if problems:
        if as_json:
            write_json({"valid": False, "problems": problems, "plan": None})
        else:
            for problem in problems:
                complain(problem)
            if is_partial:
                complain("what has to fit together was not judged yet: check again when this is mended")
        return 2
    plan = plan_of(config)
    plan = replace(plan, remarks=(*here, *plan.remarks))
    if as_json:
        write_json({"valid": True, "problems": [], "plan": plan.document()})
    else:
        _draw(output(), file, plan)
    return 0


@dataclass(frozen=True, slots=True)
class _Guarded:
    """Something that other hosts may reach, by what it is protected, and who refuses to start without."""

    file: Path | None
    judge: Callable[[NodeConfig], object]

    def refusal(self, config: NodeConfig) -> str | None:
        try:
            self.judge(config)
        except UsageError as error:
            return str(error)
        return None


def _guarded(config: NodeConfig) -> Iterator[_Guarded]:
    if config.security.key is not None or not config.is_on_one_machine:  # otherwise the user's own key is made
        yield _Guarded(config.security.key, keys_of_node)
    yield _Guarded(config.status.token, guard_of)
    if config.clients.port is not None:
        from ordercast.daemon.clients.certificates import certificates_of  # brings `cryptography`

        yield _Guarded(config.clients.certificates, certificates_of)


def refusals(config: NodeConfig) -> tuple[list[str], list[str]]:
    """Return why no daemon would start with this file, and why none would start on this host: a file that is named may
    well be on others."""
    found = [(one.file, why) for one in _guarded(config) if (why := one.refusal(config)) is not None]
    here = [f"a daemon would not start on this host: {why}" for file, why in found if file is not None]
    return [why for file, why in found if file is None], here


def _draw(console: Console, file: Path, plan: Plan) -> None:
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for title, text in plan_lines(plan):
        table.add_row(Text(title, "bold"), Text(text, STYLES.get(title, "")))
    console.print(Text(f"{file} is sound. {plan.name} would do this:", style="green"), soft_wrap=True)
    console.print(table)
