"""`ordercast chat`: people in a room. A small program on the client API, to try it and to read."""

from __future__ import annotations

import asyncio
import getpass
import re
import signal
from collections.abc import Callable
from contextlib import AsyncExitStack, suppress

from rich.text import Text

from ordercast.api.client import Client
from ordercast.api.connect import connect
from ordercast.cli.chat_text import HELP, ChatText
from ordercast.cli.client_options import first_and_others
from ordercast.cli.keyboard import Desk, desk_for
from ordercast.cli.terminal import output
from ordercast.groups.names import CLIENT_SIZE_MAX, checked_client, checked_group
from ordercast.model.errors import UsageError
from ordercast.model.events import Message
from ordercast.model.printable import safe

NAMES_TRIED = 9
LEAVE_S = 5.0


def chat(room: str, name: str, at: str | None) -> int:
    checked_group(room)
    if name:
        checked_client(name)
    asyncio.run(_chat(room, [name] if name else _own_names(), at))
    return 0


async def _chat(room: str, names: list[str], at: str | None) -> None:
    desk = desk_for(output())
    talk = Chat(desk, room)
    async with AsyncExitStack() as stack:
        me = await _connected(stack, names, first_and_others(at), talk.lost)
        await me.join(room)
        stack.enter_context(desk)
        await talk.run(me)


async def _connected(stack: AsyncExitStack, names: list[str], at: str | None, lost: Callable[[str], None]) -> Client:
    """Under the first name that is free there."""
    for name in names:
        try:
            return await stack.enter_async_context(connect(at, name=name, reconnect=True, on_lost=lost))
        except UsageError as error:
            if name == names[-1] or "is in use" not in str(error):
                raise
    raise AssertionError("there is a last name")


class Chat:
    def __init__(self, desk: Desk, room: str) -> None:
        self._desk = desk
        self._room = room
        self._text = ChatText(room)

    def lost(self, why: str) -> None:
        self._desk.print(self._text.lost(why))

    async def run(self, me: Client) -> None:
        """Until the person leaves; then to the last line that is for them."""
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGINT, self._interrupted)
        self._text.me = me.name
        reading = asyncio.create_task(self._read(me))
        typing = asyncio.create_task(self._type(me))
        try:
            await asyncio.wait((reading, typing), return_when=asyncio.FIRST_COMPLETED)
            for task in (reading, typing):
                if task.done():
                    task.result()
            with suppress(TimeoutError):
                async with asyncio.timeout(LEAVE_S):
                    await me.leave(self._room)
            me.inbox.close()
            await reading
            self._desk.print(Text(f"You left the room {self._room}.", "dim italic"))
        finally:
            reading.cancel()
            typing.cancel()
            loop.remove_signal_handler(signal.SIGINT)

    def _interrupted(self) -> None:
        """The first Ctrl-C leaves in order; the second is not caught here."""
        asyncio.get_running_loop().remove_signal_handler(signal.SIGINT)
        self._desk.end()

    async def _read(self, me: Client) -> None:
        async for event in me:
            text = self._text.message(event) if isinstance(event, Message) else self._text.news(event)
            if text is not None:
                self._desk.print(text)

    async def _type(self, me: Client) -> None:
        if self._desk.is_typed:
            self._desk.print(Text(f"What you type is said to everybody in the room. {HELP}.", "dim"))
        while (line := await self._desk.line()) is not None:
            if line in ("/quit", "/q", "/exit", "/leave"):
                return
            if line == "/who":
                self._desk.print(self._text.who())
            elif line.startswith("//"):
                await me.send(self._room, line[1:].encode())
            elif line.startswith("/"):
                wrong = f"There is no {safe(line.split()[0])}: {HELP}; a line that begins with // is sent with one /."
                self._desk.print(Text(wrong, "yellow"))
            elif line.strip():
                await me.send(self._room, line.encode())


def _own_names() -> list[str]:
    """The login, or the login with a number for one who is here several times; then whatever the daemon finds."""
    try:
        login = re.sub(r"[^A-Za-z0-9._-]", "", getpass.getuser())[: CLIENT_SIZE_MAX - 1]
    except (OSError, KeyError):
        login = ""
    numbers = [""] + [str(number) for number in range(2, NAMES_TRIED + 1)]
    return [*(login + number for number in numbers if login), ""]
