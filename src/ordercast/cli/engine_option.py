"""The options with which commands choose an engine. They import no simulator, which daemons have no use for."""

from __future__ import annotations

from typing import Annotated

import typer

EngineName = Annotated[
    str, typer.Option("--engine", metavar="NAME", help="Engine that orders messages: see `ordercast engines`.")
]
OtherEngine = Annotated[
    str | None,
    typer.Option("--engine", metavar="NAME", help="This engine instead of the file's: see `ordercast engines`."),
]
