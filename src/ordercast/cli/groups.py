"""`ordercast groups`: which groups there are, and who is in one of them."""

from __future__ import annotations

from rich.text import Text

from ordercast.api.connect import connect
from ordercast.cli.client_options import checked_at
from ordercast.cli.event_text import counted
from ordercast.cli.tables import new_table
from ordercast.cli.terminal import output, write_json
from ordercast.groups.names import AT, RESERVED, checked_group
from ordercast.model.printable import safe


def groups(group: str | None, at: str | None, show_all: bool, as_json: bool) -> int:
    if group is not None:
        _show_members(checked_group(group), at, as_json)
    else:
        _show_groups(at, as_json, show_all)
    return 0


def _show_groups(at: str | None, as_json: bool, show_all: bool) -> None:
    with connect(checked_at(at)) as me:
        found = {name: members for name, members in me.groups().items() if show_all or not name.startswith(RESERVED)}
    if as_json:
        write_json({"groups": [{"name": name, "members": members} for name, members in found.items()]})
        return
    console = output()
    if not found:
        console.print(Text("there are no groups: a group begins when somebody joins it (ordercast listen GROUP)"))
        return
    table = new_table("group", "members", right=("members",))
    for name, members in found.items():
        table.add_row(Text(safe(name)), f"{members:,}")
    console.print(table)


def _show_members(group: str, at: str | None, as_json: bool) -> None:
    with connect(checked_at(at)) as me:
        members = me.members(group)
    if as_json:
        write_json({"group": group, "members": list(members)})
        return
    console = output()
    if not members:
        console.print(Text(f"nobody is in {group}"))
        return
    table = new_table("member", "at daemon")
    for member in members:
        table.add_row(Text(safe(member)), Text(safe(member.partition(AT)[2])))
    console.print(table)
    console.print(Text(counted(len(members), "member")))
