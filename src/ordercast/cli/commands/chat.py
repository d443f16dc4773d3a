"""What `ordercast chat` takes."""

from __future__ import annotations

from typing import Annotated

from ordercast.cli.commands.options import At
from ordercast.cli.declare import Argument, Option, command


@command(example="ordercast chat lobby --name alice")
def chat(
    room: Annotated[str, Argument("ROOM", "The group to talk in.")] = "lobby",
    name: Annotated[str, Option(metavar="NAME", help="Yours; by default your login.", show_default=False)] = "",
    at: At = None,
) -> int:
    """Talk to everybody in a room. All read the same lines in the same order, and see who comes and goes.

    /who shows who is here, /quit, Ctrl-D or Ctrl-C leave. In a pipe, each line of stdin is said.
    """
    from ordercast.cli import chat as work

    return work.chat(room, name, at)
