"""What `ordercast cluster` takes."""

from __future__ import annotations

from typing import Annotated

from ordercast.cli.commands.options import At, Json
from ordercast.cli.declare import Argument, Group, Option

Name = Annotated[str, Argument(metavar="NAME", help="Of the node.")]

cluster = Group(
    "cluster",
    "Show or change which nodes belong to the cluster.",
    example="ordercast cluster add delta 4 10.0.0.4",
)


@cluster.command("list", example="ordercast cluster list --toml")
def list_nodes(
    at: At = None,
    toml: Annotated[bool, Option("--toml", help="Print it as a cluster file has it.")] = False,
    as_json: Json = False,
) -> int:
    """Show the node list of a daemon, and how the lists of other members differ from it."""
    from ordercast.cli import cluster as work

    return work.list_nodes(at, toml, as_json)


@cluster.command(example="ordercast cluster add delta 4 10.0.0.4")
def add(
    name: Name,
    node: Annotated[int, Argument("ID", "A number that no other node of the cluster has.")],
    addresses: Annotated[list[str], Argument("ADDRESS", "Where it receives, one per network.")],
    token_port: Annotated[int | None, Option(min=1, max=65535, help="By default the network's port + 1.")] = None,
    data_port: Annotated[int | None, Option(min=1, max=65535, help="By default the network's port.")] = None,
    at: At = None,
    as_json: Json = False,
) -> int:
    """Add a node to the node list of the whole cluster. It is admitted as soon as it runs.

    The change is ordered: all members take it at the same place, and store it. It outranks older files.
    """
    from ordercast.cli import cluster as work

    return work.add(
        name=name,
        node=node,
        addresses=addresses,
        token_port=token_port,
        data_port=data_port,
        at=at,
        as_json=as_json,
    )


@cluster.command(example="ordercast cluster remove delta")
def remove(name: Name, at: At = None, as_json: Json = False) -> int:
    """Remove a node from the node list of the whole cluster. If it runs, it leaves in order.

    The change is ordered: all members take it at the same place, and store it. It outranks older files.
    """
    from ordercast.cli import cluster as work

    return work.remove(name, at, as_json)
