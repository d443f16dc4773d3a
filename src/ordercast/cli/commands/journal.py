"""What `ordercast journal` takes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from ordercast.cli.commands.options import Json
from ordercast.cli.declare import Argument, command


@command(example="ordercast journal /var/lib/app/journal")
def journal(
    folder: Annotated[Path, Argument("FOLDER", "What a replica was given as its journal.")],
    as_json: Json = False,
) -> int:
    """Tell what the journal of a replica knows: whose it is, how many commands, of which component, who votes.

    Reads only, also while the replica runs. Exit status 1 when the journal is damaged.
    """
    from ordercast.cli import journal as work

    return work.show_journal(folder, as_json=as_json)
