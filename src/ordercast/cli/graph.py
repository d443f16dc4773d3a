"""`ordercast graph`: propagation graphs. The one that a cluster uses, which one suits which groups, and what the thesis
says of them."""

from __future__ import annotations

from pathlib import Path

from rich.text import Text

from ordercast.cli.graph_plan import PlannedGraphs, groups_from, plan_lines
from ordercast.cli.quantities import seeds_from
from ordercast.cli.terminal import output, write_json
from ordercast.order.tree.builders import BUILDERS


def plan(file: Path, builders: list[str] | None, forest: str | None, bypass: bool, as_json: bool) -> int:
    planned = PlannedGraphs(groups_from(file), builders or list(BUILDERS), forest, with_bypass=bypass)
    if as_json:
        write_json(planned.document())
        return 0
    console = output()
    for part in plan_lines(planned):
        console.print(part, soft_wrap=isinstance(part, Text))
    return 0


def study(runs: int, out: Path | None, as_json: bool) -> int:
    from ordercast.cli.graph_study import studied

    return studied(runs, out, as_json=as_json)


def laboratory(seeds: str, as_json: bool) -> int:
    from ordercast.cli.graph_laboratory import examined

    return examined(seeds_from(seeds), as_json=as_json)
