"""The options with which commands choose an engine and, where it has one, its topology."""

from __future__ import annotations

from typing import Annotated

import typer

from ordercast.sim.ring_topologies import RingTopology

EngineName = Annotated[
    str, typer.Option("--engine", metavar="NAME", help="Engine that orders messages: see `ordercast engines`.")
]
Topology = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help=f"With --engine gateways, the topology: {', '.join(each.value for each in RingTopology)}.",
    ),
]
OtherEngine = Annotated[
    str | None,
    typer.Option("--engine", metavar="NAME", help="This engine instead of the file's: see `ordercast engines`."),
]
