"""`ordercast clients`: who is connected to a daemon, and how each is doing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from ordercast.api.connect import connect
from ordercast.cli.client_options import checked_at
from ordercast.cli.event_text import counted
from ordercast.cli.tables import new_table
from ordercast.cli.terminal import output, write_json
from ordercast.model.printable import safe
from ordercast.model.quantities import duration_text, size_text

GROUPS_SHOWN = 4
FULL_PART = 4  # of what may wait: from a quarter on a client is behind


def clients(at: str | None, as_json: bool) -> int:
    with connect(checked_at(at)) as me:
        document = all_clients(me.manage)
    if as_json:
        write_json(document)
        return 0
    console = output()
    for part in clients_page(document):
        console.print(part)
    return 0


def all_clients(manage: Callable[[dict[str, Any]], dict[str, Any]]) -> dict[str, Any]:
    """Ask a daemon for its clients, page by page. One of an older version tells of all of them at once."""
    document = manage({"do": "clients", "after": ""})
    rows, left_out = list(document["clients"]), document.pop("left_out", 0)
    while left_out:
        page = manage({"do": "clients", "after": rows[-1]["name"]})
        rows += page["clients"]
        left_out = page["left_out"]
    return {**document, "clients": rows}


def clients_page(document: dict[str, Any]) -> list[RenderableType]:
    """Return a table of clients, those first for whom most waits."""
    rows = sorted(document["clients"], key=lambda row: (-row["waiting_size"], row["name"]))
    numbers = ("waiting", "sent/s", "given/s", "dropped")
    table = new_table("client", "from", "for", "groups", "policy", *numbers, right=numbers)
    for row in rows:
        is_behind = row["is_holding"] or row["waiting_size"] * FULL_PART > row["waiting_max"]
        table.add_row(
            Text(safe(row["name"]), "yellow" if is_behind else ""),
            safe(row["place"]),
            duration_text(int(row["seconds"]) * 1_000_000_000) if row["seconds"] >= 1 else "<1s",
            _groups(row["groups"], row.get("more_groups", 0)),
            row["policy"],
            f"{size_text(row['waiting_size'])} of {size_text(row['waiting_max'])}",
            f"{row['sent_per_second']:,.0f}",
            f"{row['given_per_second']:,.0f}",
            f"{row['dropped']:,}",
        )
    parts: list[RenderableType] = [table] if rows else []
    parts.append(Text(f"{counted(len(rows), 'client')} of {safe(document['daemon'])}, this command among them"))
    parts += [Text(f"! everybody waits for {safe(row['name'])}", "yellow") for row in rows if row["is_holding"]]
    return parts


def _groups(groups: list[str], not_told: int) -> str:
    more = f" and {len(groups) - GROUPS_SHOWN + not_told} more" if len(groups) > GROUPS_SHOWN else ""
    return safe(" ".join(groups[:GROUPS_SHOWN])) + more
