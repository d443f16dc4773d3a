"""`ordercast trace`: what can be done with the traces of live nodes beside judging them."""

from __future__ import annotations

from pathlib import Path

from rich.text import Text

from ordercast.cli.terminal import output, write_json
from ordercast.trace.folder import compact as compacted
from ordercast.trace.folder import read_live


def compact(folder: Path, out: Path | None, as_json: bool) -> int:
    run = read_live(folder)
    gaps = run.gaps()
    path = compacted(run, out or folder)
    if as_json:
        write_json({"path": str(path), "size": path.stat().st_size, "missing": gaps})
        return 0
    console = output()
    for gap in gaps:
        console.print(Text(f"missing  {gap}"), soft_wrap=True)
    console.print(Text(f"written  {path} ({path.stat().st_size:,} bytes)"), soft_wrap=True)
    return 0
