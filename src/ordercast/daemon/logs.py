"""Logs of a daemon on the standard library's `logging`: lines for people, or JSON lines for machines.

What is logged is a sentence and fields: `log.info("…", extra=fields(configuration="24.alpha"))`. Text shows the
sentence, JSON both. The journal of systemd adds the time itself and reads the level from a prefix, so both are left to
it there.
"""

from __future__ import annotations

import logging
import os
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, TextIO

from ordercast.daemon.status.parts import time_text
from ordercast.model.printable import json_text, safe, safe_lines

ROOT = "ordercast"
_SYSLOG = {logging.DEBUG: 7, logging.INFO: 6, logging.WARNING: 4, logging.ERROR: 3, logging.CRITICAL: 2}
_COLOURS = {logging.WARNING: "33", logging.ERROR: "31", logging.CRITICAL: "31;1"}


def fields(**values: Any) -> dict[str, Any]:
    """What a JSON line says beside the sentence."""
    return {"fields": values}


class JsonFormatter(logging.Formatter):
    def __init__(self, **common: Any) -> None:
        super().__init__()
        self.common = common

    def format(self, record: logging.LogRecord) -> str:
        document = {
            "at": time_text(datetime.fromtimestamp(record.created, UTC)),
            "level": record.levelname.lower(),
            "text": record.getMessage(),
            **self.common,
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            document["error"] = self.formatException(record.exc_info)
        return json_text(document)


class TextFormatter(logging.Formatter):
    def __init__(self, *, colours: bool = False) -> None:
        super().__init__()
        self._colours = colours

    def format(self, record: logging.LogRecord) -> str:
        at = time.strftime("%H:%M:%S", time.localtime(record.created)) + f".{int(record.msecs):03d}"
        level = f"{record.levelname.lower():8}"
        colour = _COLOURS.get(record.levelno) if self._colours else None
        line = f"{at}  {level} {self._text(record)}"
        return f"\x1b[{colour}m{line}\x1b[0m" if colour else line

    def _text(self, record: logging.LogRecord) -> str:
        text = safe(record.getMessage())
        return f"{text}\n{safe_lines(self.formatException(record.exc_info))}" if record.exc_info else text


class JournalFormatter(TextFormatter):
    def format(self, record: logging.LogRecord) -> str:
        prefix = f"<{_SYSLOG.get(record.levelno, 6)}>"
        return prefix + f"\n{prefix}".join(self._text(record).splitlines())


class Rationed:
    """Warnings that may come in crowds: one of each matter in a while, which says how many were kept back."""

    def __init__(self, log: logging.Logger, every_s: float = 10.0, clock: Callable[[], float] = time.monotonic) -> None:
        self._log = log
        self._clock = clock
        self._every_s = every_s
        self._said: dict[str, tuple[float | None, int]] = {}  # by matter: when, and how many were kept back since

    def warn(self, matter: str, text: str) -> None:
        now = self._clock()
        at, kept_back = self._said.get(matter, (None, 0))
        if at is not None and now - at < self._every_s:
            self._said[matter] = at, kept_back + 1
            return
        more = f" (and {kept_back:,} more like this since the last of these lines)" if kept_back else ""
        self._log.warning("%s%s", text, more)
        self._said[matter] = now, 0


def describe(**common: Any) -> None:
    """What is known only later of that which is in every JSON line."""
    for handler in logging.getLogger(ROOT).handlers:
        if isinstance(handler.formatter, JsonFormatter):
            handler.formatter.common.update(common)


def start_logging(style: str, stream: TextIO | None = None, **common: Any) -> None:
    """Sends everything of `ordercast` and of the event loop to a stream, stderr by default; `common` is in every JSON
    line."""
    stream = stream or sys.stderr
    handler = logging.StreamHandler(stream)
    if style == "json":
        handler.setFormatter(JsonFormatter(**common))
    elif "JOURNAL_STREAM" in os.environ and not stream.isatty():
        handler.setFormatter(JournalFormatter())
    else:
        handler.setFormatter(TextFormatter(colours=stream.isatty() and "NO_COLOR" not in os.environ))
    for name in (ROOT, "asyncio"):
        logger = logging.getLogger(name)
        logger.handlers[:] = [handler]
        logger.setLevel(logging.INFO)
        logger.propagate = False
