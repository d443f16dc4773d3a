"""Options of the commands that run on Spark."""

from __future__ import annotations

from typing import Annotated

import typer

from ordercast.model.errors import UsageError

Master = Annotated[
    str | None,
    typer.Option("--master", metavar="URL", help="Spark master: local[2], spark://host:7077 … Default: local[*]."),
]
Conf = Annotated[
    list[str] | None,
    typer.Option("--conf", metavar="KEY=VALUE", help="An option of Spark, such as spark.driver.memory=8g; repeat."),
]


def conf_from(texts: list[str] | None) -> dict[str, str]:
    """UsageError when one is not KEY=VALUE."""
    options = {}
    for text in texts or ():
        key, sign, value = text.partition("=")
        if not sign or not key.startswith("spark."):
            raise UsageError(f"--conf {text} is no option of Spark: write it as spark.KEY=VALUE")
        options[key] = value
    return options
