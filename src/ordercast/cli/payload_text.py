"""Payloads as text that is safe to show, whoever sent them: nothing moves the cursor, beeps, or breaks a line. Pure."""

from __future__ import annotations

import base64
from typing import Any

from ordercast.model.ids import Position
from ordercast.model.printable import safe
from ordercast.model.quantities import size_text

SHOWN_MAX = 2000  # characters of one message on a terminal


def text_from(data: bytes) -> str | None:
    """The text that it is; None when it is none."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


def shown(data: bytes, length_max: int | None = None) -> str:
    """One line. What is no text is shown as escaped bytes; what is too long is cut, and said to be."""
    part = data if length_max is None else data[: 4 * length_max]
    text = text_from(part)
    if text is None and len(part) < len(data):  # perhaps it was cut within a character
        text = next((found for less in range(1, 4) if (found := text_from(part[:-less])) is not None), None)
    line = safe(text) if text is not None else "".join(_safe_byte(byte) for byte in part)
    if length_max is not None and (len(line) > length_max or len(part) < len(data)):
        return f"{line[:length_max]}… ({size_text(len(data))} in all)"
    return line


def _safe_byte(byte: int) -> str:
    return chr(byte) if 0x20 <= byte < 0x7F and byte != 0x5C else f"\\x{byte:02x}"


def payload_document(data: bytes) -> dict[str, Any]:
    """`text` for UTF-8, `base64` for anything else."""
    text = text_from(data)
    return {"text": text} if text is not None else {"base64": base64.b64encode(data).decode("ascii")}


def place_document(position: Position) -> list[int]:
    """Return a position for machines: a list that is the same everywhere, and compares as the position does."""
    return [position.origin.seq, position.origin.representative, position.number, position.slot]
