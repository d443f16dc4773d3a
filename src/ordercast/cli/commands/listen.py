"""What `ordercast listen` takes."""

from __future__ import annotations

from typing import Annotated

from ordercast.cli.commands.options import At, Name, Wait
from ordercast.cli.declare import Argument, Option, command


@command(example="ordercast listen orders prices --json | jq .text")
def listen(
    groups: Annotated[list[str], Argument("GROUP", "One or several, with blanks or commas between them.")],
    count: Annotated[int | None, Option(min=1, metavar="N", help="End after so many messages.")] = None,
    as_json: Annotated[bool, Option("--json", help="One JSON document per line.")] = False,
    raw: Annotated[bool, Option("--raw", help="The messages alone, as they are, with a line feed each.")] = False,
    at: At = None,
    name: Name = "",
    wait: Wait = None,
) -> int:
    """Show messages and views of groups as they come, in the order that is the same for everybody.

    Until Ctrl-C. When the daemon ends, another one is looked for, and what may have been missed is said.
    """
    from ordercast.cli import listen as work

    return work.listen(
        groups=groups,
        count=count,
        as_json=as_json,
        raw=raw,
        at=at,
        name=name,
        wait=wait,
    )
