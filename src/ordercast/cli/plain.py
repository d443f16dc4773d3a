"""What the command line says without any extra: sentences, JSON, and the help."""

from __future__ import annotations

import os
import sys
from typing import Any, TextIO

from ordercast.model.printable import json_text, safe_lines

RED, YELLOW, DIM = "31", "33", "2"
HELP_WIDTH_MAX = 100


def write_json(document: Any) -> None:
    sys.stdout.write(json_text(document, indent=2) + "\n")


def complain(text: str) -> None:
    """One sentence on stderr, whatever line breaks it came with."""
    sentence = " ".join(text.split()).rstrip(".")
    _say(f"ordercast: {sentence}.", RED)


def note(text: str, *, always: bool = False) -> None:
    """A remark for a person who watches, on stderr; what a program should be told, too, is said always."""
    if always or sys.stderr.isatty():
        _say(text, YELLOW if always else DIM)


def wipe() -> None:
    """The `^C` that the terminal has written into the line."""
    if sys.stderr.isatty():
        sys.stderr.write("\r\x1b[K")


def has_colours(stream: TextIO) -> bool:
    """Tell whether a stream is a terminal that takes colours, and somebody wants them."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def help_width() -> int:
    """Return how wide the help may be: as the terminal, but not too wide to be read."""
    columns = os.environ.get("COLUMNS", "")
    if columns.isdecimal() and int(columns):
        return min(int(columns), HELP_WIDTH_MAX)
    try:
        return min(os.get_terminal_size(sys.stdout.fileno()).columns, HELP_WIDTH_MAX)
    except (OSError, ValueError):
        return HELP_WIDTH_MAX


def _say(text: str, colour: str) -> None:
    shown = safe_lines(text)
    sys.stderr.write(f"\x1b[{colour}m{shown}\x1b[0m\n" if has_colours(sys.stderr) else f"{shown}\n")
    sys.stderr.flush()
