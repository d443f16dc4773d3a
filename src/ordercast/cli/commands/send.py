"""What `ordercast send` takes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from ordercast.cli.commands.options import At, Json, Name, Wait
from ordercast.cli.declare import Argument, Option, command


@command(example="ordercast send orders,audit buy 3 --service safe --confirm")
def send(
    groups: Annotated[str, Argument("GROUP", "Where to; several with commas between; or a client: alice@n1.")],
    text: Annotated[list[str] | None, Argument("TEXT", "The message; without it, each line of stdin is one.")] = None,
    file: Annotated[Path | None, Option("--file", metavar="FILE", help="Send a file as one message.")] = None,
    service: Annotated[
        str, Option(metavar="NAME", help="How strong: safe, agreed, causal, fifo or reliable.")
    ] = "agreed",
    confirm: Annotated[
        bool, Option("--confirm", help="Wait until it has its place in the order, and say which.")
    ] = False,
    count: Annotated[int, Option(min=1, metavar="N", help="Send it so many times.")] = 1,
    at: At = None,
    name: Name = "",
    wait: Wait = None,
    as_json: Json = False,
) -> int:
    """Send a message to groups, of which one need not be a member. Nobody gets it twice."""
    from ordercast.cli import send as work

    return work.send(
        groups=groups,
        text=text,
        file=file,
        service=service,
        confirm=confirm,
        count=count,
        at=at,
        name=name,
        wait=wait,
        as_json=as_json,
    )
