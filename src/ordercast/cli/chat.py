"""`ordercast chat`: people in a room. A small program on the client API, to try it and to read."""

from __future__ import annotations

import asyncio
import getpass
import re
import signal
from contextlib import AsyncExitStack, suppress
from typing import Annotated

import typer
from rich.text import Text

from ordercast.cli.chat_text import HELP, ChatText
from ordercast.cli.client_options import At
from ordercast.cli.keyboard import Desk, desk_for
from ordercast.cli.terminal import output
from ordercast.client.connect import connect
from ordercast.client.connection import Client
from ordercast.groups.names import CLIENT_SIZE_MAX, checked_client, checked_group
from ordercast.model.errors import UsageError
from ordercast.model.events import Message

EXAMPLE = "Example: ordercast chat lobby --name alice"
NAMES_TRIED = 9
LEAVE_S = 5.0


def chat(
    room: Annotated[str, typer.Argument(metavar="[ROOM]", help="The group to talk in.")] = "lobby",
    name: Annotated[str, typer.Option(metavar="NAME", help="Yours; by default your login.", show_default=False)] = "",
    at: At = None,
) -> int:
    """Talk to everybody in a room. All read the same lines in the same order, and see who comes and goes.

    /who shows who is here, /quit, Ctrl-D or Ctrl-C leave. In a pipe, each line of stdin is said.
    """
    checked_group(room)
    if name:
        checked_client(name)
    asyncio.run(_chat(room, [name] if name else _own_names(), at))
    return 0


async def _chat(room: str, names: list[str], at: str | None) -> None:
    async with AsyncExitStack() as stack:
        me = await _connected(stack, names, at)
        await me.join(room)
        desk = stack.enter_context(desk_for(output()))
        await Chat(me, desk, room).run()


async def _connected(stack: AsyncExitStack, names: list[str], at: str | None) -> Client:
    """Under the first name that is free there."""
    for name in names[:-1]:
        try:
            return await stack.enter_async_context(connect(at, name=name, reconnect=True))
        except UsageError as error:
            if "is in use" not in str(error):
                raise
    return await stack.enter_async_context(connect(at, name=names[-1], reconnect=True))


class Chat:
    def __init__(self, me: Client, desk: Desk, room: str) -> None:
        self._me = me
        self._desk = desk
        self._room = room
        self._text = ChatText(room, me.name)

    async def run(self) -> None:
        """Until the person leaves; then to the last line that is for them."""
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGINT, self._interrupted)
        reading = asyncio.create_task(self._read())
        typing = asyncio.create_task(self._type())
        try:
            await asyncio.wait((reading, typing), return_when=asyncio.FIRST_COMPLETED)
            for task in (reading, typing):
                if task.done():
                    task.result()
            with suppress(TimeoutError):
                async with asyncio.timeout(LEAVE_S):
                    await self._me.leave(self._room)
            self._me.inbox.close()
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

    async def _read(self) -> None:
        async for event in self._me:
            text = self._text.message(event) if isinstance(event, Message) else self._text.news(event)
            if text is not None:
                self._desk.print(text)

    async def _type(self) -> None:
        while (line := await self._desk.line()) is not None:
            if line in ("/quit", "/q", "/exit", "/leave"):
                return
            if line == "/who":
                self._desk.print(self._text.who())
            elif line.startswith("//"):
                await self._say(line[1:])
            elif line.startswith("/"):
                self._desk.print(Text(f"There is no {line.split()[0]}: {HELP}.", "yellow"))
            elif line.strip():
                await self._say(line)

    async def _say(self, line: str) -> None:
        await self._me.send(self._room, line.encode())


def _own_names() -> list[str]:
    """The login, or the login with a number for one who is here several times; then whatever the daemon finds."""
    try:
        login = re.sub(r"[^A-Za-z0-9._-]", "", getpass.getuser())[: CLIENT_SIZE_MAX - 1]
    except (OSError, KeyError):
        login = ""
    numbers = [""] + [str(number) for number in range(2, NAMES_TRIED + 1)]
    return [*(login + number for number in numbers if login), ""]
