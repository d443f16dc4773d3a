"""Options that several commands have. Like all declarations they import nothing that does work."""

from __future__ import annotations

from typing import Annotated

from ordercast.cli.declare import Argument, Option

ADDRESS_VARIABLE = "ORDERCAST_ADDRESS"
STATUS_HERE = "here"  # of a node of this machine, wherever it serves its status
TOPOLOGIES = ("line", "cycle", "parallel", "star", "hub", "double-line", "random")

Json = Annotated[bool, Option("--json", help="Print one JSON document.")]

# Of clients

At = Annotated[
    str | None,
    Option(
        "--at",
        metavar="ADDRESS",
        env=ADDRESS_VARIABLE,
        help="The daemon: n1, tcp://HOST:PORT or unix:///PATH; by default any daemon of this machine.",
    ),
]
Name = Annotated[str, Option(metavar="NAME", help="As which client; by default the daemon finds a name.")]
Wait = Annotated[
    float | None, Option("--wait", min=0, metavar="SECONDS", help="How long the daemon may take to come up.")
]

# Of what daemons tell

Place = Annotated[
    str,
    Argument(
        "ADDRESS",
        "Where a daemon serves its status (HOST, HOST:PORT or :PORT), or a file that --json has written.",
    ),
]

# Of engines and simulations

EngineName = Annotated[
    str | None, Option("--engine", metavar="NAME", help="Engine that orders messages: see `ordercast engines`.")
]
OtherEngine = Annotated[
    str | None,
    Option("--engine", metavar="NAME", help="This engine instead of the file's: see `ordercast engines`."),
]
Topology = Annotated[
    str | None,
    Option(metavar="NAME", help=f"With --engine gateways, the topology: {', '.join(TOPOLOGIES)}."),
]

# Of Spark

Master = Annotated[
    str | None, Option("--master", metavar="URL", help="Spark master: local[2], spark://host:7077 … Default: local[*].")
]
Conf = Annotated[
    list[str] | None,
    Option("--conf", metavar="KEY=VALUE", help="An option of Spark, such as spark.driver.memory=8g; repeat."),
]
