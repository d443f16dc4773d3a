"""The last events of a program that may be killed, kept where a kill cannot reach them.

What is gathered and not written yet dies with its process. Whoever records programs that are killed keeps a tail: each
event is written at once, as a line of JSON with its number, kind and cells, to a small file beside the stream, whose
first line says whose it is. When the events of a tail are in the stream, the tail is removed; so is the last one when
the recording is closed.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any, Generic

from ordercast.trace.columns import Cells
from ordercast.trace.event_rows import EventT, EventTable
from ordercast.trace.live_file import LiveInfo, stem_of
from ordercast.trace.private_files import open_private


class Tail(Generic[EventT]):
    def __init__(self, table: EventTable[EventT], folder: Path, info: LiveInfo) -> None:
        """OSError when it cannot be written."""
        self._table = table
        self._folder, self._info = folder, info
        self._number = 0
        self._file = -1
        self.turn()

    def put(self, event: EventT, n: int) -> None:
        ((_, lists),) = self._table.columns_of((event,), n)
        cells = {name: cells[0] for name, cells in lists.items() if cells[0] is not None}
        os.write(self._file, json.dumps(cells, default=bytes.hex, ensure_ascii=False).encode() + b"\n")

    def turn(self) -> int:
        """Begin the next tail. Return its number: those before it hold what was handed to the writer."""
        if self._file >= 0:
            os.close(self._file)
        self._number += 1
        self._file = open_private(self._path(self._number), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.write(self._file, json.dumps(asdict(self._info)).encode() + b"\n")
        return self._number

    def forget(self, before: int) -> None:
        """What the tails with lower numbers hold is in the stream."""
        number = before - 1
        while number > 0 and self._path(number).exists():
            self._path(number).unlink()
            number -= 1

    def remove(self) -> None:
        os.close(self._file)
        self._file = -1
        self.forget(self._number + 1)

    def _path(self, number: int) -> Path:
        return self._folder / f"{stem_of(self._info)}-{number}.tail"


def read_tail_info(path: Path) -> LiveInfo | None:
    """None when the file was cut before it could say anything. ValueError or TypeError when it is no tail."""
    lines = _whole_lines(path)
    return LiveInfo(**json.loads(lines[0])) if lines else None


def read_tail(path: Path, table: EventTable[EventT], offset: int = 0) -> Iterator[tuple[int, EventT]]:
    """Yield the events with their numbers, as far as they were written; `offset` is added to their times. ValueError,
    KeyError or TypeError when it is no tail."""
    for line in _whole_lines(path)[1:]:
        cells: dict[str, Any] = json.loads(line)
        cells["t"] += offset
        yield cells["n"], table.event(cells["kind"], _whole(cells, table))


def _whole_lines(path: Path) -> list[bytes]:
    return [line for line in path.read_bytes().splitlines(keepends=True) if line.endswith(b"\n")]


def _whole(cells: Cells, table: EventTable[EventT]) -> Cells:
    """The cells with the nulls, and with bytes as bytes."""
    binary = {name for name, column in table.columns.items() if column.type == "binary"}
    found = {name: bytes.fromhex(cell) if name in binary else cell for name, cell in cells.items()}
    return dict.fromkeys(table.columns) | found
