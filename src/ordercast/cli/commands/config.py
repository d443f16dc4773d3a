"""What `ordercast config` takes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from ordercast.cli.commands.options import Json
from ordercast.cli.declare import Argument, Group, Option

config = Group(
    "config",
    "Look at a configuration file before a node does.",
    example="ordercast config check /etc/ordercast/cluster.toml --name alpha",
)


@config.command(example="ordercast config check /etc/ordercast/cluster.toml --name alpha")
def check(
    file: Annotated[Path, Argument("FILE", "A cluster in TOML, the same on every host.")],
    name: Annotated[str | None, Option(help="Which of the file's nodes; by default the one that this host is.")] = None,
    as_json: Json = False,
) -> int:
    """Say everything that is wrong with a file, or what the node would do.

    Nothing is opened or written. Exit status 2 when something is wrong.
    """
    from ordercast.cli import config as work

    return work.check(file, name, as_json)
