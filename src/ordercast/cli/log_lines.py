"""The logs of several daemons as one stream of lines: time, who, what; coloured on a terminal only."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any, NamedTuple

from rich.console import Console
from rich.text import Text

from ordercast.model.printable import safe, safe_lines

WHO_STYLES = ("cyan", "green", "magenta", "blue", "bright_cyan", "bright_green", "bright_magenta", "bright_blue")
LEVEL_STYLES = {"warning": "yellow", "error": "red", "critical": "bold red"}


class LogLine(NamedTuple):
    """One line of a daemon that logs JSON, or whatever else it wrote."""

    at: datetime
    level: str
    text: str
    fields: dict[str, Any]  # everything that the line says

    @property
    def is_news(self) -> bool:
        """Tell whether the line says more than every daemon says when it starts."""
        return self.level != "info" or "view" in self.fields

    @property
    def is_place(self) -> bool:
        """Where clients or the status are served."""
        return "clients" in self.fields or "status" in self.fields


def line_from(line: bytes) -> LogLine:
    text = line.decode("utf-8", "replace").rstrip()
    try:
        document = json.loads(text)
        return LogLine(datetime.fromisoformat(document["at"]), document["level"], document["text"], document)
    except (ValueError, KeyError, TypeError):
        return LogLine(datetime.now().astimezone(), "error", text.removeprefix("ordercast: "), {})


class LogStream:
    """Writes lines one below the other, whoever they come from."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._width = 2  # of the names so far
        self._styles: dict[str, str] = {}

    def write(self, who: str, line: LogLine) -> None:
        self._width = max(self._width, len(who))
        at = line.at.astimezone()
        text = Text.assemble((f"{at:%H:%M:%S}.{at.microsecond // 1000:03d}  ", "dim"))
        text.append(f"{who:{self._width}}  ", self._style(who))
        level = "" if line.level in ("info", "debug") else f"{line.level}: "
        text.append(level + safe(line.text), LEVEL_STYLES.get(line.level, ""))
        self._console.print(text, soft_wrap=True)
        if error := line.fields.get("error"):
            self._console.print(Text(safe_lines(error), "dim"), soft_wrap=True)

    def say(self, text: str, level: str = "info") -> None:
        """Log a sentence of the command itself."""
        self.write("up", LogLine(datetime.now().astimezone(), level, text, {}))

    def _style(self, who: str) -> str:
        if who == "up":
            return "bold"
        return self._styles.setdefault(who, WHO_STYLES[len(self._styles) % len(WHO_STYLES)])
