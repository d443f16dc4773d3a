"""`ordercast cluster list | add | remove`: which nodes belong to the cluster, asked and changed at a running daemon."""

from __future__ import annotations

from typing import Any

from rich.text import Text

from ordercast.api.connect import connect
from ordercast.cli.client_options import checked_at
from ordercast.cli.event_text import counted
from ordercast.cli.tables import new_table
from ordercast.cli.terminal import output, write_json


def list_nodes(at: str | None, toml: bool, as_json: bool) -> int:
    document = ask(at, {"do": "list"})
    if toml:
        _write_toml(document)
    elif as_json:
        write_json(document)
    else:
        _draw(document)
    return 0


def add(
    name: str,
    node: int,
    addresses: list[str],
    token_port: int | None,
    data_port: int | None,
    at: str | None,
    as_json: bool,
) -> int:
    asked = {"do": "add", "name": name, "id": node, "addresses": addresses}
    asked |= {key: port for key, port in (("token_port", token_port), ("data_port", data_port)) if port is not None}
    return _changed(ask(at, asked), f"{name} was added", as_json)


def remove(name: str, at: str | None, as_json: bool) -> int:
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
    status = {node.get("status_port") for node in document["nodes"]}
    for node in document["nodes"]:
        where = f"address{'es' if len(node['addresses']) > 1 else ''} = {_toml(node['addresses'])}"
        if site := node.get("site"):
            wide = f'wide = "{node["wide"]}"\nwide_port = {node["wide_port"]}\nlink_port = {node["link_port"]}'
            where = f'site = "{site}"\n{where}\n{wide}'
        elif rings := node.get("rings"):
            where = f"rings = {{ {', '.join(f'{ring} = {_toml(addresses)}' for ring, addresses in rings.items())} }}"
        lines += ["", f'[nodes."{node["name"]}"]', f"id = {node['id']}", where]
        lines += [f"token_port = {node['token_port']}", f"data_port = {node['data_port']}"]
        if len(status) > 1 and node.get("status_port") is not None:  # otherwise all serve it at the usual port
            lines.append(f"status_port = {node['status_port']}")
    print("\n".join(lines))


def _toml(addresses: list[str]) -> str:
    quoted = [f'"{address}"' for address in addresses]
    return quoted[0] if len(quoted) == 1 else f"[{', '.join(quoted)}]"
