"""What `ordercast graph` takes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from ordercast.cli.commands.options import STATUS_HERE, Json, Place
from ordercast.cli.declare import Argument, Group, Option

BUILDER_NAMES = ("auto", "shallow", "heuristic-1", "heuristic-2", "heuristic-3", "random", "mst", "spt", "centre")

graph = Group(
    "graph",
    "Propagation graphs: over which hosts messages of groups travel.",
    example="ordercast graph show :4791",
)


@graph.command(example="ordercast graph show :4791")
def show(address: Place = STATUS_HERE, as_json: Json = False) -> int:
    """Draw the forest of a running cluster, and what of it belongs to the daemon that is asked.

    Every daemon knows the whole forest. Exit status 1 when messages do not flow there.
    """
    from ordercast.cli.graph_show import shown

    return shown(address, as_json=as_json)


@graph.command(example="ordercast graph explain 10.0.0.1:4790")
def explain(address: Place = STATUS_HERE, as_json: Json = False) -> int:
    """Say in sentences where a daemon stands in the forest, what messages wait for, and why the forest changed."""
    from ordercast.cli.graph_show import told

    return told(address, as_json=as_json)


@graph.command(example="ordercast graph plan groups.txt --forest auto")
def plan(
    file: Annotated[Path, Argument("FILE", "Groups and their hosts: a line `orders: a b c` each, or JSON.")],
    builders: Annotated[
        list[str] | None, Option("--builder", metavar="NAME", help=f"Only this one of {', '.join(BUILDER_NAMES)}.")
    ] = None,
    forest: Annotated[str | None, Option(metavar="NAME", help="Draw the forest of this builder.")] = None,
    bypass: Annotated[
        bool, Option("--bypass", help="Say what edges past extra hosts would save, and simulate what they cost.")
    ] = False,
    as_json: Json = False,
) -> int:
    """Compare ways to build a graph on a list of groups: hops, copies, the busiest host.

    A line of the file is `NAME: HOST HOST …`, or `NAME RATE: HOST HOST …` for a group with so many messages a second; #
    begins a comment. JSON is an object of groups, each a list of hosts.
    """
    from ordercast.cli import graph as work

    return work.plan(
        file=file,
        builders=builders,
        forest=forest,
        bypass=bypass,
        as_json=as_json,
    )


@graph.command(example="ordercast graph study --out graphs")
def study(
    runs: Annotated[int, Option(min=2, max=100_000, help="Draws of each point at most.")] = 300,
    out: Annotated[
        Path | None, Option("--out", metavar="DIR", help="Write a page and its pictures into this folder.")
    ] = None,
    as_json: Json = False,
) -> int:
    """Draw groups at random and count what graphs cost: the thesis' Graphs 4.1 to 4.14 and Tables 2.1, 4.1, 4.2.

    Points are drawn until their 95 % intervals are as narrow as the thesis'. Some minutes.
    """
    from ordercast.cli import graph as work

    return work.study(runs, out, as_json)


@graph.command(example="ordercast graph laboratory --seeds 0..20")
def laboratory(
    seeds: Annotated[str, Option(metavar="A..B", help="Worlds that each protocol runs in.")] = "0..60",
    as_json: Json = False,
) -> int:
    """Run the thesis' Protocols 0 to 5 among failures, and judge what each guarantees and what it does not.

    Exit status 1 when a protocol breaks its guarantee, or no seed shows that it does not give the next stronger one.
    """
    from ordercast.cli import graph as work

    return work.laboratory(seeds, as_json)
