"""What `ordercast man` takes, and does: it needs declarations alone."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from ordercast.cli.declare import Argument, Option, command


@command(example="ordercast man archive | man -l -")
def man(
    name: Annotated[str, Argument("COMMAND", "Whose page; without it, that of ordercast.")] = "",
    out: Annotated[
        Path | None, Option(metavar="DIR", help="Write the pages of all commands into this folder, such as man/man1.")
    ] = None,
) -> int:
    """Print a manual page, with the same text as the help."""
    from ordercast.cli.man_pages import page_of, write_pages

    if out is not None:
        sys.stdout.write(f"written  {write_pages(out)} pages to {out}\n")
    else:
        sys.stdout.write(page_of(name))
    return 0
