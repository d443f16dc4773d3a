"""What `ordercast topology` takes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from ordercast.cli.commands.options import STATUS_HERE, Json, Place
from ordercast.cli.declare import Argument, Group, Option

topology = Group(
    "topology",
    """A network of rings: who is on which, who joins them, what delivery waits for.

    `ordercast topology ADDRESS` is short for `ordercast topology show ADDRESS`.
    """,
    example="ordercast topology :4791",
    short="show",
    bare=True,
)


@topology.command(example="ordercast topology :4791")
def show(address: Place = STATUS_HERE, as_json: Json = False) -> int:
    """Show the rings of a network, their members, gateways and fronts, and who holds whom up.

    Every daemon knows the whole network: any of them may be asked. Exit status 1 when messages do not flow there.
    """
    from ordercast.cli import topology as work

    return work.show(address, as_json)


@topology.command(example="ordercast topology explain 10.0.0.1:4790")
def explain(address: Place = STATUS_HERE, as_json: Json = False) -> int:
    """Say in sentences what delivery waits for now, what to do about it, and what the network would not survive."""
    from ordercast.cli import topology as work

    return work.explain(address, as_json)


@topology.command(example="ordercast topology plan --rings 16 --gateways 4 --rotation 2ms")
def plan(
    joins: Annotated[
        list[str] | None,
        Argument("JOIN", "A gateway each, as the rings that it joins: office-lab lab-store."),
    ] = None,
    rings: Annotated[int | None, Option(min=1, max=255, help="Draw a network of so many rings …")] = None,
    gateways: Annotated[int, Option(min=1, max=64, help="… with so many gateways on each.")] = 4,
    config: Annotated[Path | None, Option(metavar="FILE", help="The rings of a cluster file.")] = None,
    rotation: Annotated[str, Option(metavar="TIME", help="Of a token on a ring under load.")] = "1ms",
    seeds: Annotated[str, Option(metavar="A..B", help="Orders in which gateways are lost.")] = "1..200",
    as_json: Json = False,
) -> int:
    """Judge a network on paper: lengths of ways, what alone keeps it in one piece, latency, and what would help."""
    from ordercast.cli import topology as work

    return work.plan(
        joins=joins,
        rings=rings,
        gateways=gateways,
        config=config,
        rotation=rotation,
        seeds=seeds,
        as_json=as_json,
    )


@topology.command(example="ordercast topology study --seeds 1..300 --out graphs")
def study(
    seeds: Annotated[str, Option(metavar="A..B", help="Networks of each kind, and their losses.")] = "1..300",
    out: Annotated[
        Path | None, Option("--out", metavar="DIR", help="Write a page and its pictures into this folder.")
    ] = None,
    as_json: Json = False,
) -> int:
    """Lose gateways of robust and of random networks of 50 rings until they part: the paper's Figures 5.21 to 5.23."""
    from ordercast.cli import topology as work

    return work.study(seeds, out, as_json)
