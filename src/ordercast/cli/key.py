"""`ordercast key new | add | use | retire | status | reload`: the keys of a cluster, in a file and at running daemons.

No command takes a secret, or shows one.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from ordercast.cli.client_options import At
from ordercast.cli.cluster import ask
from ordercast.cli.tables import new_table
from ordercast.cli.terminal import complain, output, write_json
from ordercast.daemon.key_file import (
    KeyFile,
    from_clear,
    new_key_file,
    read_key_file,
    with_clear,
    with_new_key,
    with_used,
    without_key,
    write_key_file,
)
from ordercast.model.errors import UsageError
from ordercast.sealing.keys import listed

EXAMPLE = "Example: ordercast key new /etc/ordercast/key"

app = typer.Typer(help="Make, change and show the keys that seal packets.", epilog=EXAMPLE, no_args_is_help=True)

File = Annotated[Path, typer.Argument(metavar="FILE", help="The key file, the same on every host.")]
Number = Annotated[int | None, typer.Argument(metavar="KEY", min=0, max=255, help="Its number; 0 is clear.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]


@app.callback()
def key() -> None:
    """Make, change and show the keys that seal packets."""


@app.command(epilog=EXAMPLE)
def new(
    file: File,
    beside_clear: Annotated[
        bool, typer.Option("--beside-clear", help="For a cluster that runs in the clear: both count until all have it.")
    ] = False,
) -> int:
    """Make a key file with one key, which nobody else can read. A file that is there is never written over."""
    if beside_clear:
        if file.exists():
            raise UsageError(f"{file} is there already, and is not written over")
        made = from_clear()
        write_key_file(file, made)
    else:
        made = new_key_file(file)
    _say(f'{file} has key {made.ring.keys[0].id}; copy it to every host, and name it in [security]: key = "{file}"')
    return 0


@app.command(epilog="Example: ordercast key add /etc/ordercast/key")
def add(
    file: File,
    clear: Annotated[bool, typer.Option("--clear", help="Accept clear packets instead, to go back to them.")] = False,
) -> int:
    """Add a key, which is used as soon as all nodes accept it."""
    changed = (with_clear if clear else with_new_key)(read_key_file(file))
    write_key_file(file, changed)
    _say(
        f"{file} has {listed(changed.ring.accepted)}; {listed((changed.ring.wanted,))} is next: copy the file to every "
        "host, then run `ordercast key reload` at each"
    )
    return 0


@app.command(epilog="Example: ordercast key use /etc/ordercast/key")
def use(file: File, number: Number = None) -> int:
    """Write down that the key which is next, or this one, is used: for daemons that start from now on."""
    changed = with_used(read_key_file(file), number)
    write_key_file(file, changed)
    _say(f"{file} uses {_named(changed)}: copy it to every host, then run `ordercast key reload` at each")
    return 0


@app.command(epilog="Example: ordercast key retire /etc/ordercast/key")
def retire(file: File, number: Number = None) -> int:
    """Take out this key, or all that are not used. Whoever has nothing else stays outside from then on."""
    changed = without_key(read_key_file(file), number)
    write_key_file(file, changed)
    _say(f"{file} has {listed(changed.ring.accepted)}: copy it to every host, then run `ordercast key reload` at each")
    return 0


@app.command(epilog="Example: ordercast key reload --at alpha")
def reload(
    at: At = None,
    now: Annotated[bool, typer.Option("--now", help="Use what is next at once: do not wait for who is away.")] = False,
    as_json: Json = False,
) -> int:
    """Have a daemon read its key file again, as SIGHUP does. A wrong file changes nothing."""
    return _show(ask(at, {"do": "rekey", "now": now}), as_json=as_json)


@app.command(epilog="Example: ordercast key status")
def status(at: At = None, as_json: Json = False) -> int:
    """Show which keys every node accepts and uses, as one daemon knows it."""
    return _show(ask(at, {"do": "keys"}), as_json=as_json)


def _show(document: dict[str, Any], *, as_json: bool) -> int:
    if as_json:
        write_json(document)
        return 0
    if not document["sealed"]:
        _say(f"{document['daemon']} sends in the clear: make a key with `ordercast key new FILE --beside-clear`")
        return 0
    table = new_table("node", "uses", "accepts")
    for node in document["nodes"]:
        table.add_row(node["name"], listed((node["used"],)), listed(node["accepted"]))
    for name in document["silent"]:
        table.add_row(name, "clear", "not known")
    output().print(table)
    if document["next"] != document["used"]:
        names = ", ".join(document["awaited"]) or "somebody to be heard"
        complain(
            f"{listed((document['next'],))} is next, and waits for {names}: copy the key file there, and reload it"
        )
    refused = {why: count for why, count in document["refused"].items() if count}
    if refused:
        output().print(Text("refused: " + ", ".join(f"{count:,} {why}" for why, count in refused.items()), "yellow"))
    return 0


def _named(file: KeyFile) -> str:
    return "clear packets" if not file.ring.used else f"key {file.ring.used}"


def _say(text: str) -> None:
    output().print(Text(text))
