"""`ordercast listen`: shows what is sent to groups, and who is in them, as it comes."""

from __future__ import annotations

import asyncio
import sys
import time
from typing import BinaryIO, Protocol

from rich.console import Console
from rich.text import Text

from ordercast.api.connect import connect
from ordercast.api.pieces import events_of
from ordercast.cli import INTERRUPTED
from ordercast.cli.client_options import first_and_others
from ordercast.cli.event_text import Narrator, News, counted, event_document, listed
from ordercast.cli.payload_text import SHOWN_MAX, shown
from ordercast.cli.terminal import note, output, wipe
from ordercast.groups.names import checked_group
from ordercast.model.errors import UsageError
from ordercast.model.events import Dropped, Message, Piece, Reconnected
from ordercast.model.printable import json_text, safe

NOBODY = "·"  # in the place of a sender: no name has it


def listen(
    groups: list[str], count: int | None, as_json: bool, raw: bool, at: str | None, name: str, wait: float | None
) -> int:
    groups = [part for each in groups for part in each.split(",") if part]
    if not groups:
        raise UsageError("name at least one group: `ordercast listen orders`")
    for group in groups:
        checked_group(group)
    if as_json and raw:
        raise UsageError("--json and --raw exclude each other: choose one")
    writer = JsonWriter() if as_json else RawWriter() if raw else LineWriter(output())
    listener = Listener(writer, count)
    try:
        asyncio.run(listener.listen(list(dict.fromkeys(groups)), at, name, wait))
    except KeyboardInterrupt:
        wipe()
        if count is not None:
            return INTERRUPTED
    note(counted(listener.messages, "message"))
    return 0


class Listener:
    def __init__(self, writer: Writer, count: int | None) -> None:
        self.messages = 0
        self._writer = writer
        self._count = count

    async def listen(self, groups: list[str], at: str | None, name: str, wait: float | None) -> None:
        where = first_and_others(at, wait)
        async with connect(where, name=name, reconnect=True, on_lost=_say_lost, wait=wait) as me:
            await me.join(*groups)
            note(f"listening to {listed(groups)} as {me.name}; Ctrl-C ends")
            self._writer.begin(me.name)
            async for piece in me.batches():
                if self._show(piece):
                    return

    def _show(self, piece: Piece) -> bool:
        """Whether that was enough."""
        for event in events_of(piece):
            self._writer.write(event)
            if isinstance(event, Message):
                self.messages += 1
                if self.messages == self._count:
                    break
        self._writer.flush()
        return self.messages == self._count


def _say_lost(why: str) -> None:
    note(f"{why}; looking for a daemon …", always=True)


class Writer(Protocol):
    """Everything of one piece is gathered, and written at once."""

    def begin(self, me: str) -> None:
        """Under this name we listen."""

    def write(self, event: Message | News) -> None: ...
    def flush(self) -> None: ...


class BytesWriter:
    def __init__(self) -> None:
        self._file: BinaryIO = sys.stdout.buffer
        self._parts: list[bytes] = []

    def flush(self) -> None:
        self._file.write(b"".join(self._parts))
        self._file.flush()
        self._parts.clear()


class JsonWriter(BytesWriter):
    def begin(self, me: str) -> None:
        """Events say it themselves."""

    def write(self, event: Message | News) -> None:
        self._parts.append(json_text(event_document(event)).encode("utf-8") + b"\n")


class RawWriter(BytesWriter):
    def begin(self, me: str) -> None:
        self._narrator = Narrator(me)

    def write(self, event: Message | News) -> None:
        if isinstance(event, Message):
            self._parts += (event.data, b"\n")
        elif isinstance(event, Dropped | Reconnected):
            note(self._narrator.tell(event), always=True)


class LineWriter:
    """Group, sender, text: in columns and colours on a terminal, plain elsewhere."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._length_max = SHOWN_MAX if console.is_terminal else None
        self._narrator = Narrator("")
        self._width = 0  # of the senders so far
        self._plain: list[str] = []  # lines for a pipe

    def begin(self, me: str) -> None:
        self._narrator.me = me

    def write(self, event: Message | News) -> None:
        if isinstance(event, Message):
            text = shown(event.data, self._length_max)
            line = self._line(safe(",".join(event.groups)), safe(event.sender), text, "cyan")
        else:
            group = safe(getattr(event, "group", NOBODY))
            line = self._line(group, NOBODY, safe(self._narrator.tell(event)), "dim", "dim")
        if isinstance(line, Text):
            self._console.print(line, soft_wrap=True)
        else:
            self._plain.append(line)

    def _line(self, group: str, sender: str, text: str, style: str, text_style: str = "") -> Text | str:
        if not self._console.is_terminal:
            return f"{group}  {sender}  {text}\n"  # drawing costs far more than reading
        self._width = max(self._width, len(sender))
        line = Text.assemble((time.strftime("%H:%M:%S  "), "dim"), (f"{group}  ", "dim"))
        return line.append(f"{sender:{self._width}}  ", style).append(text, text_style)

    def flush(self) -> None:
        self._console.file.write("".join(self._plain))
        self._console.file.flush()
        self._plain.clear()
