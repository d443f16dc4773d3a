"""Commands with commands below them, one of which need not be named."""

from __future__ import annotations

from typing import Any

from typer.core import TyperGroup


def short_for(command: str, *, is_bare: bool = False) -> type[TyperGroup]:
    """Return a group in which whatever names no command is meant for one; with `is_bare` also when nothing is named."""

    class Short(TyperGroup):
        def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
            is_other = not args if is_bare else False
            if is_other or (args and args[0] not in self.commands and args[0] not in ("-h", "--help")):
                args = [command, *args]
            parsed: list[str] = super().parse_args(ctx, args)
            return parsed

    return Short
