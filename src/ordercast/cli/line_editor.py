"""One line that a person types while other lines appear above it: keys in, finished lines out. Pure.

The keys are those of every shell: arrows, Home, End, Backspace, Delete, Ctrl-A E B F H D K U W P N.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from rich.cells import cell_len

HISTORY_MAX = 200
LENGTH_MAX = 4000  # characters of a line

_SEQUENCE = re.compile(r"\x1b(\[[0-9;]*[A-Za-z~]|O[A-Za-z]|[^\[O\x1b])")
_UNFINISHED = re.compile(r"\x1b(\[[0-9;]*|O)?\Z")
_NAMED = {
    "[D": "\x02", "OD": "\x02", "[C": "\x06", "OC": "\x06", "[A": "\x10", "OA": "\x10", "[B": "\x0e", "OB": "\x0e",
    "[H": "\x01", "OH": "\x01", "[1~": "\x01", "[7~": "\x01", "[F": "\x05", "OF": "\x05", "[4~": "\x05", "[8~": "\x05",
    "[3~": "delete", "\x7f": "\x17",
}  # fmt: skip


class Window(NamedTuple):
    """What of the line is to be seen."""

    text: str
    column: int  # of the cursor, in cells


class LineEditor:
    def __init__(self) -> None:
        self.text = ""
        self.cursor = 0
        self._pending = ""  # the beginning of a key
        self._history: list[str] = []
        self._place = 0  # in the history; its end is the line that is being typed
        self._kept = ""  # that line, while an older one is shown

    def feed(self, typed: str) -> list[str | None]:
        """The lines that were finished; None for the end of all lines (Ctrl-D on an empty line)."""
        typed, self._pending = self._pending + typed, ""
        finished: list[str | None] = []
        at = 0
        while at < len(typed):
            key = typed[at]
            if key == "\x1b":
                match = _SEQUENCE.match(typed, at)
                if match is None:
                    if _UNFINISHED.match(typed, at):
                        self._pending = typed[at:]
                        break
                    at += 1
                    continue
                at = match.end()
                key = _NAMED.get(match[1], "")
            else:
                at += 1
            if key in ("\r", "\n"):
                finished.append(self._finish())
            elif key == "\x04" and not self.text:
                finished.append(None)
            elif key:
                self._press(key)
        return finished

    def window(self, width: int) -> Window:
        """As much as fits into so many cells, with the cursor in it."""
        start = self.cursor
        used = 0
        while start > 0 and used + cell_len(self.text[start - 1]) < width:
            start -= 1
            used += cell_len(self.text[start])
        end, column = self.cursor, used
        while end < len(self.text) and used + cell_len(self.text[end]) < width:
            used += cell_len(self.text[end])
            end += 1
        return Window(self.text[start:end], column)

    def _finish(self) -> str:
        line = self.text
        if line and self._history[-1:] != [line]:
            self._history = [*self._history[-HISTORY_MAX + 1 :], line]
        self._place = len(self._history)
        self._show("")
        return line

    def _show(self, text: str) -> None:
        self.text, self.cursor = text, len(text)

    def _press(self, key: str) -> None:
        match key:
            case "\x01":
                self.cursor = 0
            case "\x05":
                self.cursor = len(self.text)
            case "\x02":
                self.cursor = max(0, self.cursor - 1)
            case "\x06":
                self.cursor = min(len(self.text), self.cursor + 1)
            case "\x7f" | "\x08":
                self._cut(max(0, self.cursor - 1), self.cursor)
            case "\x04" | "delete":
                self._cut(self.cursor, self.cursor + 1)
            case "\x0b":
                self._cut(self.cursor, len(self.text))
            case "\x15":
                self._cut(0, self.cursor)
            case "\x17":
                self._cut(len(re.sub(r"\S*\s*\Z", "", self.text[: self.cursor])), self.cursor)
            case "\x10":
                self._recall(-1)
            case "\x0e":
                self._recall(1)
            case "\t":
                self._insert(" ")
            case _:
                if key.isprintable():
                    self._insert(key)

    def _insert(self, text: str) -> None:
        if len(self.text) < LENGTH_MAX:
            self.text = self.text[: self.cursor] + text + self.text[self.cursor :]
            self.cursor += len(text)

    def _cut(self, start: int, end: int) -> None:
        self.text = self.text[:start] + self.text[end:]
        self.cursor = start

    def _recall(self, step: int) -> None:
        place = self._place + step
        if not 0 <= place <= len(self._history):
            return
        if self._place == len(self._history):
            self._kept = self.text
        self._place = place
        self._show(self._kept if place == len(self._history) else self._history[place])
