"""`ordercast key new | add | use | retire | status | reload`: the keys of a cluster, in a file and at running daemons.

No command takes a secret, or shows one.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.text import Text

from ordercast.cli.cluster import ask
from ordercast.cli.tables import new_table
from ordercast.cli.terminal import complain, output, write_json
from ordercast.daemon.key_file import (
    KeyFile,
    new_key_file,
    read_key_file,
    with_clear,
    with_new_key,
    with_used,
    without_key,
    write_key_file,
)
from ordercast.sealing.keys import listed


def new(file: Path, *, beside_clear: bool) -> int:
    made = new_key_file(file, beside_clear=beside_clear)
    _say(f'{file} has key {made.ring.keys[0].id}; copy it to every host, and name it in [security]: key = "{file}"')
    return 0


def add(file: Path, *, clear: bool) -> int:
    changed = (with_clear if clear else with_new_key)(read_key_file(file))
    write_key_file(file, changed)
    _say(
        f"{file} has {listed(changed.ring.accepted)}; {listed((changed.ring.wanted,))} is next: copy the file to every "
        "host, then run `ordercast key reload` at each"
    )
    return 0


def use(file: Path, number: int | None) -> int:
    changed = with_used(read_key_file(file), number)
    write_key_file(file, changed)
    _say(f"{file} uses {_named(changed)}: copy it to every host, then run `ordercast key reload` at each")
    return 0


def retire(file: Path, number: int | None) -> int:
    changed = without_key(read_key_file(file), number)
    write_key_file(file, changed)
    _say(f"{file} has {listed(changed.ring.accepted)}: copy it to every host, then run `ordercast key reload` at each")
    return 0


def reload(at: str | None, *, now: bool, as_json: bool) -> int:
    return _show(ask(at, {"do": "rekey", "now": now}), as_json=as_json)


def status(at: str | None, *, as_json: bool) -> int:
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
