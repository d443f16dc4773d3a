"""The option with which commands of the simulator choose a topology, where an engine has one."""

from __future__ import annotations

from typing import Annotated

import typer

from ordercast.sim.ring_topologies import RingTopology

Topology = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help=f"With --engine gateways, the topology: {', '.join(each.value for each in RingTopology)}.",
    ),
]
