"""`ordercast engines`: which engines there are, and when to choose which."""

from __future__ import annotations

from typing import Any

from rich.text import Text

from ordercast.cli.tables import new_table
from ordercast.cli.terminal import output, write_json
from ordercast.model.kernel import NAME
from ordercast.order.catalogue import DEFAULT, ENGINES, EngineEntry


def engines(as_json: bool) -> int:
    if as_json:
        write_json({"default": DEFAULT, "kernel": NAME, "engines": [_document(entry) for entry in ENGINES.values()]})
        return 0
    table = new_table("engine", "choose it when", "gives", "costs, limits", "promises")
    for entry in ENGINES.values():
        table.add_row(Text(entry.name, "bold"), entry.choose, entry.gives, entry.costs, _promises(entry))
    output().print(table)
    output().print("promises: those of messages, groups and replicated state, counted; --json names them")
    output().print(f"kernel: {NAME}")
    return 0


def _promises(entry: EngineEntry) -> str:
    groups = f", groups {len(entry.groups)}, replicas {len(entry.replicas)}" if entry.groups else ""
    return f"{len(entry.promises)}{groups}"


def _document(entry: EngineEntry) -> dict[str, Any]:
    return {
        "name": entry.name,
        "live": entry.is_live,
        "choose": entry.choose,
        "gives": entry.gives,
        "costs": entry.costs,
        "services": [service.name.lower() for service in sorted(entry.services)],
        "promises": _names(entry.promises),
        "groups": _names(entry.groups),
        "replicas": _names(entry.replicas),
        "tables": list(entry.tables),
    }


def _names(promises: frozenset[Any]) -> list[str]:
    return sorted(promise.value for promise in promises)
