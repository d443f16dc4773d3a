"""`ordercast graph`: propagation graphs. The one that a cluster uses, which one suits which groups, and what the thesis
says of them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from ordercast.cli.engine_section import HERE, Place
from ordercast.cli.graph_plan import PlannedGraphs, groups_from, plan_lines
from ordercast.cli.quantities import seeds_from
from ordercast.cli.terminal import output, write_json
from ordercast.order.tree.builders import BUILDERS

EXAMPLE = "Example: ordercast graph show :4791"
EXPLAIN = "Example: ordercast graph explain 10.0.0.1:4790"
PLAN = "Example: ordercast graph plan groups.txt --forest auto"
LABORATORY = "Example: ordercast graph laboratory --seeds 0..20"
STUDY = "Example: ordercast graph study --out graphs"

Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]

app = typer.Typer(help="Propagation graphs: over which hosts messages of groups travel.", epilog=EXAMPLE)


@app.callback()
def graph() -> None:
    """Propagation graphs: over which hosts messages of groups travel."""


@app.command(epilog=EXAMPLE)
def show(address: Place = HERE, as_json: Json = False) -> int:
    """Draw the forest of a running cluster, and what of it belongs to the daemon that is asked.

    Every daemon knows the whole forest. Exit status 1 when messages do not flow there.
    """
    from ordercast.cli.graph_show import shown

    return shown(address, as_json=as_json)


@app.command(epilog=EXPLAIN)
def explain(address: Place = HERE, as_json: Json = False) -> int:
    """Say in sentences where a daemon stands in the forest, what messages wait for, and why the forest changed."""
    from ordercast.cli.graph_show import told

    return told(address, as_json=as_json)


@app.command(epilog=PLAN)
def plan(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="Groups and their hosts: a line `orders: a b c` each, or JSON.")
    ],
    builders: Annotated[
        list[str] | None, typer.Option("--builder", metavar="NAME", help=f"Only this one of {', '.join(BUILDERS)}.")
    ] = None,
    forest: Annotated[str | None, typer.Option(metavar="NAME", help="Draw the forest of this builder.")] = None,
    bypass: Annotated[
        bool, typer.Option("--bypass", help="Say what edges past extra hosts would save, and simulate what they cost.")
    ] = False,
    as_json: Json = False,
) -> int:
    """Compare ways to build a graph on a list of groups: hops, copies, the busiest host.

    A line of the file is `NAME: HOST HOST …`, or `NAME RATE: HOST HOST …` for a group with so many messages a second; #
    begins a comment. JSON is an object of groups, each a list of hosts.
    """
    planned = PlannedGraphs(groups_from(file), builders or list(BUILDERS), forest, with_bypass=bypass)
    if as_json:
        write_json(planned.document())
        return 0
    console = output()
    for part in plan_lines(planned):
        console.print(part, soft_wrap=isinstance(part, Text))
    return 0


@app.command(epilog=STUDY)
def study(
    runs: Annotated[int, typer.Option(min=2, max=100_000, help="Draws of each point at most.")] = 300,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="Write a page and its pictures into this folder.")
    ] = None,
    as_json: Json = False,
) -> int:
    """Draw groups at random and count what graphs cost: the thesis' Graphs 4.1 to 4.14 and Tables 2.1, 4.1, 4.2.

    Points are drawn until their 95 % intervals are as narrow as the thesis'. Some minutes.
    """
    from ordercast.cli.graph_study import studied

    return studied(runs, out, as_json=as_json)


@app.command(epilog=LABORATORY)
def laboratory(
    seeds: Annotated[str, typer.Option(metavar="A..B", help="Worlds that each protocol runs in.")] = "0..60",
    as_json: Json = False,
) -> int:
    """Run the thesis' Protocols 0 to 5 among failures, and judge what each guarantees and what it does not.

    Exit status 1 when a protocol breaks its guarantee, or no seed shows that it does not give the next stronger one.
    """
    from ordercast.cli.graph_laboratory import examined

    return examined(seeds_from(seeds), as_json=as_json)
