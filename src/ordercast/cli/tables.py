"""How the tables of all commands look."""

from __future__ import annotations

from collections.abc import Iterable

from rich import box
from rich.table import Table


def new_table(*columns: str, right: Iterable[str] = (), title: str | None = None) -> Table:
    table = Table(box=box.SIMPLE_HEAD, title=title, title_justify="left", title_style="bold", pad_edge=False)
    numbers = set(right)
    for column in columns:
        table.add_column(column, justify="right" if column in numbers else "left", overflow="fold")
    return table
