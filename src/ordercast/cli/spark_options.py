"""Options of the commands that run on Spark."""

from __future__ import annotations

from ordercast.model.errors import UsageError


def conf_from(texts: list[str] | None) -> dict[str, str]:
    """UsageError when one is not KEY=VALUE."""
    options = {}
    for text in texts or ():
        key, sign, value = text.partition("=")
        if not sign or not key.startswith("spark."):
            raise UsageError(f"--conf {text} is no option of Spark: write it as spark.KEY=VALUE")
        options[key] = value
    return options
