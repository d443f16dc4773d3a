"""`ordercast cluster list | add | remove`: which nodes belong to the cluster, asked and changed at a running daemon."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.text import Text

from ordercast.api.connect import connect
from ordercast.cli.client_options import At, checked_at
from ordercast.cli.event_text import counted
from ordercast.cli.tables import new_table
from ordercast.cli.terminal import output, write_json

EXAMPLE = "Example: ordercast cluster add delta 4 10.0.0.4"

app = typer.Typer(help="Show or change which nodes belong to the cluster.", epilog=EXAMPLE, no_args_is_help=True)

Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
Name = Annotated[str, typer.Argument(metavar="NAME", help="Of the node.")]


@app.callback()
def cluster() -> None:
    """Show or change which nodes belong to the cluster."""


@app.command("list", epilog="Example: ordercast cluster list --toml")
def list_nodes(
    at: At = None,
    toml: Annotated[bool, typer.Option("--toml", help="Print it as a cluster file has it.")] = False,
    as_json: Json = False,
) -> int:
    """Show the node list of a daemon, and how the lists of other members differ from it."""
    document = ask(at, {"do": "list"})
    if toml:
        _write_toml(document)
    elif as_json:
        write_json(document)
    else:
        _draw(document)
    return 0


@app.command(epilog=EXAMPLE)
def add(
    name: Name,
    node: Annotated[int, typer.Argument(metavar="ID", help="A number that no other node of the cluster has.")],
    addresses: Annotated[list[str], typer.Argument(metavar="ADDRESS…", help="Where it receives, one per network.")],
    token_port: Annotated[int | None, typer.Option(min=1, max=65535, help="By default the network's port + 1.")] = None,
    data_port: Annotated[int | None, typer.Option(min=1, max=65535, help="By default the network's port.")] = None,
    at: At = None,
    as_json: Json = False,
) -> int:
    """Add a node to the node list of the whole cluster. It is admitted as soon as it runs.

    The change is ordered: all members take it at the same place, and store it. It outranks older files.
    """
    asked = {"do": "add", "name": name, "id": node, "addresses": addresses}
    asked |= {key: port for key, port in (("token_port", token_port), ("data_port", data_port)) if port is not None}
    return _changed(ask(at, asked), f"{name} was added", as_json)


@app.command(epilog="Example: ordercast cluster remove delta")
def remove(name: Name, at: At = None, as_json: Json = False) -> int:
    """Remove a node from the node list of the whole cluster. If it runs, it leaves in order.

    The change is ordered: all members take it at the same place, and store it. It outranks older files.
    """
    return _changed(ask(at, {"do": "remove", "name": name}), f"{name} was removed", as_json)


def ask(at: str | None, document: dict[str, Any]) -> dict[str, Any]:
    """Put a question to a daemon. UsageError says why it refuses."""
    with connect(checked_at(at)) as me:
        return me.manage(document)


def _changed(document: dict[str, Any], what: str, as_json: bool) -> int:
    if as_json:
        write_json(document)
    else:
        names = ", ".join(node["name"] for node in document["nodes"])
        output().print(Text(f"{what}: the node list has version {document['version']} now, with {names}"))
    return 0


def _draw(document: dict[str, Any]) -> None:
    console = output()
    if not document["nodes"]:
        console.print(Text("the nodes of one machine without a file have no list: any of them may join"))
        return
    table = new_table("node", "id", "address", "ports", "", right=("id",))
    for node in document["nodes"]:
        state = "here" if node["is_me"] else "a member" if node["is_member"] else "not a member"
        ports = f"{node['token_port']}, {node['data_port']}"
        table.add_row(Text(node["name"]), str(node["id"]), _where(node), ports, state)
    console.print(table)
    origin = "an ordered change" if document["ordered"] else "the file"
    nodes = counted(len(document["nodes"]), "node")
    console.print(Text(f"version {document['version']} of the node list of {document['cluster']}, {nodes}: {origin}"))
    for difference in document["differences"]:
        console.print(Text(difference, "yellow"))


def _where(node: dict[str, Any]) -> str:
    """On each ring, where there are several."""
    rings = node.get("rings")
    if not rings:
        return ", ".join(node["addresses"])
    return "; ".join(f"{ring} {', '.join(addresses)}" for ring, addresses in rings.items())


def _write_toml(document: dict[str, Any]) -> None:
    lines = [f"nodes_version = {document['version']}  # before the first table"]
    for node in document["nodes"]:
        if rings := node.get("rings"):
            where = f"rings = {{ {', '.join(f'{ring} = {_toml(addresses)}' for ring, addresses in rings.items())} }}"
        else:
            where = f"address{'es' if len(node['addresses']) > 1 else ''} = {_toml(node['addresses'])}"
        lines += ["", f'[nodes."{node["name"]}"]', f"id = {node['id']}", where]
        lines += [f"token_port = {node['token_port']}", f"data_port = {node['data_port']}"]
    print("\n".join(lines))


def _toml(addresses: list[str]) -> str:
    quoted = [f'"{address}"' for address in addresses]
    return quoted[0] if len(quoted) == 1 else f"[{', '.join(quoted)}]"
