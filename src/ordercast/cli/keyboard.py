"""Lines that somebody types, or that a pipe brings, while other lines are being printed."""

from __future__ import annotations

import asyncio
import codecs
import os
import sys
import termios
import threading
import tty
from abc import ABC, abstractmethod
from typing import Any, Self

from rich.console import Console
from rich.text import Text

from ordercast.cli.line_editor import LineEditor

READ_SIZE = 4096
PROMPT = "> "


class Desk(ABC):
    """Enter it; then `line()` gives the lines that come in, and `print` shows one."""

    is_typed = False  # by a person, who may be told how

    def __init__(self, console: Console) -> None:
        self.console = console
        self._lines: asyncio.Queue[str | None] = asyncio.Queue()

    async def line(self) -> str | None:
        """The next one; None when there will be none."""
        return await self._lines.get()

    def end(self) -> None:
        """As if there were no more lines."""
        self._lines.put_nowait(None)

    def print(self, text: Text) -> None:
        self.console.print(text, soft_wrap=True)
        self.console.file.flush()

    @abstractmethod
    def __enter__(self) -> Self: ...

    @abstractmethod
    def __exit__(self, *how: object) -> None: ...


class PipeDesk(Desk):
    """Reads in a thread, as files cannot be waited for. It is left behind when nobody reads any more."""

    def __enter__(self) -> Self:
        loop = asyncio.get_running_loop()
        threading.Thread(target=self._read, args=(loop,), name="stdin", daemon=True).start()
        return self

    def __exit__(self, *how: object) -> None:
        pass

    def _read(self, loop: asyncio.AbstractEventLoop) -> None:
        rest = b""
        try:
            while data := os.read(sys.stdin.fileno(), READ_SIZE):
                *lines, rest = (rest + data).split(b"\n")
                for line in lines:
                    loop.call_soon_threadsafe(self._lines.put_nowait, line.decode("utf-8", "replace"))
            if rest:
                loop.call_soon_threadsafe(self._lines.put_nowait, rest.decode("utf-8", "replace"))
            loop.call_soon_threadsafe(self.end)
        except RuntimeError:
            pass  # the program has ended meanwhile


class TerminalDesk(Desk):
    """The line that is being typed stays at the bottom; what is printed appears above it."""

    is_typed = True

    def __init__(self, console: Console) -> None:
        super().__init__(console)
        self._editor = LineEditor()
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._fd = sys.stdin.fileno()
        self._before: list[Any] = []

    def __enter__(self) -> Self:
        self._before = termios.tcgetattr(self._fd)
        tty.setcbreak(self._fd)
        asyncio.get_running_loop().add_reader(self._fd, self._on_keys)
        self._draw()
        return self

    def __exit__(self, *how: object) -> None:
        asyncio.get_running_loop().remove_reader(self._fd)
        self._erase()
        self.console.file.flush()
        termios.tcsetattr(self._fd, termios.TCSADRAIN, self._before)

    def print(self, text: Text) -> None:
        self._erase()
        super().print(text)
        self._draw()

    def _on_keys(self) -> None:
        data = os.read(self._fd, READ_SIZE)
        for line in self._editor.feed(self._decoder.decode(data)) if data else [None]:
            self._lines.put_nowait(line)
        if not data:
            asyncio.get_running_loop().remove_reader(self._fd)
        self._erase()
        self._draw()

    def _erase(self) -> None:
        self.console.file.write("\r\x1b[K")

    def _draw(self) -> None:
        text, column = self._editor.window(self.console.width - len(PROMPT))
        self.console.file.write(f"\x1b[1m{PROMPT}\x1b[0m{text}\r\x1b[{len(PROMPT) + column}C")
        self.console.file.flush()


def desk_for(console: Console) -> Desk:
    return TerminalDesk(console) if console.is_terminal and sys.stdin.isatty() else PipeDesk(console)
