"""What commands that show one engine's section of a status share: where it comes from, and how it is printed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from ordercast.cli.event_text import listed, verb
from ordercast.cli.status import fetch, place_of
from ordercast.cli.terminal import output, write_json
from ordercast.model.errors import UsageError
from ordercast.model.ids import MILLISECOND, SECOND

TOLD = ("at", "me", "engine", "configuration")  # of a status, beside the section

Document = dict[str, Any]


def status_with(engine: str, address: str, command: str, lacking: str) -> Document:
    """Return the status of a daemon that runs this engine, from a file if there is one of that name; UsageError names
    what other engines lack."""
    status = _read(Path(address), command) if Path(address).is_file() else fetch(*place_of(address))
    if status.get("engine") != engine or engine not in status:
        raise UsageError(
            f"the node runs the engine {status.get('engine')!r}, which has no {lacking}: see `ordercast status`"
        )
    return status


def _read(path: Path, command: str) -> Document:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} cannot be read as JSON: {error}") from error
    if not isinstance(document, dict) or "configuration" not in document:
        raise UsageError(f"{path} is no status: write one with `ordercast {command} --json`")
    return document


def lasted(duration_ns: int) -> str:
    return f"{duration_ns / SECOND:.1f} s" if duration_ns >= SECOND else f"{duration_ns // MILLISECOND} ms"


def missing_sentences(section: Document) -> Iterator[str]:
    """Return which places and nodes of the file are not in the view, since when, and why."""
    for missing in section.get("missing", ()):  # daemons of earlier versions do not say it
        place, nodes = missing["place"], missing["nodes"]
        who = f"{place} is not in the view, with {listed(nodes)}" if place else f"{listed(nodes)} is not in the view"
        since = "and has not been since this node started"
        if missing["for_ns"] is not None:
            since = f"for {lasted(missing['for_ns'])} now ({missing['why']})"
        run = verb(nodes, "it runs and", "they run and")
        yield f"{who}, {since}: see whether {run} can be reached."


def print_page(status: Document, engine: str, page: Iterable[RenderableType], *, as_json: bool) -> int:
    """Print what a status tells of the engine; return 1 when messages do not flow there."""
    if as_json:
        write_json({key: status[key] for key in (*TOLD, engine) if key in status})
    else:
        console = output()
        for part in page:
            console.print(part, soft_wrap=isinstance(part, Text))
    return 0 if status["configuration"]["is_ready"] else 1


def print_sentences(sentences: Iterable[str], *, as_json: bool) -> int:
    """Print sentences, a line each; return 0."""
    if as_json:
        write_json({"sentences": list(sentences)})
        return 0
    console = output()
    for sentence in sentences:
        console.print(Text(sentence), soft_wrap=True)
    return 0
