"""Text that is safe to show, whoever wrote it: nothing in it moves the cursor, beeps, hides, or turns the direction of
writing. Pure."""

from __future__ import annotations

import json
from typing import Any

_USUAL = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def safe(text: str) -> str:
    """One line: control characters (C0 and C1), and those that change the direction of writing, as escapes."""
    return text if text.isprintable() else "".join(map(_safe_character, text))


def safe_lines(text: str) -> str:
    """The same, with its line feeds."""
    return text if text.isprintable() else "\n".join(map(safe, text.split("\n")))


def json_text(document: Any, indent: int | None = None) -> str:
    """As JSON, readable, with escapes for what is not safe to show: the same document for those who parse it."""
    text = json.dumps(document, indent=indent, ensure_ascii=False, default=str)
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() or character == "\n" else json.dumps(character)[1:-1] for character in text
    )


def _safe_character(character: str) -> str:
    if character.isprintable():
        return character
    return _USUAL.get(character) or character.encode("unicode_escape").decode("ascii")
